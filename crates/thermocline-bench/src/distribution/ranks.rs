//! Accesses counted by popularity rank.
//!
//! A table is a text file: lines of `RANK COUNT`, ranks from 0 upwards. Ranks between two lines
//! have the first one's count. Empty lines and lines that begin with `#` are skipped. Each access
//! is drawn independently: the order of the recorded accesses is not modelled, nor is what is read
//! again soon.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use rand::{Rng, RngExt};

/// Tables that come with the program: name and text.
const BUILT_IN: [(&str, &str); 2] = [
    (
        "quizup-reads",
        include_str!("../../data/quizup-reads-by-rank.txt"),
    ),
    (
        "quizup-writes",
        include_str!("../../data/quizup-writes-by-rank.txt"),
    ),
];

/// Accesses by popularity rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranks {
    name: String,
    /// Never empty.
    steps: Vec<Step>,
    /// Ranks in all.
    ranks: u64,
    /// Accesses in all.
    accesses: u64,
}

/// Ranks with one count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    first: u64,
    count: u64,
    /// Accesses of all ranks before.
    before: u64,
}

impl Ranks {
    /// The table of that name that comes with the program, or else the file.
    pub(super) fn named(name: &str) -> Result<Self> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            return Self::parse(name, text);
        }
        let text = fs::read_to_string(name).with_context(|| {
            format!("cannot read {name}; without a file there are quizup-reads and quizup-writes")
        })?;
        Self::parse(name, &text).with_context(|| name.to_owned())
    }

    /// Its name or file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many there are.
    pub(super) fn ranks(&self) -> u64 {
        self.ranks
    }

    /// How many ranks have the same count, and that count.
    pub(super) fn alike(&self) -> impl Iterator<Item = (u64, u64)> {
        let ends = self.steps.iter().skip(1).map(|step| step.first);
        let steps = self.steps.iter().zip(ends.chain([self.ranks]));
        steps.map(|(step, end)| (end - step.first, step.count))
    }

    pub(super) fn parse(name: &str, text: &str) -> Result<Self> {
        let mut steps: Vec<Step> = Vec::new();
        let (mut ranks, mut accesses) = (0u64, 0u64);
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let mut fields = line.split_ascii_whitespace().map(str::parse::<u64>);
            let (Some(Ok(rank)), Some(Ok(count)), None) =
                (fields.next(), fields.next(), fields.next())
            else {
                bail!("line {number}: `{line}` is not RANK COUNT, two whole numbers");
            };
            let before = steps.last().map(|step| step.first);
            let least = before.map_or(Some(0), |before| before.checked_add(1));
            ensure!(
                least.is_some_and(|least| rank >= least) && (before.is_some() || rank == 0),
                "line {number}: rank {rank}: ranks must ascend, from 0"
            );
            ensure!(count > 0, "line {number}: the count must be at least 1");
            if let Some(step) = steps.last() {
                accesses = sum(step.before, rank - step.first, step.count)
                    .with_context(|| format!("line {number}: too many accesses"))?;
            }
            steps.push(Step {
                first: rank,
                count,
                before: accesses,
            });
            ranks = rank
                .checked_add(1)
                .with_context(|| format!("line {number}: rank {rank} is too great"))?;
        }
        let last = steps.last().context("there are no ranks in it")?;
        let accesses = sum(last.before, 1, last.count).context("too many accesses")?;
        Ok(Self {
            name: name.to_owned(),
            steps,
            ranks,
            accesses,
        })
    }

    /// Draws one of `records` records by rank. Each record stands for an equally large share of the
    /// ranks.
    pub(super) fn draw(&self, rng: &mut impl Rng, records: u64) -> u64 {
        let access = rng.random_range(0..self.accesses);
        let after = self.steps.partition_point(|step| step.before <= access);
        let rank = match self.steps.get(after.saturating_sub(1)) {
            Some(step) => step.first + (access - step.before) / step.count,
            None => 0,
        };
        // If there are more records than ranks, a rank is spread over several.
        let place = (rank as f64 + rng.random::<f64>()) / self.ranks as f64;
        ((place * records as f64) as u64).min(records - 1)
    }
}

fn sum(before: u64, ranks: u64, count: u64) -> Option<u64> {
    before.checked_add(ranks.checked_mul(count)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    const SMALL: &str = "# rank value\n0 60\n1 20\n3 5\n6 5\n";

    fn shares(ranks: &Ranks, records: u64) -> Vec<f64> {
        let mut rng = SmallRng::seed_from_u64(1);
        let mut counts = vec![0.0; records as usize];
        for _ in 0..100_000 {
            counts[ranks.draw(&mut rng, records) as usize] += 1e-5;
        }
        counts
    }

    fn assert_near(found: &[f64], expected: &[f64]) {
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 0.01, "{found} for {expected}");
        }
    }

    #[test]
    fn ranks_are_drawn_by_their_counts() {
        let ranks = Ranks::parse("small", SMALL).unwrap();
        // 60, 20, 20, 5, 5, 5, 5 of 120.
        assert_eq!((ranks.ranks, ranks.accesses), (7, 120));
        let expected = [60.0, 20.0, 20.0, 5.0, 5.0, 5.0, 5.0].map(|count| count / 120.0);
        assert_near(&shares(&ranks, 7), &expected);
    }

    #[test]
    fn ranks_are_scaled_to_the_records() {
        let ranks = Ranks::parse("small", "0 60\n1 20\n3 10\n").unwrap();
        assert_near(&shares(&ranks, 2), &[80.0 / 110.0, 30.0 / 110.0]);
        let half = [30.0, 30.0, 10.0, 10.0, 10.0, 10.0, 5.0, 5.0].map(|count| count / 110.0);
        assert_near(&shares(&ranks, 8), &half);
    }

    #[test]
    fn the_quizup_table_adds_up_to_what_its_readme_says() {
        let ranks = Ranks::named("quizup-reads").unwrap();
        assert_eq!(ranks.accesses / 1_000_000, 681);
        let ranks = Ranks::named("quizup-writes").unwrap();
        assert_eq!(ranks.accesses / 1_000_000, 24);
    }

    #[test]
    fn bad_tables_are_explained() {
        for (text, expected) in [
            ("# nothing\n", "no ranks"),
            ("0 5\n1 x\n", "line 2: `1 x`"),
            ("0 5 6\n", "line 1"),
            ("1 5\n", "ranks must ascend, from 0"),
            ("0 5\n0 4\n", "line 2: rank 0"),
            ("0 0\n", "at least 1"),
            ("0 2\n18446744073709551615 1\n", "line 2: too many accesses"),
        ] {
            let error = Ranks::parse("bad", text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "([0-9]{0,20}[ #\n]?){0,8}") {
            if let Ok(ranks) = Ranks::parse("any", &text) {
                let mut rng = SmallRng::seed_from_u64(1);
                prop_assert!(ranks.draw(&mut rng, 3) < 3);
            }
        }
    }
}
