//! Which records operations touch, and how that changes while a run goes on.
//!
//! Syntax: stages separated by commas, each `NAME` or `NAME@SHARE%`; stages without a share split
//! what the others leave. Or each is `NAME@TIME`, and the run is as long as all of them together.
//! Names: `hotspot-N` (95 % of operations uniform on N % of the records, the rest uniform on the
//! others; `hotspot-N+M` puts that part M % further on, so that a stage can have another hot set of
//! the same size), `zipfian:THETA`, `shifting-zipfian:THETA/N` (N % of the ranks move to other
//! records in a million draws), `uniform`, `latest`, and two that are fitted to recorded traffic:
//! `ranks:FILE` and `cluster:NAME`. `dynamic` stands for seven stages.

mod chooser;
mod cluster;
mod popularity;
mod ranks;
mod stages;
mod syntax;
mod window;

use std::sync::Arc;

pub(crate) use chooser::{Chooser, LATEST_THETA};
pub use cluster::Cluster;
pub use ranks::Ranks;
pub use stages::{Stage, Stages};

/// Which records one stage touches.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// 95 % of operations are uniform on `percent` of the records, which begin at `offset` percent.
    /// The rest are uniform on the others (HotRAP, §4.2).
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
    /// Zipf-distributed ranks that move from record to record as they are drawn. Every operation
    /// except an insertion draws.
    ShiftingZipfian {
        /// The exponent.
        theta: f64,
        /// Percent of the ranks that move to another record in a million draws.
        percent: f64,
    },
    /// All alike.
    Uniform,
    /// Zipf-distributed distance from the newest record.
    Latest,
    /// Accesses counted by popularity rank, scaled to the records.
    Ranks(Arc<Ranks>),
    /// Fitted to the statistics of a cache cluster.
    Cluster(Arc<Cluster>),
}

/// Reads `text` as a table of ranks and as one of clusters, and draws from what it makes.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzz_tables(text: &str, rng: &mut impl rand::Rng) {
    if let Ok(ranks) = Ranks::parse("any", text) {
        assert!(ranks.draw(rng, 3) < 3, "no such record");
    }
    if let Ok(cluster) = Cluster::find(text, "1") {
        let shares = [cluster.write_share(), cluster.entering_share()];
        assert!(
            shares.iter().all(|share| (0.0..=1.0).contains(share)),
            "{cluster:?}"
        );
    }
}
