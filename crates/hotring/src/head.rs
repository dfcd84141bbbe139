//! Heads: a bucket's pointer into the middle of its ring.
//!
//! A head is a hint, and may point to a node that was deleted; but never to one that was freed. So
//! a node counts the heads that point to it, and is retired when it is neither linked nor pointed
//! to. Who moves a head counts the new node first, which works only while that is linked.
//!
//! Whoever reads a head reads the node's `next` before anything else. Unmarked, the node is
//! linked (L1), and it and its successor may be followed. Marked, it may have been unlinked long ago, and what
//! it leads to freed: then the head is *stale*, it is taken off, and nothing behind it is looked at.
//!
//! A node is marked, then its marker looks whether the head points to it; a head is moved, then the
//! mover looks whether the node is marked. All four accesses are `SeqCst`: one of the two sees
//! the other, so no stale head remains unless the marker used another table (see
//! [`crate::rehash`]).

use std::ptr::{NonNull, null_mut};

use crate::core::{Core, Spot};
use crate::link::{At, Entry, Next, Node};
use crate::reclaim;
use crate::sync::atomic::Ordering;

/// What a bucket's head points to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Head<'g> {
    /// Nothing, or it was stale.
    None,
    /// A node of the bucket and its `next`, which had no mark.
    Live(At<'g>, Next<'g>),
}

impl<E: Entry> Core<E> {
    /// Reads the head. Takes it off if it is stale.
    #[inline(always)]
    pub(crate) fn head<'g>(&self, spot: Spot<'g>) -> Head<'g> {
        let Some(head) = NonNull::new(spot.bucket.head.load(Ordering::SeqCst)) else {
            return Head::None;
        };
        // SAFETY: the node is counted by the head, so when it was read the node was not retired, and the memory
        // stays. If the node is not marked it is linked, as `At` asks; else nothing behind it is
        // looked at.
        let at = unsafe { At::new(head, spot.guard) };
        let next = at.next();
        if next.marked() {
            self.take_off(spot, at);
            return Head::None;
        }
        Head::Live(at, next)
    }

    /// Moves the head from `old` to `new`, unless it has moved or `new` was unlinked already.
    pub(crate) fn swing<'g>(&self, spot: Spot<'g>, old: Option<At<'g>>, new: At<'g>) -> bool {
        let Some(node) = new.node() else { return false };
        if !node.acquire() {
            return false;
        }
        let from = old.map_or(null_mut(), At::as_ptr);
        let moved = spot.bucket.head.compare_exchange(
            from,
            new.as_ptr(),
            Ordering::SeqCst,
            Ordering::Relaxed,
        );
        if moved.is_err() {
            self.release(new);
            return false;
        }
        if let Some(old) = old {
            self.release(old);
        }
        if new.is_marked_now() {
            self.take_off(spot, new);
        }
        true
    }

    /// Takes the head off, if it still points to `at`.
    #[cold]
    pub(crate) fn take_off<'g>(&self, spot: Spot<'g>, at: At<'g>) {
        let taken = spot.bucket.head.compare_exchange(
            at.as_ptr(),
            null_mut(),
            Ordering::SeqCst,
            Ordering::Relaxed,
        );
        if taken.is_ok() {
            self.release(at);
        }
    }

    /// Hands the head on, if it points to `old`, which the caller has just marked: to `heir` if that
    /// is a node that is still linked, else to nothing. A node that follows `old` is of its bucket, for the
    /// next bucket's anchor stands between.
    pub(crate) fn inherit<'g>(&self, spot: Spot<'g>, old: At<'g>, heir: Option<At<'g>>) {
        if spot.bucket.head.load(Ordering::SeqCst) != old.as_ptr() {
            return;
        }
        let heir = heir.filter(|heir| heir.is_node());
        if !heir.is_some_and(|heir| self.swing(spot, Some(old), heir)) {
            self.take_off(spot, old);
        }
    }

    /// Takes off the count of a head that pointed to `at`.
    pub(crate) fn release(&self, at: At<'_>) {
        if let Some(node) = at.node()
            && node.release()
        {
            self.retire(at);
        }
    }

    /// Retires a node that is neither linked nor pointed to by a head.
    pub(crate) fn retire(&self, at: At<'_>) {
        let node = at.node_ptr();
        // SAFETY: a guard taken from now on finds the node neither in the list (L2) nor in a head. State zero
        // is reached once, so this is the one call. The entry is of type `E`.
        unsafe {
            reclaim::retire::<Node>(at.guard(), node, [node.addr().get()].into_iter(), |node| {
                E::free(node);
            });
        }
    }
}
