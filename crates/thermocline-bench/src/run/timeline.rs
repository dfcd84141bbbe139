//! A run over time, and what is read off it.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use hdrhistogram::Histogram;
use serde::Serialize;
use thermocline::Target;

use super::bill::{self, CostResult, CostSecond};
use super::hits::{self, Sample};
use super::{Latencies, Shared, histogram, no_latencies};
use crate::accounts::{self, Clock, Spent};
use crate::counters::Counters;
use crate::report::{self, OperationLatency, micros};
use crate::workload::Operation;

/// One second of a run. The last one of the run or of a stage may be shorter.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
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
    /// Bytes of records that were hot at its end.
    pub hot_set_bytes: Option<u64>,
    /// What they were limited to at its end.
    pub hot_set_limit_bytes: Option<u64>,
    /// Bytes of access records at its end.
    pub ralt_bytes: Option<u64>,
    /// What they were limited to at its end.
    pub ralt_limit_bytes: Option<u64>,
    /// Seconds that writers were held back, of all threads.
    pub stall_seconds: Option<f64>,
    /// Stage of the run, from 0.
    pub stage: usize,
    /// What the store cost at its end. Left out without prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostSecond>,
}

/// The last tenth of a run. It shows how the run goes once everything has found its place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LastTenth {
    /// Its length.
    pub seconds: f64,
    /// Operations per second.
    pub ops_s: f64,
    /// Mean latency of an operation in microseconds.
    pub mean_us: f64,
    /// Share of its reads that touched no slow device, to the nearest second.
    pub fd_hit_rate: Option<f64>,
    /// Latencies by kind of operation, for operations that ended in the last tenth. If operations
    /// are limited it is the last tenth of these, otherwise that of the run's time. Empty if the
    /// run was over before that was noticed, within some hundredths of a second.
    pub latencies: Vec<OperationLatency>,
}

/// One stage of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageResult {
    /// What it touched.
    pub distribution: String,
    /// What the store aimed at, if it did.
    pub target: Option<String>,
    /// When it began, in seconds since the run began.
    pub begin_seconds: f64,
    /// Its length.
    pub seconds: f64,
    /// Operations in it.
    pub ops: u64,
    /// Operations per second.
    pub ops_s: f64,
    /// Share of its reads that touched no slow device.
    pub fd_hit_rate: Option<f64>,
    /// The same in its last tenth, to the nearest second.
    pub last_tenth_fd_hit_rate: Option<f64>,
    /// Mean latency of its point reads in microseconds. None if it has none.
    pub read_mean_us: Option<f64>,
    /// Their median.
    pub read_p50_us: Option<f64>,
    /// Their 99th percentile.
    pub read_p99_us: Option<f64>,
    /// What the store cost. Left out without prices.
    #[serde(flatten)]
    pub cost: Option<CostResult>,
    /// Time from its beginning until the hit rate, over three seconds, stays within 3 points of
    /// that of its last tenth.
    pub seconds_to_steady: Option<f64>,
    /// Bytes of records that were hot at its end.
    pub hot_set_bytes: Option<u64>,
    /// What they were limited to at its end.
    pub hot_set_limit_bytes: Option<u64>,
}

/// How far the clients were at a moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tick {
    /// Seconds since the run began.
    pub(super) at: f64,
    /// Operations finished.
    pub(super) ops: u64,
    /// Time that these took, of all threads.
    pub(super) nanos: u64,
}

