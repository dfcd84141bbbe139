//! The memory that the cache takes.
//!
//! The atomics are always the standard ones: entries are freed whenever the epochs let go of them,
//! which is not part of any schedule of a model.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Memory of tables and of all existing entries, including entries that were taken out and may
/// still be read.
#[derive(Debug, Default)]
pub(super) struct Ledger(AtomicU64);

impl Ledger {
    /// Takes `bytes`, if the total with them is at most `most`.
    pub(super) fn charge(self: &Arc<Self>, bytes: u64, most: u64) -> Option<Charge> {
        let grown = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= most);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown);
        taken.is_ok().then(|| Charge {
            bytes,
            ledger: Arc::clone(self),
        })
    }

    /// Bytes taken at present.
    pub(super) fn held(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Bytes that an entry or the tables take, for as long as this lives.
#[derive(Debug)]
pub(super) struct Charge {
    bytes: u64,
    ledger: Arc<Ledger>,
}

impl Charge {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Merges `other` into this.
    pub(super) fn add(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Gives back what exceeds `bytes`.
    pub(super) fn shrink_to(&mut self, bytes: u64) {
        let more = self.bytes.saturating_sub(bytes);
        self.ledger.0.fetch_sub(more, Ordering::Relaxed);
        self.bytes -= more;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.ledger.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_there_may_be_and_all_of_it_comes_back() {
        let ledger = Arc::new(Ledger::default());
        let first = ledger.charge(60, 100).unwrap();
        assert!(ledger.charge(41, 100).is_none());
        assert!(ledger.charge(u64::MAX, u64::MAX).is_none());
        let second = ledger.charge(40, 100).unwrap();
        assert_eq!(ledger.held(), 100);
        let mut both = first;
        both.add(second);
        assert_eq!((both.bytes(), ledger.held()), (100, 100));
        both.shrink_to(70);
        both.shrink_to(80);
        assert_eq!((both.bytes(), ledger.held()), (70, 70));
        drop(both);
        assert_eq!(ledger.held(), 0);
    }
}
