//! Opening what an earlier process left. Whatever is wrong with it means an empty RALT and a
//! message, never an error (I7).

use std::path::Path;

use super::RaltParts;
use super::files::Files;
use super::limits::Limits;
use super::removal::{count_files, is_anothers, remove_files, remove_tables};
use super::scoring::Model;
use super::sizes::Sizes;
use super::state::{self, Clock, State};
use super::state_file::StateFile;
use super::state_log::{NAME, StateLog, TEMPORARY};
use super::version::{Tracked, Version};
use crate::error::{Damaged, Error, Result};
use crate::ids::{table_file_name, table_number};
use crate::sync::Arc;
use crate::version::edit::PlacedBy;

/// What opening came to.
pub(super) struct Opened {
    pub(super) files: Option<Files>,
    pub(super) version: Version,
    pub(super) clock: Clock,
    pub(super) log: StateLog,
    pub(super) trouble: Option<String>,
}

/// Opens RALT's directory and what lies there.
pub(super) fn open(parts: &RaltParts, sizes: &Sizes, model: &Model) -> Opened {
    let mut opened = Opened {
        files: None,
        version: Version {
            limits: Limits::initial(sizes),
            ..Version::default()
        },
        clock: Clock::default(),
        log: StateLog::default(),
        trouble: None,
    };
    let found = Files::new(parts, sizes);
    let found = found.and_then(|files| Ok((is_anothers(&*files.log)?, files)));
    let files = match found {
        Ok((false, files)) => files,
        // Nothing there is RALT's: it is neither removed nor counted.
        Ok((true, _)) => {
            opened.trouble = Some(format!(
                "another store lies in {}, and none are kept beside it; move one of the two",
                parts.path.display()
            ));
            return opened;
        }
        // A store that is only read makes no directory, and misses none if hotness was not tracked
        // yet.
        Err(Error::NotFound { .. }) if parts.reads_only => {
            let expected = parts.before == Some(PlacedBy::Hotness);
            opened.trouble = expected.then(|| missing(&parts.path).to_string());
            return opened;
        }
        Err(error) => {
            opened.trouble = Some(error.to_string());
            count_files(&*parts.medium, &parts.path, &parts.fast);
            return opened;
        }
    };
    let loaded = load(&files, sizes, model, parts);
    match loaded {
        Ok(None) => {}
        Ok(Some((version, clock, state_len))) => {
            opened.version = version;
            opened.clock = clock;
            opened.log = StateLog::left(state_len);
        }
        Err(error) => {
            let error = error.of(Damaged::AccessRecords);
            opened.trouble = Some(format!("begun anew: {error}"));
            if let Err(error) = skip_numbers(&files) {
                opened.trouble = Some(error.to_string());
                count_files(&*parts.medium, &parts.path, &parts.fast);
                return opened;
            }
        }
    }
    if opened.log.len() == 0 && !parts.reads_only {
        // From the first opening on there is a state: if it is missing later, it was lost. So files
        // that are of no use go only when a new state is in force.
        let (clock, next_id) = (opened.clock, files.next_id());
        let state = State::of(&opened.version, clock, next_id, &parts.options);
        let removed = match StateLog::write(&files, &*files.log, model, state) {
            Ok(log) => {
                opened.log = log;
                remove_tables(&*files.log, &files.fast)
            }
            // The first flush tries again.
            Err(error) if error.may_pass() => remove_files(&*files.log, &files.fast),
            // It is not known which state is in force: nothing may be tried again (I9).
            Err(error) => {
                opened.trouble.get_or_insert_with(|| error.to_string());
                count_files(&*parts.medium, &parts.path, &parts.fast);
                return opened;
            }
        };
        if let Err(error) = removed {
            // What is left would be in the way of new files.
            opened.trouble = Some(error.to_string());
            files.fast.add_file_bytes(opened.log.len());
            return opened;
        }
    }
    let tables = opened.version.tables().map(|table| table.meta.len);
    let bytes = tables.sum::<u64>() + opened.log.len();
    files.fast.add_file_bytes(bytes);
    opened.files = Some(files);
    opened
}

/// The version that the state names; `None` when there is nothing of use, and nothing is expected.
fn load(
    files: &Files,
    sizes: &Sizes,
    model: &Model,
    parts: &RaltParts,
) -> Result<Option<(Version, Clock, u64)>> {
    let before = parts.before;
    if before == Some(PlacedBy::Level) {
        // A crash may have cut the removal short: what it left is neither of use nor damage.
        skip_numbers(files)?;
        return Ok(None);
    }
    let found = files.tier.tables.list()?;
    let numbers = || found.iter().filter_map(|file| table_number(&file.name));
    if !found.iter().any(|file| file.name == NAME) {
        // A first state that a crash cut short counts for nothing.
        if !parts.reads_only {
            files.log.remove(TEMPORARY)?;
        }
        if before != Some(PlacedBy::Hotness) && numbers().next().is_none() {
            return Ok(None);
        }
        return Err(missing(files.log.path()));
    }
    let (state, state_len) = StateFile::load(files, model)?;
    let mut version = Version {
        limits: state.limits.reopened(sizes),
        duplicates: state.duplicates,
        ..Version::default()
    };
    files.skip_ids(state.next_id);
    // The oldest first: a table goes on top of its level.
    let mut tables = state.tables;
    tables.sort_by_key(|table| table.meta.id);
    for table in &tables {
        let opened = files.open(&table.meta)?;
        let weight = opened.properties().weight.unwrap_or(0);
        if weight > state::MOST {
            let path = files.log.path().join(table.meta.file_name());
            let what = "its records weigh more than any device holds";
            return Err(Error::corruption(path, 0, what));
        }
        let (trim, histogram) = (table.trim.clone(), Arc::clone(&table.histogram));
        let tracked = Tracked::new(table.meta.clone(), opened, histogram, trim)?;
        version.insert(usize::from(table.meta.level), Arc::new(tracked));
    }
    if parts.reads_only {
        return Ok(Some((version, state.clock, state_len)));
    }
    for number in numbers() {
        if !tables.iter().any(|table| table.meta.id == number) {
            files.tier.tables.remove(&table_file_name(number))?;
            files.skip_ids(number + 1);
        }
    }
    files.log.remove(TEMPORARY)?;
    Ok(Some((version, state.clock, state_len)))
}

/// A state was expected in the directory `dir`.
fn missing(dir: &Path) -> Error {
    let error = Error::corruption(dir.join(NAME), 0, "the file is missing");
    error.of(Damaged::AccessRecords)
}

/// Skips the numbers of all tables that are there: none is used again (I4).
fn skip_numbers(files: &Files) -> Result<()> {
    for file in files.log.list()? {
        if let Some(number) = table_number(&file.name) {
            files.skip_ids(number.saturating_add(1));
        }
    }
    Ok(())
}