/// A run over time.
pub(super) struct Timeline {
    pub(super) latencies: Latencies,
    /// Latencies of the last tenth, once it has begun.
    last_tenth: Option<Latencies>,
    /// Latencies of all operations since the last sample.
    since_sample: Histogram<u64>,
    /// Empty histograms that are exchanged for a client's. Fresh ones every second would leave
    /// holes in the clients' heaps.
    spare: Latencies,
    pub(super) series: Vec<Second>,
    /// What the run had taken at the end of each entry of `series`.
    spent_until: Vec<Spent>,
    /// Processor time at the beginning, and at the last sample.
    clocks: [Clock; 2],
    /// The last tick is the run's end.
    pub(super) ticks: Vec<Tick>,
    /// Taken every second, and at the beginning and the end of each stage.
    pub(super) samples: Vec<Sample>,
    /// The number of each stage, and how far the run was when the stage began.
    stages: Vec<(usize, Tick)>,
    /// Latencies of the point reads of each stage.
    stage_reads: Vec<Histogram<u64>>,
}

impl Timeline {
    /// A run that begins with these counters. Its clients have used no time yet.
    pub(super) fn new(before: &Counters, clock: Clock) -> Self {
        Self {
            latencies: no_latencies(),
            last_tenth: None,
            since_sample: histogram(),
            spare: no_latencies(),
            series: Vec::new(),
            spent_until: Vec::new(),
            clocks: [clock; 2],
            ticks: vec![Tick::default()],
            samples: vec![(0.0, before.clone())],
            stages: vec![(0, Tick::default())],
            stage_reads: vec![histogram()],
        }
    }

    /// From here on it is stage `number`. A sample was just taken.
    pub(super) fn begin_stage(&mut self, number: usize, now: Tick) {
        self.stages.push((number, now));
        self.stage_reads.push(histogram());
    }

    /// How far the run is.
    pub(super) fn end(&self) -> Tick {
        self.ticks.last().copied().unwrap_or_default()
    }

    /// When the counters were last sampled.
    pub(super) fn sampled(&self) -> f64 {
        self.samples.last().map_or(0.0, |(at, _)| *at)
    }

    /// Samples everything into a [`Second`] of `stage`, and returns it.
    pub(super) fn sample(&mut self, shared: &Shared<'_>, stage: usize) -> Result<Second> {
        let counters = shared.engine.counters()?;
        self.take_latencies(shared)?;
        let now = self.end();
        let before: u64 = self.series.iter().map(|second| second.ops).sum();
        let ops = now.ops - before;
        let (then, earlier) = self.samples.last().cloned().unwrap_or_default();
        let part = counters.since(&earlier);
        let second = Second {
            second: (now.at * 1000.0).round() / 1000.0,
            ops,
            ops_s: ops as f64 / (now.at - then).max(1e-9),
            p50_us: micros(&self.since_sample, 0.5),
            p99_us: micros(&self.since_sample, 0.99),
            fd_hit_rate: part.fd_hit_rate(),
            dram_hit_rate: part.dram_hit_rate(),
            fd_bytes: part.fd_bytes,
            sd_bytes: part.sd_bytes,
            hot_set_bytes: part.hotness.map(|hot| hot.hot_set_bytes),
            hot_set_limit_bytes: part.hotness.map(|hot| hot.hot_set_limit_bytes),
            ralt_bytes: part.hotness.map(|hot| hot.ralt_bytes),
            ralt_limit_bytes: part.hotness.map(|hot| hot.ralt_limit_bytes),
            stall_seconds: part.stall_seconds,
            stage,
            cost: bill::now(shared, &counters, shared.target_in(stage)),
        };
        self.since_sample.reset();
        self.clocks[1] = clock(shared)?;
        self.series.push(second.clone());
        self.samples.push((now.at, counters));
        self.spent_until.push(self.spent());
        Ok(second)
    }

    /// Processor time of the run, up to the last sample.
    pub(super) fn used(&self) -> Clock {
        self.clocks[1].since(&self.clocks[0])
    }

    /// What the engine counted, up to the last sample.
    pub(super) fn counters(&self) -> Counters {
        let ends = self.samples.first().zip(self.samples.last());
        let counters = ends.map(|((_, first), (_, last))| last.since(first));
        counters.unwrap_or_default()
    }

    /// What the run took, up to the last sample.
    pub(super) fn spent(&self) -> Spent {
        spent(&self.used(), &self.counters())
    }

