//! Heads: a bucket's pointer into the middle of its ring.
//!
//! A head is a hint. It may point to a node that was deleted, but never to one that was freed. So a
//! node counts the heads that point to it, and is retired when it is neither linked nor pointed to.
//! Whoever moves a head first counts it in the new node, which works only while that node is
//! linked.
//!
//! Whoever reads a head reads the node's `next` before anything else. If that has no mark, the node
//! is linked (L1), and it and its successor may be followed. If it has a mark, the node may have
//! been unlinked long ago, and what it leads to may have been freed. Then the head is *stale*: it
//! is taken off, and nothing behind it is looked at.
//!
//! Whoever marks a node then looks whether the head points to it. Whoever moves a head then looks
//! whether the node is marked. All four accesses are `SeqCst`, so one of the two sees the other,
//! and no stale head remains unless the marker used another table (see [`crate::rehash`]).

use std::ptr::{NonNull, without_provenance_mut};

use crate::core::{Core, Spot};
use crate::link::{At, Entry, Link, Next, Node};
use crate::reclaim;
use crate::sync::atomic::Ordering;
use crate::table::{Bucket, Table};

/// The bits of a word that belong to an address. Systems of 64 bits leave the upper ones free: no
/// memory lies where they would be needed, unless it is asked for by a hint.
const ADDRESS: usize = usize::MAX >> if usize::BITS == 64 { 16 } else { 0 };

/// The *part* of a bucket in which a place is: its position in the order of the hashes, as exactly
/// as there are bits for it.
pub(crate) fn part_of(place: usize) -> usize {
    place & !ADDRESS
}

/// A head as the bucket stores it: the node's link, and in the upper bits of its address the part
/// of the bucket in which the node is. So a search for something in an earlier part does not touch
/// the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(*mut Link);

impl Word {
    /// No head: behind every place.
    pub(crate) const NONE: Self = Self(without_provenance_mut(usize::MAX));

    /// The head at `at`. None if its address has bits where the part would be, such as a memory
    /// checker's tag.
    pub(crate) fn new(table: &Table, at: At<'_>) -> Option<Self> {
        Self::pack(at.as_ptr(), table.slot_of(at.order()).place)
    }

    fn pack(link: *mut Link, place: usize) -> Option<Self> {
        let has_room = part_of(link.addr()) == 0;
        has_room.then(|| Self(link.map_addr(|address| address | part_of(place))))
    }

    /// The head that a bucket stores now.
    #[inline(always)]
    pub(crate) fn of(bucket: &Bucket) -> Self {
        Self(bucket.head.load(Ordering::SeqCst))
    }

    /// As a bucket stores it.
    pub(crate) fn stored(self) -> *mut Link {
        self.0
    }

    /// Whether there is a node, and it is in the part of this place or in an earlier one.
    #[inline(always)]
    pub(crate) fn is_within(self, place: usize) -> bool {
        self.0.addr() < place | ADDRESS
    }

    /// The pointer to the node's link, if there is one.
    #[inline(always)]
    pub(crate) fn untagged(self) -> *mut Link {
        self.0.map_addr(|address| address & ADDRESS)
    }

    /// The node's link.
    pub(crate) fn link(self) -> Option<NonNull<Link>> {
        let is_node = self != Self::NONE;
        is_node.then(|| NonNull::new(self.untagged())).flatten()
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
        Some(Word::of(self.bucket)) == Word::new(self.table, at)
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

    /// The same, but none if the head is in a later part of the bucket than what is accessed: a
    /// search from it would be in vain.
    pub(crate) fn head_towards<'g>(&self, spot: Spot<'g>) -> Head<'g> {
        let word = Word::of(spot.bucket);
        if !word.is_within(spot.place) {
            return Head::None;
        }
        self.look_at(spot, word)
    }

    #[inline(always)]
    fn look_at<'g>(&self, spot: Spot<'g>, word: Word) -> Head<'g> {
        let Some(head) = word.link() else {
            return Head::None;
        };
        // SAFETY: the head counts in the node, so the node was not retired when the head was read,
        // and its memory stays. If the node is not marked it is linked, as `At` asks. If it is
        // marked, nothing behind it is looked at.
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
        let from = old.map_or(Some(Word::NONE), |old| Word::new(spot.table, old));
        let (Some(from), Some(to)) = (from, Word::new(spot.table, new)) else {
            return false;
        };
        let Some(node) = new.node() else { return false };
        if !node.acquire() {
            return false;
        }
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
                .compare_exchange(word.0, Word::NONE.0, Ordering::SeqCst, Ordering::Relaxed);
        if taken.is_ok() {
            self.release(at);
        }
    }

    /// Hands the head on if it points to `old`, which the caller has just marked. It goes to `heir`
    /// if that is a node that is still linked, and otherwise to nothing. A node that follows `old`
    /// is in the same bucket, because the next bucket's anchor stands between the buckets.
    pub(crate) fn inherit<'g>(&self, spot: Spot<'g>, old: At<'g>, heir: Option<At<'g>>) {
        let word = Word::of(spot.bucket);
        if Word::new(spot.table, old) != Some(word) {
            return;
        }
        let heir = heir.filter(|heir| heir.is_node());
        if !heir.is_some_and(|heir| self.swing(spot, Some(old), heir)) {
            self.take_off(spot.bucket, word, old);
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
        // SAFETY: a guard taken from now on finds the node neither in the list (L2) nor in a head.
        // State zero is reached once, so this is the one call. The entry is of type `E`.
        unsafe {
            reclaim::retire::<Node>(at.guard(), node, [node.addr().get()].into_iter(), |node| {
                E::free(node);
            });
        }
    }
}

#[cfg(all(test, not(any(hotring_loom, hotring_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_within_its_part_and_those_behind() {
        let last = usize::MAX;
        assert!(!Word::NONE.is_within(0) && !Word::NONE.is_within(last));
        assert_eq!(Word::NONE.link(), None);
        let link = without_provenance_mut::<Link>(0x1230);
        // The highest two bits, where there are any for parts.
        let places = [0, 1, 2, 3].map(|i| i << (usize::BITS - 2));
        for (part, place) in places.into_iter().enumerate() {
            let word = Word::pack(link, place | 5).expect("room for a part");
            assert_eq!(word.link(), NonNull::new(link));
            let within = places.map(|place| word.is_within(place));
            let expected = [0, 1, 2, 3].map(|other| other >= part || ADDRESS == usize::MAX);
            assert_eq!(within, expected, "{part}");
            assert!(word.is_within(place | (ADDRESS >> 1)) && word.is_within(last));
        }
    }

    /// This happens where the allocator tags the addresses that it gives out.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn an_address_with_bits_where_the_part_would_be_gets_no_head() {
        let link = without_provenance_mut::<Link>(0x0b00_0000_0000_1230);
        assert_eq!(Word::pack(link, 0), None);
    }
}
