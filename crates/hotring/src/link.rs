//! The links of the one list, and the header of the nodes that carry entries.
//!
//! All entries of a map form one list in the order of their hashes, through all buckets; a
//! bucket's *anchor* is a link of that list without an entry. The low bit of a link's `next`
//! is its *mark*: the link is no longer part of the map, and its `next` never changes again.
//!
//! The next bit says what a pointer leads to: a node, or else an anchor or the list's end. The
//! order of an anchor is nowhere in memory: it follows from the pointer (see [`crate::anchor`]). So
//! a search that comes to an anchor knows where that stands without a look at it.
//!
//! Words used in every argument below. A link is *linked* when it can be reached by `next`
//! from the first anchor. Three facts about linked links carry everything:
//!
//! - **L1** A link that was inserted and is not marked is linked. (Only marked links are
//!   unlinked, and a predecessor that is itself marked is not changed any more.)
//! - **L2** A link that was unlinked is never linked again, and a node in the list has one
//!   linked predecessor, so exactly one exchange unlinks it.
//! - **L3** Suppose somebody holds a guard and a link `a` that was linked at some moment since the
//!   guard was taken, and reads `a.next == b`. Then `b` is such a link too. If `a` was not marked
//!   when read, `b` was linked then. If it was, `a.next` has been frozen since a moment `m`. Then
//!   `b` was linked at the later of `m` and the moment at which `a` is known to have been linked,
//!   because `a` was linked then and its successor was `b`. A link's memory is given back only when
//!   every guard is gone that was taken before the link was unlinked: so `b` may be looked at.
//!
//! [`At`] is a link of which L3 holds; walking by [`At::next`] is safe code for that reason.

use std::marker::PhantomData;
use std::ptr::{NonNull, without_provenance_mut};

use crate::anchor;
use crate::reclaim::{self, Guard};
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use crate::sync::counting;

const _: () = assert!(
    usize::BITS == 64,
    "pointers have no room for what is in them"
);

/// The bits of a pointer that belong to an address. Systems of 64 bits leave the upper ones free:
/// no memory lies where they would be needed, unless it is asked for by a hint. The alignment of
/// links leaves the lowest ones free.
pub(crate) const ADDRESS: usize = usize::MAX >> 16 & !7;

const MARK: usize = 1;

/// The bit of a pointer that does not lead to a node.
pub(crate) const NO_NODE: usize = 2;

/// What the list's last link leads to.
pub(crate) const END: *mut Link = without_provenance_mut(NO_NODE);

/// Whether a pointer without a mark leads to no node: to an anchor, or it is [`END`].
#[inline(always)]
pub(crate) fn is_no_node(link: *mut Link) -> bool {
    link.addr() & NO_NODE != 0
}

/// What the list is made of: a bucket's anchor, or the front of a node. The alignment leaves the
/// low bits of its address to the mark and to what it is.
#[repr(C, align(8))]
#[derive(Debug)]
pub(crate) struct Link {
    /// The next link, and in the low bit the mark of *this* one.
    pub(crate) next: AtomicPtr<Link>,
}

impl Link {
    pub(crate) fn new() -> Self {
        Self {
            next: AtomicPtr::new(END),
        }
    }

    /// Reads the next link, for whoever may follow it: see [`At::next`].
    #[inline(always)]
    pub(crate) fn next<'g>(&self, guard: &'g Guard) -> Next<'g> {
        Next {
            word: self.next.load(Ordering::Acquire),
            guard,
        }
    }
}

/// The order of the nodes whose keys have this hash.
#[inline(always)]
pub(crate) fn order_of(hash: u64) -> u64 {
    hash | 1
}

/// The header of a node; the entry follows it in the same allocation.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Node {
    link: Link,
    /// Where it stands: the hash with its low bit set, an odd number. An anchor stands at the first
    /// order of its bucket, which is even.
    order: u64,
    state: AtomicU32,
    count: counting::AtomicU16,
    /// While a head points here, and a round of sampling runs: how many samples it still lacks.
    lacking: counting::AtomicU16,
}

/// The most accesses that are counted, and the most samples of a round.
pub(crate) const MOST: u16 = u16::MAX / 2;

/// The node is in the list, as far as those that unlink know.
const LINKED: u32 = 1 << 31;

impl Node {
    pub(crate) fn new(order: u64) -> Self {
        Self {
            link: Link::new(),
            order,
            state: AtomicU32::new(LINKED),
            count: counting::AtomicU16::new(0),
            lacking: counting::AtomicU16::new(0),
        }
    }

