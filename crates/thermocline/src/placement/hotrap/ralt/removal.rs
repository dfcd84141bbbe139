//! Removing RALT's files, or counting them: those named as RALT names them, nothing else.

use std::path::Path;

use super::state_log::{NAME, TEMPORARY};
use crate::error::{Error, Result};
use crate::ids::table_number;
use crate::storage::{LogStore, Medium};
use crate::tier::Tier;
use crate::version::identity;

/// Removes RALT's files from the directory `dir`, and the directory unless others' files are in it.
/// Removes nothing if another store lies there. Files that cannot be removed are counted as
/// `fast`'s (I8).
///
/// # Errors
/// The first failure; the other files are gone all the same.
pub(crate) fn discard(medium: &dyn Medium, dir: &Path, fast: &Tier) -> Result<()> {
    let store = match medium.log_store(dir, false) {
        Err(Error::NotFound { .. }) => return Ok(()),
        store => store?,
    };
    if is_anothers(&*store)? {
        return Ok(());
    }
    remove_files(&*store, fast)?;
    medium.remove_dir(dir)
}

/// Whether another store lies in the directory of `store`. Its tables have the names of RALT's, so
/// that nothing tells them apart.
///
/// # Errors
/// I/O errors.
pub(super) fn is_anothers(store: &dyn LogStore) -> Result<bool> {
    let files = store.list()?;
    Ok(files.iter().any(|file| file.name == identity::NAME))
}

/// Removes RALT's files from `store`; durable on return. None of them was counted so far. One that
/// cannot be removed is counted as `fast`'s from now on (I8).
///
/// # Errors
/// As [`discard`].
pub(super) fn remove_files(store: &dyn LogStore, fast: &Tier) -> Result<()> {
    remove(store, fast, is_own)
}

/// As [`remove_files`], for all but the state.
///
/// # Errors
/// As [`discard`].
pub(super) fn remove_tables(store: &dyn LogStore, fast: &Tier) -> Result<()> {
    remove(store, fast, |name| {
        name == TEMPORARY || table_number(name).is_some()
    })
}

/// Counts RALT's files in the directory `dir` as `fast`'s, as far as they can be listed: they stay
/// where they are, and nobody else counts them (I8).
pub(super) fn count_files(medium: &dyn Medium, dir: &Path, fast: &Tier) {
    let found = medium.log_store(dir, false).and_then(|store| store.list());
    let mut files = found.unwrap_or_default();
    files.retain(|file| is_own(&file.name));
    fast.add_file_bytes(files.iter().map(|file| file.len).sum());
}

fn is_own(name: &str) -> bool {
    [NAME, TEMPORARY].contains(&name) || table_number(name).is_some()
}

fn remove(store: &dyn LogStore, fast: &Tier, goes: impl Fn(&str) -> bool) -> Result<()> {
    let mut files = store.list()?;
    files.retain(|file| goes(&file.name));
    // The state goes last: while it is there, its tables' numbers are known.
    files.sort_by_key(|file| file.name == NAME);
    let mut outcome = Ok(());
    for file in files {
        if let Err(error) = store.remove(&file.name) {
            fast.add_file_bytes(file.len);
            outcome = outcome.and(Err(error));
        }
    }
    outcome?;
    store.sync_dir()
}
