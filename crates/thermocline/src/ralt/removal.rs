//! Removing RALT's files: those named as RALT names them, nothing else.

use std::path::Path;

use super::state::{NAME, TEMPORARY};
use crate::error::{Error, Result};
use crate::storage::{LogStore, Medium};
use crate::tier::Tier;
use crate::version::edit::table_number;

/// Removes RALT's files from the directory `dir`, and the directory unless others' files are in it.
/// Files that cannot be removed are counted as `fast`'s (I8).
///
/// # Errors
/// The first failure; the other files are gone all the same.
pub(crate) fn discard(medium: &dyn Medium, dir: &Path, fast: &Tier) -> Result<()> {
    let store = match medium.log_store(dir, false) {
        Err(Error::NotFound { .. }) => return Ok(()),
        store => store?,
    };
    remove_files(&*store, fast)?;
    medium.remove_dir(dir)
}

/// Removes RALT's files from `store`; durable on return. None of them is counted; one that cannot be
/// removed is from now on, as `fast`'s (I8).
///
/// # Errors
/// As [`discard`].
pub(super) fn remove_files(store: &dyn LogStore, fast: &Tier) -> Result<()> {
    let mut files = store.list()?;
    files.retain(|file| {
        let is_state = [NAME, TEMPORARY].contains(&&*file.name);
        is_state || table_number(&file.name).is_some()
    });
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