    /// Adds a head that points here, unless the node has been unlinked.
    pub(crate) fn acquire(&self) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        while state & LINKED != 0 {
            match self.state.compare_exchange_weak(
                state,
                state + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Takes a head off. Says whether the node is unreachable from now on. That is true for one
    /// call in a node's life, of this or of [`Node::unlinked`]: the state does not rise from zero
    /// again, because [`Node::acquire`] needs the bit that is gone.
    #[must_use]
    pub(crate) fn release(&self) -> bool {
        self.state.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Notes that the node was unlinked, which happens once (L2); says whether it is
    /// unreachable from now on.
    #[must_use]
    pub(crate) fn unlinked(&self) -> bool {
        self.state.fetch_sub(LINKED, Ordering::AcqRel) == LINKED
    }

    /// How many accesses were counted since the count was last cleared.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed).into()
    }

    /// Counts an access. The counter is a word of its own, so no overflow reaches a flag and no
    /// exchange of a pointer fails because of it; it stops in the upper half of its range, far
    /// enough from the end for all threads that passed the check together.
    pub(crate) fn count_access(&self) {
        if self.count.load(Ordering::Relaxed) < MOST {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Clears the count.
    pub(crate) fn clear_count(&self) {
        self.count.store(0, Ordering::Relaxed);
    }

    /// How many samples the round lacks that runs while the head points here.
    pub(crate) fn lacking(&self) -> u16 {
        self.lacking.load(Ordering::Relaxed)
    }

    pub(crate) fn set_lacking(&self, samples: u16) {
        self.lacking.store(samples, Ordering::Relaxed);
    }

    /// Takes a sample, unless only one is lacking: that one ends the round, which is for one thread
    /// to do. If another thread takes one at the same time, this one is extra.
    pub(crate) fn take_sample(&self) -> bool {
        let lacking = self.lacking();
        let goes_on = lacking > 1;
        if goes_on {
            let (relaxed, left) = (Ordering::Relaxed, lacking - 1);
            let _ = self
                .lacking
                .compare_exchange(lacking, left, relaxed, relaxed);
        }
        goes_on
    }

    #[cfg(test)]
    pub(crate) fn state(&self) -> (bool, u32) {
        let state = self.state.load(Ordering::Relaxed);
        (state & LINKED != 0, state & !LINKED)
    }

    #[cfg(all(test, not(any(hotring_loom, hotring_shuttle))))]
    pub(crate) fn set_count(&self, count: u16) {
        self.count.store(count, Ordering::Relaxed);
    }
}

/// A link that was linked at some moment since its guard was taken (see L3 above).
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'g> {
    link: NonNull<Link>,
    guard: &'g Guard,
}

impl PartialEq for At<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.link == other.link
    }
}

impl<'g> At<'g> {
    /// # Safety
    ///
    /// `link` leads to a link that was linked at some moment since `guard` was taken. It comes from
    /// [`anchor::Pointers`], or it is the pointer to a [`Node`] and may be used for its whole
    /// allocation.
    #[inline(always)]
    pub(crate) unsafe fn new(link: NonNull<Link>, guard: &'g Guard) -> Self {
        let at = Self { link, guard };
        reclaim::reached(guard, at.place());
        at
    }

    /// Where it is.
    #[inline(always)]
    fn place(self) -> NonNull<Link> {
        if self.is_node() {
            return self.link;
        }
        let place = self.link.as_ptr().map_addr(|address| address & ADDRESS);
        // SAFETY: there is an anchor.
        unsafe { NonNull::new_unchecked(place) }
    }

    #[inline(always)]
    fn get(self) -> &'g Link {
        // SAFETY: valid for as long as the guard lives, by L3. Only shared references to links
        // exist once they are in the list.
        unsafe { self.place().as_ref() }
    }

    #[inline(always)]
    pub(crate) fn guard(self) -> &'g Guard {
        self.guard
    }

    /// What leads here.
    #[inline(always)]
    pub(crate) fn as_ptr(self) -> *mut Link {
        self.link.as_ptr()
    }

    #[inline(always)]
    pub(crate) fn order(self) -> u64 {
        match self.node() {
            Some(node) => node.order,
            None => anchor::order(self.link.as_ptr()),
        }
    }

    /// Whether it is a node and no anchor.
    #[inline(always)]
    pub(crate) fn is_node(self) -> bool {
        !is_no_node(self.link.as_ptr())
    }

    /// The header, if it is a node.
    #[inline(always)]
    pub(crate) fn node(self) -> Option<&'g Node> {
        // SAFETY: what is no anchor is the front of a node, and valid as in `get`.
        self.is_node()
            .then(|| unsafe { self.link.cast::<Node>().as_ref() })
    }

    /// The pointer to the node; of use only if it is one.
    #[inline(always)]
    pub(crate) fn node_ptr(self) -> NonNull<Node> {
        self.link.cast()
    }

    /// Reads the next link, and with it whether this one is marked.
    #[inline(always)]
    pub(crate) fn next(self) -> Next<'g> {
        self.get().next(self.guard)
    }

    /// Whether it is marked, in the order of all `SeqCst` accesses: see [`crate::head`].
    pub(crate) fn is_marked_now(self) -> bool {
        self.get().next.load(Ordering::SeqCst).addr() & MARK != 0
    }

    /// Exchanges an unmarked `next`. `SeqCst`, because the exchange that marks takes part in the
    /// order that [`crate::head`] relies on.
    ///
    /// # Safety
    ///
    /// Walking on over `new` keeps L1 to L3: it is this link's successor with the mark, or a new
    /// node or anchor that leads to the successor, or this link is unmarked and `new` is the frozen
    /// successor of its marked successor.
    pub(crate) unsafe fn exchange_next(self, from: *mut Link, new: *mut Link) -> bool {
        self.get()
            .next
            .compare_exchange(from, new, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }

    /// Marks it without a successor of its own: it is deleted. False if another thread was first,
    /// or `from` is no longer its next.
    pub(crate) fn mark(self, from: *mut Link) -> bool {
        // SAFETY: the successor stays the same.
        unsafe { self.exchange_next(from, with_mark(from)) }
    }
}

