//! `suite.json`: what a directory of results holds, and with what it was measured.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cell::Cell;
use super::definition::Definition;
use crate::compare::hosts;
use crate::host::Host;

/// Version of the layout of a directory of results.
const FORMAT: u32 = 1;

/// The file's name.
const NAME: &str = "suite.json";

/// Where a cell's results go.
pub(crate) const RUNS: &str = "runs";

/// A cell as other programs read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RecordedCell {
    id: String,
    figures: Vec<String>,
    engine: String,
    workload: String,
    distribution: String,
    command: String,
    repeats: u32,
}

/// What `suite.json` says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    format: u32,
    version: String,
    suite: String,
    description: String,
    host: Value,
    /// The suite's settings. Engines and groups may have others instead.
    budget: BTreeMap<String, Option<String>>,
    cells: Vec<RecordedCell>,
}

impl Record {
    /// What is about to be measured here.
    pub(crate) fn new(definition: &Definition, cells: &[Cell], host: &Host) -> Result<Self> {
        let settings = definition.settings.iter();
        Ok(Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            suite: definition.name.clone(),
            description: definition.description.clone(),
            host: serde_json::to_value(host)?,
            budget: settings
                .map(|(name, value)| (name.to_owned(), value.map(str::to_owned)))
                .collect(),
            cells: cells
                .iter()
                .map(|cell| RecordedCell {
                    id: cell.id.clone(),
                    figures: cell.figures.clone(),
                    engine: cell.engine.clone(),
                    workload: cell.workload.clone(),
                    distribution: cell.distribution.clone(),
                    command: cell.command(),
                    repeats: cell.repeats,
                })
                .collect(),
        })
    }

    /// Makes `out`, which was [`check`]ed, the directory of these results, or continues with it.
    ///
    /// # Errors
    /// It holds other results; what differs is named.
    pub(crate) fn begin(&self, out: &Path) -> Result<()> {
        let path = out.join(NAME);
        if let Ok(text) = fs::read(&path) {
            let earlier: Value = serde_json::from_slice(&text)
                .with_context(|| format!("{} is damaged", path.display()))?;
            return self.go_on_with(&earlier, out);
        }
        let runs = out.join(RUNS);
        fs::create_dir_all(&runs).with_context(|| format!("cannot create {}", runs.display()))?;
        replace(&path, &serde_json::to_vec_pretty(self)?)
    }

    fn go_on_with(&self, earlier: &Value, out: &Path) -> Result<()> {
        let ours = serde_json::to_value(self)?;
        let same = |name: &str| -> Result<()> {
            let (here, wanted) = (&earlier[name], &ours[name]);
            ensure!(
                here == wanted,
                "{} holds results of another {name}: {here}, not {wanted}; name another directory",
                out.display()
            );
            Ok(())
        };
        for name in ["format", "version", "suite"] {
            same(name)?;
        }
        let differences = hosts::between(&earlier["host"], &ours["host"]);
        ensure!(
            differences.is_empty(),
            "{} holds results of another machine: {}; name another directory",
            out.display(),
            differences.join("; ")
        );
        if earlier["cells"] == ours["cells"] && earlier["budget"] == ours["budget"] {
            return Ok(());
        }
        let earlier: Record = serde_json::from_value(earlier.clone())
            .with_context(|| format!("{}: {NAME} is damaged", out.display()))?;
        bail!(
            "{} holds results of another definition of suite {}, or other directories: {}; name another \
             directory",
            out.display(),
            self.suite,
            self.difference(&earlier)
        )
    }

    /// The first cell that is not the same.
    fn difference(&self, earlier: &Record) -> String {
        for cell in &self.cells {
            match earlier.cells.iter().find(|other| other.id == cell.id) {
                None => return format!("{} is not in it", cell.id),
                Some(other) if other.command != cell.command => {
                    return format!(
                        "{} was `{}`, now `{}`",
                        cell.id, other.command, cell.command
                    );
                }
                Some(other) if other != cell => {
                    return format!("figures or repeats of {} are others", cell.id);
                }
                Some(_) => {}
            }
        }
        let gone = earlier
            .cells
            .iter()
            .find(|other| self.cells.iter().all(|cell| cell.id != other.id));
        gone.map_or(
            "the order of cells, or the shared settings".to_owned(),
            |cell| format!("{} is in it", cell.id),
        )
    }
}

/// Whether `out` may become the directory of results, or is one.
///
/// # Errors
/// It holds something else.
pub(crate) fn check(out: &Path) -> Result<()> {
    if out.join(NAME).exists() {
        return Ok(());
    }
    if let Ok(mut entries) = fs::read_dir(out) {
        ensure!(
            entries.next().is_none(),
            "{} is not empty and holds no results; name another directory",
            out.display()
        );
    }
    Ok(())
}

