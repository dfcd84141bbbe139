//! A whole result directory, or one run by itself.

use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::{Cell, Run};
use crate::compare::hosts;

/// The layout that this program reads and writes.
const FORMAT: u64 = 1;

/// Nobody measures more repeats of a cell than this. Each repeat is looked for, and with a damaged
/// number billions would be.
pub(crate) const MOST_REPEATS: u32 = 10_000;

/// What a suite left behind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Results {
    /// Where it was read from.
    pub(crate) path: PathBuf,
    /// Name of the suite.
    pub(crate) suite: String,
    /// What the suite is for.
    pub(crate) description: String,
    /// Version of the program that measured.
    pub(crate) version: String,
    /// The machine.
    pub(crate) host: Value,
    /// What its disks can do, if that was measured.
    pub(crate) probe: Value,
    /// The suite's settings. Engines and groups may have others instead.
    pub(crate) budget: Value,
    /// Cells with at least one finished repeat.
    pub(crate) cells: Vec<Cell>,
    /// Cells without one.
    pub(crate) missing: Vec<String>,
}

#[derive(Deserialize)]
struct Suite {
    #[serde(default)]
    version: String,
    suite: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    host: Value,
    #[serde(default)]
    budget: Value,
    cells: Vec<SuiteCell>,
}

#[derive(Deserialize)]
struct SuiteCell {
    id: String,
    #[serde(default)]
    figures: Vec<String>,
    #[serde(default)]
    command: String,
    repeats: u32,
}

/// Only the number, because the rest may look different in another format.
#[derive(Deserialize)]
struct Format {
    format: u64,
    #[serde(default)]
    version: String,
}

