//! How far two medians may be apart by chance.
//!
//! Each side has a standard error. With repeats it follows from their spread, which covers what
//! differs from run to run. For a single run, the second half of its seconds is cut into blocks,
//! and the spread of the blocks' means is taken (batch means): consecutive seconds depend on each
//! other, blocks hardly do. This does not cover what differs from run to run, so it is rather too
//! small than too large.
//!
//! The noise of a ratio is the width of the 95 % interval of Welch's test: both errors together,
//! times Student's t for the degrees of freedom that the few values leave.

use crate::results::{Cell, Run};

/// How many blocks the second half of a single run is cut into.
const BLOCKS: usize = 8;

/// How many seconds a block must have at least.
const LEAST_SECONDS: usize = 2;

/// The median of three or more values varies more than their mean. For many values it does so by
/// this factor.
const MEDIAN: f64 = 1.2533;

/// The standard error of one side, as a share of its median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Error {
    share: f64,
    degrees: f64,
    /// Whether it was estimated from the blocks of one run.
    pub(super) of_blocks: bool,
}

impl Error {
    /// The error of the throughput of a cell. `None` if there is too little to tell.
    pub(super) fn of(cell: &Cell, value: impl Fn(&Run) -> Option<f64>) -> Option<Self> {
        let values: Vec<f64> = cell.runs.iter().filter_map(value).collect();
        match values.len() {
            0 => None,
            1 => Self::of_values(&blocks(cell.first()?)?, 1.0, true),
            2 => Self::of_values(&values, 1.0, false),
            _ => Self::of_values(&values, MEDIAN, false),
        }
    }

    fn of_values(values: &[f64], factor: f64, of_blocks: bool) -> Option<Self> {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (n - 1.0)).sqrt();
        let share = factor * deviation / n.sqrt() / mean;
        share.is_finite().then_some(Self {
            share,
            degrees: n - 1.0,
            of_blocks,
        })
    }
}

/// How far the ratio of two medians may be from 1 by chance (19 times of 20).
pub(super) fn together(a: Error, b: Error) -> f64 {
    let (va, vb) = (a.share.powi(2), b.share.powi(2));
    if va + vb == 0.0 {
        return 0.0;
    }
    let degrees = (va + vb).powi(2) / (va.powi(2) / a.degrees + vb.powi(2) / b.degrees);
    students_t(degrees) * (va + vb).sqrt()
}

/// Means of blocks of the second half. The last second is shorter than the others and is left out.
fn blocks(run: &Run) -> Option<Vec<f64>> {
    let (_, whole) = run.series.split_last()?;
    let (_, half) = whole.split_at(whole.len() / 2);
    let length = half.len() / BLOCKS;
    if length < LEAST_SECONDS {
        return None;
    }
    let (_, even) = half.split_at(half.len() - length * BLOCKS);
    let mean = |block: &[crate::results::Second]| {
        block.iter().map(|second| second.ops_s).sum::<f64>() / block.len() as f64
    };
    Some(even.chunks(length).map(mean).collect())
}

/// The 97.5 % quantile of Student's t. Between the degrees of the table, the value for fewer
/// degrees is taken, which is larger.
fn students_t(degrees: f64) -> f64 {
    const TABLE: [(f64, f64); 14] = [
        (1.0, 12.706),
        (2.0, 4.303),
        (3.0, 3.182),
        (4.0, 2.776),
        (5.0, 2.571),
        (6.0, 2.447),
        (7.0, 2.365),
        (8.0, 2.306),
        (9.0, 2.262),
        (10.0, 2.228),
        (12.0, 2.179),
        (15.0, 2.131),
        (20.0, 2.086),
        (30.0, 2.042),
    ];
    // Rounding must not push a whole number of degrees below itself.
    let reached = |(known, _): &&(f64, f64)| *known <= degrees + 1e-9;
    let entry = TABLE.iter().rev().find(reached);
    entry.map_or(TABLE[0].1, |(_, t)| *t)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::cell;

    fn error(values: &[f64]) -> Error {
        Error::of(&cell("hotrap", "uniform", values), |run| run.ops_s).unwrap()
    }

    #[test]
    fn repeats_give_welchs_interval() {
        // Two values, each one apart from their mean. The deviation is sqrt 2 and the error 1,
        // which is 1 % of 100. Together there are two degrees.
        let one = error(&[99.0, 101.0]);
        assert!((one.share - 0.01).abs() < 1e-12 && !one.of_blocks);
        let noise = together(one, one);
        assert!((noise - 4.303 * 2f64.sqrt() * 0.01).abs() < 1e-9, "{noise}");
        assert_eq!(together(error(&[7.0, 7.0]), error(&[9.0, 9.0])), 0.0);
    }

    #[test]
    fn more_repeats_mean_less_noise() {
        let few = error(&[99.0, 100.0, 101.0]);
        let many = error(&[99.0, 100.0, 101.0, 99.0, 100.0, 101.0]);
        assert!(together(many, many) < together(few, few));
    }

    #[test]
    fn a_single_run_is_judged_by_blocks_of_its_second_half() {
        let mut one = cell("hotrap", "uniform", &[100.0]);
        assert_eq!(
            Error::of(&one, |run| run.ops_s),
            None,
            "ten seconds are too few"
        );
        let second = one.runs[0].series[0].clone();
        // The first half does not count, nor does it count that seconds alternate, nor does the
        // short last one.
        one.runs[0].series = (0..65)
            .map(|at| crate::results::Second {
                ops_s: match at {
                    0..32 => 5000.0,
                    64 => 1.0,
                    _ if at % 2 == 0 => 90.0,
                    _ => 110.0,
                },
                ..second.clone()
            })
            .collect();
        let error = Error::of(&one, |run| run.ops_s).unwrap();
        assert!(error.of_blocks);
        assert_eq!(error.share, 0.0);
    }

    #[test]
    fn between_two_degrees_the_larger_quantile_counts() {
        assert_eq!(students_t(0.5), 12.706);
        assert_eq!(students_t(2.999_999_999_9), 3.182);
        assert_eq!(students_t(3.9), 3.182);
        assert_eq!(students_t(1000.0), 2.042);
    }
}
