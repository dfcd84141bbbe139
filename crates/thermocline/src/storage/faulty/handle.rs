//! Open files of a faulty disk.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::Faulty;
use super::files::{EntryChange, InodeRef};
use super::plan::{Fault, Operation};
use crate::error::{Error, Result};
use crate::storage::memory::{past_the_end, range};
use crate::storage::{IoBuf, LogFile, TableFile, TableWriter};

/// An open file.
#[derive(Clone)]
pub(super) struct Handle {
    pub(super) disk: Faulty,
    pub(super) dir: PathBuf,
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) file: InodeRef,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(super) struct FaultyWriter {
    handle: Handle,
    is_synced: bool,
    finished: bool,
}

#[derive(Debug)]
pub(super) struct FaultyTable {
    handle: Handle,
    len: u64,
}

impl FaultyWriter {
    pub(super) fn new(handle: Handle) -> Self {
        Self {
            handle,
            is_synced: false,
            finished: false,
        }
    }
}

impl FaultyTable {
    pub(super) fn new(handle: Handle) -> Self {
        let len = handle.file.lock().cached.len() as u64;
        Self { handle, len }
    }
}

impl Handle {
    fn append_bytes(&self, bytes: &[u8]) -> Result<()> {
        let (state, fault) = self.disk.begin(Operation::Append, &self.path, &self.name)?;
        let directory = state.directories.get(&self.dir);
        let room = directory.map_or(u64::MAX, |d| d.room());
        let (written, hit) = match fault {
            Some(Fault::ShortWrite) => (bytes.len() / 2, fault),
            Some(_) => (0, fault),
            None => (bytes.len(), None),
        };
        let fits = written.min(usize::try_from(room).unwrap_or(usize::MAX));
        self.file.lock().append(&bytes[..fits]);
        let hit = hit.or((fits < written).then_some(Fault::NoSpace));
        match hit {
            None => Ok(()),
            Some(fault) => Err(fault.error(Operation::Append, &self.path)),
        }
    }

    fn sync_file(&self) -> Result<()> {
        let (_state, fault) = self.disk.begin(Operation::Sync, &self.path, &self.name)?;
        let mut file = self.file.lock();
        match fault {
            None => {
                file.sync();
                Ok(())
            }
            Some(fault) => {
                file.lose_unsynced();
                Err(fault.error(Operation::Sync, &self.path))
            }
        }
    }
}

impl LogFile for Handle {
    fn append(&self, bytes: &[u8]) -> Result<()> {
        self.append_bytes(bytes)
    }

    fn sync(&self) -> Result<()> {
        self.sync_file()
    }

    fn truncate(&self, len: u64) -> Result<()> {
        let _state = self
            .disk
            .call(Operation::Truncate, &self.path, &self.name)?;
        let len = usize::try_from(len).map_err(|_| {
            let cause = io::Error::from(ErrorKind::FileTooLarge);
            Error::io("truncate", &self.path, cause)
        })?;
        self.file.lock().truncate(len);
        Ok(())
    }
}

impl TableWriter for FaultyWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.handle.append_bytes(bytes)
    }

    fn sync_content(&mut self) -> Result<()> {
        self.handle.sync_file()?;
        self.is_synced = true;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if !self.is_synced {
            self.sync_content()?;
        }
        self.handle.disk.sync_directory(&self.handle.dir)?;
        self.finished = true;
        Ok(())
    }

    fn finish_unsynced(mut self: Box<Self>) -> Result<()> {
        self.finished = true;
        Ok(())
    }
}

impl Drop for FaultyWriter {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        // Nobody could see this call fail, so it is neither counted nor made to fail.
        let mut state = self.handle.disk.state.lock();
        if !state.gone {
            let directory = state.directory_or_new(&self.handle.dir);
            directory.change(EntryChange::Remove(self.handle.name.clone()));
        }
    }
}

impl TableFile for FaultyTable {
    fn path(&self) -> &Path {
        &self.handle.path
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, offset: u64, len: usize) -> Result<IoBuf> {
        let Handle {
            disk,
            path,
            name,
            file,
            ..
        } = &self.handle;
        let (state, fault) = disk.begin(Operation::Read, path, name)?;
        drop(state);
        match fault {
            None => {}
            // The caller of a disk would take it for the end of the file.
            Some(Fault::ShortRead) => {
                let end = offset.saturating_add(len as u64 / 2);
                return Err(past_the_end(path, offset, len, end));
            }
            Some(fault) => return Err(fault.error(Operation::Read, path)),
        }
        let file = file.lock();
        match range(&file.cached, offset, len) {
            Some(bytes) => Ok(IoBuf::copy_from(bytes)),
            None => Err(past_the_end(path, offset, len, file.cached.len() as u64)),
        }
    }
}
