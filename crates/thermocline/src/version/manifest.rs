//! The manifest: the store's shape as a log of edits, framed as [`crate::log_format`] says.
//!
//! An edit is in force once its append is synced. A crash in the append leaves a torn tail,
//! which was never acknowledged and is left behind: every open goes on in a new manifest,
//! begun with a snapshot. `CURRENT` names the one in force.

use std::collections::BTreeMap;

use super::current::{self, CURRENT, manifest_file_name, manifest_number, poisoned};
use super::edit::VersionEdit;
use crate::error::{Error, Result};
use crate::ids::FileId;
use crate::log_format::{FileHeader, FileKind, Found, Records, put_record};
use crate::metrics::Purpose;
use crate::points::{Points, point};
use crate::storage::{LogFile, LogStore};
use crate::sync::Arc;
use crate::tier::Tier;
use crate::wal::{begin_file, log_store, segment_number};

/// Length in bytes at which a manifest is replaced by one that holds the present state, unless that
/// is half as long already.
const ROLL_AT: u64 = 4 << 20;

/// The same, as a part of what its tier is planned for, where that is less: nothing else makes room
/// for it.
const ROLL_PART: u64 = 64;

/// What a manifest may take at most, unless its state is long, where room is all that is wanting.
/// That is so for a batch that hardly fits: it is not to depend on how many edits there were.
const LEAST_ROLL_AT: u64 = 64 << 10;

/// The manifest in force, open for appends.
#[derive(Debug)]
pub(crate) struct Manifest {
    tier: Arc<Tier>,
    file: Arc<dyn LogFile>,
    number: FileId,
    len: u64,
    /// How long it was when it was put in force, in bytes.
    began_with: u64,
    points: Points,
    poison: Option<Arc<str>>,
}

/// What [`Manifest::recover`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecoveredManifest {
    pub(crate) database: u128,
    pub(crate) number: FileId,
    pub(crate) edits: Vec<VersionEdit>,
    /// Where each of them begins.
    pub(crate) offsets: Vec<u64>,
    /// Bytes of it that are valid.
    pub(crate) len: u64,
    /// Whether a torn edit, never acknowledged, was left behind.
    pub(crate) torn: bool,
}

impl RecoveredManifest {
    /// Where the edits begin that added tables, or moved them last.
    pub(crate) fn places(&self) -> BTreeMap<FileId, u64> {
        let edits = self.edits.iter().zip(&self.offsets);
        edits
            .flat_map(|(edit, offset)| edit.added.iter().map(|table| (table.id, *offset)))
            .collect()
    }
}

impl Manifest {
    /// Writes manifest `number`, beginning with `snapshot`, puts it in force and removes the
    /// ones before it.
    ///
    /// # Errors
    /// I/O errors of the log store; the manifest that was in force then still is.
    /// [`Error::Poisoned`] when a sync failed, after which that is unknown (I9).
    pub(crate) fn create(
        tier: Arc<Tier>,
        database: u128,
        number: FileId,
        snapshot: &[VersionEdit],
        points: Points,
    ) -> Result<Manifest> {
        let store = log_store(&tier)?;
        let header = FileHeader {
            kind: FileKind::Manifest,
            number,
            database,
            previous: None,
            base_seq: 0,
        };
        let mut bytes = header.encode();
        for (index, edit) in snapshot.iter().enumerate() {
            let mut edit = edit.clone();
            // What was synced before CURRENT named it was cut short by no crash.
            edit.snapshot = (index == 0).then_some(snapshot.len() as u64);
            let offset = bytes.len() as u64;
            put_record(&mut bytes, number, offset, |out| edit.encode(out))?;
        }
        let name = manifest_file_name(number);
        let file = begin_file(&tier, &*store, &name, &bytes)?;
        let len = bytes.len() as u64;
        tier.count_write(Purpose::Manifest, len);
        file.sync().map_err(poisoned)?;
        tier.sync_names(|| store.sync_dir()).map_err(poisoned)?;
        let put_in_force = point!(points, "manifest.before_current")
            .and_then(|()| current::write(&tier, &*store, number, &points));
        if let Err(error) = put_in_force {
            if !matches!(error, Error::Poisoned { .. }) {
                // Not in force, and counted by nobody (I8): the next attempt has another number.
                let _ = store.remove(&name);
            }
            return Err(error);
        }
        point!(points, "manifest.after_current").map_err(poisoned)?;
        remove_superseded(&*store, number);
        // Counted while it is in force; its successor's creation removes the file.
        tier.add_file_bytes(len);
        Ok(Manifest {
            tier,
            file,
            number,
            len,
            began_with: len,
            points,
            poison: None,
        })
    }

