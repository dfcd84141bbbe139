//! The seam to a cache of blocks on the fast disk, below the one in memory.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use bytes::Bytes;

use super::block_cache::Place;
use crate::error::{Error, Result};

/// Operations and bytes of a flash cache since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FlashIo {
    pub(crate) read_ops: u64,
    pub(crate) read_bytes: u64,
    pub(crate) write_ops: u64,
    pub(crate) write_bytes: u64,
}

/// A cache that may forget whatever it likes but never gives a wrong answer: blocks of tables that
/// are gone are not asked for again (I4), and age out.
pub(crate) trait Flash: fmt::Debug + Send + Sync {
    /// The block at `place`. A block that cannot be read counts as missing: the table has it.
    fn get(&self, place: Place) -> Option<Bytes>;

    /// Keeps `block`, if it can be written in time.
    fn insert(&self, place: Place, block: Bytes);

    /// What it has read and written.
    fn io(&self) -> FlashIo;
}

/// The settings of a flash cache. Sizes are in bytes.
#[derive(Debug)]
#[cfg_attr(
    not(feature = "flash-cache"),
    expect(dead_code, reason = "read with the feature only")
)]
pub(crate) struct FlashPlan<'a> {
    /// The fast tier's directory.
    pub(crate) fast: &'a Path,
    pub(crate) capacity: u64,
    /// Length of each of its write buffers.
    pub(crate) buffer: u64,
    pub(crate) direct_io: bool,
}

/// The directory of a flash cache on a fast tier at `fast`.
fn flash_dir(fast: &Path) -> PathBuf {
    fast.join("flash-cache")
}

/// Opens an empty cache. An earlier one must have been discarded.
///
/// # Errors
/// I/O errors.
#[cfg(feature = "flash-cache")]
pub(crate) fn open_flash(plan: &FlashPlan<'_>) -> Result<Box<dyn Flash>> {
    let dir = flash_dir(plan.fast);
    let opened = super::foyer::Foyer::open(&dir, plan);
    let foyer = opened.map_err(|e| Error::io("open the flash cache in", &dir, e))?;
    Ok(Box::new(foyer))
}

/// This build has no flash cache; the options that ask for one were refused before.
///
/// # Errors
/// Always.
#[cfg(not(feature = "flash-cache"))]
pub(crate) fn open_flash(plan: &FlashPlan<'_>) -> Result<Box<dyn Flash>> {
    let dir = flash_dir(plan.fast);
    let unsupported = io::Error::from(io::ErrorKind::Unsupported);
    Err(Error::io("open the flash cache in", &dir, unsupported))
}

/// How the names of its files begin; the crate that writes them determines it.
const FILES: &str = "foyer-storage-direct-fs-";

/// Removes what an earlier opening cached on the fast tier at `fast`, and nothing else that is
/// there. These files are of no further use: the index of their blocks was in memory.
///
/// # Errors
/// I/O errors.
pub(crate) fn discard_flash(fast: &Path) -> Result<()> {
    let dir = flash_dir(fast);
    remove_files(&dir).map_err(|e| Error::io("remove the flash cache in", &dir, e))
}

fn remove_files(dir: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        // There is no such directory, or the name is that of somebody else's file.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(());
        }
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(FILES.as_bytes())
        {
            fs::remove_file(entry.path())?;
        }
    }
    match fs::remove_dir(dir) {
        Err(e) if e.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each opening and each destruction of any store removed the whole directory, whoever owned
    /// it. And a file of that name kept a store from opening.
    #[test]
    fn what_is_not_the_caches_stays() {
        let fast = tempfile::tempdir().unwrap();
        let dir = flash_dir(fast.path());
        discard_flash(fast.path()).unwrap();
        fs::write(&dir, "somebody's").unwrap();
        discard_flash(fast.path()).unwrap();
        assert!(dir.exists());
        fs::remove_file(&dir).unwrap();

        fs::create_dir(&dir).unwrap();
        let (ours, others) = (dir.join(format!("{FILES}00000001")), dir.join("notes"));
        for file in [&ours, &others] {
            fs::write(file, "content").unwrap();
        }
        discard_flash(fast.path()).unwrap();
        assert!(!ours.exists() && others.exists());
        fs::remove_file(&others).unwrap();
        discard_flash(fast.path()).unwrap();
        assert!(!dir.exists(), "an empty one is of no use to anybody");
    }
}