    /// What each entry of `series` took.
    pub(super) fn spent_by_second(&self) -> Vec<Spent> {
        Spent::parts(&self.spent_until)
    }

    /// From here on, latencies are also counted as those of the last tenth.
    pub(super) fn begin_last_tenth(&mut self, shared: &Shared<'_>) -> Result<()> {
        if self.last_tenth.is_none() {
            self.take_latencies(shared)?;
            self.last_tenth = Some(no_latencies());
        }
        Ok(())
    }

    /// Adds what the clients measured since the last call to the sums.
    fn take_latencies(&mut self, shared: &Shared<'_>) -> Result<()> {
        for tally in &shared.tallies {
            std::mem::swap(&mut *tally.latencies(), &mut self.spare);
            for (at, part) in self.spare.iter_mut().enumerate() {
                let sums = [Some(&mut self.latencies), self.last_tenth.as_mut()];
                for sum in sums.into_iter().flatten().filter_map(|sum| sum.get_mut(at)) {
                    sum.add(&*part)?;
                }
                self.since_sample.add(&*part)?;
                if at == Operation::Read as usize
                    && let Some(reads) = self.stage_reads.last_mut()
                {
                    reads.add(&*part)?;
                }
                part.reset();
            }
        }
        Ok(())
    }

    /// The last tenth of the time.
    pub(super) fn last_tenth(&self) -> LastTenth {
        let end = self.end();
        let seconds = end.at * 0.1;
        let (ops, nanos) = self.at(end.at - seconds);
        let (ops, nanos) = (end.ops as f64 - ops, end.nanos as f64 - nanos);
        LastTenth {
            seconds,
            ops_s: ops / seconds.max(1e-9),
            mean_us: nanos / 1000.0 / ops.max(1.0),
            fd_hit_rate: hits::in_last_tenth(&self.samples),
            latencies: report::latencies(self.last_tenth.as_deref().unwrap_or_default()),
        }
    }

    /// Operations and their time at `from`, which may lie between two ticks.
    fn at(&self, from: f64) -> (f64, f64) {
        let after = self.ticks.partition_point(|tick| tick.at < from);
        let (Some(a), Some(b)) = (
            self.ticks.get(after.saturating_sub(1)),
            self.ticks.get(after),
        ) else {
            return (0.0, 0.0);
        };
        let part = if b.at > a.at {
            (from - a.at) / (b.at - a.at)
        } else {
            0.0
        };
        let part = |a: u64, b: u64| a as f64 + (b - a) as f64 * part;
        (part(a.ops, b.ops), part(a.nanos, b.nanos))
    }

    /// Time until the hit rate, over three seconds, first was 90 % of the last tenth's.
    pub(super) fn seconds_to_90_percent(&self) -> Option<f64> {
        let goal = hits::in_last_tenth(&self.samples)? * 0.9;
        hits::seconds_to(&self.samples, goal)
    }

    /// Each stage that was reached.
    pub(super) fn stages(&self, shared: &Shared<'_>) -> Vec<StageResult> {
        let ends = self.stages.iter().skip(1).map(|(_, begin)| *begin);
        let ends = ends.chain([self.end()]);
        self.stages
            .iter()
            .zip(ends)
            .zip(&self.stage_reads)
            .filter_map(|(((number, begin), end), reads)| {
                let named = Named::new(shared, *number)?;
                Some(self.stage(named, *begin, end, reads))
            })
            .collect()
    }

    /// What the store cost in the last stage.
    pub(super) fn last_cost(&self, shared: &Shared<'_>) -> Option<CostResult> {
        let (number, begin) = self.stages.last()?;
        shared.prices?;
        self.cost(*begin, self.end(), shared.target_in(*number))
    }

    fn cost(&self, begin: Tick, end: Tick, target: Option<Target>) -> Option<CostResult> {
        let (first, past) = self.samples_of(begin, end);
        // The first sample is of before the series began.
        let series = self.series.get(first..past.saturating_sub(1))?;
        bill::of_stage(series, self.samples.get(first..past)?, target)
    }

