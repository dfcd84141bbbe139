//! Copies bytes from one place to another, and sums them on the way.

use xxhash_rust::xxh3::Xxh3;

use super::generation::BackedUp;
use crate::error::{Damaged, Error, Result};
use crate::storage::{TableFile, TableStore};

/// Bytes read in one I/O.
const PIECE: u64 = 1 << 20;

/// Hands the whole of `file` to `write`, piece by piece. Returns its XXH3.
///
/// # Errors
/// I/O errors, and those of `write`.
pub(super) fn pieces(
    file: &dyn TableFile,
    write: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<u64> {
    let mut sum = Xxh3::new();
    let mut at = 0;
    while at < file.len() {
        let len = PIECE.min(file.len() - at);
        let piece = file.read(at, len as usize)?;
        sum.update(&piece);
        write(&piece)?;
        at += len;
    }
    Ok(sum.digest())
}

/// Opens a table of a backup and checks its length.
///
/// # Errors
/// [`Error::Corruption`] where it is missing or of another length; I/O errors.
fn open(store: &dyn TableStore, table: &BackedUp) -> Result<std::sync::Arc<dyn TableFile>> {
    let name = table.file_name();
    let path = store.path().join(&name);
    let file = match store.open(&name) {
        Err(Error::NotFound { .. }) => {
            return Err(Error::corruption(
                path,
                0,
                "the backup names this file, but it is missing",
            ));
        }
        opened => opened?,
    };
    if file.len() != table.len {
        let what = format!(
            "the file is {} bytes long and should be {}",
            file.len(),
            table.len
        );
        return Err(Error::corruption(path, file.len().min(table.len), what));
    }
    Ok(file)
}

/// Hands a table of a backup to `write`, piece by piece.
///
/// # Errors
/// [`Error::Corruption`] where it is not what was backed up: what `write` got is to be thrown away;
/// I/O errors, and those of `write`.
pub(super) fn checked(
    store: &dyn TableStore,
    table: &BackedUp,
    write: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let of_backup = |error: Error| error.of(Damaged::Backup);
    let file = open(store, table).map_err(of_backup)?;
    if pieces(&*file, write).map_err(of_backup)? != table.checksum {
        let what = "the file does not match the checksum that it was backed up with";
        return Err(of_backup(Error::corruption(file.path(), 0, what)));
    }
    Ok(())
}

/// Reads a table of a backup.
///
/// # Errors
/// As [`checked`].
pub(super) fn check(store: &dyn TableStore, table: &BackedUp) -> Result<()> {
    checked(store, table, &mut |_| Ok(()))
}