/// Writes a file so that it is there whole or not at all.
///
/// # Errors
/// The file system's.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let part = path.with_extension("part");
    fs::write(&part, bytes)
        .and_then(|()| fs::rename(&part, path))
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::cell::Places;
    use crate::suite::cells::cells;
    use crate::suite::cells::tests::{of_small, places};
    use crate::suite::definition::tests::{SMALL, small};

    fn record(cells: &[Cell]) -> Record {
        Record::new(&small(), cells, &Host::new()).unwrap()
    }

    /// The error of continuing in a directory in which `name` of `suite.json` was `value`.
    fn refused(name: &str, change: impl FnOnce(&mut Value)) -> String {
        let out = tempfile::tempdir().unwrap();
        let ours = record(&of_small());
        ours.begin(out.path()).unwrap();
        let path = out.path().join(NAME);
        let mut earlier: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut earlier[name]);
        fs::write(&path, earlier.to_string()).unwrap();
        format!("{:#}", ours.begin(out.path()).unwrap_err())
    }

    #[test]
    fn the_same_suite_goes_on() {
        let out = tempfile::tempdir().unwrap();
        let ours = record(&of_small());
        ours.begin(&out.path().join("new")).unwrap();
        ours.begin(&out.path().join("new")).unwrap();
        let json = fs::read(out.path().join("new").join(NAME)).unwrap();
        let json: Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(json["format"], 1);
        assert_eq!(json["suite"], "small");
        assert_eq!(json["budget"]["data-size"], "10MB");
        let cell = &json["cells"][0];
        assert_eq!(cell["id"], "reads-hotrap-ro-hotspot-5");
        assert_eq!(cell["figures"][0], "6");
        assert_eq!(
            (&cell["engine"], &cell["workload"]),
            (&"hotrap".into(), &"ro".into())
        );
        assert_eq!(
            (&cell["distribution"], &cell["repeats"]),
            (&"hotspot-5".into(), &2.into())
        );
        assert!(
            cell["command"]
                .as_str()
                .unwrap()
                .starts_with("thermocline bench --engine hotrap")
        );
    }

    #[test]
    fn results_of_something_else_are_refused() {
        for (name, value, words) in [
            ("format", Value::from(7), ["another format", "7"]),
            ("version", "0.0.9".into(), ["another version", "0.0.9"]),
            ("suite", "raw".into(), ["another suite", "raw"]),
        ] {
            let error = refused(name, |field| *field = value);
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        }
        let error = refused("host", |host| host["cores"] = 999.into());
        assert!(error.contains("another machine: cores 999"), "{error}");
        let error = refused("cells", |cells| {
            cells[3]["command"] = "thermocline bench --seed 9".into()
        });
        assert!(
            error.contains("--seed 9") && error.contains("reads-leveled-uh-hotspot-5 was"),
            "{error}"
        );
        let error = refused("cells", |cells| cells[0]["id"] = "gone".into());
        assert!(
            error.contains("reads-hotrap-ro-hotspot-5 is not in it"),
            "{error}"
        );
        let error = refused("cells", |cells| cells[0] = Value::Null);
        assert!(error.contains("damaged"), "{error}");
    }

    #[test]
    fn the_same_disk_under_another_name_is_the_same_machine() {
        let host = |device: &str, bytes: u64| serde_json::json!({"cores": 2, "slow": {"device": device, "device_bytes": bytes}});
        let differ = |a, b| !hosts::between(&a, &b).is_empty();
        assert!(!differ(host("loop0", 9), host("loop1", 9)));
        assert!(differ(host("loop0", 9), host("loop0", 8)));
    }

    /// Regression: a kernel does not keep the same amount of memory to itself each time, so a suite
    /// of twelve hours could not go on after a restart.
    #[test]
    fn the_same_machine_after_a_restart_goes_on() {
        let out = tempfile::tempdir().unwrap();
        let ours = record(&of_small());
        ours.begin(out.path()).unwrap();
        let path = out.path().join(NAME);
        let begin_with = |part: f64| {
            let mut earlier: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let memory = Host::new().memory_bytes.expect("the kernel tells") as f64;
            earlier["host"]["memory_bytes"] = Value::from((memory * part) as u64);
            fs::write(&path, earlier.to_string()).unwrap();
            ours.begin(out.path())
        };
        begin_with(0.999).unwrap();
        let error = begin_with(0.5).unwrap_err().to_string();
        assert!(error.contains("another machine: memory bytes"), "{error}");
    }

    #[test]
    fn other_directories_are_another_definition() {
        let out = tempfile::tempdir().unwrap();
        record(&of_small()).begin(out.path()).unwrap();
        let elsewhere = Places {
            slow: "/other".into(),
            ..places()
        };
        let definition = Definition::parse("small.toml", SMALL).unwrap();
        let moved = cells(&definition, &elsewhere).unwrap();
        let error = record(&moved).begin(out.path()).unwrap_err().to_string();
        assert!(
            error.contains("/slow/reads-hotrap") && error.contains("/other/reads-hotrap"),
            "{error}"
        );
    }

    #[test]
    fn directories_of_others_are_left_alone() {
        let out = tempfile::tempdir().unwrap();
        fs::write(out.path().join("letter.txt"), "dear").unwrap();
        let error = check(out.path()).unwrap_err().to_string();
        assert!(error.contains("is not empty"), "{error}");
        fs::write(out.path().join(NAME), "{").unwrap();
        let error = record(&of_small())
            .begin(out.path())
            .unwrap_err()
            .to_string();
        assert!(error.contains("damaged"), "{error}");
        assert!(!out.path().join(RUNS).exists());
    }
}
