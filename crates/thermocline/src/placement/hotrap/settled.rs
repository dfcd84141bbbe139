//! Sizes that are measured often and may not follow each measurement.

use crate::sync::atomic::{AtomicU64, Ordering};

/// A size that follows its measurements slowly: room comes and goes with each flush and each
/// compaction, and the hot set cannot.
#[derive(Debug, Default)]
pub(crate) struct Settled(AtomicU64);

impl Settled {
    /// Takes in a measurement; returns the settled size.
    pub(super) fn settle(&self, now: u64) -> u64 {
        let before = self.0.load(Ordering::Relaxed);
        let after = match before {
            0 => now,
            _ => before - before / 32 + now / 32,
        };
        self.0.store(after, Ordering::Relaxed);
        after
    }

    /// Lets the next measurement count in full.
    pub(super) fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// As [`Settled::settle`], but falls at once: the least of late.
    pub(super) fn settle_low(&self, now: u64) -> u64 {
        let before = self.0.load(Ordering::Relaxed);
        let after = match before {
            0 => now,
            _ => now.min(before + now.saturating_sub(before) / 64),
        };
        self.0.store(after, Ordering::Relaxed);
        after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_settled_size_follows_slowly_and_arrives() {
        let size = Settled::default();
        assert_eq!(
            size.settle(3200),
            3200,
            "the first measurement counts in full"
        );
        assert_eq!(size.settle(0), 3100, "one of 32 counts for one in 32");
        for _ in 0..500 {
            size.settle(6400);
        }
        let arrived = size.settle(6400);
        assert!((6300..=6400).contains(&arrived), "{arrived}");
    }

    #[test]
    fn the_least_of_late_falls_at_once_and_rises_slowly() {
        let size = Settled::default();
        assert_eq!(size.settle_low(6400), 6400);
        assert_eq!(size.settle_low(640), 640);
        assert_eq!(size.settle_low(6400), 640 + (6400 - 640) / 64);
    }
}
