//! The state's file: a log of edits, framed as [`crate::log_format`] says.
//!
//! It begins with all of the state, and takes an edit for each flush and each slice of a merge. An
//! edit is in force once it is synced (I4). A file that has become long is replaced by one that
//! holds the present state alone: that is renamed into place, so that a crash leaves the old one or
//! the new one. What an earlier process left takes no edits, since a crash may have torn its end.

use super::files::Files;
use super::scoring::Model;
use super::state::{Edit, State};
use crate::error::{Error, Result};
use crate::ids::FileId;
use crate::log_format::{FileHeader, FileKind, put_record};
use crate::metrics::Purpose;
use crate::points::point;
use crate::storage::{LogFile, LogStore};
use crate::sync::Arc;

/// The state's name in RALT's directory, and that of one being written.
pub(crate) const NAME: &str = "RALT";
pub(super) const TEMPORARY: &str = "RALT.tmp";

/// Set in the numbers of these files. The store's log and manifest have other numbers, and without
/// this bit: their records are at the same places of files with the same number.
const NUMBERED_APART: FileId = 1 << 63;

/// The file of the state.
#[derive(Debug, Default)]
pub(super) struct StateLog {
    /// Open for edits, once this process has written it.
    file: Option<Arc<dyn LogFile>>,
    number: FileId,
    /// 0 when there is none.
    len: u64,
    /// Its length when it was put in force.
    began_with: u64,
}

impl StateLog {
    /// What an earlier process left: a file of `len` bytes.
    pub(super) fn left(len: u64) -> Self {
        Self {
            len,
            ..Self::default()
        }
    }

    /// Length in bytes; 0 when there is no file.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Whether the next edit may be appended. It may not if the edits have become longer than half
    /// of what the file began with, and than `few` bytes: then all of the state is written anew. So
    /// the file takes half as much again as the state, and writing all of it twice what edits do.
    pub(super) fn takes_edits(&self, few: u64) -> bool {
        let edits = self.len.saturating_sub(self.began_with);
        self.file.is_some() && edits < (self.began_with / 2).max(few)
    }

    /// Writes a file of `state` alone to `log` and puts it in force there.
    ///
    /// # Errors
    /// One that [may pass](Error::may_pass) before anything changed. After any other it is not
    /// known which state is in force, and nothing may be tried again (I9).
    pub(super) fn write(
        files: &Files,
        log: &dyn LogStore,
        model: &Model,
        state: State,
    ) -> Result<Self> {
        point!(files.points, "ralt.before_state")?;
        // No two files have records of one place: what a file has of another's is not taken for
        // its own.
        let number = files.take_id() | NUMBERED_APART;
        let state = State {
            next_id: state.next_id.max(files.next_id()),
            ..state
        };
        let bytes = encode(files.database, number, model, state)?;
        let file = log.create(TEMPORARY)?;
        file.append(&bytes)?;
        files
            .tier
            .count_write(Purpose::Manifest, bytes.len() as u64);
        file.sync()?;
        point!(files.points, "ralt.state_written")?;
        let renamed = log.rename(TEMPORARY, NAME);
        // It is not known which state is in force now, whatever the cause.
        renamed.and_then(|()| log.sync_dir()).map_err(poisoned)?;
        let _: Result<()> = point!(files.points, "ralt.state_renamed");
        let len = bytes.len() as u64;
        Ok(Self {
            file: Some(file),
            number,
            len,
            began_with: len,
        })
    }

    /// Appends an edit and makes it durable.
    ///
    /// # Errors
    /// As [`StateLog::write`].
    pub(super) fn append(&mut self, files: &Files, model: &Model, edit: &Edit) -> Result<()> {
        point!(files.points, "ralt.before_state")?;
        let Some(file) = &self.file else {
            return Err(Error::Closed);
        };
        let mut record = Vec::new();
        put_record(&mut record, self.number, self.len, |out| {
            edit.encode(model, out);
        })?;
        file.append(&record).map_err(|error| {
            // A part of the edit, followed by later edits, would be read as damage.
            match file.truncate(self.len) {
                Ok(()) => error,
                Err(truncation) => poisoned(truncation),
            }
        })?;
        let len = record.len() as u64;
        files.tier.count_write(Purpose::Manifest, len);
        self.len += len;
        let written = point!(files.points, "ralt.edit_written");
        written.and_then(|()| file.sync()).map_err(poisoned)?;
        let _: Result<()> = point!(files.points, "ralt.edit_synced");
        Ok(())
    }
}

/// A file of `state` alone.
pub(super) fn encode(
    database: u128,
    number: FileId,
    model: &Model,
    state: State,
) -> Result<Vec<u8>> {
    let header = FileHeader {
        kind: FileKind::AccessRecords,
        number,
        database,
        previous: None,
        base_seq: 0,
    };
    let edit = Edit {
        state,
        ..Edit::default()
    };
    let mut bytes = header.encode();
    let offset = bytes.len() as u64;
    put_record(&mut bytes, number, offset, |out| edit.encode(model, out))?;
    Ok(bytes)
}

/// An error after which nothing may be tried again (I9).
fn poisoned(error: Error) -> Error {
    match error {
        passing if passing.may_pass() => Error::Poisoned {
            cause: passing.to_string().into(),
        },
        other => other,
    }
}
