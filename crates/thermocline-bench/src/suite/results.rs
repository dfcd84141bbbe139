//! The results of single runs: which are there, and how one gets there.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::cell::Cell;
use super::record::RUNS;
use super::schedule::Run;

/// What of a result is looked at. That it is whole shows when it is read at all.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Finished {
    version: String,
    engine: String,
    workload: String,
    distribution: String,
    /// Not in results of before it was recorded.
    command: Option<String>,
    ops_s: Option<f64>,
    load_ops_s: Option<f64>,
}

impl Finished {
    /// Operations a second, or records loaded if nothing else was done.
    pub(crate) fn ops_s(&self) -> f64 {
        self.ops_s.or(self.load_ops_s).unwrap_or(0.0)
    }

    /// Whether the command line of `cell` has measured it, as far as can be told.
    fn is_of(&self, cell: &Cell) -> Result<()> {
        let wanted = cell.command();
        let command = self.command.as_ref().unwrap_or(&wanted);
        ensure!(
            *command == wanted,
            "{}: `{command}` has measured this result, not `{wanted}`; move it elsewhere to have the cell measured",
            cell.id
        );
        Ok(())
    }
}

/// Where the result of `run` lies.
fn path(out: &Path, cell: &Cell, run: Run) -> PathBuf {
    out.join(RUNS)
        .join(format!("{}.{}.json", cell.id, run.repeat))
}

/// Where it is written first.
pub(crate) fn part(out: &Path, cell: &Cell, run: Run) -> PathBuf {
    path(out, cell, run).with_extension("part")
}

/// That what lies where the result of `run` goes is this cell's. Files may come from another directory, and
/// hours may have gone into them: they are neither taken for what they are not nor measured over.
///
/// # Errors
/// It is whole, and another command line has measured it.
pub(crate) fn check(out: &Path, cell: &Cell, run: Run) -> Result<()> {
    finished(out, cell, run).map_or(Ok(()), |finished| finished.is_of(cell))
}

/// The result of `run`, if it is there, whole and of this version.
pub(crate) fn finished(out: &Path, cell: &Cell, run: Run) -> Option<Finished> {
    read(&path(out, cell, run), cell).ok()
}

fn read(path: &Path, cell: &Cell) -> Result<Finished> {
    let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let finished: Finished = serde_json::from_slice(&text)
        .with_context(|| format!("{} is no result of a run", path.display()))?;
    ensure!(
        finished.version == env!("CARGO_PKG_VERSION")
            && finished.engine == cell.engine
            && finished.workload == cell.workload
            && finished.distribution == cell.distribution,
        "{} is the result of another cell or version",
        path.display()
    );
    Ok(finished)
}

/// Takes over what a run has written to [`part`].
///
/// # Errors
/// It is not whole, or not this cell's.
pub(crate) fn accept(out: &Path, cell: &Cell, run: Run) -> Result<Finished> {
    let (part, path) = (part(out, cell, run), path(out, cell, run));
    let finished = read(&part, cell)?;
    finished.is_of(cell)?;
    fs::rename(&part, &path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(finished)
}
