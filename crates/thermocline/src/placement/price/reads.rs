//! How many point reads there are of late, how many of them need a slow disk, and how long they
//! take.

use std::time::Duration;

use crate::engine::Engine;
use crate::metrics::CostReport;
use crate::options::MAX_TIERS;
use crate::table::{Cooling, Heat};

/// What is left of what was seen of late after a second: half of it after 23 s.
const LATE: f64 = 0.97;

/// So many measured reads tell how long a tier takes.
const ENOUGH: f64 = 50.0;

/// What is taken for the latency of a read of the first tier until it is measured, in seconds, and
/// by how much that of each further tier is longer.
const FIRST: f64 = 1e-4;
const LONGER: f64 = 10.0;

/// By how much a tier is slower than the one before, at least.
const CLEARLY: f64 = 1.25;

/// Of an open store.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    /// All that there were when the last epoch ended, and those of them that needed a slow disk.
    until_now: [u64; 2],
    rate: Heat,
    /// The same of late.
    late: [f64; 2],
    times_until_now: [(u64, u64); MAX_TIERS],
    /// Measured reads and the seconds that they took, by the slowest tier that they needed, of
    /// late.
    times: [(f64, f64); MAX_TIERS],
}

impl Reads {
    /// Ends an epoch that took `length`. The rate of reads is forgotten as tables' heat
    /// is.
    pub(crate) fn end_epoch(&mut self, engine: &Engine, length: Duration, cooling: Cooling) {
        let hits = engine.stats.hits(engine.tiers.len()).0;
        let slow = hits.gets.saturating_sub(hits.without_slow_device);
        self.take([hits.gets, slow], length, cooling);
        self.time(engine.stats.get_times(), length);
    }

    fn take(&mut self, counted: [u64; 2], length: Duration, cooling: Cooling) {
        let before = std::mem::replace(&mut self.until_now, counted);
        let seconds = length.as_secs_f64();
        let gets = counted[0].saturating_sub(before[0]) as f64;
        self.rate = self.rate.after(seconds, gets, cooling);
        let left = LATE.powf(seconds);
        for ((late, now), before) in self.late.iter_mut().zip(counted).zip(before) {
            *late = *late * left + now.saturating_sub(before) as f64;
        }
    }

    fn time(&mut self, times: [(u64, u64); MAX_TIERS], length: Duration) {
        let before = std::mem::replace(&mut self.times_until_now, times);
        let left = LATE.powf(length.as_secs_f64());
        for ((late, now), before) in self.times.iter_mut().zip(times).zip(before) {
            let (reads, nanos) = (
                now.0.saturating_sub(before.0),
                now.1.saturating_sub(before.1),
            );
            *late = (
                late.0 * left + reads as f64,
                late.1 * left + nanos as f64 / 1e9,
            );
        }
    }

    /// Adds to `report` what reads are like.
    pub(crate) fn add_to(&self, report: &mut CostReport) {
        report.hit_rate = self.hit_rate();
        report.mean_latency = self.mean().map(Duration::from_secs_f64);
    }

    /// How long a point read takes on average, in seconds, if enough were measured.
    pub(crate) fn mean(&self) -> Option<f64> {
        let reads: f64 = self.times.iter().map(|(reads, _)| reads).sum();
        let seconds: f64 = self.times.iter().map(|(_, seconds)| seconds).sum();
        (reads >= ENOUGH).then(|| seconds / reads)
    }

    /// Point reads a second, if there are any.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.rate.known().filter(|rate| *rate > 0.0)
    }

    /// The part of them that needs no slow disk.
    pub(crate) fn hit_rate(&self) -> Option<f64> {
        let [all, slow] = self.late;
        (all >= 1.0).then(|| (1.0 - slow / all).clamp(0.0, 1.0))
    }

    /// How long a point read takes by the slowest tier whose device it needs, in seconds: the mean
    /// of late, or a guess. The order of the tiers is the user's word for which of them is faster:
    /// each counts as clearly slower than the one before, whatever a few reads were like.
    pub(crate) fn latencies(&self) -> [f64; MAX_TIERS] {
        let mut latencies = [0.0; MAX_TIERS];
        for tier in 0..MAX_TIERS {
            let (reads, seconds) = self.times[tier];
            let mean = match reads >= ENOUGH && seconds > 0.0 {
                true => seconds / reads,
                false => FIRST * LONGER.powi(tier as i32),
            };
            let before = tier.checked_sub(1).map_or(0.0, |before| latencies[before]);
            latencies[tier] = mean.max(before * CLEARLY);
        }
        latencies
    }

    /// How long a point read takes that needs a slow disk, in seconds.
    pub(crate) fn slow_latency(&self) -> f64 {
        let slow = &self.times[1..];
        let reads: f64 = slow.iter().map(|(reads, _)| reads).sum();
        let seconds: f64 = slow.iter().map(|(_, seconds)| seconds).sum();
        match reads >= ENOUGH && seconds > 0.0 {
            true => seconds / reads,
            false => FIRST * LONGER * LONGER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_rate_of_hits_is_that_of_late() {
        let mut reads = Reads::default();
        assert_eq!((reads.rate(), reads.hit_rate()), (None, None));
        reads.take([1000, 200], SECOND, Cooling::keeping(0.5));
        assert_eq!((reads.rate(), reads.hit_rate()), (Some(1000.0), Some(0.8)));
        // Half of the rate is left, and of what was of late 970 reads, 194 of them slow.
        reads.take([1500, 200], SECOND, Cooling::keeping(0.5));
        assert_eq!(reads.rate(), Some(750.0));
        let expected = 1.0 - 194.0 / 1470.0;
        assert!((reads.hit_rate().unwrap() - expected).abs() < 1e-6);
    }

    #[test]
    fn without_reads_there_is_no_rate_of_hits() {
        let mut reads = Reads::default();
        reads.take([0, 0], SECOND, Cooling::keeping(0.5));
        assert_eq!((reads.rate(), reads.hit_rate()), (None, None));
    }

    #[test]
    fn a_latency_is_a_guess_until_enough_reads_were_measured() {
        let mut reads = Reads::default();
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a}, not {b}");
        near(reads.latencies()[2], 1e-2);
        near(reads.slow_latency(), 1e-2);
        let mut times = [(0, 0); MAX_TIERS];
        (times[1], times[2]) = ((100, 300_000_000), (10, 900_000_000));
        reads.time(times, SECOND);
        near(reads.latencies()[1], 3e-3);
        near(reads.latencies()[2], 1e-2);
        near(reads.slow_latency(), 1.2 / 110.0);
        // Of the first hundred 97 count, beside 150 that took 1 ms each.
        times[1] = (250, 450_000_000);
        reads.time(times, SECOND);
        let mean = (0.291 + 0.15) / 247.0;
        near(reads.latencies()[1], mean);
        // A tier that was faster than the one before counts as a little slower.
        times[2] = (1010, 901_000_000);
        reads.time(times, SECOND);
        near(reads.latencies()[2], mean * 1.25);
    }
}