    /// The manifest in force, its number and length as they were `found`, for a store that is open
    /// for reading only: `file` refuses every edit.
    pub(crate) fn refusing(
        tier: Arc<Tier>,
        (number, len): (FileId, u64),
        file: Arc<dyn LogFile>,
        points: Points,
    ) -> Manifest {
        tier.add_file_bytes(len);
        Manifest {
            tier,
            file,
            number,
            len,
            began_with: len,
            points,
            poison: None,
        }
    }

    /// Reads the manifest in force; `None` where there is no store yet.
    ///
    /// # Errors
    /// [`Error::Corruption`] for damage before the tail, and for a `CURRENT` that is gone
    /// while files of a store are there; [`Error::FormatVersion`]; I/O errors.
    pub(crate) fn recover(tier: &Arc<Tier>) -> Result<Option<RecoveredManifest>> {
        let store = log_store(tier)?;
        let Some(number) = current::read(&*store)? else {
            return check_nothing_is_there(tier, &*store).map(|()| None);
        };
        tier.count_read(Purpose::Open, current::content(number).len() as u64);
        Self::read(tier, &*store, number).map(Some)
    }

    /// Reads manifest `number`, which `CURRENT` names, or named before it went.
    ///
    /// # Errors
    /// As [`Manifest::recover`].
    pub(crate) fn read(
        tier: &Tier,
        store: &dyn LogStore,
        number: FileId,
    ) -> Result<RecoveredManifest> {
        let name = manifest_file_name(number);
        let path = store.path().join(&name);
        let bytes = match store.read(&name) {
            Err(Error::NotFound { .. }) => {
                let what = "CURRENT names this manifest, but it is missing";
                return Err(Error::corruption(path, 0, what));
            }
            read => read?,
        };
        tier.count_read(Purpose::Open, bytes.len() as u64);
        let header = FileHeader::decode(&path, FileKind::Manifest, &bytes)?;
        let Some(header) = header.filter(|header| header.number == number) else {
            return Err(Error::corruption(path, 0, "the file header is damaged"));
        };
        let mut recovered = RecoveredManifest {
            database: header.database,
            number,
            edits: Vec::new(),
            offsets: Vec::new(),
            len: bytes.len() as u64,
            torn: false,
        };
        let mut records = Records::new(number, &bytes);
        loop {
            match records.next() {
                Found::Record { offset, payload } => {
                    let payload = bytes.get(payload).unwrap_or_default();
                    let edit = VersionEdit::decode(payload).map_err(|bad| bad.at(&path, offset))?;
                    recovered.edits.push(edit);
                    recovered.offsets.push(offset);
                }
                Found::End => break,
                Found::Torn { offset } => {
                    recovered.len = offset;
                    recovered.torn = true;
                    break;
                }
                // Each edit was synced before the next was written: no crash does this.
                Found::Damaged { offset, .. } => {
                    let what = "an edit does not match its checksum";
                    return Err(Error::corruption(path, offset, what));
                }
            }
        }
        if lacks_edits(&recovered.edits) {
            let what = "it ends within the edits that it began with";
            return Err(Error::corruption(path, recovered.len, what));
        }
        if let Some(first) = recovered.edits.first_mut() {
            // It is about the file, not about the store.
            first.snapshot = None;
        }
        Ok(recovered)
    }

