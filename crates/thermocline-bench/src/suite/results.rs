//! The results of single runs: which ones exist, and how they are added.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::cell::Cell;
use super::record::RUNS;
use super::schedule::Run;
use crate::compare::hosts;
use crate::workload::{self, WORKLOADS_DEFINITION};

/// The parts of a result that are looked at. If it can be read at all, it is whole.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Finished {
    version: String,
    engine: String,
    #[serde(default = "workload::unrecorded")]
    workloads: u32,
    workload: String,
    distribution: String,
    /// Results from before it was recorded do not have it.
    command: Option<String>,
    ops_s: Option<f64>,
    load_ops_s: Option<f64>,
    /// The machine.
    #[serde(default)]
    host: Value,
}

impl Finished {
    /// Operations a second, or records loaded a second if nothing else was done.
    pub(crate) fn ops_s(&self) -> f64 {
        self.ops_s.or(self.load_ops_s).unwrap_or(0.0)
    }

    /// Whether the command line of `cell` has measured it with this version, and still means the
    /// same, as far as can be told.
    fn is_of(&self, cell: &Cell) -> Result<()> {
        let wanted = cell.command();
        let command = self.command.as_ref().unwrap_or(&wanted);
        ensure!(
            *command == wanted,
            "{}: `{command}` has measured this result, not `{wanted}`; move it elsewhere to have the cell measured",
            cell.id
        );
        ensure!(
            self.workloads == WORKLOADS_DEFINITION,
            "{}: this result is of workloads by definition {}, not {WORKLOADS_DEFINITION}, and some meant something else by then; move it elsewhere to have the cell \
             measured",
            cell.id,
            self.workloads
        );
        for (what, here, wanted) in [
            ("version", &self.version[..], env!("CARGO_PKG_VERSION")),
            ("engine", &self.engine, &cell.engine),
            ("workload", &self.workload, &cell.workload),
            ("distribution", &self.distribution, &cell.distribution),
        ] {
            ensure!(
                here == wanted,
                "{}: this result is of {what} {here}, not {wanted}; move it elsewhere to have the cell measured",
                cell.id
            );
        }
        Ok(())
    }
}

/// Where the result of `run` lies.
fn path(out: &Path, cell: &Cell, run: Run) -> PathBuf {
    out.join(RUNS)
        .join(format!("{}.{}.json", cell.id, run.repeat))
}

/// Where the result is written first.
pub(crate) fn part(out: &Path, cell: &Cell, run: Run) -> PathBuf {
    path(out, cell, run).with_extension("part")
}

/// Checks that what lies where the result of `run` goes belongs to this cell. Files may come from
/// another directory, and hours may have gone into them. So they are neither taken for what they
/// are not nor overwritten.
///
/// # Errors
/// It is whole, and of another command line, cell, version, definition of workloads or machine than
/// `host`.
pub(crate) fn check(out: &Path, cell: &Cell, run: Run, host: &Value) -> Result<()> {
    // Only a result that cannot be read counts as missing.
    let Ok(result) = read(&path(out, cell, run)) else {
        return Ok(());
    };
    result.is_of(cell)?;
    let other = hosts::contradictions(&result.host, host);
    ensure!(
        other.is_empty(),
        "{}: this result is of another machine ({}); move it elsewhere to have the cell measured",
        cell.id,
        other.join("; ")
    );
    Ok(())
}

/// The result of `run`, if it exists, is whole and belongs to this cell.
pub(crate) fn finished(out: &Path, cell: &Cell, run: Run) -> Option<Finished> {
    let result = read(&path(out, cell, run)).ok()?;
    result.is_of(cell).is_ok().then_some(result)
}

fn read(path: &Path) -> Result<Finished> {
    let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text)
        .with_context(|| format!("{} is no result of a run", path.display()))
}

/// Takes over what a run has written to [`part`].
///
/// # Errors
/// It is not whole, or not this cell's.
pub(crate) fn accept(out: &Path, cell: &Cell, run: Run) -> Result<Finished> {
    let (part, path) = (part(out, cell, run), path(out, cell, run));
    let finished = read(&part)?;
    finished.is_of(cell)?;
    fs::rename(&part, &path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(finished)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::suite::cells::tests::of_small;

    /// Regression: a result counted as missing if its engine, workload, distribution or version was
    /// not the cell's, before it was checked which command had measured it. If it had been copied
    /// to the wrong place, it was silently overwritten.
    #[test]
    fn a_whole_result_of_anything_else_is_refused_and_half_a_one_is_none() {
        let out = tempfile::tempdir().unwrap();
        let cell = &of_small()[0];
        let run = Run { cell: 0, repeat: 1 };
        let path = path(out.path(), cell, run);
        // As a suite without directories knows it.
        let host = json!({"cores": 2, "slow": null});
        fs::create_dir(out.path().join(RUNS)).unwrap();
        check(out.path(), cell, run, &host).unwrap();
        let own = json!({
            "version": env!("CARGO_PKG_VERSION"), "engine": cell.engine, "workloads": WORKLOADS_DEFINITION, "workload": cell.workload,
            "distribution": cell.distribution, "command": cell.command(), "ops_s": 7.0,
            "host": {"cores": 2, "slow": {"device": "loop0"}},
        });
        let put = |result: &Value| fs::write(&path, result.to_string()).unwrap();
        put(&own);
        check(out.path(), cell, run, &host).unwrap();
        assert!(finished(out.path(), cell, run).is_some());
        let mut elsewhere = own.clone();
        elsewhere["host"]["cores"] = 64.into();
        put(&elsewhere);
        let error = check(out.path(), cell, run, &host).unwrap_err().to_string();
        assert!(
            error.contains("cores") && error.contains("move it"),
            "{error}"
        );
        for field in ["version", "engine", "workload", "distribution", "command"] {
            let mut other = own.clone();
            other[field] = "another".into();
            // Results without a command are from before it was recorded.
            if field != "command" {
                other["command"] = Value::Null;
            }
            put(&other);
            let error = check(out.path(), cell, run, &host).unwrap_err().to_string();
            assert!(
                error.contains("another") && error.contains("move it"),
                "{error}"
            );
            assert_eq!(finished(out.path(), cell, run), None);
        }
        fs::write(&path, &own.to_string()[..50]).unwrap();
        check(out.path(), cell, run, &host).unwrap();
        assert_eq!(finished(out.path(), cell, run), None);
    }

    /// Regression: the meaning of hotspots and fitted clusters was changed, but neither command
    /// lines nor the version were. So results from before the change stood for those from after it.
    #[test]
    fn a_result_of_workloads_that_meant_something_else_is_refused() {
        let out = tempfile::tempdir().unwrap();
        let cell = &of_small()[0];
        let run = Run { cell: 0, repeat: 1 };
        let path = path(out.path(), cell, run);
        fs::create_dir(out.path().join(RUNS)).unwrap();
        let mut result = json!({
            "version": env!("CARGO_PKG_VERSION"), "engine": cell.engine, "workload": cell.workload,
            "distribution": cell.distribution, "command": cell.command(), "ops_s": 7.0,
        });
        let unrecorded: Finished = serde_json::from_value(result.clone()).unwrap();
        assert_eq!(unrecorded.workloads, 1);
        result["workloads"] = (WORKLOADS_DEFINITION + 1).into();
        fs::write(&path, result.to_string()).unwrap();
        let error = check(out.path(), cell, run, &Value::Null).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("workloads") && error.contains("move it"),
            "{error}"
        );
        assert_eq!(finished(out.path(), cell, run), None);
    }
}
