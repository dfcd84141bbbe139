//! Where bytes go: two narrow seams, and the media that implement them.
//!
//! A [`LogStore`] holds files that are appended to and synced (the write-ahead log, the manifest);
//! it is always local. A [`TableStore`] holds whole immutable objects, so that an object store can
//! be a tier. A [`Medium`] makes both for a directory: [`Disk`], [`Memory`], [`Throttled`] (a
//! slower device) and [`Faulty`] (a device that loses power and fails).

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use crate::error::Result;

/// A file's name and length in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileInfo {
    /// Name without directory.
    pub name: String,
    /// Length in bytes.
    pub len: u64,
}

/// Held while a store is open; dropping it lets others open the directory.
pub trait StoreLock: Send + Sync + Debug {}

/// A kind of storage that can provide stores at a directory.
pub trait Medium: Send + Sync + Debug {
    /// The log store at `dir`. Creates the directory when `create` is set.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] when the directory is missing and `create` is not set;
    /// I/O errors of the medium.
    fn log_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn LogStore>>;

    /// The table store at `dir`. Creates the directory when `create` is set.
    ///
    /// # Errors
    /// As [`Medium::log_store`].
    fn table_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn TableStore>>;

    /// Removes the directory `dir` if it is empty. A directory with files stays, and a missing one
    /// is not an error.
    ///
    /// # Errors
    /// I/O errors of the medium.
    fn remove_dir(&self, dir: &Path) -> Result<()>;
}

/// Local storage for logs: append, sync, rename, remove.
///
/// Content is not durable before [`LogFile::sync`], and names are not before
/// [`LogStore::sync_dir`].
pub trait LogStore: Send + Sync + Debug {
    /// The directory, for messages.
    fn path(&self) -> &Path;

    /// Whether a sync waits for a device. If so, the store does other work meanwhile.
    fn waits_for_a_device(&self) -> bool {
        false
    }

    /// Takes the directory's lock.
    ///
    /// # Errors
    /// [`crate::Error::Locked`] when it is held, by this process or another;
    /// [`crate::Error::NotWritable`]; I/O errors.
    fn lock(&self) -> Result<Box<dyn StoreLock>>;

    /// Creates an empty file; an existing one of that name is emptied.
    ///
    /// # Errors
    /// I/O errors of the medium.
    fn create(&self, name: &str) -> Result<Arc<dyn LogFile>>;

    /// The whole content of a file.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] when there is none; I/O errors of the medium.
    fn read(&self, name: &str) -> Result<Vec<u8>>;

    /// Up to `len` bytes of a file from `offset` on: fewer if the file ends before. Reads the whole
    /// file, unless the medium has a better way.
    ///
    /// # Errors
    /// As [`LogStore::read`].
    fn read_range(&self, name: &str, offset: u64, len: u64) -> Result<Vec<u8>> {
        Ok(part(&self.read(name)?, offset, len).to_vec())
    }

    /// Every file of the directory.
    ///
    /// # Errors
    /// I/O errors of the medium.
    fn list(&self) -> Result<Vec<FileInfo>>;

    /// Renames a file over another; atomic with respect to crashes.
    ///
    /// # Errors
    /// I/O errors of the medium.
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Removes a file. A missing one is not an error: removal may be repeated after a crash.
    ///
    /// # Errors
    /// I/O errors of the medium.
    fn remove(&self, name: &str) -> Result<()>;

    /// Makes every creation, rename and removal so far durable.
    ///
    /// # Errors
    /// I/O errors of the medium; the caller must treat them as invariant I9 says.
    fn sync_dir(&self) -> Result<()>;
}

/// Up to `len` bytes from `offset` on of `bytes`, a file's content.
fn part(bytes: &[u8], offset: u64, len: u64) -> &[u8] {
    let inside = |place: u64| usize::try_from(place).map_or(bytes.len(), |at| at.min(bytes.len()));
    &bytes[inside(offset)..inside(offset.saturating_add(len))]
}

