//! What a store may cost, or how fast its reads have to be.

use std::fmt;
use std::time::Duration;

/// What [`Db::set_target`](crate::Db::set_target) asks for. The store then spends no more on the
/// fast tier than that takes.
///
/// ```
/// use std::time::Duration;
/// use thermocline::Target;
/// assert_eq!(Target::Cost(0.05).to_string(), "cost:0.05");
/// assert_eq!(Target::Latency(Duration::from_millis(2)).to_string(), "latency:2ms");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Target {
    /// Nothing: the fast tier is used as far as its capacity allows. The default.
    #[default]
    None,
    /// Dollars per GB (10⁹ bytes) of keys and values and month at most.
    Cost(f64),
    /// The mean time of a point read at most, for the least money.
    Latency(Duration),
    /// The part of point reads, 0 to 1, that need no read of a slower tier, for the least money.
    HitRate(f64),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::None => f.write_str("none"),
            Target::Cost(dollars) => write!(f, "cost:{dollars}"),
            Target::Latency(mean) => write!(f, "latency:{mean:?}"),
            Target::HitRate(part) => write!(f, "hit-rate:{part}"),
        }
    }
}
