//! RALT's state on disk, as inspection shows it. No table is opened.

use std::path::Path;

use super::Ralt;
use super::scoring::{Model, Moment};
use super::state::{NAME, State, TableState};
use crate::error::{Error, Result};
use crate::inspect::{AccessRecords, AccessRecordsReport, Content};
use crate::storage::{FileInfo, Medium};
use crate::version::edit::TableMeta;

impl Ralt {
    /// The state in the directory `path`. Where there is none: damage if one is `expected`, else nothing.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn inspect(
        medium: &dyn Medium,
        path: &Path,
        expected: bool,
    ) -> Result<Option<AccessRecordsReport>> {
        let mut report = AccessRecordsReport {
            file: path.join(NAME),
            bytes: 0,
            contents: Content::Damaged("the file is missing".to_owned()),
            problems: Vec::new(),
        };
        match read(medium, path) {
            Ok((bytes, files)) => {
                report.bytes = bytes.len() as u64;
                report.contents = match State::of_any(&bytes) {
                    Ok((state, model, database)) => {
                        report.problems = lacking(&state, &files);
                        Content::Valid(records(&state, &model, database))
                    }
                    Err(what) => Content::Damaged(what),
                };
            }
            Err(Error::NotFound { .. }) if expected => {}
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
        Ok(Some(report))
    }
}

/// How often the state is read at most, while a program replaces it.
const LOOKS: usize = 100;

/// The state, and the files beside it while it was the state. A table goes once a state is there
/// that does not name it: what one lacks that was replaced meanwhile is not lost.
fn read(medium: &dyn Medium, path: &Path) -> Result<(Vec<u8>, Vec<FileInfo>)> {
    let log = medium.log_store(path, false)?;
    let mut state = log.read(NAME)?;
    for _ in 1..LOOKS {
        let files = log.list()?;
        let now = log.read(NAME)?;
        if now == state {
            return Ok((state, files));
        }
        state = now;
    }
    Ok((state, log.list()?))
}

/// Which of the tables that the state names are not as it says.
fn lacking(state: &State, files: &[FileInfo]) -> Vec<String> {
    let problem = |table: &TableState| {
        let name = table.meta.file_name();
        match files.iter().find(|file| file.name == name) {
            None => Some(format!("{name}: the file is missing")),
            Some(file) if file.len != table.meta.len => Some(format!(
                "{name}: it has {} bytes, and {} were written",
                file.len, table.meta.len
            )),
            Some(_) => None,
        }
    };
    state.tables.iter().filter_map(problem).collect()
}

fn records(state: &State, model: &Model, database: u128) -> AccessRecords {
    let limits = &state.limits;
    let now = Moment {
        tick: state.clock.tick,
        fraction: state.clock.begun as f32,
        generation: limits.generation,
    };
    let bins = state.tables.iter().flat_map(|table| &table.histogram.bins);
    let sum = |of: fn(&TableMeta) -> u64| {
        let numbers = state.tables.iter().map(|table| of(&table.meta));
        numbers.fold(0, u64::saturating_add)
    };
    AccessRecords {
        database,
        hot_set_limit_bytes: limits.hot_set,
        physical_bytes: sum(|table| table.len),
        physical_limit_bytes: limits.physical,
        records: sum(|table| table.entries),
        tables: state.tables.len() as u64,
        hot_threshold: model.score_at(limits.hot.boundary(bins), now),
        evicted_threshold: model.score_at(limits.evicted, now),
        evictions: limits.generation,
        tick: now.tick,
    }
}