/// A file that is appended to. Appends come from one thread at a time. A sync may run at the same
/// time, and covers what was appended before it began.
pub trait LogFile: Send + Sync + Debug {
    /// Hands `bytes` to the medium; they go to the end of the file.
    ///
    /// # Errors
    /// I/O errors of the medium, lack of space among them. The file may then end in a part of
    /// `bytes`, and the caller truncates it.
    fn append(&self, bytes: &[u8]) -> Result<()>;

    /// Makes everything appended so far durable.
    ///
    /// # Errors
    /// [`crate::Error::Poisoned`]: the state of the device is unknown (I9).
    fn sync(&self) -> Result<()>;

    /// Cuts the file to `len` bytes; later appends go on from there.
    ///
    /// # Errors
    /// I/O errors of the medium.
    fn truncate(&self, len: u64) -> Result<()>;
}

/// Storage for whole, immutable objects.
pub trait TableStore: Send + Sync + Debug {
    /// The directory, for messages.
    fn path(&self) -> &Path;

    /// Takes the directory's lock, where the medium has locks.
    ///
    /// # Errors
    /// [`crate::Error::Locked`] when it is held, by this process or another;
    /// [`crate::Error::NotWritable`]; I/O errors.
    fn lock(&self) -> Result<Box<dyn StoreLock>>;

    /// Starts an object of about `expected_len` bytes. Before [`TableWriter::finish`], readers
    /// cannot rely on its name.
    ///
    /// # Errors
    /// I/O errors of the medium. An error when an object of that name exists, reported here or by
    /// `finish`: objects are never overwritten. [`crate::Error::NoSpace`] when the medium already
    /// knows that `expected_len` bytes do not fit.
    fn create(&self, name: &str, expected_len: u64) -> Result<Box<dyn TableWriter>>;

    /// Opens a finished object.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] when there is none; I/O errors of the medium.
    fn open(&self, name: &str) -> Result<Arc<dyn TableFile>>;

    /// Reads many ranges, and overlaps the reads where the medium gains by it. Results are in the
    /// order of the requests.
    fn read_many(&self, requests: &[ReadRequest]) -> Vec<Result<IoBuf>> {
        requests
            .iter()
            .map(|r| r.file.read(r.offset, r.len))
            .collect()
    }

    /// Every object of the store.
    ///
    /// # Errors
    /// I/O errors of the medium.
    fn list(&self) -> Result<Vec<FileInfo>>;

    /// Removes an object. A missing one is not an error.
    ///
    /// # Errors
    /// I/O errors of the medium.
    fn remove(&self, name: &str) -> Result<()>;

    /// Gives an object a second name in the directory `target`: by a link where the medium can
    /// link, else by a copy. The content is durable on return; the directory entry is once
    /// [`TableStore::sync_dir`] of the target has made it so.
    ///
    /// # Errors
    /// I/O errors of the medium, one of them when `target` has an object of that name.
    /// [`crate::Error::Poisoned`] when a copy could not be synced (I9).
    fn link(&self, name: &str, target: &Path) -> Result<()>;

    /// Makes the names durable that [`TableStore::link`] created here.
    ///
    /// # Errors
    /// I/O errors of the medium; the caller must treat them as invariant I9 says.
    fn sync_dir(&self) -> Result<()>;
}

/// An object being written, front to back. Dropping it without `finish` removes it.
pub trait TableWriter: Send + Debug {
    /// Appends `bytes`. Small appends are gathered into large writes.
    ///
    /// # Errors
    /// I/O errors of the medium; the object is then lost and must be dropped.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Writes what is left and makes the content durable, and not the name: `finish` comes next. A
    /// medium may leave all of it to `finish`. Names of a directory are made durable one at a time,
    /// and whoever waits for that should not wait for another object's content.
    ///
    /// # Errors
    /// As [`TableWriter::finish`].
    fn sync_content(&mut self) -> Result<()> {
        Ok(())
    }

