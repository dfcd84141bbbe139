//! Whether, and at which alignment, a filesystem reads around the page cache.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use rustix::fs::OFlags;

use super::directory::Directory;
use crate::error::Result;
use crate::storage::buffer_pool::{ALIGNMENT, AlignedBuf};
use crate::sync::Mutex;

/// Exists only while [`DirectIo::detect`] runs. If a crash leaves one behind, it is not listed.
pub(super) const PROBE_FILE: &str = "DIRECT-IO-PROBE";

/// Writes are aligned to the page size: with smaller writes, filesystems read before they write.
pub(super) const WRITE_BLOCK: usize = ALIGNMENT;

/// Read alignments to try, best first. With 512 bytes, a block of 4.1 KiB costs 4.5 KiB of the
/// device's bandwidth; with 4096 bytes it costs 8 KiB.
const READ_BLOCKS: [usize; 2] = [512, ALIGNMENT];

/// What is known about direct I/O in a directory. It is found out when it is first needed, so that
/// a process that only reads the directory's files writes none.
#[derive(Debug)]
pub(super) struct Detection {
    is_wanted: bool,
    found: Mutex<Option<DirectIo>>,
}

impl Detection {
    /// Detects direct I/O if it `is_wanted`.
    pub(super) fn new(is_wanted: bool) -> Self {
        Self {
            is_wanted,
            found: Mutex::new(None),
        }
    }

    /// How to write a table in `directory`.
    ///
    /// # Errors
    /// As [`DirectIo::detect`].
    pub(super) fn to_write(&self, directory: &Directory) -> Result<DirectIo> {
        let mut found = self.found.lock();
        match (self.is_wanted, *found) {
            (false, _) => Ok(DirectIo::OFF),
            (true, Some(direct)) => Ok(direct),
            (true, None) => Ok(*found.insert(DirectIo::detect(directory)?)),
        }
    }

    /// How to read the tables in `directory`. If all of them are shorter than a page, it makes no
    /// difference.
    pub(super) fn to_read(&self, directory: &Directory) -> DirectIo {
        let mut found = self.found.lock();
        if self.is_wanted && found.is_none() {
            *found = DirectIo::of_a_table(directory);
        }
        found.unwrap_or(DirectIo::OFF)
    }
}

/// How table files are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DirectIo {
    /// Offsets and lengths of reads are multiples of this; `None` without direct I/O.
    block: Option<usize>,
}

impl DirectIo {
    pub(super) const OFF: Self = Self { block: None };

    /// Finds out from an existing table that is long enough, if there is one: then nothing is
    /// written.
    fn of_a_table(directory: &Directory) -> Option<Self> {
        let block = any_table(directory).and_then(|table| least_read(&table));
        block.map(|block| Self { block: Some(block) })
    }

    /// Finds out by trying, because what a filesystem claims and what the device below it does
    /// differ. Where nothing can be written, nothing is tried.
    ///
    /// # Errors
    /// The system's error when no file can be created in the directory, unless the filesystem is
    /// read-only.
    fn detect(directory: &Directory) -> Result<Self> {
        if let Some(found) = Self::of_a_table(directory) {
            return Ok(found);
        }
        let path = directory.file(PROBE_FILE);
        let mut options = File::options();
        match options.write(true).create(true).truncate(true).open(&path) {
            Err(e) if e.kind() == ErrorKind::ReadOnlyFilesystem => return Ok(Self::OFF),
            created => created.map_err(|e| directory.not_made("create", PROBE_FILE, e))?,
        };
        let block = probe(&path);
        directory.remove(PROBE_FILE)?;
        Ok(Self { block })
    }

    pub(super) fn is_on(self) -> bool {
        self.block.is_some()
    }

    /// Offsets and lengths of reads must be multiples of this.
    pub(super) fn read_block(self) -> usize {
        self.block.unwrap_or(1)
    }

    /// Lets `options` open a file for this kind of I/O.
    pub(super) fn apply(self, options: &mut OpenOptions) -> &mut OpenOptions {
        match self.is_on() {
            true => options.custom_flags(OFlags::DIRECT.bits().cast_signed()),
            false => options,
        }
    }
}

fn probe(path: &std::path::Path) -> Option<usize> {
    let file = File::options()
        .read(true)
        .write(true)
        .custom_flags(OFlags::DIRECT.bits().cast_signed())
        .open(path)
        .ok()?;
    let mut buffer = AlignedBuf::take(WRITE_BLOCK);
    buffer.fill(0);
    match file.write_all_at(&buffer[..WRITE_BLOCK], 0) {
        Ok(()) => {}
        // On a full disk, files can still be opened and read; every device with direct I/O reads
        // pages.
        Err(e) if is_full(&e) => return Some(ALIGNMENT),
        Err(_) => return None,
    }
    least_read(&file)
}

/// A table that is long enough to try on, open for direct I/O.
fn any_table(directory: &Directory) -> Option<File> {
    let mut entries = std::fs::read_dir(directory.path()).ok()?.flatten();
    let is_long = |len: u64| len >= WRITE_BLOCK as u64;
    let table = entries.find(|entry| {
        let is_table = entry.path().extension().is_some_and(|e| e == "sst");
        is_table
            && entry
                .metadata()
                .is_ok_and(|m| m.is_file() && is_long(m.len()))
    })?;
    let mut options = File::options();
    options.read(true);
    options.custom_flags(OFlags::DIRECT.bits().cast_signed());
    options.open(table.path()).ok()
}

/// The smallest aligned read that works on a file of at least [`WRITE_BLOCK`] bytes.
fn least_read(file: &File) -> Option<usize> {
    let mut buffer = AlignedBuf::take(WRITE_BLOCK);
    READ_BLOCKS.into_iter().find(|&block| {
        // Not the file's first block, since offset 0 is aligned to anything.
        let offset = (WRITE_BLOCK - block) as u64;
        file.read_exact_at(&mut buffer[..block], offset).is_ok()
    })
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn detection_leaves_nothing_behind() {
        let home = tempfile::tempdir().unwrap();
        let directory = Directory::open(home.path(), false).unwrap();
        let direct = DirectIo::detect(&directory).unwrap();
        assert!([1, 512, 4096].contains(&direct.read_block()));
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
        assert_eq!(DirectIo::OFF.read_block(), 1);
    }

    #[test]
    fn files_opened_as_detected_can_be_read_at_that_alignment() {
        let mut homes = vec![tempfile::tempdir().unwrap()];
        // A filesystem that mostly has no direct I/O, on systems that have such a filesystem.
        homes.extend(tempfile::tempdir_in(Path::new("/dev/shm")).ok());
        for home in homes {
            let directory = Directory::open(home.path(), false).unwrap();
            let direct = DirectIo::detect(&directory).unwrap();
            let path = directory.file("data");
            std::fs::write(&path, vec![7; 3 * ALIGNMENT]).unwrap();
            let file = direct
                .apply(File::options().read(true))
                .open(&path)
                .unwrap();
            let block = direct.read_block();
            let mut buffer = AlignedBuf::take(block);
            file.read_exact_at(&mut buffer[..block], block as u64)
                .unwrap();
            assert!(buffer[..block].iter().all(|byte| *byte == 7));
        }
    }
}
