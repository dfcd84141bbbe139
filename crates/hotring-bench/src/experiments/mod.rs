//! The experiments, each a table of the report.

mod accesses;
mod crates;
mod growth;
mod mixes;
mod reads;
mod shift;
mod tail;

use crate::set_up::SetUp;

/// What can be measured.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Experiment {
    /// Reads, by keys per bucket.
    Ratios,
    /// Reads, by skew.
    Skew,
    /// Reads, by how often a handle is renewed.
    Pins,
    /// Reads, by the period R.
    Periods,
    /// Reads, with as many bytes of index for the chained table as for the ring.
    Memory,
    /// Reads of chained tables, by the size of a bucket.
    Buckets,
    /// Reads of absent keys, by keys per bucket.
    Misses,
    /// Reads, updates and new keys together.
    Mixes,
    /// A table that grows, by time.
    Growth,
    /// Reads and the size a table grows to, by the limit of the cost.
    Limits,
    /// Reads after the hot keys have changed, by time.
    Shift,
    /// Percentiles of the time of single reads.
    Tail,
    /// Reads beside other crates.
    Crates,
    /// Memory accesses of a lookup.
    Accesses,
    /// Loads a chained table and reads `--requests` times `--repeats`: for `valgrind
    /// --tool=cachegrind`.
    ProbeChained,
    /// The same with a ring.
    ProbeRing,
    /// All but the probes.
    All,
}

impl Experiment {
    /// All that `All` stands for.
    pub(crate) fn each() -> Vec<Self> {
        use Experiment::{
            Accesses, Buckets, Crates, Growth, Limits, Memory, Misses, Mixes, Periods, Pins,
            Ratios, Shift, Skew, Tail,
        };
        vec![
            Ratios, Skew, Pins, Periods, Memory, Buckets, Misses, Mixes, Growth, Limits, Shift,
            Tail, Crates, Accesses,
        ]
    }

    pub(crate) fn run(self, set_up: &SetUp) {
        match self {
            Self::Ratios => reads::ratios(set_up),
            Self::Skew => reads::skew(set_up),
            Self::Pins => reads::pins(set_up),
            Self::Periods => reads::periods(set_up),
            Self::Memory => reads::memory(set_up),
            Self::Buckets => reads::buckets(set_up),
            Self::Misses => reads::misses(set_up),
            Self::Mixes => mixes::run(set_up),
            Self::Growth => growth::run(set_up),
            Self::Limits => growth::limits(set_up),
            Self::Shift => shift::run(set_up),
            Self::Tail => tail::run(set_up),
            Self::Crates => crates::run(set_up),
            Self::Accesses => accesses::run(set_up),
            Self::ProbeChained => accesses::probe(set_up, true),
            Self::ProbeRing => accesses::probe(set_up, false),
            Self::All => {}
        }
    }
}
