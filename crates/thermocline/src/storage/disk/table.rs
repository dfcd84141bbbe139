//! Finished table files.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::direct::{Detection, DirectIo};
use super::directory::Directory;
use super::open_files::{Key, OpenFiles};
use super::writer::DiskTableWriter;
use super::{open_failed, sync_failed};
use crate::error::{Error, Result};
use crate::storage::buffer_pool::AlignedBuf;
use crate::storage::readers::read_overlapped;
use crate::storage::{FileInfo, IoBuf, ReadRequest, StoreLock, TableFile, TableStore, TableWriter};
use crate::sync::Arc;

/// Not the log store's lock: one database takes both in its fast directory.
pub(super) const LOCK_FILE: &str = "LOCK-TABLES";

/// The tables of a directory.
#[derive(Debug)]
pub(super) struct DiskTableStore {
    directory: Arc<Directory>,
    direct: Detection,
    open: &'static OpenFiles,
}

/// An opened table. Its file stays open while it is among those that were read recently. It can be
/// opened again: a file keeps its name for as long as its table is in use (I4).
#[derive(Debug)]
struct DiskTable {
    path: PathBuf,
    direct: DirectIo,
    open: &'static OpenFiles,
    key: Key,
    /// Tells the table's file from one that has its name later, which may be another store's.
    identity: Identity,
    len: u64,
}

/// Device and number of a file. A file of the same name that replaced it has another identity,
/// unless the old file is gone: then it may have the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl DiskTableStore {
    pub(super) fn new(directory: Directory, direct: Detection) -> Self {
        Self {
            directory: Arc::new(directory),
            direct,
            open: OpenFiles::of_process(),
        }
    }
}

/// Opens the file for reading; returns it with its identity and length.
fn open_table(
    path: &Path,
    direct: DirectIo,
    open: &OpenFiles,
) -> Result<(Arc<File>, Identity, u64)> {
    let file = open
        .open(|| direct.apply(File::options().read(true)).open(path))
        .map_err(|e| open_failed("open", path, e))?;
    let metadata = file.metadata();
    let metadata = metadata.map_err(|e| Error::io("inspect", path, e))?;
    let identity = Identity {
        device: metadata.dev(),
        inode: metadata.ino(),
    };
    Ok((Arc::new(file), identity, metadata.len()))
}

impl TableStore for DiskTableStore {
    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        self.directory.lock(LOCK_FILE)
    }

    fn create(&self, name: &str, expected_len: u64) -> Result<Box<dyn TableWriter>> {
        let direct = self.direct.to_write(&self.directory)?;
        let writer = DiskTableWriter::create(&self.directory, name, expected_len, direct)?;
        Ok(Box::new(writer))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn TableFile>> {
        let path = self.directory.file(name);
        let direct = self.direct.to_read(&self.directory);
        let (file, identity, len) = open_table(&path, direct, self.open)?;
        let key = self.open.new_key();
        self.open.keep(key, file);
        Ok(Arc::new(DiskTable {
            path,
            direct,
            open: self.open,
            key,
            identity,
            len,
        }))
    }

    fn read_many(&self, requests: &[ReadRequest]) -> Vec<Result<IoBuf>> {
        read_overlapped(requests)
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        self.directory.list()
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.directory.remove(name)
    }

    fn link(&self, name: &str, target: &Path) -> Result<()> {
        let from = self.directory.file(name);
        let to = target.join(name);
        match fs::hard_link(&from, &to) {
            Ok(()) => Ok(()),
            // Another filesystem, one without links, or one whose rules forbid the link.
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::CrossesDevices
                        | ErrorKind::PermissionDenied
                        | ErrorKind::Unsupported
                        | ErrorKind::TooManyLinks
                ) =>
            {
                copy_durably(&from, &to)
            }
            Err(e) => Err(Error::io("link", &from, e)),
        }
    }

    fn sync_dir(&self) -> Result<()> {
        self.directory.sync()
    }
}

fn temporary(to: &Path) -> PathBuf {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    to.with_file_name(name)
}

/// Copies a file to a name that must be free. The copy's content is durable on return. The copy
/// gets its name only when it is complete: half a copy must not be taken for a table.
fn copy_durably(from: &Path, to: &Path) -> Result<()> {
    let mut source = File::open(from).map_err(|e| open_failed("open", from, e))?;
    match fs::symlink_metadata(to) {
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(Error::io("inspect", to, e)),
        Ok(_) => return Err(Error::io("create", to, ErrorKind::AlreadyExists.into())),
    }
    let begun = temporary(to);
    let mut copy = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&begun)
        .map_err(|e| Error::io("create", &begun, e))?;
    let copied = io::copy(&mut source, &mut copy)
        .map_err(|e| Error::io("copy to", &begun, e))
        .and_then(|_| copy.sync_data().map_err(|e| sync_failed(&begun, &e)))
        .and_then(|()| fs::rename(&begun, to).map_err(|e| Error::io("rename", &begun, e)));
    if copied.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&begun);
    }
    copied
}

impl DiskTable {
    /// The table's file. It is opened again if it was closed to make room for others.
    fn file(&self) -> Result<Arc<File>> {
        if let Some(file) = self.open.get(self.key) {
            return Ok(file);
        }
        let gone = || {
            let what = "the file of an open table is gone, or another has its name";
            Error::corruption(&self.path, 0, what)
        };
        let (file, identity, _) = match open_table(&self.path, self.direct, self.open) {
            Err(Error::NotFound { .. }) => return Err(gone()),
            opened => opened?,
        };
        if identity != self.identity {
            return Err(gone());
        }
        self.open.keep(self.key, Arc::clone(&file));
        Ok(file)
    }

    /// The range ends past the file: the handle to it came from damaged bytes, or the file was cut
    /// behind our back.
    fn past_the_end(&self, offset: u64, len: usize, file_len: u64) -> Error {
        let what = format!("the file has {file_len} bytes, too few for {len} bytes read here");
        Error::corruption(&self.path, offset, what)
    }
}

impl Drop for DiskTable {
    fn drop(&mut self) {
        // Right now: as long as a removed file is open, it keeps its disk space.
        self.open.forget(self.key);
    }
}

impl TableFile for DiskTable {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, offset: u64, len: usize) -> Result<IoBuf> {
        let Some(end) = offset
            .checked_add(len as u64)
            .filter(|end| *end <= self.len)
        else {
            return Err(self.past_the_end(offset, len, self.len));
        };
        let file = self.file()?;
        let aligned = self.direct.read_block();
        let block = aligned as u64;
        let first = offset - offset % block;
        let whole = (end.next_multiple_of(block) - first) as usize;
        let skipped = (offset - first) as usize;
        let mut memory = AlignedBuf::take(whole);
        // At the end of the file, the system returns less than whole blocks.
        let needed = skipped + len;
        let mut filled = 0;
        while filled < needed {
            match file.read_at(&mut memory[filled..whole], first + filled as u64) {
                Ok(0) => return Err(self.past_the_end(offset, len, first + filled as u64)),
                Ok(read) => filled += read,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io("read", &self.path, e)),
            }
            // A direct read that stops inside a block has reached the end of the file, and could
            // not go on from there.
            if filled < needed && !filled.is_multiple_of(aligned) {
                return Err(self.past_the_end(offset, len, first + filled as u64));
            }
        }
        Ok(IoBuf::window(memory, skipped, len, whole as u64))
    }

    fn waits_for_a_device(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
