//! Result directories as suites write them, read back.
//!
//! ```text
//! suite.json           what was run, where, with which memory
//! probe.json           what the disks can do, where a suite has looked
//! runs/CELL.N.json     repeat N of a cell, as `thermocline bench --json` writes it
//! ```
//!
//! Only what reports and comparisons need is read. What an engine or an older build did not tell is
//! simply missing. Nothing in these files is trusted, because they may come from another machine.

mod cell;
mod commits;
mod directory;
mod run;
mod summary;

pub(crate) use cell::Cell;
pub(crate) use commits::Commits;
pub(crate) use directory::{MOST_REPEATS, Results};
pub(crate) use run::{ActivitySeries, Io, Latency, Run, Second, SlowDevice, Stage};
pub(crate) use summary::Summary;

#[cfg(test)]
pub(crate) mod tests {
    use super::Cell;
    pub(crate) use super::directory::tests::write;
    pub(crate) use super::run::tests::value;
    pub(crate) use super::run::{CostSecond, SlowTier};

    /// A cell with repeats of this many operations a second.
    pub(crate) fn cell(engine: &str, distribution: &str, ops_s: &[f64]) -> Cell {
        Cell {
            id: format!("{engine}-{distribution}-{}", ops_s.len()),
            figures: Vec::new(),
            command: format!("thermocline bench --engine {engine}"),
            runs: ops_s
                .iter()
                .map(|ops_s| serde_json::from_value(value(engine, distribution, *ops_s)).unwrap())
                .collect(),
        }
    }
}