    /// Writes what is left and makes the object and its name durable (I4).
    ///
    /// # Errors
    /// I/O errors of the medium. [`crate::Error::Poisoned`] when a sync failed, even for lack of
    /// space: the caller must stop writing (I9).
    fn finish(self: Box<Self>) -> Result<()>;

    /// Writes what is left, so that it can be read, and syncs nothing. For objects that a crash may
    /// take, wholly or in part.
    ///
    /// # Errors
    /// I/O errors of the medium; the object is then lost.
    fn finish_unsynced(self: Box<Self>) -> Result<()>;
}

/// A finished object.
pub trait TableFile: Send + Sync + Debug {
    /// Where it lies, for messages.
    fn path(&self) -> &Path;

    /// Its length in bytes.
    fn len(&self) -> u64;

    /// Whether it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads exactly `len` bytes at `offset`.
    ///
    /// # Errors
    /// I/O errors of the medium; [`crate::Error::Corruption`] for a range past the end: either
    /// damaged bytes led the caller there, or the file was cut.
    fn read(&self, offset: u64, len: usize) -> Result<IoBuf>;

    /// Whether its reads wait for a device. Then a sequential reader gains by having the next range
    /// read while it works through the last one. Not so by default: where a read is only a copy,
    /// other threads are in the way.
    fn waits_for_a_device(&self) -> bool {
        false
    }
}

/// One range of [`TableStore::read_many`].
#[derive(Debug, Clone)]
pub struct ReadRequest {
    /// The object.
    pub file: Arc<dyn TableFile>,
    /// Where the range starts, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub len: usize,
}

pub(crate) mod background;
mod buffer_pool;
mod disk;
mod faulty;
mod helpers;
mod io_buf;
mod memory;
pub(crate) mod operation;
mod readers;
mod throttled;

pub use disk::Disk;
pub(crate) use disk::{is_of_directory, is_one_dir};
pub use faulty::{CrashStyle, Fault, Faulty, Operation, Unsynced};
pub use io_buf::IoBuf;
pub use memory::Memory;
pub use throttled::{Limits, Throttled};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_a_log_ends_where_the_log_ends() {
        let home = tempfile::tempdir().unwrap();
        let media: [Box<dyn Medium>; 4] = [
            Box::new(Disk::default()),
            Box::new(Memory::new()),
            Box::new(Faulty::new(1)),
            Box::new(Throttled::new(
                Arc::new(Memory::new()),
                Limits::default(),
                Arc::new(crate::clock::ManualClock::default()),
            )),
        ];
        for medium in media {
            let store = medium.log_store(home.path(), true).unwrap();
            store.create("1.wal").unwrap().append(b"abcdef").unwrap();
            let read = |offset, len| store.read_range("1.wal", offset, len).unwrap();
            assert_eq!(read(0, 6), b"abcdef", "{medium:?}");
            assert_eq!(read(2, 3), b"cde", "{medium:?}");
            assert_eq!(read(4, u64::MAX), b"ef", "{medium:?}");
            assert_eq!(read(6, 1), b"", "{medium:?}");
            assert_eq!(read(1 << 40, 1), b"", "{medium:?}");
            let missing = store.read_range("2.wal", 0, 1).map(|_| ());
            assert!(
                matches!(missing, Err(crate::Error::NotFound { .. })),
                "{medium:?}: {missing:?}"
            );
        }
    }

    #[test]
    fn a_directory_is_removed_when_it_is_empty_and_may_be_missing() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("inner");
        let media: [Box<dyn Medium>; 3] = [
            Box::new(Disk::default()),
            Box::new(Memory::new()),
            Box::new(Faulty::new(1)),
        ];
        for medium in media {
            let store = medium.log_store(&dir, true).unwrap();
            store.create("file").unwrap();
            medium.remove_dir(&dir).unwrap();
            assert_eq!(store.list().unwrap().len(), 1, "{medium:?}");
            store.remove("file").unwrap();
            medium.remove_dir(&dir).unwrap();
            assert!(medium.log_store(&dir, false).is_err(), "{medium:?}");
            medium.remove_dir(&dir).unwrap();
        }
    }
}
