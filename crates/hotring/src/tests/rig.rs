//! A map whose heads a test moves by hand.

use super::{Plain, Ring};
#[cfg(not(any(hotring_loom, hotring_shuttle)))]
use crate::calm::Calm;
use crate::core::Spot;
use crate::head::{Head, Word};
use crate::link::{At, order_of};
use crate::map::item::Item;
use crate::reclaim;
use crate::rehash::Size;
use crate::{HotRing, Movement, Options, TableError};

/// A map of few buckets whose heads move only when a test says so, and that never grows.
pub(super) fn still<V: Send + Sync + 'static>(buckets: usize) -> Ring<V> {
    with(
        Options::default()
            .buckets(buckets)
            .movement(Movement::Off)
            .period(u32::MAX),
    )
}

/// A map that never grows by itself.
pub(super) fn with<V: Send + Sync + 'static>(options: Options) -> Ring<V> {
    HotRing::with_options_and_hasher(options.grow_above(f64::INFINITY), Plain)
        .expect("a small table")
}

impl Spot<'_> {
    /// Changes when rounds begin in a bucket that has a head.
    #[cfg(not(any(hotring_loom, hotring_shuttle)))]
    fn note_calm(self, change: impl FnOnce(Calm) -> Calm) {
        let word = Word::of(self.bucket);
        assert!(word != Word::NONE, "a ring without a head");
        assert!(self.bucket.note(word, word.with_calm(change(word.calm()))));
    }

    /// How many samples the running round lacks.
    pub(super) fn lacking(self) -> Option<u16> {
        let word = Word::of(self.bucket);
        let head = word.at(self.guard).and_then(At::node);
        word.is_sampled().then(|| head.expect("a head").lacking())
    }
}

impl<V: Send + Sync + 'static> Ring<V> {
    /// The key at the head of the bucket in which `key` would be.
    pub(super) fn head_near(&self, key: u64) -> Option<u64> {
        let guard = reclaim::pin();
        let spot = self.core.spot(order_of(key), &guard);
        match self.core.head(spot) {
            // SAFETY: a node of this map.
            Head::Live(_, at, _) => Some(unsafe { *Item::<u64, V>::key(at.node_ptr()) }),
            Head::None => None,
        }
    }

    /// Has every request that may begin a round in the bucket of `key` do so, as after rounds that
    /// gained much.
    #[cfg(not(any(hotring_loom, hotring_shuttle)))]
    pub(super) fn make_restless(&self, key: u64) {
        let guard = reclaim::pin();
        let spot = self.core.spot(order_of(key), &guard);
        spot.note_calm(|calm| (0..8).fold(calm, |calm, _| calm.gained(1, 1)));
    }

    /// Notes a round that gained nothing in the bucket of `key`.
    #[cfg(not(any(hotring_loom, hotring_shuttle)))]
    pub(super) fn make_calm(&self, key: u64) {
        let guard = reclaim::pin();
        let spot = self.core.spot(order_of(key), &guard);
        spot.note_calm(|calm| calm.gained(0, 1));
    }

    /// Moves the head of its bucket to `key`; false if it was moved or removed meanwhile.
    pub(super) fn point_at(&self, key: u64) -> bool {
        let guard = reclaim::pin();
        let spot = self.core.spot(order_of(key), &guard);
        let word = self.core.head(spot).word();
        // SAFETY: a node of this map.
        let is_key = |node| unsafe { *Item::<u64, V>::key(node) == key };
        let seen = self.core.search(spot, order_of(key), is_key);
        seen.at
            .is_some_and(|at| word.leads_to(at) || self.core.swing(spot, word, at))
    }

    /// Begins a change of the table to `buckets`, whether it grows or shrinks.
    pub(super) fn begin_change(&self, buckets: usize) -> Result<(), TableError> {
        let size = if buckets > self.buckets() {
            Size::AtLeast(buckets)
        } else {
            Size::AtMost(buckets)
        };
        self.core.begin_rehash(size, &reclaim::pin())
    }

    /// How many items a search for `key` looks at, and whether it finds it.
    #[cfg(not(any(hotring_loom, hotring_shuttle)))]
    pub(super) fn visits(&self, key: u64) -> (u32, bool) {
        let guard = reclaim::pin();
        let spot = self.core.spot(order_of(key), &guard);
        // SAFETY: a node of this map.
        let is_key = |node| unsafe { *Item::<u64, V>::key(node) == key };
        let seen = self.core.search(spot, order_of(key), is_key);
        (seen.visits, seen.at.is_some())
    }
}
