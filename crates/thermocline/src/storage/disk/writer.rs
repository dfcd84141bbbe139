//! Writing a table file front to back.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::direct::{DirectIo, WRITE_BLOCK};
use super::directory::Directory;
use super::open_files::OpenFiles;
use super::sync_failed;
use crate::error::{Error, Result};
use crate::storage::TableWriter;
use crate::storage::background::Background;
use crate::storage::buffer_pool::AlignedBuf;
use crate::storage::operation::MAX_OPERATION;
use crate::sync::Arc;

/// Bytes gathered before they go to the device in one operation. If a compaction wrote small
/// pieces, it would starve readers of a slow device.
const GATHER: usize = MAX_OPERATION as usize;

/// A table file being written. It has its final name from the start, because file numbers are never
/// reused, and recovery removes the files that the manifest does not name (I4).
#[derive(Debug)]
pub(super) struct DiskTableWriter {
    directory: Arc<Directory>,
    path: PathBuf,
    name: String,
    file: Arc<File>,
    direct: DirectIo,
    gathered: Gathered,
    /// A write under way while the caller goes on appending. It returns its buffer.
    behind: Option<Background<(Gathered, Result<()>)>>,
    /// Bytes written or being written: the offset of the next write.
    written: u64,
    /// Whether the content is complete and durable.
    is_synced: bool,
    finished: bool,
}

/// Bytes waiting to be written.
struct Gathered {
    buffer: AlignedBuf,
    len: usize,
}

impl std::fmt::Debug for Gathered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.len)
    }
}

impl DiskTableWriter {
    pub(super) fn create(
        directory: &Arc<Directory>,
        name: &str,
        expected_len: u64,
        direct: DirectIo,
    ) -> Result<Self> {
        let path = directory.file(name);
        let mut options = File::options();
        // Never overwrites a table that may be in use.
        options.write(true).create_new(true);
        direct.apply(&mut options);
        let file = OpenFiles::of_process()
            .open(|| options.open(&path))
            .map_err(|e| Error::io("create", &path, e))?;
        let writer = Self {
            directory: Arc::clone(directory),
            path,
            name: name.to_owned(),
            file: Arc::new(file),
            direct,
            gathered: Gathered::new(),
            behind: None,
            written: 0,
            is_synced: false,
            finished: false,
        };
        writer.allocate(expected_len)?;
        Ok(writer)
    }

    /// Allocates the space at once, so that it is in one piece where possible, and a full disk is
    /// noticed before anything is written.
    fn allocate(&self, expected_len: u64) -> Result<()> {
        if expected_len == 0 {
            return Ok(());
        }
        let granted = rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, expected_len);
        match granted {
            Err(e) if no_space(e) => Err(Error::io("allocate", &self.path, io::Error::from(e))),
            // Any other error means that the filesystem does not take this hint.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Writes the gathered bytes while the caller goes on. Only one write is under way at a time:
    /// the device is the bottleneck, so memory for more writes would be of no use.
    fn write_behind(&mut self) -> Result<()> {
        let spare = self.catch_up()?.unwrap_or_else(Gathered::new);
        let mut full = std::mem::replace(&mut self.gathered, spare);
        let (file, path, offset) = (Arc::clone(&self.file), self.path.clone(), self.written);
        let is_direct = self.direct.is_on();
        self.written += full.len as u64;
        self.behind = Some(Background::begin(move || {
            let written = full.write(&file, &path, offset, is_direct);
            (full, written)
        }));
        Ok(())
    }

    /// Waits for the write under way; its buffer comes back empty.
    fn catch_up(&mut self) -> Result<Option<Gathered>> {
        let Some(behind) = self.behind.take() else {
            return Ok(None);
        };
        let (buffer, written) = behind.wait().ok_or_else(|| {
            let cause = io::Error::other("the writing thread panicked");
            Error::io("write", &self.path, cause)
        })?;
        written.map(|()| Some(buffer))
    }

    /// Writes all that is left, and ends the file there.
    fn write_all(&mut self) -> Result<()> {
        self.catch_up()?;
        let (offset, len) = (self.written, self.gathered.len as u64);
        self.gathered
            .write(&self.file, &self.path, offset, self.direct.is_on())?;
        self.written += len;
        // This frees the padding, and what was allocated beyond the end.
        self.file
            .set_len(self.written)
            .map_err(|e| Error::io("truncate", &self.path, e))
    }

    /// Makes what was written durable.
    fn sync(&mut self) -> Result<()> {
        self.file
            .sync_data()
            .map_err(|e| sync_failed(&self.path, &e))?;
        self.is_synced = true;
        Ok(())
    }
}

impl Gathered {
    fn new() -> Self {
        Self {
            buffer: AlignedBuf::take(GATHER),
            len: 0,
        }
    }

