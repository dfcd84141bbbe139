//! RALT's state on disk, as inspection shows it. No table is opened.

use std::fmt;
use std::path::Path;

use super::Ralt;
use super::scoring::{Model, Moment};
use super::state::{State, TableState};
use super::state_file::StateFile;
use super::state_log::NAME;
use crate::error::{Error, Result};
use crate::storage::{FileInfo, Medium};
use crate::table::TableMeta;

/// What the state of a closed store says about accesses to it. Names are those of
/// [`crate::metrics::RaltMetrics`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AccessRecords {
    /// The database that the records belong to.
    pub database: u128,
    /// Most bytes of keys and values that may be hot. While the store is open, room in its last
    /// fast level may limit them more.
    pub hot_set_limit_bytes: u64,
    /// Tables of access records, in bytes.
    pub physical_bytes: u64,
    /// What `physical_bytes` is kept below.
    pub physical_limit_bytes: u64,
    /// Access records in tables. A key that lies in several tables counts for each.
    pub records: u64,
    /// How many tables there are.
    pub tables: u64,
    /// The score, as of the state, from which on a record is hot. It is that of the class of
    /// records that the limit goes through.
    pub hot_threshold: f64,
    /// The score, as of the state, below which the last eviction forgot records. It is that of the
    /// class of records that the eviction went through.
    pub evicted_threshold: f64,
    /// Evictions ever.
    pub evictions: u64,
    /// The time slice: bytes accessed so far, divided by the slice's size.
    pub tick: u64,
}

impl fmt::Display for AccessRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "hot set of at most {} bytes, hot from a score of {:.3} on; {} records in {} tables, {} of at most {} bytes; {} evictions",
            self.hot_set_limit_bytes,
            self.hot_threshold,
            self.records,
            self.tables,
            self.physical_bytes,
            self.physical_limit_bytes,
            self.evictions
        )?;
        if self.evictions > 0 {
            write!(f, ", forgotten below {:.3}", self.evicted_threshold)?;
        }
        write!(f, "; slice {}, database {:032x}", self.tick, self.database)
    }
}

/// What was found of a state on disk.
pub(crate) struct Inspected {
    /// The file's length in bytes.
    pub(crate) bytes: u64,
    /// What it says, or why that cannot be told.
    pub(crate) records: Result<AccessRecords, String>,
    /// What else keeps it from being used.
    pub(crate) problems: Vec<String>,
}

impl Ralt {
    /// The state in the directory `path`, if there is one.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn inspect(medium: &dyn Medium, path: &Path) -> Result<Option<Inspected>> {
        let (bytes, files) = match read(medium, path) {
            Err(Error::NotFound { .. }) => return Ok(None),
            read => read?,
        };
        let mut problems = Vec::new();
        // It does not matter which tier the tables are said to be on.
        let found = StateFile::read(&bytes, 0).map_err(|bad| bad.what);
        let records = found.and_then(|found| {
            let model = found.scores.model();
            let model = model.ok_or("its scoring is none of this build")?;
            problems = lacking(&found.state, &files);
            Ok(records(&found.state, &model, found.database))
        });
        Ok(Some(Inspected {
            bytes: bytes.len() as u64,
            records,
            problems,
        }))
    }
}

/// How often the state is read at most, while a program replaces it.
const LOOKS: usize = 100;

/// The state, and the files beside it while it was the state. A table goes once there is a state
/// that does not name it. So if a state was replaced meanwhile, tables of it that are missing are
/// not lost.
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
