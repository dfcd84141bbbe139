//! The numbers of new records, and the number up to which all records exist.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Hands out record numbers, beginning after the loaded ones.
#[derive(Debug)]
pub(crate) struct Inserts {
    next: AtomicU64,
    /// Every record below this number exists.
    present: AtomicU64,
    /// Records at or above `present` that exist too.
    ahead: Mutex<BTreeSet<u64>>,
}

impl Inserts {
    /// Records `0..loaded` exist.
    pub(crate) fn new(loaded: u64) -> Self {
        Self {
            next: AtomicU64::new(loaded),
            present: AtomicU64::new(loaded),
            ahead: Mutex::new(BTreeSet::new()),
        }
    }

    /// The number of a record to insert.
    pub(crate) fn begin(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The record's insertion was acknowledged.
    pub(crate) fn done(&self, record: u64) {
        let mut ahead = self
            .ahead
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        ahead.insert(record);
        let mut present = self.present.load(Ordering::Relaxed);
        while ahead.remove(&present) {
            present += 1;
        }
        self.present.store(present, Ordering::Release);
    }

    /// Every record below this number exists, and a read must find it.
    pub(crate) fn present(&self) -> u64 {
        self.present.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_once_all_before_it_exist() {
        let inserts = Inserts::new(10);
        let (a, b, c) = (inserts.begin(), inserts.begin(), inserts.begin());
        assert_eq!((a, b, c), (10, 11, 12));
        inserts.done(b);
        assert_eq!(inserts.present(), 10);
        inserts.done(a);
        assert_eq!(inserts.present(), 12);
        inserts.done(c);
        assert_eq!(inserts.present(), 13);
    }
}
