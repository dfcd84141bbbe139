//! Which records operations touch, and how that changes while a run goes on.
//!
//! Syntax: stages separated by commas, each `NAME` or `NAME@SHARE%`; stages without a share
//! split what the others leave. Or each `NAME@TIME`: the run is as long as all of them. Names: `hotspot-N` (95 % of operations uniform on N % of the
//! records; `hotspot-N+M` puts that part M % further on, so that a stage can have another hot
//! set of the same size), `zipfian:THETA`, `uniform`, `latest`.

mod chooser;
mod stages;

use std::fmt;
use std::str::FromStr;

pub(crate) use chooser::Chooser;
use chooser::LATEST_THETA;
pub use stages::{Stage, Stages};

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