    /// Writes the bytes to `offset`; afterwards there are none.
    fn write(&mut self, file: &File, path: &Path, offset: u64, is_direct: bool) -> Result<()> {
        let len = match is_direct {
            true => self.len.next_multiple_of(WRITE_BLOCK),
            false => self.len,
        };
        // Only the last write is padded; `write_all` cuts the padding off.
        self.buffer[self.len..len].fill(0);
        self.len = 0;
        let bytes = &self.buffer[..len];
        let write = || file.write_all_at(bytes, offset);
        write()
            .or_else(|e| match Errno::from_io_error(&e) {
                // When the process's limit cuts off a direct write inside a block, the system calls
                // the write invalid.
                Some(Errno::INVAL) if offset + len as u64 > longest_file() => {
                    Err(Errno::FBIG.into())
                }
                // The limit may have been raised meanwhile.
                Some(Errno::INVAL) => write(),
                _ => Err(e),
            })
            .map_err(|e| Error::io("write", path, e))
    }
}

/// How long this process may let a file get.
fn longest_file() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// Whether an allocation was refused for lack of space, which is the only refusal that matters.
fn no_space(error: Errno) -> bool {
    matches!(error, Errno::NOSPC | Errno::DQUOT)
}

impl TableWriter for DiskTableWriter {
    fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let start = self.gathered.len;
            let (now, later) = bytes.split_at(bytes.len().min(GATHER - start));
            self.gathered.buffer[start..start + now.len()].copy_from_slice(now);
            self.gathered.len += now.len();
            bytes = later;
            if self.gathered.len == GATHER {
                self.write_behind()?;
            }
        }
        Ok(())
    }

    fn sync_content(&mut self) -> Result<()> {
        self.write_all()?;
        self.sync()
    }

    /// The content becomes durable before the name (I4).
    fn finish(mut self: Box<Self>) -> Result<()> {
        if !self.is_synced {
            self.sync_content()?;
        }
        self.directory.sync()?;
        self.finished = true;
        Ok(())
    }

    fn finish_unsynced(mut self: Box<Self>) -> Result<()> {
        self.write_all()?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for DiskTableWriter {
    fn drop(&mut self) {
        if !self.finished {
            // If it cannot be removed now, it is an orphan that recovery removes.
            let _ = self.directory.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::storage::disk::tests::unsyncable;
    use crate::storage::{Disk, Medium, TableStore};

    fn store(direct: bool) -> (tempfile::TempDir, Arc<dyn TableStore>) {
        let home = tempfile::tempdir().unwrap();
        let store = Disk::new(direct).table_store(home.path(), true).unwrap();
        (home, store)
    }

    fn pattern(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i % 251) as u8).collect()
    }

    #[test]
    fn a_table_has_exactly_the_appended_bytes() {
        for (direct, is_synced) in [(true, true), (true, false), (false, true), (false, false)] {
            let (home, store) = store(direct);
            for len in [0, 1, 4096, GATHER, GATHER + 1, 2 * GATHER + 4097] {
                let bytes = pattern(len);
                let name = format!("{len}.sst");
                let mut writer = store.create(&name, len as u64 / 2).unwrap();
                for chunk in bytes.chunks(300_007) {
                    writer.append(chunk).unwrap();
                }
                match is_synced {
                    true => writer.finish().unwrap(),
                    false => writer.finish_unsynced().unwrap(),
                }
                let written = std::fs::read(home.path().join(&name)).unwrap();
                assert!(
                    written == bytes,
                    "direct {direct}, synced {is_synced}, {len} bytes"
                );
            }
        }
    }

    /// A writer whose every write fails, because its file is open for reading only.
    fn broken(home: &Path) -> DiskTableWriter {
        let direct = DirectIo::OFF;
        let directory = Arc::new(Directory::open(home, true).unwrap());
        let mut writer = DiskTableWriter::create(&directory, "1.sst", 0, direct).unwrap();
        writer.file = Arc::new(File::open(&writer.path).unwrap());
        writer
    }

    /// The failed write may have been started by an append that succeeded: the failure must not be
    /// forgotten.
    #[test]
    fn a_write_that_failed_behind_is_reported_by_the_next_call() {
        let home = tempfile::tempdir().unwrap();
        let failed = |result: Result<()>| {
            let error = result.unwrap_err();
            assert!(
                matches!(&error, Error::Io { path, .. } if path.ends_with("1.sst")),
                "{error}"
            );
            assert!(
                std::fs::read_dir(home.path()).unwrap().next().is_none(),
                "it is still there"
            );
        };

        let mut writer = broken(home.path());
        writer.append(&pattern(GATHER)).unwrap();
        failed(Box::new(writer).finish());

        let mut writer = broken(home.path());
        writer.append(&pattern(GATHER)).unwrap();
        let result = writer.append(&pattern(GATHER));
        drop(writer);
        failed(result);
    }

    /// No test told whether a table on a real disk and its name are synced, and whether a failure
    /// to do so is final (I4, I9).
    #[test]
    fn a_table_that_cannot_be_synced_is_an_error_for_good() {
        let home = tempfile::tempdir().unwrap();
        let check = |failed: Result<()>| {
            assert!(matches!(failed, Err(Error::Poisoned { .. })), "{failed:?}");
        };
        let create = |directory: Directory| {
            DiskTableWriter::create(&Arc::new(directory), "1.sst", 0, DirectIo::OFF).unwrap()
        };

        let mut writer = create(Directory::open(home.path(), true).unwrap());
        // `finish` would fail before the sync, because the end of this file cannot be set.
        writer.file = Arc::new(unsyncable());
        check(writer.sync());
        drop(writer);

        let mut writer = create(Directory::unsyncable(home.path()));
        writer.append(b"content").unwrap();
        check(Box::new(writer).finish());
    }

    #[test]
    fn space_allocated_beyond_the_end_is_given_back() {
        let (home, store) = store(true);
        let mut writer = store.create("1.sst", 4 << 20).unwrap();
        writer.append(b"short").unwrap();
        writer.finish().unwrap();
        let metadata = std::fs::metadata(home.path().join("1.sst")).unwrap();
        assert_eq!(metadata.len(), 5);
        assert!(metadata.blocks() * 512 <= 64 << 10, "{}", metadata.blocks());
    }

    #[test]
    fn an_unfinished_table_goes_away() {
        let (_home, store) = store(true);
        let mut writer = store.create("1.sst", 0).unwrap();
        writer.append(&pattern(GATHER + 5)).unwrap();
        assert_eq!(store.list().unwrap().len(), 1);
        drop(writer);
        assert!(store.list().unwrap().is_empty());
    }

    #[test]
    fn an_existing_table_is_not_overwritten() {
        let (_home, store) = store(true);
        store.create("1.sst", 0).unwrap().finish().unwrap();
        assert!(matches!(store.create("1.sst", 0), Err(Error::Io { .. })));
        assert_eq!(store.list().unwrap().len(), 1, "the refused one removed it");
    }

    #[test]
    fn a_refused_allocation_matters_only_for_want_of_space() {
        for errno in [Errno::NOSPC, Errno::DQUOT] {
            assert!(no_space(errno));
            assert!(Error::io("allocate", "1.sst", io::Error::from(errno)).is_no_space());
        }
        for errno in [Errno::OPNOTSUPP, Errno::NOSYS, Errno::INVAL] {
            assert!(!no_space(errno));
        }
    }
}
