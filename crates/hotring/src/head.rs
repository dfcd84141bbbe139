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
//!
//! What is known of the accesses to a ring is in its head, too. Whoever moves the head takes it
//! along, and whoever takes the head off forgets it.

use std::ptr::{NonNull, without_provenance_mut};

use crate::calm::Calm;
use crate::core::{Core, Spot};
use crate::link::{ADDRESS, At, Entry, Link, Next, Node};
use crate::reclaim::{self, Guard};
use crate::sync::atomic::Ordering;
use crate::table::{Bucket, Table};

/// The bits of a word that say in which part of the bucket the node is.
const PART: usize = usize::MAX << 51;

/// The first of the three bits of a [`Calm`]'s level.
const LEVEL: u32 = 48;

/// Set when no round of sampling runs.
const QUIET: usize = 1;

/// Set until the first round has ended.
const UNSAMPLED: usize = 2;

/// The *part* of a bucket in which a place is: its position in the order of the hashes, as exactly
/// as there are bits for it.
pub(crate) fn part_of(place: usize) -> usize {
    place & PART
}

/// A head as the bucket stores it:
///
/// ```text
///  63        51 50 48 47                                 3  2   1   0
/// ┌────────────┬─────┬────────────────────────────────────┬───┬───┬───┐
/// │    part    │level│        address of the node         │   │ u │ q │
/// └────────────┴─────┴────────────────────────────────────┴───┴───┴───┘
/// ```
///
/// By the part of the bucket in which the node is, a search for something in an earlier part knows
/// without a look at the node that it is too far. The other bits say how the ring is sampled:
/// [`QUIET`], and a [`Calm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(*mut Link);

impl Word {
    /// No head: behind every place, and quiet.
    pub(crate) const NONE: Self = Self(without_provenance_mut(usize::MAX));

    /// A head at `at`, which takes over what this one knows of the ring. None if `at` is no node,
    /// or its address has bits where others would be, such as a memory checker's tag.
    pub(crate) fn moved_to(self, table: &Table, at: At<'_>) -> Option<Self> {
        let place = table.slot_of(at.order()).place;
        at.is_node().then(|| self.pack(at.as_ptr(), place))?
    }

    fn pack(self, link: *mut Link, place: usize) -> Option<Self> {
        let has_room = link.addr() & !ADDRESS == 0;
        let word = Self(link.map_addr(|address| address | part_of(place) | QUIET));
        let calm = match self.link() {
            Some(_) => self.calm(),
            None => Calm::AT_FIRST,
        };
        let word = word.with_calm(calm);
        let word = if self.is_sampled() {
            word.with_round()
        } else {
            word
        };
        has_room.then_some(word)
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
        // No node's word has all of the bits below the part.
        self.0.addr() < place | !PART
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

    /// The node, if there is one.
    pub(crate) fn at(self, guard: &Guard) -> Option<At<'_>> {
        // SAFETY: the head counts in the node, so the node was not retired when the head was read
        // under the guard, and its memory stays. Its `next` is followed only if that is unmarked:
        // then the node is linked, as `At` asks.
        self.link().map(|head| unsafe { At::new(head, guard) })
    }

    /// Whether it points to `at`.
    pub(crate) fn leads_to(self, at: At<'_>) -> bool {
        self.link().map(NonNull::as_ptr) == Some(at.as_ptr())
    }

    /// Whether a round of sampling runs.
    #[inline(always)]
    pub(crate) fn is_sampled(self) -> bool {
        self.0.addr() & QUIET == 0
    }

    /// The same with a round of sampling.
    pub(crate) fn with_round(self) -> Self {
        Self(self.0.map_addr(|word| word & !QUIET))
    }

    /// The same without one.
    pub(crate) fn without_round(self) -> Self {
        Self(self.0.map_addr(|word| word | QUIET))
    }

    pub(crate) fn calm(self) -> Calm {
        Calm {
            level: (self.0.addr() >> LEVEL & 7) as u8,
            is_unsampled: self.0.addr() & UNSAMPLED != 0,
        }
    }

    pub(crate) fn with_calm(self, calm: Calm) -> Self {
        let Calm {
            level,
            is_unsampled,
        } = calm;
        let bits = usize::from(level) << LEVEL | if is_unsampled { UNSAMPLED } else { 0 };
        Self(
            self.0
                .map_addr(|word| word & !(7 << LEVEL | UNSAMPLED) | bits),
        )
    }
}

impl From<*mut Link> for Word {
    fn from(stored: *mut Link) -> Self {
        Self(stored)
    }
}

impl Bucket {
    /// Exchanges the head, and yields the present one if that is another. Both accesses take part
    /// in the order that the module's argument needs.
    fn exchange_head(&self, from: Word, to: Word) -> Result<(), Word> {
        self.head
            .compare_exchange(from.0, to.0, Ordering::SeqCst, Ordering::SeqCst)
            .map(drop)
            .map_err(Word)
    }

    /// Changes what the head knows of the ring, unless the head has changed.
    pub(crate) fn note(&self, from: Word, to: Word) -> bool {
        debug_assert_eq!(from.link(), to.link());
        self.exchange_head(from, to).is_ok()
    }
}

