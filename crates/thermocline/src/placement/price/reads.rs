//! How many point reads there are of late, and how many of them need a slow disk.

use std::time::Duration;

use crate::engine::Engine;
use crate::table::Heat;

/// Of an open store.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    /// All that there were when the last epoch ended, and those of them that needed a slow disk.
    until_now: [u64; 2],
    rates: [Heat; 2],
}

impl Reads {
    /// Ends an epoch that took `length`. Of a rate `kept` is left after a second without a read.
    pub(crate) fn end_epoch(&mut self, engine: &Engine, length: Duration, kept: f64) {
        let hits = engine.stats.hits(engine.tiers.len()).0;
        let slow = hits.gets.saturating_sub(hits.without_slow_device);
        self.take([hits.gets, slow], length, kept);
    }

    fn take(&mut self, counted: [u64; 2], length: Duration, kept: f64) {
        let before = std::mem::replace(&mut self.until_now, counted);
        let seconds = length.as_secs_f64();
        for ((rate, now), before) in self.rates.iter_mut().zip(counted).zip(before) {
            *rate = rate.after(seconds, now.saturating_sub(before) as f64, kept);
        }
    }

    /// Point reads a second, if there are any.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.rates[0].known().filter(|rate| *rate > 0.0)
    }

    /// The part of them that needs no slow disk.
    pub(crate) fn hit_rate(&self) -> Option<f64> {
        let slow = self.rates[1].known()? / self.rate()?;
        Some((1.0 - slow).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_late_nine_tenths_needed_no_slow_disk() {
        let mut reads = Reads::default();
        let second = Duration::from_secs(1);
        assert_eq!((reads.rate(), reads.hit_rate()), (None, None));
        reads.take([1000, 200], second, 0.5);
        assert_eq!((reads.rate(), reads.hit_rate()), (Some(1000.0), Some(0.8)));
        // Half of what was is left: 500 of 1000 a second, and 100 of 200.
        reads.take([1500, 200], second, 0.5);
        assert_eq!(reads.rate(), Some(750.0));
        let expected = 1.0 - 100.0 / 750.0;
        assert!((reads.hit_rate().unwrap() - expected).abs() < 1e-6);
    }

    #[test]
    fn without_reads_there_is_no_rate_of_hits() {
        let mut reads = Reads::default();
        reads.take([0, 0], Duration::from_secs(1), 0.5);
        assert_eq!((reads.rate(), reads.hit_rate()), (None, None));
    }
}
