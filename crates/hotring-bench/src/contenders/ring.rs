//! `hotring`.

use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::quality::RandomState;
use hotring::{HotRing, Pinned};

use super::{Handle, Table, Visits, Wide};

impl Table for HotRing<u64, AtomicU64> {
    type Handle<'t> = Pinned<'t, u64, AtomicU64, RandomState>;

    fn handle(&self) -> Self::Handle<'_> {
        self.pin()
    }
}

impl Handle for Pinned<'_, u64, AtomicU64, RandomState> {
    #[inline(always)]
    fn get(&self, key: u64) -> Option<u64> {
        Pinned::get(self, &key).map(|value| value.load(Ordering::Acquire))
    }

    #[inline(always)]
    fn put(&self, key: u64, value: u64) {
        if let Some(present) = Pinned::get(self, &key) {
            present.store(value, Ordering::Release);
        }
    }

    fn insert(&self, key: u64, value: u64) {
        Pinned::insert(self, key, AtomicU64::new(value));
    }

    fn repin(&mut self) {
        Pinned::repin(self);
    }
}

impl Visits for Pinned<'_, u64, AtomicU64, RandomState> {
    fn visits(&self, key: u64) -> u32 {
        self.steps(&key)
    }
}

impl Table for HotRing<u64, Wide> {
    type Handle<'t> = Pinned<'t, u64, Wide, RandomState>;

    fn handle(&self) -> Self::Handle<'_> {
        self.pin()
    }
}

impl Handle for Pinned<'_, u64, Wide, RandomState> {
    #[inline(always)]
    fn get(&self, key: u64) -> Option<u64> {
        Pinned::get(self, &key).map(Wide::read)
    }

    #[inline(always)]
    fn put(&self, key: u64, value: u64) {
        Pinned::update(self, key, Wide::holding(value));
    }

    fn insert(&self, key: u64, value: u64) {
        Pinned::insert(self, key, Wide::holding(value));
    }

    fn repin(&mut self) {
        Pinned::repin(self);
    }
}
