//! Reads and writes of a tier, counted by purpose.

use super::Tier;
use crate::metrics::{IoMetrics, Purpose};
use crate::storage::operation::operations;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Operations and bytes of each purpose.
#[derive(Debug, Default)]
pub(super) struct IoCounters([IoCounter; Purpose::ALL.len()]);

#[derive(Debug, Default)]
struct IoCounter {
    read_ops: AtomicU64,
    read_bytes: AtomicU64,
    write_ops: AtomicU64,
    write_bytes: AtomicU64,
}

impl IoCounters {
    fn of(&self, purpose: Purpose) -> &IoCounter {
        &self.0[purpose as usize]
    }
}

impl Tier {
    pub(crate) fn count_read(&self, purpose: Purpose, bytes: u64) {
        let counter = self.io.of(purpose);
        counter
            .read_ops
            .fetch_add(operations(bytes), Ordering::Relaxed);
        counter.read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn count_write(&self, purpose: Purpose, bytes: u64) {
        let counter = self.io.of(purpose);
        counter
            .write_ops
            .fetch_add(operations(bytes), Ordering::Relaxed);
        counter.write_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The counts for `purpose`.
    pub(crate) fn io(&self, purpose: Purpose) -> IoMetrics {
        let counter = self.io.of(purpose);
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        IoMetrics {
            purpose,
            read_ops: get(&counter.read_ops),
            read_bytes: get(&counter.read_bytes),
            write_ops: get(&counter.write_ops),
            write_bytes: get(&counter.write_bytes),
        }
    }
}
