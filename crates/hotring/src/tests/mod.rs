//! Tests of the whole, and what they share.

#[cfg(not(any(hotring_loom, hotring_shuttle, miri)))]
mod buckets;
mod check;
#[cfg(not(any(hotring_loom, hotring_shuttle)))]
mod history;
#[cfg(not(any(hotring_loom, hotring_shuttle)))]
mod history_in_place;
#[cfg(not(any(hotring_loom, hotring_shuttle, miri)))]
mod in_turn;
#[cfg(any(hotring_loom, hotring_shuttle))]
mod models;
#[cfg(not(any(hotring_loom, hotring_shuttle)))]
mod moving;
#[cfg(not(any(hotring_loom, hotring_shuttle)))]
mod operations;
#[cfg(not(any(hotring_loom, hotring_shuttle)))]
mod random;
#[cfg(not(any(hotring_loom, hotring_shuttle)))]
mod records;
#[cfg(not(any(hotring_loom, hotring_shuttle)))]
mod resizing;
#[cfg(all(hotring_shuttle, not(hotring_loom)))]
mod resizing_models;
mod rig;
#[cfg(not(any(hotring_loom, hotring_shuttle)))]
mod ring;
#[cfg(not(any(hotring_loom, hotring_shuttle)))]
mod stress;

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::HotRing;

/// Hashes a `u64` to itself, so that a test says where a key stands. Keys that differ in the low
/// bit only have the same order.
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
