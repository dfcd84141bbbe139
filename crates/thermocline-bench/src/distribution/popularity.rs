//! How popular each record is, where that stays as it is.

use super::chooser::{HOT_SHARE, LATEST_THETA};
use super::{Ranks, Shape};

/// Records that are accessed equally often.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Alike {
    /// How many. A table of ranks that is scaled to other records has parts of them.
    pub(crate) records: f64,
    /// Their part of all accesses.
    pub(crate) share: f64,
}

/// So many of the first ranks of Zipf's law are by themselves.
const SINGLE_RANKS: u64 = 1000;

/// Further ranks are put together with those that have up to this many times their number. The
/// first and the last of them differ by less than a percent for each whole exponent.
const TOGETHER: f64 = 1.01;

impl Shape {
    /// The records by popularity, the most popular first. Shares add up to 1.
    ///
    /// # Errors
    /// Popularity moves from record to record.
    pub(crate) fn popularity(&self, records: u64) -> Result<Vec<Alike>, String> {
        let all = records.max(1);
        let mut alike = match self {
            Shape::Hotspot { percent, .. } => {
                let hot = (all as f64 * percent / 100.0)
                    .round()
                    .clamp(1.0, all as f64);
                let cold = all as f64 - hot;
                let share = if cold > 0.0 { HOT_SHARE } else { 1.0 };
                vec![(hot, share), (cold, 1.0 - share)]
            }
            Shape::Zipfian { theta } => zipf(all, *theta),
            Shape::Latest => zipf(all, LATEST_THETA),
            Shape::Uniform => vec![(all as f64, 1.0)],
            Shape::Ranks(ranks) => of_ranks(ranks, all),
            Shape::ShiftingZipfian { .. } | Shape::Cluster(_) => {
                return Err(format!(
                    "`{self}`: its hot set moves, and what a disk is worth is told of one that stays; \
                     give zipfian:THETA for the best that is possible, or measure it with `thermocline bench`"
                ));
            }
        };
        // A table of ranks need not descend.
        alike.sort_by(|a, b| (b.1 / b.0).total_cmp(&(a.1 / a.0)));
        let sum: f64 = alike.iter().map(|(_, weight)| weight).sum();
        let each = alike.into_iter().filter(|(records, _)| *records > 0.0);
        Ok(each
            .map(|(records, weight)| Alike {
                records,
                share: weight / sum,
            })
            .collect())
    }
}

/// Ranks from 1 to `records`, each with the weight of its number to the power of -`theta`.
fn zipf(records: u64, theta: f64) -> Vec<(f64, f64)> {
    let singles = (1..=records.min(SINGLE_RANKS)).map(|rank| (1.0, (rank as f64).powf(-theta)));
    let mut alike: Vec<(f64, f64)> = singles.collect();
    let mut before = alike.len() as u64;
    while before < records {
        let last = ((before as f64 * TOGETHER) as u64).clamp(before + 1, records);
        let (from, to) = (before as f64 + 0.5, last as f64 + 0.5);
        alike.push(((last - before) as f64, area(from, to, theta)));
        before = last;
    }
    alike
}

/// The area under `x` to the power of -`theta`: the sum over many ranks, without counting them.
fn area(from: f64, to: f64, theta: f64) -> f64 {
    let (ratio, rest) = ((to / from).ln(), 1.0 - theta);
    let relative = match rest.abs() < 1e-9 {
        true => ratio,
        false => (rest * ratio).exp_m1() / rest,
    };
    from.powf(rest) * relative
}

fn of_ranks(ranks: &Ranks, records: u64) -> Vec<(f64, f64)> {
    let records_of_a_rank = records as f64 / ranks.ranks() as f64;
    let each = ranks.alike();
    each.map(|(ranks, count)| (ranks as f64 * records_of_a_rank, (ranks * count) as f64))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn popularity(shape: &str, records: u64) -> Vec<Alike> {
        let shape: Shape = shape.parse().unwrap();
        shape.popularity(records).unwrap()
    }

    /// The share of the `first` most popular records.
    fn share(alike: &[Alike], first: f64) -> f64 {
        let mut left = first;
        let mut share = 0.0;
        for group in alike {
            let taken = left.min(group.records);
            share += group.share * taken / group.records;
            left -= taken;
        }
        share
    }

    #[test]
    fn each_shape_has_its_records_and_all_accesses() {
        for shape in [
            "hotspot-5",
            "hotspot-100",
            "zipfian:1",
            "zipfian:3",
            "latest",
            "uniform",
            "ranks:quizup-reads",
        ] {
            for records in [1, 10, 100_000] {
                let alike = popularity(shape, records);
                let sum: f64 = alike.iter().map(|group| group.records).sum();
                assert!(
                    (sum / records as f64 - 1.0).abs() < 1e-9,
                    "{shape}: {sum} of {records}"
                );
                let shares: f64 = alike.iter().map(|group| group.share).sum();
                assert!((shares - 1.0).abs() < 1e-9, "{shape}: {shares}");
                let densities = alike.iter().map(|group| group.share / group.records);
                assert!(
                    densities.is_sorted_by(|a, b| *a >= b * (1.0 - 1e-9)),
                    "{shape}"
                );
            }
        }
    }

    #[test]
    fn a_hotspot_has_two_kinds_of_records() {
        let [hot, cold] = popularity("hotspot-5", 1000)[..] else {
            panic!("two kinds");
        };
        assert_eq!((hot.records, cold.records), (50.0, 950.0));
        assert!((hot.share - 0.95).abs() < 1e-9 && (cold.share - 0.05).abs() < 1e-9);
    }

    /// Beside the sum over all ranks, one by one.
    #[test]
    fn ranks_of_zipfs_law_that_are_put_together_add_up_to_the_same() {
        for theta in [0.5, 0.99, 1.0, 1.3] {
            let alike = popularity(&format!("zipfian:{theta}"), 50_000);
            assert!(alike.len() < 1500, "{}", alike.len());
            let weight = |rank: u64| (rank as f64).powf(-theta);
            let all: f64 = (1..=50_000).map(weight).sum();
            for first in [1, 1000, 20_000] {
                let exact = (1..=first).map(weight).sum::<f64>() / all;
                let found = share(&alike, first as f64);
                assert!(
                    (found - exact).abs() < 1e-5,
                    "{theta}, {first}: {found} for {exact}"
                );
            }
        }
    }

    #[test]
    fn ranks_are_scaled_to_the_records() {
        let ranks = Ranks::parse("small", "0 60\n1 20\n3 10\n").unwrap();
        let alike = Shape::Ranks(ranks.into()).popularity(8).unwrap();
        // 60, 20, 20 and 10 of 110, on two records each.
        let expected = [
            (2.0, 60.0 / 110.0),
            (4.0, 40.0 / 110.0),
            (2.0, 10.0 / 110.0),
        ];
        let found: Vec<_> = alike
            .iter()
            .map(|group| (group.records, group.share))
            .collect();
        for ((records, share), (expected_records, expected_share)) in found.iter().zip(expected) {
            assert!((records - expected_records).abs() < 1e-9);
            assert!((share - expected_share).abs() < 1e-9);
        }
    }

    #[test]
    fn a_hot_set_that_moves_is_refused_with_what_to_do() {
        for moving in ["shifting-zipfian:0.9", "cluster:17"] {
            let shape: Shape = moving.parse().unwrap();
            let error = shape.popularity(100).unwrap_err();
            assert!(error.contains("zipfian:THETA"), "{error}");
        }
    }
}