    /// Appends `edit` and makes it durable; only then may it be acted upon (I4).
    ///
    /// # Errors
    /// I/O errors of the write: the edit is not in force and may be tried again.
    /// [`Error::Poisoned`], from then on always, when a sync failed or a failed write could
    /// not be taken back (I9).
    pub(crate) fn append(&mut self, edit: &VersionEdit) -> Result<()> {
        if let Some(cause) = &self.poison {
            return Err(Error::Poisoned {
                cause: Arc::clone(cause),
            });
        }
        let mut record = Vec::new();
        put_record(&mut record, self.number, self.len, |out| edit.encode(out))?;
        let tier = Arc::clone(&self.tier);
        tier.with_room(|| {
            let written = point!(self.points, "manifest.before_append")
                .and_then(|()| self.file.append(&record));
            written.map_err(|error| {
                // A part of it, followed by later edits, would read as damage.
                match self.file.truncate(self.len) {
                    Ok(()) => error,
                    Err(truncation) => self.poison(truncation),
                }
            })
        })?;
        let len = record.len() as u64;
        self.tier.count_write(Purpose::Manifest, len);
        self.tier.add_file_bytes(len);
        self.len += len;
        point!(self.points, "manifest.before_sync")
            .and_then(|()| self.file.sync())
            .and_then(|()| point!(self.points, "manifest.after_sync"))
            .map_err(|error| self.poison(error))
    }

    /// Refuses every later edit (I9).
    pub(crate) fn poison(&mut self, error: Error) -> Error {
        let error = poisoned(error);
        if let Error::Poisoned { cause } = &error {
            self.poison = Some(Arc::clone(cause));
        }
        error
    }

    /// Whether it is time for a new one. One that replaced it at once would be as long where the
    /// state itself is, and so would the next.
    pub(crate) fn is_long(&self) -> bool {
        let most = ROLL_AT.min(self.tier.planned_bytes() / ROLL_PART);
        self.len >= most.max(self.began_with.saturating_mul(2))
    }

    /// What one that began with `began_with` bytes may take on a tier of that capacity when it is
    /// replaced as soon as it can be.
    pub(crate) fn allotment(began_with: u64, capacity: u64) -> u64 {
        let most = LEAST_ROLL_AT.min(capacity / ROLL_PART);
        most.max(began_with.saturating_mul(2))
    }

    /// How long it was when it was put in force, in bytes.
    pub(crate) fn began_with(&self) -> u64 {
        self.began_with
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    #[cfg(test)]
    pub(crate) fn number(&self) -> FileId {
        self.number
    }
}

impl Drop for Manifest {
    fn drop(&mut self) {
        self.tier.remove_file_bytes(self.len);
    }
}

/// Whether some of the edits are missing that the manifest was put in force with.
pub(crate) fn lacks_edits(edits: &[VersionEdit]) -> bool {
    let began_with = edits.first().map_or(1, |first| first.snapshot.unwrap_or(0));
    (edits.len() as u64) < began_with
}

/// Removes manifests that are no longer in force. A failure costs space only and is made
/// good by the next rollover.
fn remove_superseded(store: &dyn LogStore, in_force: FileId) {
    let files = store.list().unwrap_or_default();
    let manifests = files.iter().filter_map(|file| manifest_number(&file.name));
    for number in manifests.filter(|&number| number != in_force) {
        let _ = store.remove(&manifest_file_name(number));
    }
}

/// Without a `CURRENT` there is no store, or its name is lost. A store that was created has
/// a log or tables; manifests alone are a creation that a crash cut short, to be repeated.
fn check_nothing_is_there(tier: &Tier, store: &dyn LogStore) -> Result<()> {
    let files = store.list()?;
    let tables = tier.tables.list()?;
    let data = files
        .iter()
        .chain(&tables)
        .find(|f| segment_number(&f.name).is_some() || f.name.ends_with(".sst"));
    match data {
        None => Ok(()),
        Some(file) => {
            let what = format!("it is missing, but {} is there", file.name);
            Err(Error::corruption(store.path().join(CURRENT), 0, what))
        }
    }
}

#[cfg(test)]
mod tests;
