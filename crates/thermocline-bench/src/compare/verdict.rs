//! One cell of B against the same cell of A.

use std::fmt;

use serde::Serialize;

use super::noise::{self, Error};
use crate::results::{Cell, Run};

/// What became of a cell's throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Beyond noise.
    Faster,
    /// Beyond noise.
    Slower,
    /// Nothing beyond chance.
    WithinNoise,
    /// There are too few repeats, and the run is too short, to tell.
    Unknown,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::WithinNoise => "within noise",
            Verdict::Unknown => "noise unknown",
        })
    }
}

/// A cell that both sides have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// Its name.
    pub cell: String,
    /// The engine of A.
    pub engine: String,
    /// Median of A: operations per second, or records loaded per second.
    pub a_ops_s: f64,
    /// Median of B.
    pub b_ops_s: f64,
    /// Repeats of A.
    pub a_repeats: usize,
    /// Repeats of B.
    pub b_repeats: usize,
    /// B over A.
    pub ratio: Option<f64>,
    /// How far from 1 the ratio may be by chance.
    pub noise: Option<f64>,
    /// Whether noise was estimated from within a single run of a side.
    pub noise_of_one_run: bool,
    /// Faster, slower, or neither.
    pub verdict: Verdict,
    /// Hit rate without the slow disk at the end, of A.
    pub a_fd_hit_rate: Option<f64>,
    /// The same of B.
    pub b_fd_hit_rate: Option<f64>,
    /// Processor time of an operation, B over A.
    pub cpu_ratio: Option<f64>,
    /// 99th percentile of reads, B over A.
    pub p99_ratio: Option<f64>,
}

impl Compared {
    /// `None` if a side has no throughput of the same kind.
    pub(super) fn new(a: &Cell, b: &Cell) -> Option<Self> {
        let runs = |run: &Run| run.ops_s;
        let loads = |run: &Run| run.load_ops_s;
        let value = if a.summary(runs).is_some() {
            runs
        } else {
            loads
        };
        let (before, after) = (a.summary(value)?, b.summary(value)?);
        let ratio = over(after.median, before.median);
        let errors = Error::of(a, value).zip(Error::of(b, value));
        let noise = errors.map(|(a, b)| noise::together(a, b));
        let verdict = match ratio.zip(noise) {
            Some((ratio, noise)) if ratio - 1.0 > noise => Verdict::Faster,
            Some((ratio, noise)) if 1.0 - ratio > noise => Verdict::Slower,
            Some(_) => Verdict::WithinNoise,
            None => Verdict::Unknown,
        };
        let median =
            |cell: &Cell, value: fn(&Run) -> Option<f64>| cell.summary(value).map(|s| s.median);
        let both = |value: fn(&Run) -> Option<f64>| over(median(b, value)?, median(a, value)?);
        let hit_rate = |run: &Run| run.final_hit_rate().or(run.fd_hit_rate);
        Some(Self {
            cell: a.id.clone(),
            engine: a.first()?.engine.clone(),
            a_ops_s: before.median,
            b_ops_s: after.median,
            a_repeats: before.repeats,
            b_repeats: after.repeats,
            ratio,
            noise,
            noise_of_one_run: errors.is_some_and(|(a, b)| a.of_blocks || b.of_blocks),
            verdict,
            a_fd_hit_rate: median(a, hit_rate),
            b_fd_hit_rate: median(b, hit_rate),
            cpu_ratio: both(|run| run.cpu_us_per_op),
            p99_ratio: both(|run| Some(run.of_reads()?.p99_us)),
        })
    }

    /// Slower beyond noise, and by more than `percent`.
    pub(super) fn regressed(&self, percent: f64) -> bool {
        let allowed = 1.0 - percent / 100.0;
        self.verdict == Verdict::Slower && self.ratio.is_some_and(|ratio| ratio < allowed)
    }
}

fn over(after: f64, before: f64) -> Option<f64> {
    (before > 0.0).then(|| after / before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::cell;

    #[test]
    fn one_short_run_a_side_has_no_verdict() {
        let one = |ops: f64| cell("hotrap", "uniform", &[ops]);
        let compared = Compared::new(&one(100.0), &one(50.0)).unwrap();
        assert_eq!(compared.verdict, Verdict::Unknown);
        assert_eq!(compared.ratio, Some(0.5));
        assert!(!compared.regressed(1.0));
    }

    #[test]
    fn loads_are_compared_where_nothing_else_was_measured() {
        let load = |ops_s: f64| {
            let mut cell = cell("hotrap", "uniform", &[1.0, 1.0]);
            for run in &mut cell.runs {
                (run.ops_s, run.load_ops_s) = (None, Some(ops_s));
            }
            cell
        };
        let compared = Compared::new(&load(10.0), &load(20.0)).unwrap();
        assert_eq!(
            (compared.ratio, compared.verdict),
            (Some(2.0), Verdict::Faster)
        );
        assert_eq!(
            Compared::new(&load(1.0), &cell("hotrap", "uniform", &[])),
            None
        );
    }

    #[test]
    fn a_throughput_of_nothing_has_no_ratio() {
        let compared = |a: f64| {
            let (a, b) = (cell("x", "u", &[a, a]), cell("x", "u", &[1.0, 1.0]));
            Compared::new(&a, &b).unwrap()
        };
        assert_eq!(compared(0.0).ratio, None);
        assert_eq!(compared(0.0).verdict, Verdict::Unknown);
    }
}
