//! Which records operations touch, and how that changes while a run goes on.
//!
//! Syntax: stages separated by commas, each `NAME` or `NAME@SHARE%`; stages without a share
//! split what the others leave. Or each `NAME@TIME`: the run is as long as all of them. Names: `hotspot-N` (95 % of operations uniform on N % of the
//! records; `hotspot-N+M` puts that part M % further on, so that a stage can have another hot
//! set of the same size), `zipfian:THETA`, `uniform`, `latest`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rand::{Rng, RngExt};
use rand_distr::{Distribution as _, Zipf};

use crate::keys::Permutation;

/// Share of a hotspot's operations that go to its hot set.
const HOT_SHARE: f64 = 0.95;

/// Skew of `latest`, as in YCSB.
const LATEST_THETA: f64 = 0.99;

/// Which records one stage touches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// 95 % of operations uniform on `percent` of the records, which begin at `offset`
    /// percent; the rest uniform on all.
    Hotspot {
        /// Size of the hot set in percent of the records.
        percent: f64,
        /// Where it begins, in percent of the records.
        offset: f64,
    },
    /// Zipf-distributed ranks, scattered over the records.
    Zipfian {
        /// The exponent.
        theta: f64,
    },
    /// All alike.
    Uniform,
    /// Zipf-distributed distance from the newest record.
    Latest,
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(rest) = text.strip_prefix("hotspot-") {
            let (percent, offset) = rest.split_once('+').unwrap_or((rest, "0"));
            let percent = number(percent, "the hot set's percentage")?;
            let offset = number(offset, "the hot set's offset")?;
            let possible = percent > 0.0 && percent <= 100.0 && (0.0..100.0).contains(&offset);
            if !possible {
                return Err(format!(
                    "`{text}`: the hot set must be over 0 to 100 percent, its offset 0 to below 100"
                ));
            }
            return Ok(Shape::Hotspot { percent, offset });
        }
        if let Some(theta) = text.strip_prefix("zipfian:") {
            let theta = number(theta, "the zipfian exponent")?;
            if !(theta > 0.0 && theta <= 10.0) {
                return Err(format!("`{text}`: the exponent must be over 0, to 10"));
            }
            return Ok(Shape::Zipfian { theta });
        }
        match text {
            "uniform" => Ok(Shape::Uniform),
            "latest" => Ok(Shape::Latest),
            "zipfian" => Ok(Shape::Zipfian {
                theta: LATEST_THETA,
            }),
            _ => Err(format!(
                "`{text}` is no distribution; there are hotspot-N, hotspot-N+OFFSET, \
                 zipfian:THETA, uniform and latest"
            )),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Hotspot { percent, offset } if *offset == 0.0 => write!(f, "hotspot-{percent}"),
            Shape::Hotspot { percent, offset } => write!(f, "hotspot-{percent}+{offset}"),
            Shape::Zipfian { theta } => write!(f, "zipfian:{theta}"),
            Shape::Uniform => f.write_str("uniform"),
            Shape::Latest => f.write_str("latest"),
        }
    }
}

fn number(text: &str, what: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("`{text}` is no number ({what})")),
    }
}

/// One part of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stage {
    /// What it touches.
    pub shape: Shape,
    /// Its part of the run, 0 to 1.
    pub share: f64,
}

/// The distributions of a run, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Stages {
    stages: Vec<Stage>,
    /// All of them together, if each was given in time.
    duration: Option<Duration>,
}

impl Stages {
    /// One distribution for the whole run.
    pub fn one(shape: Shape) -> Self {
        Self {
            stages: vec![Stage { shape, share: 1.0 }],
            duration: None,
        }
    }

    /// The stages in order; never empty.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// How long the run is, if its stages say so.
    pub fn duration(&self) -> Option<Duration> {
        self.duration
    }

    /// Number of the stage in force once `progress` (0 to 1) of the run is done.
    pub fn at(&self, progress: f64) -> usize {
        let mut end = 0.0;
        for (index, stage) in self.stages.iter().enumerate() {
            end += stage.share;
            if progress < end {
                return index;
            }
        }
        self.stages.len() - 1
    }
}