    /// The numbers of the first sample from `begin` on, and of the first past `end`.
    fn samples_of(&self, begin: Tick, end: Tick) -> (usize, usize) {
        let samples = &self.samples;
        let first = samples.partition_point(|(at, _)| *at < begin.at);
        let past = samples.partition_point(|(at, _)| *at <= end.at);
        (first, past)
    }

    fn stage(&self, named: Named, begin: Tick, end: Tick, reads: &Histogram<u64>) -> StageResult {
        let (first, past) = self.samples_of(begin, end);
        let samples = self.samples.get(first..past).unwrap_or_default();
        let last_tenth = hits::in_last_tenth(samples);
        let hotness = samples.last().and_then(|(_, counters)| counters.hotness);
        let (seconds, ops) = (end.at - begin.at, end.ops - begin.ops);
        let of_reads = |value: f64| (!reads.is_empty()).then_some(value);
        let cost = named
            .has_prices
            .then(|| self.cost(begin, end, named.target));
        StageResult {
            read_mean_us: of_reads(reads.mean() / 1000.0),
            read_p50_us: of_reads(micros(reads, 0.5)),
            read_p99_us: of_reads(micros(reads, 0.99)),
            cost: cost.flatten(),
            distribution: named.distribution,
            target: named.target.map(|target| target.to_string()),
            begin_seconds: begin.at,
            seconds,
            ops,
            ops_s: ops as f64 / seconds.max(1e-9),
            fd_hit_rate: hits::between(samples, begin.at, end.at),
            last_tenth_fd_hit_rate: last_tenth,
            seconds_to_steady: last_tenth.and_then(|goal| hits::seconds_to_stay(samples, goal)),
            hot_set_bytes: hotness.map(|hot| hot.hot_set_bytes),
            hot_set_limit_bytes: hotness.map(|hot| hot.hot_set_limit_bytes),
        }
    }
}

/// What a stage is about.
#[derive(Debug, Default)]
struct Named {
    distribution: String,
    target: Option<Target>,
    has_prices: bool,
}

impl Named {
    /// Stage `number` of a run. A trace has none of its own.
    fn new(shared: &Shared<'_>, number: usize) -> Option<Self> {
        let changing = shared.changing_targets();
        let distribution = match (shared.stages(), changing) {
            // The distribution is the same in all of them.
            (Some(stages), Some(_)) => stages.to_string(),
            (Some(stages), None) => stages.stages().get(number)?.shape.to_string(),
            (None, Some(_)) => shared.source.distribution_name(),
            (None, None) => return None,
        };
        Some(Self {
            distribution,
            target: shared.target_in(number),
            has_prices: shared.prices.is_some(),
        })
    }
}

fn spent(used: &Clock, counters: &Counters) -> Spent {
    Spent {
        cpu: accounts::split(used, counters.cpu.as_ref(), counters.silent_threads),
        io: counters.io,
    }
}

/// Processor time as of now.
fn clock(shared: &Shared<'_>) -> Result<Clock> {
    let mut clock = Clock::of_process()?;
    for tally in &shared.tallies {
        let seconds = |nanos: &AtomicU64| nanos.load(Ordering::Relaxed) as f64 / 1e9;
        let [reads, writes] = &tally.call_nanos;
        clock.reads += seconds(reads);
        clock.writes += seconds(writes);
        clock.clients += seconds(&tally.thread_nanos);
    }
    Ok(clock)
}

/// How far the clients are.
pub(super) fn tick(shared: &Shared<'_>, at: f64) -> Tick {
    let mut tick = Tick {
        at,
        ..Tick::default()
    };
    for tally in &shared.tallies {
        tick.ops += tally.done.load(Ordering::Relaxed);
        tick.nanos += tally.nanos.load(Ordering::Relaxed);
    }
    tick
}

#[cfg(test)]
mod tests;
