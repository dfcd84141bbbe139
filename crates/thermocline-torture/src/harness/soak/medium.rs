//! A disk on which calls fail as the weather says. It counts the time that writers wait for the
//! log.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use thermocline::storage::{
    Disk, FileInfo, IoBuf, LogFile, LogStore, Medium, ReadRequest, StoreLock, TableFile,
    TableStore, TableWriter,
};
use thermocline::{Error, Result};

use super::weather::{Call, Fate, Sky};

/// Local files under a sky.
#[derive(Debug, Clone)]
pub(super) struct Outdoors {
    pub(super) disk: Disk,
    pub(super) sky: Arc<Sky>,
}

/// The error of a call to the file or directory at `path`.
fn refused(fate: Fate, operation: &'static str, path: &Path) -> Error {
    let path = path.to_path_buf();
    match fate {
        Fate::NoSpace => Error::NoSpace { operation, path },
        _ => Error::Io {
            operation,
            path,
            source: Arc::new(rustix::io::Errno::IO.into()),
        },
    }
}

/// Fails if the sky has it so.
fn pass(sky: &Sky, call: Call, operation: &'static str, path: &Path) -> Result<()> {
    match sky.fate(call) {
        Fate::Good => Ok(()),
        fate => Err(refused(fate, operation, path)),
    }
}

/// The error of a sync (I9).
fn pass_sync(sky: &Sky, path: &Path) -> Result<()> {
    pass(sky, Call::Sync, "sync", path).map_err(|error| Error::Poisoned {
        cause: error.to_string().into(),
    })
}

impl Medium for Outdoors {
    fn log_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn LogStore>> {
        let store = self.disk.log_store(dir, create)?;
        let sky = Arc::clone(&self.sky);
        Ok(Arc::new(Logs { store, sky }))
    }

    fn table_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn TableStore>> {
        let store = self.disk.table_store(dir, create)?;
        let sky = Arc::clone(&self.sky);
        Ok(Arc::new(Tables { store, sky }))
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.disk.remove_dir(dir)
    }
}

#[derive(Debug)]
struct Logs {
    store: Arc<dyn LogStore>,
    sky: Arc<Sky>,
}

impl LogStore for Logs {
    fn path(&self) -> &Path {
        self.store.path()
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        self.store.lock()
    }

    fn create(&self, name: &str) -> Result<Arc<dyn LogFile>> {
        let path = self.store.path().join(name);
        pass(&self.sky, Call::Write, "create", &path)?;
        let file = self.store.create(name)?;
        let sky = Arc::clone(&self.sky);
        Ok(Arc::new(Log { file, path, sky }))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        pass(&self.sky, Call::Read, "read", &self.store.path().join(name))?;
        self.store.read(name)
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        self.store.list()
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.store.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.store.remove(name)
    }

    fn sync_dir(&self) -> Result<()> {
        pass_sync(&self.sky, self.store.path())?;
        self.sky.timed(|| self.store.sync_dir())
    }
}

#[derive(Debug)]
struct Log {
    file: Arc<dyn LogFile>,
    path: PathBuf,
    sky: Arc<Sky>,
}

impl LogFile for Log {
    fn append(&self, bytes: &[u8]) -> Result<()> {
        match self.sky.fate(Call::Write) {
            Fate::Good => self.sky.timed(|| self.file.append(bytes)),
            fate => {
                if fate == Fate::Short {
                    self.file.append(&bytes[..bytes.len() / 2])?;
                }
                Err(refused(fate, "append to", &self.path))
            }
        }
    }

    fn sync(&self) -> Result<()> {
        pass_sync(&self.sky, &self.path)?;
        self.sky.timed(|| self.file.sync())
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.file.truncate(len)
    }
}

#[derive(Debug)]
struct Tables {
    store: Arc<dyn TableStore>,
    sky: Arc<Sky>,
}

impl TableStore for Tables {
    fn path(&self) -> &Path {
        self.store.path()
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        self.store.lock()
    }

    fn create(&self, name: &str, expected_len: u64) -> Result<Box<dyn TableWriter>> {
        let path = self.store.path().join(name);
        pass(&self.sky, Call::Write, "create", &path)?;
        let writer = self.store.create(name, expected_len)?;
        let sky = Arc::clone(&self.sky);
        Ok(Box::new(Writer { writer, path, sky }))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn TableFile>> {
        pass(&self.sky, Call::Read, "open", &self.store.path().join(name))?;
        let file = self.store.open(name)?;
        let sky = Arc::clone(&self.sky);
        Ok(Arc::new(Table { file, sky }))
    }

    fn read_many(&self, requests: &[ReadRequest]) -> Vec<Result<IoBuf>> {
        self.store.read_many(requests)
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        self.store.list()
    }

    fn remove(&self, name: &str) -> Result<()> {
        pass(
            &self.sky,
            Call::Write,
            "remove",
            &self.store.path().join(name),
        )?;
        self.store.remove(name)
    }

    fn link(&self, name: &str, target: &Path) -> Result<()> {
        pass(
            &self.sky,
            Call::Write,
            "link",
            &self.store.path().join(name),
        )?;
        self.store.link(name, target)
    }

    fn sync_dir(&self) -> Result<()> {
        pass_sync(&self.sky, self.store.path())?;
        self.store.sync_dir()
    }
}

#[derive(Debug)]
struct Writer {
    writer: Box<dyn TableWriter>,
    path: PathBuf,
    sky: Arc<Sky>,
}

impl TableWriter for Writer {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let Self { writer, path, sky } = self;
        pass(sky, Call::Write, "write", path)?;
        writer.append(bytes)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let Self { writer, path, sky } = *self;
        pass(&sky, Call::Write, "write", &path)?;
        pass_sync(&sky, &path)?;
        writer.finish()
    }

    fn finish_unsynced(self: Box<Self>) -> Result<()> {
        pass(&self.sky, Call::Write, "write", &self.path)?;
        self.writer.finish_unsynced()
    }
}

#[derive(Debug)]
struct Table {
    file: Arc<dyn TableFile>,
    sky: Arc<Sky>,
}

impl TableFile for Table {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    fn read(&self, offset: u64, len: usize) -> Result<IoBuf> {
        pass(&self.sky, Call::Read, "read", self.file.path())?;
        self.file.read(offset, len)
    }
}
