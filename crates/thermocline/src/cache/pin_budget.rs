//! How much memory index and filter partitions may hold on to.

use crate::sync::atomic::{AtomicU64, Ordering};

/// Bytes that open tables may keep pinned together (I8). A table that finds no room reads
/// its partitions through the block cache instead.
#[derive(Debug)]
pub(crate) struct PinBudget {
    limit: u64,
    taken: AtomicU64,
}

impl PinBudget {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            limit,
            taken: AtomicU64::new(0),
        }
    }

    /// Takes `bytes` if there is room for all of them.
    pub(crate) fn try_take(&self, bytes: u64) -> bool {
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                taken.checked_add(bytes).filter(|sum| *sum <= self.limit)
            })
            .is_ok()
    }

    /// Returns what [`PinBudget::try_take`] gave.
    pub(crate) fn give_back(&self, bytes: u64) {
        let before = self.taken.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "more is given back than was taken");
    }

    /// Bytes taken now.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_never_exceeded_and_comes_back() {
        let budget = PinBudget::new(100);
        assert!(budget.try_take(60));
        assert!(!budget.try_take(41));
        assert!(!budget.try_take(u64::MAX), "an overflow is not room");
        assert!(budget.try_take(40));
        budget.give_back(60);
        assert_eq!(budget.taken(), 40);
        assert!(budget.try_take(60));
    }
}