impl Spot<'_> {
    /// Whether the bucket's head points to `at`.
    pub(crate) fn heads(self, at: At<'_>) -> bool {
        Word::of(self.bucket).leads_to(at)
    }
}

/// What a bucket's head points to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Head<'g> {
    /// Nothing, or it was stale.
    None,
    /// A node of the bucket and its `next`, which had no mark.
    Live(Word, At<'g>, Next<'g>),
}

impl Head<'_> {
    /// As it was read, or none if it was stale.
    pub(crate) fn word(self) -> Word {
        match self {
            Self::None => Word::NONE,
            Self::Live(word, ..) => word,
        }
    }
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
        let Some(at) = word.at(spot.guard) else {
            return Head::None;
        };
        let next = at.next();
        if next.marked() {
            self.take_off(spot.bucket, word, at);
            return Head::None;
        }
        Head::Live(word, at, next)
    }

    /// Moves the head from where `from`, which was read under this guard, points to `new`, unless
    /// the head has changed or `new` was unlinked already.
    pub(crate) fn swing<'g>(&self, spot: Spot<'g>, from: Word, new: At<'g>) -> bool {
        let (Some(to), Some(node)) = (from.moved_to(spot.table, new), new.node()) else {
            return false;
        };
        if !node.acquire() {
            return false;
        }
        let old = from.at(spot.guard);
        if from.is_sampled()
            && let Some(old) = old.and_then(At::node)
        {
            node.set_lacking(old.lacking());
        }
        if spot.bucket.exchange_head(from, to).is_err() {
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

    /// Takes the head off if it points to `at`, as `word` does. What it knows of the ring may
    /// change meanwhile.
    #[cold]
    fn take_off(&self, bucket: &Bucket, mut word: Word, at: At<'_>) {
        while word.leads_to(at) {
            match bucket.exchange_head(word, Word::NONE) {
                Ok(()) => return self.release(at),
                Err(now) => word = now,
            }
        }
    }

    /// Hands the head on if it points to `old`, which the caller has just marked. It goes to `heir`
    /// if that is a node that is still linked, and otherwise to nothing. A node that follows `old`
    /// is in the same bucket, because the next bucket's anchor stands between the buckets.
    pub(crate) fn inherit<'g>(&self, spot: Spot<'g>, old: At<'g>, heir: Option<At<'g>>) {
        let heir = heir.filter(|heir| heir.is_node());
        let mut word = Word::of(spot.bucket);
        while word.leads_to(old) {
            if heir.is_some_and(|heir| self.swing(spot, word, heir)) {
                return;
            }
            let now = Word::of(spot.bucket);
            if now == word {
                return self.take_off(spot.bucket, word, old);
            }
            word = now;
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

    /// The word of a first head.
    fn word(link: *mut Link, place: usize) -> Word {
        Word::NONE.pack(link, place).expect("room for all of it")
    }

    #[test]
    fn a_word_is_within_its_part_and_those_behind() {
        let last = usize::MAX;
        assert!(!Word::NONE.is_within(0) && !Word::NONE.is_within(last));
        assert_eq!(Word::NONE.link(), None);
        assert!(!Word::NONE.is_sampled());
        let link = without_provenance_mut::<Link>(0x1230);
        let places = [0, 1, 2, 3].map(|i| i << (usize::BITS - 2));
        for (part, place) in places.into_iter().enumerate() {
            let word = word(link, place | 5);
            assert_eq!(word.link(), NonNull::new(link));
            let within = places.map(|place| word.is_within(place));
            assert_eq!(within, [0, 1, 2, 3].map(|other| other >= part), "{part}");
            assert!(word.is_within(place | !PART) && word.is_within(last));
        }
    }

    #[test]
    fn what_a_head_knows_goes_with_it_and_changes_nothing_else() {
        let (first, second) = (0x1230, usize::MAX & ADDRESS);
        let [first, second] = [first, second].map(without_provenance_mut::<Link>);
        let fresh = word(first, usize::MAX);
        assert_eq!((fresh.calm(), fresh.is_sampled()), (Calm::AT_FIRST, false));
        for (level, is_unsampled) in (0..8).flat_map(|level| [(level, true), (level, false)]) {
            let calm = Calm {
                level,
                is_unsampled,
            };
            let quiet = fresh.with_calm(calm);
            for word in [quiet, quiet.with_round()] {
                let moved = word.pack(second, 0).expect("room for all of it");
                assert_eq!(
                    (moved.calm(), moved.is_sampled()),
                    (calm, word.is_sampled())
                );
                assert_eq!(moved.link(), NonNull::new(second));
                assert!(moved.is_within(0) && !word.is_within(0));
                assert_eq!(word.link(), NonNull::new(first));
            }
            assert_eq!(quiet.with_round().without_round(), quiet);
            assert!(quiet.with_round().is_sampled());
        }
    }

    /// This happens where the allocator tags the addresses that it gives out.
    #[test]
    fn an_address_with_bits_where_the_part_would_be_gets_no_head() {
        let link = without_provenance_mut::<Link>(0x0b00_0000_0000_1230);
        assert_eq!(Word::NONE.pack(link, 0), None);
    }
}