/// What the disks could do before the suite. Nothing if it did not look.
fn probe(path: &Path) -> Result<Value> {
    let file = path.join("probe.json");
    match fs::read_to_string(&file) {
        Ok(text) => serde_json::from_str(&text)
            .with_context(|| format!("{}: not written by a suite", file.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Value::Null),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

/// A probe of the slow disk alone, in the form in which suites record a probe of both.
fn slow(probe: Value) -> Value {
    serde_json::json!({ "slow": probe })
}

impl Results {
    /// Reads the result directory at `path`.
    ///
    /// # Errors
    /// There is no such directory, it was written in another format, a file in it is not what a
    /// suite writes, or its runs are of different machines, or of workloads that meant different
    /// things.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let file = path.join("suite.json");
        let text = fs::read_to_string(&file).with_context(|| {
            format!(
                "{} is no result directory: cannot read {}",
                path.display(),
                file.display()
            )
        })?;
        let wrong = || format!("{}: not written by a suite", file.display());
        let format: Format = serde_json::from_str(&text).with_context(wrong)?;
        ensure!(
            format.format == FORMAT,
            "{}: written in format {} by version {}; this is version {}, which reads format {FORMAT}",
            file.display(),
            format.format,
            format.version,
            env!("CARGO_PKG_VERSION")
        );
        let suite: Suite = serde_json::from_str(&text).with_context(wrong)?;
        let mut results = Self {
            path: path.to_owned(),
            suite: suite.suite,
            description: suite.description,
            version: suite.version,
            host: suite.host,
            probe: probe(path)?,
            budget: suite.budget,
            cells: Vec::new(),
            missing: Vec::new(),
        };
        for cell in suite.cells {
            results.add(cell)?;
        }
        // Suites may leave the probe to the runs.
        if results.probe.is_null() {
            let mut runs = results.cells.iter().flat_map(|cell| &cell.runs);
            let probe = runs.find_map(|run| run.slow_probe.clone());
            results.probe = probe.map_or(Value::Null, slow);
        }
        Ok(results)
    }

    /// Reads one file of `bench --json` as if it were a suite of one cell.
    ///
    /// # Errors
    /// The file cannot be read, or is something else.
    pub(crate) fn of_one_run(path: &Path) -> Result<Self> {
        let run = Run::read(path)?;
        Ok(Self {
            path: path.to_owned(),
            suite: "one run".to_owned(),
            description: String::new(),
            version: String::new(),
            host: run.host.clone(),
            probe: run.slow_probe.clone().map_or(Value::Null, slow),
            budget: Value::Null,
            cells: vec![Cell {
                id: format!("{} {} {}", run.engine, run.workload, run.distribution),
                figures: Vec::new(),
                command: run.command.clone().unwrap_or_default(),
                runs: vec![run],
            }],
            missing: Vec::new(),
        })
    }

    fn add(&mut self, cell: SuiteCell) -> Result<()> {
        // The id becomes a file name here.
        if cell.id.is_empty() || cell.id.starts_with('.') || cell.id.contains(['/', '\\', '\0']) {
            bail!("{}: `{}` is no cell's name", self.path.display(), cell.id);
        }
        ensure!(
            cell.repeats <= MOST_REPEATS,
            "{}: `{}` has {} repeats, over {MOST_REPEATS}; restore the file, or measure the suite anew",
            self.path.join("suite.json").display(),
            cell.id,
            cell.repeats
        );
        let mut runs = Vec::new();
        for repeat in 1..=cell.repeats {
            let file = self
                .path
                .join("runs")
                .join(format!("{}.{repeat}.json", cell.id));
            // A repeat that failed leaves a gap.
            if file.exists() {
                let run = Run::read(&file)?;
                let other = hosts::contradictions(&run.host, &self.host);
                ensure!(
                    other.is_empty(),
                    "{}: measured on another machine than what is beside it ({}); move it elsewhere",
                    file.display(),
                    other.join("; ")
                );
                let mut earlier = self.cells.iter().flat_map(|cell| &cell.runs).chain(&runs);
                if let Some(other) = earlier.find(|other| other.workloads != run.workloads) {
                    bail!(
                        "{}: of workloads by definition {}, and what is beside it is by {}, when some meant something else; move it elsewhere",
                        file.display(),
                        run.workloads,
                        other.workloads
                    );
                }
                runs.push(run);
            }
        }
        let Some(first) = runs.first() else {
            self.missing.push(cell.id);
            return Ok(());
        };
        self.cells.push(Cell {
            id: cell.id,
            figures: cell.figures,
            // What was done counts, and not what was planned.
            command: first.command.clone().unwrap_or(cell.command),
            runs,
        });
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::results::run::tests::value;
    use serde_json::json;

    /// Writes a result directory. Each cell has an id, figures, and the runs of its repeats.
    pub(crate) fn write(path: &Path, cells: &[(&str, &[&str], Vec<Value>)]) {
        fs::create_dir_all(path.join("runs")).unwrap();
        let mut list = Vec::new();
        for (id, figures, runs) in cells {
            list.push(json!({"id": id, "figures": figures, "command": format!("thermocline bench --cell {id}"),
                             "repeats": runs.len()}));
            for (repeat, run) in runs.iter().enumerate() {
                let file = path.join("runs").join(format!("{id}.{}.json", repeat + 1));
                fs::write(file, run.to_string()).unwrap();
            }
        }
        let suite = json!({"format": 1, "version": "0.1.0", "suite": "test", "description": "For tests.",
            "host": {"cores": 2, "os": "linux", "arch": "x86_64"}, "budget": {"memory": 1}, "cells": list});
        fs::write(path.join("suite.json"), suite.to_string()).unwrap();
    }

    #[test]
    fn finished_repeats_are_read_and_unfinished_cells_named() {
        let home = tempfile::tempdir().unwrap();
        let runs = vec![
            value("hotrap", "uniform", 1.0),
            value("hotrap", "uniform", 2.0),
        ];
        write(home.path(), &[("a", &["6"], runs), ("b", &[], vec![])]);
        let results = Results::read(home.path()).unwrap();
        assert_eq!(results.cells.len(), 1);
        assert_eq!(results.cells[0].runs.len(), 2);
        assert_eq!(results.cells[0].figures, ["6"]);
        assert_eq!(results.missing, ["b"]);
        assert!(results.probe.is_null());
        fs::write(home.path().join("probe.json"), "{\"fast\": {}}").unwrap();
        let results = Results::read(home.path()).unwrap();
        assert!(results.probe["fast"].is_object());
    }

    /// Regression: reading stopped at the first repeat that was missing. If that was the first of
    /// three, the cell counted as not finished: `report` left it out, and
    /// `compare --fail-on-regression` passed whatever the other two said.
    #[test]
    fn a_repeat_that_failed_does_not_hide_the_others() {
        let home = tempfile::tempdir().unwrap();
        let runs = [1.0, 2.0, 3.0].map(|ops_s| value("hotrap", "uniform", ops_s));
        write(home.path(), &[("a", &[], runs.to_vec())]);
        fs::remove_file(home.path().join("runs/a.1.json")).unwrap();
        let results = Results::read(home.path()).unwrap();
        assert_eq!(results.missing, Vec::<String>::new());
        let ops_s = results.cells[0].runs.iter().map(|run| run.ops_s);
        assert!(ops_s.eq([Some(2.0), Some(3.0)]));
    }

    /// Regression: a result that was copied from another machine's directory stood beside those of
    /// this machine, and the report named one machine.
    #[test]
    fn results_of_two_machines_are_not_mixed() {
        let home = tempfile::tempdir().unwrap();
        let mut runs = [1.0, 2.0].map(|ops_s| value("hotrap", "uniform", ops_s));
        // What the suite did not look at does not make it another machine.
        runs[0]["host"]["slow"] = json!({"device": "loop0"});
        write(home.path(), &[("a", &[], runs.to_vec())]);
        Results::read(home.path()).unwrap();
        runs[1]["host"]["cores"] = json!(64);
        write(home.path(), &[("a", &[], runs.to_vec())]);
        let error = Results::read(home.path()).unwrap_err().to_string();
        assert!(
            error.contains("a.2.json") && error.contains("cores"),
            "{error}"
        );
    }

    /// Regression: results of hotspots as they once were stood beside those of hotspots as they are
    /// now, under the same command lines.
    #[test]
    fn results_of_workloads_that_meant_something_else_are_not_mixed() {
        let home = tempfile::tempdir().unwrap();
        let figures: &[&str] = &[];
        let mut cells = ["a", "b"].map(|id| (id, figures, vec![value("hotrap", "uniform", 1.0)]));
        // From before it was recorded.
        cells[0].2[0]["workloads"] = json!(1);
        write(home.path(), &cells);
        Results::read(home.path()).unwrap();
        cells[1].2[0]["workloads"] = json!(2);
        write(home.path(), &cells);
        let error = Results::read(home.path()).unwrap_err().to_string();
        assert!(
            error.contains("b.1.json") && error.contains("workloads"),
            "{error}"
        );
    }

    #[test]
    fn the_command_that_measured_is_shown_where_it_is_known() {
        let home = tempfile::tempdir().unwrap();
        let (old, mut new) = (
            value("hotrap", "uniform", 1.0),
            value("hotrap", "uniform", 1.0),
        );
        new["command"] = "thermocline bench --ops 5".into();
        write(
            home.path(),
            &[("old", &[], vec![old]), ("new", &[], vec![new])],
        );
        let commands = Results::read(home.path()).unwrap().cells;
        let commands = commands.iter().map(|cell| cell.command.as_str());
        assert!(commands.eq(["thermocline bench --cell old", "thermocline bench --ops 5"]));
        let one = Results::of_one_run(&home.path().join("runs/new.1.json")).unwrap();
        assert_eq!(one.cells[0].command, "thermocline bench --ops 5");
    }

    #[test]
    fn other_formats_and_other_files_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let error = |text: &str| {
            fs::write(home.path().join("suite.json"), text).unwrap();
            format!("{:#}", Results::read(home.path()).unwrap_err())
        };
        let text = error("{\"format\": 7, \"version\": \"3.0.0\"}");
        assert!(text.contains("format 7 by version 3.0.0"), "{text}");
        assert!(error("[]").contains("not written by a suite"));
        let text = error(
            "{\"format\": 1, \"suite\": \"x\", \"cells\": [{\"id\": \"../../etc/passwd\", \"repeats\": 1}]}",
        );
        assert!(text.contains("is no cell's name"), "{text}");
        // Regression: each of them was looked for, for hours.
        let text = error(
            "{\"format\": 1, \"suite\": \"x\", \"cells\": [{\"id\": \"a\", \"repeats\": 4000000000}]}",
        );
        assert!(
            text.contains("suite.json: `a` has 4000000000 repeats"),
            "{text}"
        );
        let text = format!(
            "{:#}",
            Results::read(&home.path().join("none")).unwrap_err()
        );
        assert!(text.contains("no result directory"), "{text}");
    }
}
