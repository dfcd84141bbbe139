//! Tests of the whole, and what they share.

mod check;
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
mod history;
#[cfg(feature = "loom")]
mod loom_models;
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
mod random;
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
mod resizing;
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
mod ring;
#[cfg(all(feature = "shuttle", not(feature = "loom")))]
mod shuttle_models;
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
mod stress;

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::head::Head;
use crate::link::order_of;
use crate::map::item::Item;
use crate::reclaim;
use crate::{HotRing, Movement, Options};

/// Hashes a `u64` to itself, so that a test says where a key stands. Keys that differ in the low bit
/// only have the same order.
#[derive(Clone, Copy, Debug, Default)]
struct Plain;

#[derive(Debug, Default)]
struct PlainHasher(u64);

impl BuildHasher for Plain {
    type Hasher = PlainHasher;

    fn build_hasher(&self) -> PlainHasher {
        PlainHasher(0)
    }
}

impl Hasher for PlainHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0 << 8 | u64::from(byte);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

type Ring<V = u64> = HotRing<u64, V, Plain>;

/// A map of few buckets whose heads move only when a test says so, and that never grows.
fn still<V: Send + Sync + 'static>(buckets: usize) -> Ring<V> {
    with(
        Options::default()
            .buckets(buckets)
            .movement(Movement::Off)
            .period(u32::MAX),
    )
}

/// A map that never grows by itself.
fn with<V: Send + Sync + 'static>(options: Options) -> Ring<V> {
    HotRing::with_options_and_hasher(options.grow_above(f64::INFINITY), Plain)
        .expect("a small table")
}

/// Counts how many values of it are alive.
#[derive(Clone, Debug, Default)]
struct Living(Arc<AtomicUsize>);

impl Living {
    fn value(&self, value: u64) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted {
            value,
            living: Arc::clone(&self.0),
        }
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A value that is missed when it is not dropped, or dropped twice.
#[derive(Debug)]
struct Counted {
    value: u64,
    living: Arc<AtomicUsize>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.living.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<V: Send + Sync + 'static> Ring<V> {
    /// The key at the head of the bucket in which `key` would be.
    fn head_near(&self, key: u64) -> Option<u64> {
        let guard = reclaim::pin();
        let spot = self.core.spot(order_of(key), &guard);
        match self.core.head(spot) {
            // SAFETY: a node of this map.
            Head::Live(at, _) => Some(unsafe { *Item::<u64, V>::key(at.node_ptr()) }),
            Head::None => None,
        }
    }

    /// Moves the head of its bucket to `key`; false if it was moved or removed meanwhile.
    fn point_at(&self, key: u64) -> bool {
        let guard = reclaim::pin();
        let spot = self.core.spot(order_of(key), &guard);
        let old = match self.core.head(spot) {
            Head::Live(at, _) => Some(at),
            Head::None => None,
        };
        // SAFETY: a node of this map.
        let is_key = |node| unsafe { *Item::<u64, V>::key(node) == key };
        let seen = self.core.search(spot, order_of(key), is_key);
        seen.at
            .is_some_and(|at| old == Some(at) || self.core.swing(spot, old, at))
    }

    /// How many items a search for `key` looks at, and whether it finds it.
    fn visits(&self, key: u64) -> (u32, bool) {
        let guard = reclaim::pin();
        let spot = self.core.spot(order_of(key), &guard);
        // SAFETY: a node of this map.
        let is_key = |node| unsafe { *Item::<u64, V>::key(node) == key };
        let seen = self.core.search(spot, order_of(key), is_key);
        (seen.visits, seen.at.is_some())
    }
}
