//! The manifest: the store's shape as a log of edits, framed as [`crate::log_format`] says.
//!
//! An edit is in force once its append is synced. A crash during the append leaves a torn tail. The
//! torn edit was never acknowledged, and the tail is left behind: every open goes on in a new
//! manifest that begins with a snapshot. `CURRENT` names the manifest in force.

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

/// Length in bytes at which a manifest is replaced by one that holds only the present state. A
/// manifest that began with more than half of this is replaced when its length has doubled.
const ROLL_AT: u64 = 4 << 20;

/// The same limit as a part of the tier's planned bytes, which holds if it is less: nothing else
/// makes room for a manifest.
const ROLL_PART: u64 = 64;

/// Most bytes that a manifest may take when nothing but space is missing, unless its state is long.
/// That is the case of a batch that hardly fits: whether it fits must not depend on how many edits
/// there were.
const LEAST_ROLL_AT: u64 = 64 << 10;

/// The manifest in force, open for appends.
#[derive(Debug)]
pub(crate) struct Manifest {
    tier: Arc<Tier>,
    file: Arc<dyn LogFile>,
    number: FileId,
    len: u64,
    /// Its length in bytes when it was put in force.
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
    /// Where each of the edits begins.
    pub(crate) offsets: Vec<u64>,
    /// Number of its bytes that are valid.
    pub(crate) len: u64,
    /// Whether a torn edit, which was never acknowledged, was left behind.
    pub(crate) torn: bool,
}

impl RecoveredManifest {
    /// For each table: where the edit begins that added it or moved it last.
    pub(crate) fn places(&self) -> BTreeMap<FileId, u64> {
        let edits = self.edits.iter().zip(&self.offsets);
        edits
            .flat_map(|(edit, offset)| edit.added.iter().map(|table| (table.id, *offset)))
            .collect()
    }
}

impl Manifest {
    /// Writes manifest `number`, which begins with `snapshot`, puts it in force, and removes the
    /// manifests before it.
    ///
    /// # Errors
    /// I/O errors of the log store: the manifest that was in force still is. [`Error::Poisoned`]
    /// when a sync failed: then it is unknown which one is in force (I9).
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
            // The snapshot is synced before CURRENT names the manifest, so a crash cannot have cut
            // it short.
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
                // It is not in force, and nobody counts it (I8): the next attempt has another
                // number.
                let _ = store.remove(&name);
            }
            return Err(error);
        }
        point!(points, "manifest.after_current").map_err(poisoned)?;
        remove_superseded(&*store, number);
        // It is counted while it is in force. The creation of its successor removes the file.
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

    /// The manifest in force, with number and length as `found`, for a store that is open only for
    /// reading: `file` refuses every edit.
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

    /// Reads the manifest in force; `None` if there is no store yet.
    ///
    /// # Errors
    /// [`Error::Corruption`] for damage before the tail, and when `CURRENT` is missing although
    /// there are files of a store; [`Error::FormatVersion`]; I/O errors.
    pub(crate) fn recover(tier: &Arc<Tier>) -> Result<Option<RecoveredManifest>> {
        let store = log_store(tier)?;
        let Some(number) = current::read(&*store)? else {
            return check_nothing_is_there(tier, &*store).map(|()| None);
        };
        tier.count_read(Purpose::Open, current::content(number).len() as u64);
        Self::read(tier, &*store, number).map(Some)
    }

    /// Reads manifest `number`, which `CURRENT` names, or named before it was lost.
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
                // Each edit was synced before the next was written, so a crash cannot cause this.
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
            // The count is about the file, not about the store.
            first.snapshot = None;
        }
        Ok(recovered)
    }

    /// Appends `edit` and makes it durable. Nobody may act upon the edit before (I4).
    ///
    /// # Errors
    /// I/O errors of the write: the edit is not in force and may be tried again.
    /// [`Error::Poisoned`] when a sync failed or a failed write could not be undone, and from then
    /// on always (I9).
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
                // A part of the edit, followed by later edits, would be read as damage.
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

    /// Whether it is time for a new manifest. If the state itself is long, a new manifest is long
    /// from the start; it must not be replaced at once, nor the one after it.
    pub(crate) fn is_long(&self) -> bool {
        let most = ROLL_AT.min(self.tier.planned_bytes() / ROLL_PART);
        self.len >= most.max(self.began_with.saturating_mul(2))
    }

    /// Most bytes that a manifest which began with `began_with` bytes takes on a tier of that
    /// capacity, if it is replaced as soon as it can be.
    pub(crate) fn allotment(began_with: u64, capacity: u64) -> u64 {
        let most = LEAST_ROLL_AT.min(capacity / ROLL_PART);
        most.max(began_with.saturating_mul(2))
    }

    /// Its length in bytes when it was put in force.
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

/// Whether some of the edits are missing that the manifest held when it was put in force.
pub(crate) fn lacks_edits(edits: &[VersionEdit]) -> bool {
    let began_with = edits.first().map_or(1, |first| first.snapshot.unwrap_or(0));
    (edits.len() as u64) < began_with
}

/// Removes manifests that are no longer in force. A failure costs only space, and the next rollover
/// makes up for it.
fn remove_superseded(store: &dyn LogStore, in_force: FileId) {
    let files = store.list().unwrap_or_default();
    let manifests = files.iter().filter_map(|file| manifest_number(&file.name));
    for number in manifests.filter(|&number| number != in_force) {
        let _ = store.remove(&manifest_file_name(number));
    }
}

/// Without a `CURRENT`, there is no store, or `CURRENT` was lost. A store that was created has a
/// log or tables. Manifests alone come from a creation that a crash cut short, and which is to be
/// repeated.
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
