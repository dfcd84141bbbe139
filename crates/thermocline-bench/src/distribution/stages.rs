//! The distributions of a run, one after the other.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::Shape;
use super::syntax::number;

/// The HotRAP paper's Figure 15: a hot set that grows around the one before, then another that
/// shares nothing with it, and two within that.
const DYNAMIC: [&str; 7] = [
    "uniform",
    "hotspot-1",
    "hotspot-3",
    "hotspot-5",
    "hotspot-5+5",
    "hotspot-4+5",
    "hotspot-2+5",
];

/// One part of a run.
#[derive(Debug, Clone, PartialEq)]
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
    /// How long all of them are together, if each was given in time.
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
        let dynamic = match text.split_once('@') {
            _ if text == "dynamic" => Some(DYNAMIC.join(",")),
            Some(("dynamic", time)) => Some(DYNAMIC.map(|name| format!("{name}@{time}")).join(",")),
            _ => None,
        };
        let text = dynamic.as_deref().unwrap_or(text);
        let parsed: Vec<(Shape, Length)> = text.split(',').map(stage).collect::<Result<_, _>>()?;
        let (mut given, mut open, mut time, mut timed) = (0.0, 0, Duration::ZERO, 0);
        for (_, length) in &parsed {
            match length {
                Length::Open => open += 1,
                Length::Share(share) => given += share,
                Length::Time(length) => {
                    time = time
                        .checked_add(*length)
                        .ok_or_else(|| format!("the times of `{text}` add up to too much"))?;
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
                // Rounded, so that a third is not printed with sixteen digits.
                write!(f, "@{}%", (stage.share * 1e6).round() / 1e4)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("normal", "there are hotspot-N"),
            ("uniform@30", "a share that ends in `%` or a time"),
            ("uniform@0s", "or a time"),
            ("uniform@30s,latest", "either every stage"),
            ("uniform@30%,latest@30%", "add up to 60"),
            ("uniform@100%,latest", "leave nothing"),
            ("dynamic@soon", "or a time"),
            ("uniform,dynamic", "no distribution"),
            ("", "no distribution"),
            // Regression: twice the longest time that there is was a panic.
            ("dynamic@500000000000y", "add up to too much"),
        ] {
            let error = text.parse::<Stages>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn dynamic_is_the_seven_stages_of_the_paper() {
        let stages: Stages = "dynamic".parse().unwrap();
        let hot = stages
            .stages()
            .iter()
            .filter_map(|stage| match stage.shape {
                Shape::Hotspot { percent, offset } => Some(offset..offset + percent),
                _ => None,
            });
        assert_eq!(
            hot.collect::<Vec<_>>(),
            [0.0..1.0, 0.0..3.0, 0.0..5.0, 5.0..10.0, 5.0..9.0, 5.0..7.0]
        );
        assert_eq!(stages.stages()[0].shape, Shape::Uniform);
        assert_eq!(stages.at(0.99), 6);
        let timed: Stages = "dynamic@60s".parse().unwrap();
        assert_eq!(timed.duration(), Some(Duration::from_secs(420)));
        assert!(
            timed
                .to_string()
                .ends_with(",hotspot-4+5@1m,hotspot-2+5@1m")
        );
    }
}
