//! Heads: a bucket's pointer into the middle of its ring.
//!
//! A head is a hint, and may point to a node that was deleted; but never to one that was freed. So
//! a node counts the heads that point to it, and is retired when it is neither linked nor pointed
//! to. Who moves a head counts the new node first, which works only while that is linked.
//!
//! Whoever reads a head reads the node's `next` before anything else. Unmarked, the node is linked
//! (L1), and it and its successor may be followed. Marked, it may have been unlinked long ago, and
//! what it leads to freed: then the head is *stale*, it is taken off, and nothing behind it is
//! looked at.
//!
//! A node is marked, then its marker looks whether the head points to it; a head is moved, then the
//! mover looks whether the node is marked. All four accesses are `SeqCst`: one of the two sees
//! the other, so no stale head remains unless the marker used another table (see
//! [`crate::rehash`]).

use std::ptr::{NonNull, null_mut};

use crate::core::{Core, Spot};
use crate::link::{At, Entry, Link, Next, Node};
use crate::reclaim;
use crate::sync::atomic::Ordering;
use crate::table::{Bucket, PARTS, Table};

/// A head as the bucket stores it: the node's link, and in the low bits of its address one more
/// than the part of the bucket in which the node is, or zero for the last part. So a search for
/// something in a part before it does not touch the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(*mut Link);

// The alignment leaves the bits free.
const _: () = assert!(align_of::<Link>() >= PARTS);

impl Word {
    const NONE: Self = Self(null_mut());

    pub(crate) fn new(table: &Table, at: At<'_>) -> Self {
        let part = table.slot_of(at.order()).part;
        Self(
            at.as_ptr()
                .map_addr(|address| address | ((part + 1) % PARTS)),
        )
    }

    /// The head that a bucket stores now.
    #[inline(always)]
    pub(crate) fn of(bucket: &Bucket) -> Self {
        Self(bucket.head.load(Ordering::SeqCst))
    }

    /// Whether there is a node, in this part of the bucket or one before. Both at once, without a branch.
    #[inline(always)]
    pub(crate) fn is_within(self, part: usize) -> bool {
        (self.0.addr().wrapping_sub(1) % PARTS <= part) & !self.0.is_null()
    }

    /// The pointer to the node's link, or null.
    #[inline(always)]
    pub(crate) fn untagged(self) -> *mut Link {
        self.0.wrapping_byte_sub(self.0.addr() % PARTS)
    }

    /// The node's link.
    pub(crate) fn link(self) -> Option<NonNull<Link>> {
        NonNull::new(self.untagged())
    }
}

impl From<*mut Link> for Word {
    fn from(stored: *mut Link) -> Self {
        Self(stored)
    }
}

impl Spot<'_> {
    /// Whether the bucket's head points to `at`.
    pub(crate) fn heads(self, at: At<'_>) -> bool {
        Word::of(self.bucket) == Word::new(self.table, at)
    }
}

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
    pub(crate) fn head<'g>(&self, spot: Spot<'g>) -> Head<'g> {
        self.look_at(spot, Word::of(spot.bucket))
    }

    /// The same, but none if it is in a later part of the bucket than what is accessed, and a search from
    /// it would be in vain.
    pub(crate) fn head_towards<'g>(&self, spot: Spot<'g>) -> Head<'g> {
        let word = Word::of(spot.bucket);
        if !word.is_within(spot.part) {
            return Head::None;
        }
        self.look_at(spot, word)
    }

    #[inline(always)]
    fn look_at<'g>(&self, spot: Spot<'g>, word: Word) -> Head<'g> {
        let Some(head) = word.link() else {
            return Head::None;
        };
        // SAFETY: the node is counted by the head, so when it was read the node was not retired,
        // and the memory stays. If the node is not marked it is linked, as `At` asks; else nothing
        // behind it is looked at.
        let at = unsafe { At::new(head, spot.guard) };
        let next = at.next();
        if next.marked() {
            self.take_off(spot.bucket, word, at);
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
        let from = old.map_or(Word::NONE, |old| Word::new(spot.table, old));
        let to = Word::new(spot.table, new);
        let moved =
            spot.bucket
                .head
                .compare_exchange(from.0, to.0, Ordering::SeqCst, Ordering::Relaxed);
        if moved.is_err() {
            self.release(new);
            return false;
        }
        if let Some(old) = old {
            self.release(old);
        }
        if new.is_marked_now() {
            self.take_off(spot.bucket, to, new);
        }
        true
    }

    /// Takes the head off, if it is still `word`, which points to `at`.
    #[cold]
    fn take_off(&self, bucket: &Bucket, word: Word, at: At<'_>) {
        let taken =
            bucket
                .head
                .compare_exchange(word.0, null_mut(), Ordering::SeqCst, Ordering::Relaxed);
        if taken.is_ok() {
            self.release(at);
        }
    }

    /// Hands the head on, if it points to `old`, which the caller has just marked: to `heir` if that
    /// is a node that is still linked, else to nothing. A node that follows `old` is of its bucket, for the
    /// next bucket's anchor stands between.
    pub(crate) fn inherit<'g>(&self, spot: Spot<'g>, old: At<'g>, heir: Option<At<'g>>) {
        if !spot.heads(old) {
            return;
        }
        let heir = heir.filter(|heir| heir.is_node());
        if !heir.is_some_and(|heir| self.swing(spot, Some(old), heir)) {
            self.take_off(spot.bucket, Word::new(spot.table, old), old);
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