/// How long a stage is said to be.
enum Length {
    /// What the others leave.
    Open,
    /// Part of the run, 0 to 1.
    Share(f64),
    Time(Duration),
}

fn stage(part: &str) -> Result<(Shape, Length), String> {
    let Some((shape, length)) = part.split_once('@') else {
        return Ok((part.trim().parse()?, Length::Open));
    };
    let length = if let Some(percent) = length.strip_suffix('%') {
        let percent = number(percent, "the stage's share")?;
        if !(percent > 0.0 && percent <= 100.0) {
            return Err(format!("`{part}`: the share must be over 0 to 100 percent"));
        }
        Length::Share(percent / 100.0)
    } else {
        match humantime::parse_duration(length) {
            Ok(time) if !time.is_zero() => Length::Time(time),
            _ => {
                return Err(format!(
                    "`{part}`: after `@` comes a share that ends in `%` or a time, as in \
                     hotspot-5@30% or hotspot-5@60s"
                ));
            }
        }
    };
    Ok((shape.trim().parse()?, length))
}

impl FromStr for Stages {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed: Vec<(Shape, Length)> = text.split(',').map(stage).collect::<Result<_, _>>()?;
        let (mut given, mut open, mut time, mut timed) = (0.0, 0, Duration::ZERO, 0);
        for (_, length) in &parsed {
            match length {
                Length::Open => open += 1,
                Length::Share(share) => given += share,
                Length::Time(length) => {
                    time += *length;
                    timed += 1;
                }
            }
        }
        if timed > 0 && timed < parsed.len() {
            return Err(format!(
                "`{text}`: either every stage has a time, or none has"
            ));
        }
        let rest = 1.0 - given;
        if timed == 0 && open == 0 && rest.abs() > 1e-6 {
            return Err(format!(
                "the shares of `{text}` add up to {:.4} %, not to 100 %",
                given * 100.0
            ));
        }
        if open > 0 && rest < 1e-6 {
            return Err(format!(
                "the shares of `{text}` leave nothing for the stages without one"
            ));
        }
        let stages = parsed.into_iter().map(|(shape, length)| Stage {
            shape,
            share: match length {
                Length::Open => rest / f64::from(open),
                Length::Share(share) => share,
                Length::Time(length) => length.as_secs_f64() / time.as_secs_f64(),
            },
        });
        Ok(Self {
            stages: stages.collect(),
            duration: (timed > 0).then_some(time),
        })
    }
}

impl fmt::Display for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, stage) in self.stages.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{}", stage.shape)?;
            if let Some(duration) = self.duration {
                let time = Duration::from_millis(
                    (duration.as_millis() as f64 * stage.share).round() as u64,
                );
                write!(
                    f,
                    "@{}",
                    humantime::format_duration(time)
                        .to_string()
                        .replace(' ', "")
                )?;
            } else if self.stages.len() > 1 {
                // Rounded, so that a third does not print sixteen digits.
                write!(f, "@{}%", (stage.share * 1e6).round() / 1e4)?;
            }
        }
        Ok(())
    }
}

/// Draws record numbers for one stage.
#[derive(Debug, Clone)]
pub(crate) struct Chooser {
    records: u64,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Hotspot {
        first: u64,
        len: u64,
    },
    Zipfian {
        ranks: Zipf<f64>,
        places: Permutation,
    },
    Uniform,
    Latest {
        ranks: Zipf<f64>,
    },
}

impl Chooser {
    /// Draws among `records` loaded records, of which there is at least one. Where popular
    /// records lie follows from `seed`.
    pub(crate) fn new(shape: Shape, records: u64, seed: u64) -> Self {
        let records = records.max(1);
        let kind = match shape {
            Shape::Hotspot { percent, offset } => {
                let part = |percent: f64| (records as f64 * percent / 100.0).round() as u64;
                Kind::Hotspot {
                    first: part(offset) % records,
                    len: part(percent).clamp(1, records),
                }
            }
            Shape::Zipfian { theta } => Kind::Zipfian {
                ranks: zipf(records, theta),
                places: Permutation::new(records, seed),
            },
            Shape::Uniform => Kind::Uniform,
            Shape::Latest => Kind::Latest {
                ranks: zipf(records, LATEST_THETA),
            },
        };
        Self { records, kind }
    }

