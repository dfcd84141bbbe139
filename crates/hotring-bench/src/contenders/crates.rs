//! Concurrent maps of other crates, with the same hasher and the same kind of values.

use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::quality::RandomState;

use super::{Handle, Table};

/// `dashmap`: shards behind locks.
pub(crate) type Dash = dashmap::DashMap<u64, AtomicU64, RandomState>;
/// `papaya`: lock-free, open addressing.
pub(crate) type Papaya = papaya::HashMap<u64, AtomicU64, RandomState>;
/// `scc`'s index for reads.
pub(crate) type Index = scc::HashIndex<u64, AtomicU64, RandomState>;

impl Table for Dash {
    type Handle<'t> = &'t Self;

    fn handle(&self) -> &Self {
        self
    }
}

impl Handle for &Dash {
    #[inline(always)]
    fn get(&self, key: u64) -> Option<u64> {
        Some(Dash::get(self, &key)?.load(Ordering::Acquire))
    }

    #[inline(always)]
    fn put(&self, key: u64, value: u64) {
        if let Some(present) = Dash::get(self, &key) {
            present.store(value, Ordering::Release);
        }
    }

    fn insert(&self, key: u64, value: u64) {
        Dash::insert(self, key, AtomicU64::new(value));
    }

    fn repin(&mut self) {}
}

/// A handle to a [`Papaya`].
pub(crate) struct PapayaHandle<'t> {
    map: &'t Papaya,
    guard: papaya::LocalGuard<'t>,
}

impl Table for Papaya {
    type Handle<'t> = PapayaHandle<'t>;

    fn handle(&self) -> PapayaHandle<'_> {
        PapayaHandle {
            map: self,
            guard: self.guard(),
        }
    }
}

impl Handle for PapayaHandle<'_> {
    #[inline(always)]
    fn get(&self, key: u64) -> Option<u64> {
        Some(self.map.get(&key, &self.guard)?.load(Ordering::Acquire))
    }

    #[inline(always)]
    fn put(&self, key: u64, value: u64) {
        if let Some(present) = self.map.get(&key, &self.guard) {
            present.store(value, Ordering::Release);
        }
    }

    fn insert(&self, key: u64, value: u64) {
        self.map.insert(key, AtomicU64::new(value), &self.guard);
    }

    fn repin(&mut self) {
        papaya::Guard::refresh(&mut self.guard);
    }
}

/// A handle to an [`Index`].
pub(crate) struct IndexHandle<'t> {
    map: &'t Index,
    guard: scc::Guard,
}

impl Table for Index {
    type Handle<'t> = IndexHandle<'t>;

    fn handle(&self) -> IndexHandle<'_> {
        IndexHandle {
            map: self,
            guard: scc::Guard::new(),
        }
    }
}

impl Handle for IndexHandle<'_> {
    #[inline(always)]
    fn get(&self, key: u64) -> Option<u64> {
        Some(self.map.peek(&key, &self.guard)?.load(Ordering::Acquire))
    }

    #[inline(always)]
    fn put(&self, key: u64, value: u64) {
        if let Some(present) = self.map.peek(&key, &self.guard) {
            present.store(value, Ordering::Release);
        }
    }

    fn insert(&self, key: u64, value: u64) {
        // A key that is present keeps its value. The loads have no such key.
        let _ = self.map.insert_sync(key, AtomicU64::new(value));
    }

    fn repin(&mut self) {
        self.guard = scc::Guard::new();
    }
}
