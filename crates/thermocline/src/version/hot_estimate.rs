//! How much of a table is hot, as it was found recently.

use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};

/// An estimate that is kept with the table. To make it takes searches in the index of each of
/// RALT's tables that overlaps the table, and a compaction is picked among thousands of tables
/// while writers to L0 wait.
#[derive(Debug, Clone, Default)]
pub(crate) struct HotEstimate(Arc<Estimate>);

#[derive(Debug, Default)]
struct Estimate {
    bytes: AtomicU64,
    /// The number of changes of RALT at the time of the estimate; 0 if none was made.
    as_of: AtomicU64,
}

impl HotEstimate {
    /// The estimate after `changes` changes of RALT, 1 or more. Returns the last one if it is at
    /// most `stale` changes old, else the result of `find`.
    pub(crate) fn bytes(&self, changes: u64, stale: u64, find: impl FnOnce() -> u64) -> u64 {
        let as_of = self.0.as_of.load(Ordering::Acquire);
        if as_of > 0 && changes.saturating_sub(as_of) <= stale {
            return self.0.bytes.load(Ordering::Relaxed);
        }
        let bytes = find();
        self.0.bytes.store(bytes, Ordering::Relaxed);
        self.0.as_of.store(changes, Ordering::Release);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_made_anew_when_it_is_too_old() {
        let estimate = HotEstimate::default();
        let kept = || -> u64 { panic!("it is recent enough") };
        assert_eq!(estimate.bytes(1, 9, || 10), 10, "there was none");
        assert_eq!(estimate.bytes(1, 0, kept), 10);
        assert_eq!(estimate.bytes(2, 0, || 20), 20);
        assert_eq!(estimate.bytes(5, 3, kept), 20);
        assert_eq!(estimate.bytes(6, 3, || 30), 30);
        // Another thread has made this one meanwhile.
        assert_eq!(estimate.bytes(4, 0, kept), 30);
    }
}
