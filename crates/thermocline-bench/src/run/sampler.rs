//! Watches a run: throughput and hit rates of every second, stages, and its end.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::Result;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::{Latencies, Shared, histogram, no_latencies};
use crate::args::End;
use crate::engine::Counters;
use crate::report::micros;

/// How often progress is looked at. A run's last tenth is cut out of these.
const TICK: Duration = Duration::from_millis(50);

/// Is told how a benchmark goes on.
pub(crate) trait Watch {
    /// So many of all records are loaded.
    fn loaded(&mut self, _records: u64, _of: u64) {}
    /// Loading waits for background work.
    fn settling(&mut self) {}
    /// A second of the run has passed, `progress` (0 to 1) of it in all.
    fn second(&mut self, _second: &Second, _progress: f64) {}
}

impl Watch for () {}

/// One second of a run. The last one may be shorter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Second {
    /// Time since the run began, at its end.
    pub second: f64,
    /// Operations in it.
    pub ops: u64,
    /// Operations per second.
    pub ops_s: f64,
    /// Median latency of its operations in microseconds.
    pub p50_us: f64,
    /// 99th percentile in microseconds.
    pub p99_us: f64,
    /// Share of its reads that touched no slow device.
    pub fd_hit_rate: Option<f64>,
    /// Share of its reads that touched no device.
    pub dram_hit_rate: Option<f64>,
    /// Bytes on the fast tier at its end.
    pub fd_bytes: Option<u64>,
    /// Bytes on the slow tier at its end.
    pub sd_bytes: Option<u64>,
    /// Seconds that writers were held back, of all threads.
    pub stall_seconds: Option<f64>,
    /// Stage of the distribution, from 0.
    pub stage: usize,
}

/// A run over time.
pub(super) struct Timeline {
    pub(super) ops: u64,
    pub(super) seconds: f64,
    pub(super) latencies: Latencies,
    pub(super) series: Vec<Second>,
    /// Time and operations done, every tick.
    ticks: Vec<(f64, u64)>,
    /// Time and counters, every second.
    counters: Vec<(f64, Counters)>,
}

/// Watches until all clients have dropped their end of `finished`; tells them to stop when
/// time is up.
pub(super) fn watch(
    shared: &Shared<'_>,
    end: End,
    begin: Instant,
    before: &Counters,
    finished: &Receiver<()>,
    watch: &mut dyn Watch,
) -> Result<Timeline> {
    let mut timeline = Timeline {
        ops: 0,
        seconds: 0.0,
        latencies: no_latencies(),
        series: Vec::new(),
        ticks: vec![(0.0, 0)],
        counters: vec![(0.0, *before)],
    };
    let mut failed = None;
    let mut second_ops = 0;
    loop {
        let over = finished.recv_timeout(TICK) == Err(RecvTimeoutError::Disconnected);
        let now = begin.elapsed();
        let seconds = now.as_secs_f64();
        let ops = shared
            .tallies
            .iter()
            .map(|tally| tally.done.load(Ordering::Relaxed))
            .sum();
        timeline.ticks.push((seconds, ops));
        let by_time = end.duration.map_or(0.0, |all| seconds / all.as_secs_f64());
        let by_ops = end.ops.map_or(0.0, |all| ops as f64 / all as f64);
        if let Some(stages) = shared.stages() {
            shared
                .stage
                .store(stages.at(by_time.max(by_ops)), Ordering::Relaxed);
        }
        if by_time >= 1.0 {
            shared.stop.store(true, Ordering::Relaxed);
        }
        let last = timeline.counters.last().map_or(0.0, |(at, _)| *at);
        if over || seconds - last >= 1.0 {
            let sample = shared
                .engine
                .counters()
                .and_then(|counters| Ok((counters, timeline.take_latencies(shared)?)));
            match sample {
                Ok((counters, latencies)) => {
                    let second =
                        timeline.second(seconds, ops - second_ops, counters, &latencies, shared);
                    watch.second(&second, by_time.max(by_ops).min(1.0));
                    second_ops = ops;
                    timeline.series.push(second);
                    timeline.counters.push((seconds, counters));
                }
                // The clients must end before this can be reported.
                Err(error) => {
                    shared.stop.store(true, Ordering::Relaxed);
                    failed.get_or_insert(error);
                }
            }
        }
        if over {
            timeline.ops = ops;
            timeline.seconds = seconds;
            return failed.map_or(Ok(timeline), Err);
        }
    }
}

