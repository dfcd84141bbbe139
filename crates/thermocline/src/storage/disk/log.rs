//! Logs on disk. They go through the page cache, because they are written often in small pieces,
//! and read once or while they are fresh.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::directory::Directory;
use super::open_files::OpenFiles;
use super::{open_failed, sync_failed};
use crate::error::{Error, Result};
use crate::storage::{FileInfo, LogFile, LogStore, StoreLock};
use crate::sync::Arc;

pub(super) const LOCK_FILE: &str = "LOCK";

/// The logs of a directory.
#[derive(Debug)]
pub(super) struct DiskLogStore {
    directory: Directory,
}

/// An open log. It is opened for appending, so that after a truncation, writes go on from the new
/// end.
#[derive(Debug)]
struct DiskLog {
    path: PathBuf,
    file: File,
}

impl DiskLogStore {
    pub(super) fn new(directory: Directory) -> Self {
        Self { directory }
    }
}

impl LogStore for DiskLogStore {
    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn waits_for_a_device(&self) -> bool {
        true
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        self.directory.lock(LOCK_FILE)
    }

    fn create(&self, name: &str) -> Result<Arc<dyn LogFile>> {
        let path = self.directory.file(name);
        let failed = |e| Error::io("create", &path, e);
        let create = || File::options().append(true).create(true).open(&path);
        let file = OpenFiles::of_process().open(create).map_err(failed)?;
        file.set_len(0).map_err(failed)?;
        Ok(Arc::new(DiskLog { path, file }))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.directory.file(name);
        let file = File::open(&path).map_err(|e| open_failed("read", &path, e))?;
        let len = file.metadata().map(|metadata| metadata.len());
        len.and_then(|len| read_whole(&file, len))
            .map_err(|e| Error::io("read", &path, e))
    }

    fn read_range(&self, name: &str, offset: u64, len: u64) -> Result<Vec<u8>> {
        let path = self.directory.file(name);
        let file = File::open(&path).map_err(|e| open_failed("read", &path, e))?;
        let read = || {
            let there = file.metadata()?.len().saturating_sub(offset);
            let mut from = &file;
            from.seek(SeekFrom::Start(offset))?;
            read_whole(from.take(len), there.min(len))
        };
        read().map_err(|e| Error::io("read", &path, e))
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        self.directory.list()
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let path = self.directory.file(from);
        fs::rename(&path, self.directory.file(to)).map_err(|e| Error::io("rename", &path, e))
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.directory.remove(name)
    }

    fn sync_dir(&self) -> Result<()> {
        self.directory.sync()
    }
}

impl LogFile for DiskLog {
    fn append(&self, bytes: &[u8]) -> Result<()> {
        (&self.file)
            .write_all(bytes)
            .map_err(|e| Error::io("append to", &self.path, e))
    }

    fn sync(&self) -> Result<()> {
        // `fdatasync` syncs the length too; time stamps do not matter.
        self.file
            .sync_data()
            .map_err(|e| sync_failed(&self.path, &e))
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.file
            .set_len(len)
            .map_err(|e| Error::io("truncate", &self.path, e))
    }
}

/// Reads everything to the end, which is at `len`, or after it if the file grows meanwhile. A read
/// that ends before `len` is an error: recovery would take the missing bytes for writes that a
/// crash tore (I5).
fn read_whole(mut file: impl Read, len: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::with_capacity(usize::try_from(len).unwrap_or(0));
    file.read_to_end(&mut content)?;
    if (content.len() as u64) < len {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::disk::tests::unsyncable;
    use crate::storage::{Disk, Medium};

    /// A log was read until the system reported its end. If a device did not return the second half
    /// of a log, recovery would have taken the log for a torn one, and rewritten it without that
    /// half.
    #[test]
    fn a_log_that_ends_before_its_length_is_an_error() {
        assert_eq!(read_whole(&b"whole"[..], 5).unwrap(), b"whole");
        assert_eq!(read_whole(&b"grown"[..], 3).unwrap(), b"grown");
        let short = read_whole(&b"ha"[..], 5).unwrap_err();
        assert_eq!(short.kind(), ErrorKind::UnexpectedEof);
    }

    fn store() -> (tempfile::TempDir, Arc<dyn LogStore>) {
        let home = tempfile::tempdir().unwrap();
        let store = Disk::default().log_store(home.path(), true).unwrap();
        (home, store)
    }

    /// The harnesses cut the power of a medium of their own. No test told whether a log on a real
    /// disk is synced, and whether a failure to do so is final (I9).
    #[test]
    fn a_log_that_cannot_be_synced_is_an_error_for_good() {
        let log = DiskLog {
            path: "1.wal".into(),
            file: unsyncable(),
        };
        let failed = log.sync();
        assert!(matches!(failed, Err(Error::Poisoned { .. })), "{failed:?}");
    }

    #[test]
    fn appends_truncates_and_goes_on() {
        let (_home, store) = store();
        let log = store.create("1.wal").unwrap();
        log.append(b"hello ").unwrap();
        log.append(b"wor").unwrap();
        log.sync().unwrap();
        log.truncate(6).unwrap();
        log.append(b"lake").unwrap();
        store.sync_dir().unwrap();
        assert_eq!(store.read("1.wal").unwrap(), b"hello lake");
        store.create("1.wal").unwrap();
        assert_eq!(store.read("1.wal").unwrap(), b"", "create empties");
    }

    #[test]
    fn rename_replaces_and_an_open_file_follows_its_name() {
        let (_home, store) = store();
        store.create("CURRENT").unwrap().append(b"old").unwrap();
        let new = store.create("CURRENT.tmp").unwrap();
        new.append(b"new").unwrap();
        store.rename("CURRENT.tmp", "CURRENT").unwrap();
        new.append(b"er").unwrap();
        assert_eq!(store.read("CURRENT").unwrap(), b"newer");
        assert_eq!(store.list().unwrap().len(), 1);
        assert!(matches!(
            store.rename("none", "CURRENT"),
            Err(Error::Io { .. })
        ));
    }

    #[test]
    fn a_missing_file_is_not_found_by_its_path() {
        let (home, store) = store();
        let error = store.read("9.wal").unwrap_err();
        assert!(matches!(error, Error::NotFound { path } if path == home.path().join("9.wal")));
    }
}
