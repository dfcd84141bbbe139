//! `suite.json`: what a directory of results holds, and what it was measured with.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cells::Cell;
use super::definition::Definition;
use crate::report::Host;

/// Version of the layout of a directory of results.
const FORMAT: u32 = 1;

/// The file's name.
const NAME: &str = "suite.json";

/// Where a cell's results go.
pub(crate) const RUNS: &str = "runs";

/// A cell as others read it.
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
    /// The settings that all cells share.
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

    /// Makes `out` the directory of these results, or goes on with it.
    ///
    /// # Errors
    /// It holds something else; what differs is named.
    pub(crate) fn begin(&self, out: &Path) -> Result<()> {
        let path = out.join(NAME);
        if let Ok(text) = fs::read(&path) {
            let earlier: Value = serde_json::from_slice(&text)
                .with_context(|| format!("{} is damaged", path.display()))?;
            return self.go_on_with(&earlier, out);
        }
        if let Ok(mut entries) = fs::read_dir(out) {
            ensure!(
                entries.next().is_none(),
                "{} is not empty and holds no results; name another directory",
                out.display()
            );
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
        if let Some(host) = ours["host"].as_object() {
            for (name, wanted) in host {
                let here = &earlier["host"][name];
                ensure!(
                    here == wanted,
                    "{} holds results of another machine: its {name} is {here}, this one's {wanted}; \
                     name another directory",
                    out.display()
                );
            }
        }
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