    /// A record number below `present`, the number of records there now.
    pub(crate) fn choose(&self, rng: &mut impl Rng, present: u64) -> u64 {
        match &self.kind {
            Kind::Hotspot { first, len } => {
                if rng.random_bool(HOT_SHARE) {
                    (first + rng.random_range(0..*len)) % self.records
                } else {
                    rng.random_range(0..self.records)
                }
            }
            Kind::Zipfian { ranks, places } => places.get(rank(ranks, rng, self.records)),
            Kind::Uniform => rng.random_range(0..self.records),
            Kind::Latest { ranks } => {
                let back = rank(ranks, rng, self.records);
                present.max(1) - 1 - back.min(present.saturating_sub(1))
            }
        }
    }
}

/// A rank from 0; `below` bounds it against rounding.
fn rank(ranks: &Zipf<f64>, rng: &mut impl Rng, below: u64) -> u64 {
    (ranks.sample(rng) as u64).saturating_sub(1).min(below - 1)
}

fn zipf(records: u64, theta: f64) -> Zipf<f64> {
    match Zipf::new(records as f64, theta) {
        Ok(zipf) => zipf,
        // Both bounds were checked: at least one record, a positive exponent.
        Err(error) => unreachable!("{records} records, exponent {theta}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    const DRAWS: usize = 200_000;
    const RECORDS: u64 = 10_000;

    fn counts(shape: &str, present: u64) -> Vec<u64> {
        let chooser = Chooser::new(shape.parse().unwrap(), RECORDS, 9);
        let mut rng = SmallRng::seed_from_u64(1);
        let mut counts = vec![0; present as usize];
        for _ in 0..DRAWS {
            counts[chooser.choose(&mut rng, present) as usize] += 1;
        }
        counts
    }

    fn share(counts: &[u64]) -> f64 {
        counts.iter().sum::<u64>() as f64 / DRAWS as f64
    }

    #[test]
    fn a_hotspot_sends_95_percent_to_its_set_uniformly() {
        let counts = counts("hotspot-5", RECORDS);
        // The rest is uniform on all, so 5 % of it falls into the set too.
        let hot = share(&counts[..500]);
        assert!((hot - 0.9525).abs() < 0.003, "{hot}");
        let half = share(&counts[..250]);
        assert!((half - hot / 2.0).abs() < 0.005, "{half}");
    }

    #[test]
    fn an_offset_moves_the_hot_set_and_wraps_around() {
        let moved = counts("hotspot-5+5", RECORDS);
        assert!((share(&moved[500..1000]) - 0.9525).abs() < 0.003);
        let wrapped = counts("hotspot-10+95", RECORDS);
        assert!((share(&wrapped[..500]) - 0.475).abs() < 0.01);
    }

    #[test]
    fn zipfian_has_the_promised_skew_and_is_scattered() {
        let mut counts = counts("zipfian:0.99", RECORDS);
        let top = (0..RECORDS).max_by_key(|&id| counts[id as usize]);
        assert_ne!(top, Some(0));
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let zeta: f64 = (1..=RECORDS).map(|k| (k as f64).powf(-0.99)).sum();
        let first = counts[0] as f64 / DRAWS as f64;
        assert!((first - 1.0 / zeta).abs() < 0.005, "{first}");
        let tenth: f64 = (1..=1000).map(|k| (k as f64).powf(-0.99)).sum::<f64>() / zeta;
        assert!((share(&counts[..1000]) - tenth).abs() < 0.02);
    }

    #[test]
    fn uniform_is_uniform() {
        let counts = counts("uniform", RECORDS);
        assert!((share(&counts[..5000]) - 0.5).abs() < 0.005);
        assert!(counts.iter().all(|&count| count < 60));
    }

    #[test]
    fn latest_follows_what_was_inserted() {
        let counts = counts("latest", 2 * RECORDS);
        assert!(share(&counts[RECORDS as usize..]) > 0.99);
        let newest = counts.last().copied().unwrap() as f64 / DRAWS as f64;
        assert!(newest > 0.08, "{newest}");
    }

    #[test]
    fn every_shape_draws_within_one_record() {
        let mut rng = SmallRng::seed_from_u64(1);
        for shape in ["hotspot-1", "zipfian:2", "uniform", "latest"] {
            let chooser = Chooser::new(shape.parse().unwrap(), 1, 0);
            assert_eq!(chooser.choose(&mut rng, 1), 0);
        }
    }

    #[test]
    fn stages_parse_and_print() {
        let stages: Stages = "hotspot-5@30%,uniform@70%".parse().unwrap();
        assert_eq!(
            stages.stages()[1],
            Stage {
                shape: Shape::Uniform,
                share: 0.7
            }
        );
        assert_eq!(stages.to_string(), "hotspot-5@30%,uniform@70%");
        let stages: Stages = "uniform,hotspot-1,hotspot-1+1@50%".parse().unwrap();
        assert_eq!(
            stages.to_string(),
            "uniform@25%,hotspot-1@25%,hotspot-1+1@50%"
        );
        assert_eq!(
            "zipfian:1.2".parse::<Stages>().unwrap().to_string(),
            "zipfian:1.2"
        );
    }

    #[test]
    fn progress_picks_the_stage() {
        let stages: Stages = "hotspot-5@30%,uniform@70%".parse().unwrap();
        assert_eq!(stages.at(0.0), 0);
        assert_eq!(stages.at(0.29), 0);
        assert_eq!(stages.at(0.31), 1);
        assert_eq!(stages.at(1.0), 1);
    }

    /// The paper's Figure 15: hot sets that grow around the one before, one that shares nothing
    /// with it, and two within that.
    #[test]
    fn the_dynamic_workload_of_the_paper_can_be_written_down() {
        let text = "uniform,hotspot-1,hotspot-3,hotspot-5,hotspot-5+5,hotspot-4+5,hotspot-2+5";
        let stages: Stages = text.parse().unwrap();
        let hot = |stage: usize| -> std::ops::Range<u64> {
            let shape = stages.stages()[stage].shape;
            match Chooser::new(shape, 1000, 1).kind {
                Kind::Hotspot { first, len } => first..first + len,
                _ => 0..0,
            }
        };
        assert_eq!(
            [1, 2, 3, 4, 5, 6].map(hot),
            [0..10, 0..30, 0..50, 50..100, 50..90, 50..70]
        );
        assert_eq!(stages.at(0.99), 6);
    }

    #[test]
    fn stages_in_time_add_up_to_the_run() {
        let stages: Stages = "uniform@30s,hotspot-5@1m30s".parse().unwrap();
        assert_eq!(stages.duration(), Some(Duration::from_secs(120)));
        assert_eq!(stages.stages()[1].share, 0.75);
        assert_eq!(stages.to_string(), "uniform@30s,hotspot-5@1m30s");
        assert_eq!(
            "uniform@50%,latest".parse::<Stages>().unwrap().duration(),
            None
        );
    }

    #[test]
    fn bad_distributions_are_explained() {
        for (text, expected) in [
            ("hotspot-0", "over 0 to 100"),
            ("hotspot-x", "no number"),
            ("hotspot-5+100", "offset 0 to below 100"),
            ("zipfian:-1", "exponent"),
            ("zipfian:nan", "no number"),
            ("normal", "there are hotspot-N"),
            ("uniform@30", "a share that ends in `%` or a time"),
            ("uniform@0s", "or a time"),
            ("uniform@30s,latest", "either every stage"),
            ("uniform@30%,latest@30%", "add up to 60"),
            ("uniform@100%,latest", "leave nothing"),
            ("", "no distribution"),
        ] {
            let error = text.parse::<Stages>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
