//! How a distribution is written down.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{Cluster, LATEST_THETA, Ranks, Shape};

/// Percent of the ranks of `shifting-zipfian` that move in a million draws, unless it is given.
const SHIFT_PERCENT: f64 = 10.0;

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
        if let Some(rest) = text.strip_prefix("zipfian:") {
            let theta = theta(text, rest)?;
            return Ok(Shape::Zipfian { theta });
        }
        if let Some(rest) = text.strip_prefix("shifting-zipfian:") {
            let (exponent, percent) = match rest.split_once('/') {
                Some((exponent, percent)) => (
                    exponent,
                    number(percent, "the percentage of ranks that move")?,
                ),
                None => (rest, SHIFT_PERCENT),
            };
            let theta = theta(text, exponent)?;
            if !(percent > 0.0 && percent <= 1e6) {
                return Err(format!(
                    "`{text}`: over 0 to 1000000 percent of the ranks can move in a million draws"
                ));
            }
            return Ok(Shape::ShiftingZipfian { theta, percent });
        }
        if let Some(name) = text.strip_prefix("ranks:") {
            let ranks = Ranks::named(name).map_err(|error| format!("`{text}`: {error:#}"))?;
            return Ok(Shape::Ranks(Arc::new(ranks)));
        }
        if let Some(name) = text.strip_prefix("cluster:") {
            let cluster = Cluster::named(name).map_err(|error| format!("`{text}`: {error:#}"))?;
            return Ok(Shape::Cluster(Arc::new(cluster)));
        }
        match text {
            "uniform" => Ok(Shape::Uniform),
            "latest" => Ok(Shape::Latest),
            "zipfian" => Ok(Shape::Zipfian {
                theta: LATEST_THETA,
            }),
            _ => Err(format!(
                "`{text}` is no distribution; there are hotspot-N, hotspot-N+OFFSET, \
                 zipfian:THETA, shifting-zipfian:THETA/N, uniform, latest, ranks:FILE, \
                 cluster:NAME and, alone, dynamic and dynamic@TIME"
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
            Shape::ShiftingZipfian { theta, percent } => {
                write!(f, "shifting-zipfian:{theta}/{percent}")
            }
            Shape::Uniform => f.write_str("uniform"),
            Shape::Latest => f.write_str("latest"),
            // Nobody should take these for replays.
            Shape::Ranks(ranks) => write!(f, "ranks:{} (trace-fitted)", ranks.name()),
            Shape::Cluster(cluster) => write!(f, "cluster:{} (trace-fitted)", cluster.name),
        }
    }
}

/// A finite number, or what is not one.
pub(super) fn number(text: &str, what: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("`{text}` is no number ({what})")),
    }
}

fn theta(whole: &str, text: &str) -> Result<f64, String> {
    let theta = number(text, "the zipfian exponent")?;
    if theta > 0.0 && theta <= 10.0 {
        Ok(theta)
    } else {
        Err(format!("`{whole}`: the exponent must be over 0, to 10"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_is_read_and_named() {
        for (text, name) in [
            ("hotspot-5+5", "hotspot-5+5"),
            ("shifting-zipfian:0.9", "shifting-zipfian:0.9/10"),
            ("shifting-zipfian:1.2/0.5", "shifting-zipfian:1.2/0.5"),
            ("ranks:quizup-reads", "ranks:quizup-reads (trace-fitted)"),
            ("cluster:17", "cluster:17 (trace-fitted)"),
        ] {
            assert_eq!(text.parse::<Shape>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn bad_shapes_are_explained() {
        for (text, expected) in [
            ("hotspot-0", "over 0 to 100"),
            ("hotspot-x", "no number"),
            ("hotspot-5+100", "offset 0 to below 100"),
            ("zipfian:-1", "exponent"),
            ("zipfian:nan", "no number"),
            ("shifting-zipfian:0", "exponent"),
            ("shifting-zipfian:1/0", "over 0 to 1000000"),
            ("ranks:/no/such", "/no/such"),
            ("cluster:99", "there are 1, 2, 3"),
            ("normal", "there are hotspot-N"),
            ("", "no distribution"),
        ] {
            let error = text.parse::<Shape>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