impl Timeline {
    /// Adds what the clients measured since the last call to the sum; returns it for all
    /// operations together.
    fn take_latencies(&mut self, shared: &Shared<'_>) -> Result<Histogram<u64>> {
        let mut all = histogram();
        for tally in &shared.tallies {
            let taken = std::mem::replace(&mut *tally.latencies(), no_latencies());
            for (sum, part) in self.latencies.iter_mut().zip(&taken) {
                sum.add(part)?;
                all.add(part)?;
            }
        }
        Ok(all)
    }

    fn second(
        &self,
        at: f64,
        ops: u64,
        counters: Counters,
        latencies: &Histogram<u64>,
        shared: &Shared<'_>,
    ) -> Second {
        let (then, earlier) = self.counters.last().copied().unwrap_or_default();
        let part = counters.since(&earlier);
        Second {
            second: (at * 1000.0).round() / 1000.0,
            ops,
            ops_s: ops as f64 / (at - then).max(1e-9),
            p50_us: micros(latencies, 0.5),
            p99_us: micros(latencies, 0.99),
            fd_hit_rate: part.fd_hit_rate(),
            dram_hit_rate: part.dram_hit_rate(),
            fd_bytes: part.fd_bytes,
            sd_bytes: part.sd_bytes,
            stall_seconds: part.stall_seconds,
            stage: shared.stage.load(Ordering::Relaxed),
        }
    }

    /// Throughput over the last tenth of the time.
    pub(super) fn last_tenth_ops_s(&self) -> f64 {
        let from = self.seconds * 0.9;
        let after = self.ticks.partition_point(|(at, _)| *at < from);
        let (Some((t0, n0)), Some((t1, n1))) = (
            self.ticks.get(after.saturating_sub(1)),
            self.ticks.get(after),
        ) else {
            return 0.0;
        };
        let part = if t1 > t0 {
            (from - t0) / (t1 - t0)
        } else {
            0.0
        };
        let ops = *n0 as f64 + (n1 - n0) as f64 * part;
        (self.ops as f64 - ops) / (self.seconds - from).max(1e-9)
    }

    /// Hit rate over the last tenth, to the nearest second.
    pub(super) fn last_tenth_fd_hit_rate(&self) -> Option<f64> {
        let (last, earlier) = self.counters.split_last()?;
        let from = self.seconds * 0.9;
        let nearest = earlier
            .iter()
            .min_by(|a, b| (a.0 - from).abs().total_cmp(&(b.0 - from).abs()))?;
        last.1.since(&nearest.1).fd_hit_rate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_tenth_is_cut_between_ticks() {
        let gets = |gets, fast| Counters {
            gets: Some(gets),
            gets_without_slow: Some(fast),
            ..Counters::default()
        };
        let timeline = Timeline {
            ops: 2000,
            seconds: 10.0,
            latencies: no_latencies(),
            series: Vec::new(),
            // Slow at first; 100 a second from 8 s on to 9.5 s, then 1000.
            ticks: vec![(0.0, 0), (8.0, 1350), (9.5, 1500), (10.0, 2000)],
            counters: vec![
                (0.0, gets(0, 0)),
                (8.0, gets(1350, 0)),
                (9.0, gets(1450, 0)),
                (10.0, gets(2000, 440)),
            ],
        };
        assert!((timeline.last_tenth_ops_s() - 550.0).abs() < 1e-6);
        assert_eq!(timeline.last_tenth_fd_hit_rate(), Some(0.8));
    }
}