/// What [`At::next`] read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next<'g> {
    word: *mut Link,
    guard: &'g Guard,
}

impl<'g> Next<'g> {
    /// Whether the link it was read from is marked.
    #[inline(always)]
    pub(crate) fn marked(self) -> bool {
        self.word.addr() & MARK != 0
    }

    /// The pointer, for a caller that has seen that there is no mark, or knows that there can be
    /// none: then the mark need not be taken off.
    #[inline(always)]
    pub(crate) fn unmarked(self) -> *mut Link {
        debug_assert!(!self.marked());
        self.word
    }

    /// The pointer without the mark.
    #[inline(always)]
    pub(crate) fn as_ptr(self) -> *mut Link {
        self.word.wrapping_byte_sub(self.word.addr() & MARK)
    }

    #[cold]
    #[inline(never)]
    fn unmark(self) -> *mut Link {
        self.as_ptr()
    }

    /// The next link, if the list does not end here.
    #[inline(always)]
    pub(crate) fn at(self) -> Option<At<'g>> {
        // A mark is rare. The processor foresees that there is none, so it does not delay the next
        // access.
        let link = if self.marked() {
            self.unmark()
        } else {
            self.word
        };
        // SAFETY: no pointer in the list is null; L3, as the link it was read from is an `At` of
        // the same guard.
        (link != END).then(|| unsafe { At::new(NonNull::new_unchecked(link), self.guard) })
    }
}

/// `next` with the mark of the link that holds it.
pub(crate) fn with_mark(next: *mut Link) -> *mut Link {
    next.map_addr(|address| address | MARK)
}

/// What a node carries behind its header.
///
/// # Safety
///
/// `free` gives back the whole allocation of a node, and reads nothing but it. It is `'static` and
/// safe to run on any thread, because any thread may run it when the last guard goes.
pub(crate) unsafe trait Entry: Sized + 'static {
    /// Drops the entry and frees the node.
    ///
    /// # Safety
    ///
    /// `node` was made for this type of entry, and nobody uses it any more.
    unsafe fn free(node: NonNull<Node>);

    /// The bytes of the node's allocation.
    ///
    /// # Safety
    ///
    /// `node` was made for this type of entry and is not freed.
    unsafe fn bytes(node: NonNull<Node>) -> usize;
}

/// A node that is not in the list yet.
#[derive(Debug)]
pub(crate) struct Owned<E: Entry> {
    node: NonNull<Node>,
    _entry: PhantomData<E>,
}

impl<E: Entry> Owned<E> {
    /// # Safety
    ///
    /// `node` is a new node for entries of type `E`, and the pointer may be used for its whole
    /// allocation.
    pub(crate) unsafe fn new(node: NonNull<Node>) -> Self {
        Self {
            node,
            _entry: PhantomData,
        }
    }

    pub(crate) fn order(&self) -> u64 {
        // SAFETY: it is ours.
        unsafe { self.node.as_ref() }.order
    }

    pub(crate) fn bytes(&self) -> usize {
        // SAFETY: made for `E`, and ours.
        unsafe { E::bytes(self.node) }
    }

    pub(crate) fn node(&self) -> NonNull<Node> {
        self.node
    }

    pub(crate) fn link(&self) -> *mut Link {
        self.node.as_ptr().cast()
    }

    /// Sets where it leads; the exchange that puts it into the list publishes this.
    pub(crate) fn set_next(&self, next: *mut Link) {
        // SAFETY: it is ours, and not in the list.
        unsafe { self.node.as_ref() }
            .link
            .next
            .store(next, Ordering::Relaxed);
    }

    /// Gives the node away: to the list, or to whoever takes its entry out.
    pub(crate) fn into_raw(self) -> NonNull<Node> {
        let node = self.node;
        std::mem::forget(self);
        node
    }
}

impl<E: Entry> Drop for Owned<E> {
    fn drop(&mut self) {
        // SAFETY: it is ours, and never was in the list.
        unsafe { E::free(self.node) }
    }
}
