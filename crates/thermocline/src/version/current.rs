//! `CURRENT`: the file that names the manifest in force.

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::ids::{FileId, MAX_NUMBER};
use crate::metrics::Purpose;
use crate::points::{Points, point};
use crate::storage::LogStore;
use crate::tier::Tier;

pub(crate) const CURRENT: &str = "CURRENT";
pub(crate) const TEMPORARY: &str = "CURRENT.tmp";
const PREFIX: &str = "MANIFEST-";

/// The name of manifest `number`.
pub(crate) fn manifest_file_name(number: FileId) -> String {
    format!("{PREFIX}{number:08}")
}

/// The number of the manifest called `name`; `None` if `name` is not a manifest's.
pub(crate) fn manifest_number(name: &str) -> Option<FileId> {
    let number = name.strip_prefix(PREFIX)?.parse().ok()?;
    (number <= MAX_NUMBER && manifest_file_name(number) == name).then_some(number)
}

/// What `CURRENT` holds.
pub(super) fn content(number: FileId) -> String {
    let name = manifest_file_name(number);
    format!("{name} {:016x}\n", xxh3_64(name.as_bytes()))
}

/// Puts manifest `number` in force: it is in force from the rename on, and the sync of the
/// directory makes that durable. After a crash in between, `CURRENT` has the old name or the new
/// one, and both files are whole.
///
/// # Errors
/// Before the rename, I/O errors: the old manifest is still in force. From the rename on,
/// [`Error::Poisoned`]: an edit appended to either manifest might be lost (I9).
pub(super) fn write(
    tier: &Tier,
    store: &dyn LogStore,
    number: FileId,
    points: &Points,
) -> Result<()> {
    let file = store.create(TEMPORARY)?;
    let content = content(number);
    file.append(content.as_bytes())?;
    tier.count_write(Purpose::Manifest, content.len() as u64);
    file.sync().map_err(poisoned)?;
    point!(points, "manifest.current_written")?;
    store.rename(TEMPORARY, CURRENT).map_err(poisoned)?;
    point!(points, "manifest.current_renamed").map_err(poisoned)?;
    tier.sync_names(|| store.sync_dir()).map_err(poisoned)
}

/// Turns `error` into one that says that the device's state is unknown (I9).
pub(super) fn poisoned(error: Error) -> Error {
    match error {
        Error::Poisoned { .. } => error,
        other => Error::Poisoned {
            cause: other.to_string().into(),
        },
    }
}

/// The number of the manifest in force; `None` without a `CURRENT`.
///
/// # Errors
/// [`Error::Corruption`] when `CURRENT` is damaged; I/O errors.
pub(crate) fn read(store: &dyn LogStore) -> Result<Option<FileId>> {
    let bytes = match store.read(CURRENT) {
        Ok(bytes) => bytes,
        Err(Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let text = std::str::from_utf8(&bytes).ok();
    let name = text.and_then(|text| text.split(' ').next());
    let number = name.and_then(manifest_number);
    // The whole content is compared: a changed digit must not name another manifest.
    match number.filter(|&number| content(number).as_bytes() == bytes) {
        Some(number) => Ok(Some(number)),
        None => {
            let what = "it names no manifest";
            Err(Error::corruption(store.path().join(CURRENT), 0, what))
        }
    }
}
