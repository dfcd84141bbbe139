//! A small in-memory store whose calls can be made to fail.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::error::{Error, Result};
use crate::options::TierOptions;
use crate::storage::{
    FileInfo, IoBuf, LogFile, LogStore, StoreLock, TableFile, TableStore, TableWriter,
};
use crate::sync::{Arc, Mutex};
use crate::tier::Tier;

type Content = Arc<Mutex<Vec<u8>>>;

/// Which calls fail.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Failing {
    /// Half of the bytes are written, then the device is full.
    pub(crate) append: bool,
    pub(crate) truncate: bool,
    pub(crate) sync: bool,
    pub(crate) remove: bool,
}

#[derive(Debug, Default)]
pub(crate) struct TestStore {
    files: Mutex<BTreeMap<String, Content>>,
    failing: Arc<Mutex<Failing>>,
    /// Syncs and directory syncs, in order.
    pub(crate) syncs: Arc<Mutex<Vec<String>>>,
}

#[derive(Debug)]
struct TestFile {
    name: String,
    content: Content,
    failing: Arc<Mutex<Failing>>,
    syncs: Arc<Mutex<Vec<String>>>,
}

fn refused(kind: io::ErrorKind) -> Error {
    Error::io("write", "test", kind.into())
}

impl TestStore {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn tier(self: &Arc<Self>) -> Arc<Tier> {
        self.tier_at(0)
    }

    pub(crate) fn tier_at(self: &Arc<Self>, index: u8) -> Arc<Tier> {
        let tables = Arc::clone(self) as Arc<dyn TableStore>;
        let log = Arc::clone(self) as Arc<dyn LogStore>;
        let options = TierOptions::fast("test");
        Arc::new(Tier::new(index, options, tables, Some(log)))
    }

    pub(crate) fn fail(&self, failing: Failing) {
        *self.failing.lock() = failing;
    }

    pub(crate) fn get(&self, name: &str) -> Option<Vec<u8>> {
        self.files.lock().get(name).map(|c| c.lock().clone())
    }

    pub(crate) fn put(&self, name: &str, bytes: Vec<u8>) {
        let content = Arc::new(Mutex::new(bytes));
        self.files.lock().insert(name.into(), content);
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.files.lock().keys().cloned().collect()
    }

    /// A store with the same files.
    pub(crate) fn copy(&self) -> Arc<Self> {
        let copy = Self::new();
        for (name, content) in &*self.files.lock() {
            copy.put(name, content.lock().clone());
        }
        copy
    }

    fn infos(&self) -> Vec<FileInfo> {
        let files = self.files.lock();
        let info = |(name, content): (&String, &Content)| FileInfo {
            name: name.clone(),
            len: content.lock().len() as u64,
        };
        files.iter().map(info).collect()
    }

    fn delete(&self, name: &str) -> Result<()> {
        if self.failing.lock().remove {
            return Err(refused(io::ErrorKind::Other));
        }
        self.files.lock().remove(name);
        Ok(())
    }

    fn note(&self, what: &str) {
        self.syncs.lock().push(what.into());
    }
}

impl LogStore for TestStore {
    fn path(&self) -> &Path {
        Path::new("test")
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        Err(refused(io::ErrorKind::Unsupported))
    }

    fn create(&self, name: &str) -> Result<Arc<dyn LogFile>> {
        self.put(name, Vec::new());
        let content = Arc::clone(&self.files.lock()[name]);
        Ok(Arc::new(TestFile {
            name: name.into(),
            content,
            failing: Arc::clone(&self.failing),
            syncs: Arc::clone(&self.syncs),
        }))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        self.get(name)
            .ok_or_else(|| Error::NotFound { path: name.into() })
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        Ok(self.infos())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut files = self.files.lock();
        let content = files.remove(from).expect("renaming an existing file");
        files.insert(to.into(), content);
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.delete(name)
    }

    fn sync_dir(&self) -> Result<()> {
        self.note("dir");
        match self.failing.lock().sync {
            true => Err(refused(io::ErrorKind::Other)),
            false => Ok(()),
        }
    }
}

impl LogFile for TestFile {
    fn append(&self, bytes: &[u8]) -> Result<()> {
        let fails = self.failing.lock().append;
        let len = if fails { bytes.len() / 2 } else { bytes.len() };
        self.content.lock().extend_from_slice(&bytes[..len]);
        match fails {
            true => Err(refused(io::ErrorKind::StorageFull)),
            false => Ok(()),
        }
    }

    fn sync(&self) -> Result<()> {
        self.syncs.lock().push(self.name.clone());
        match self.failing.lock().sync {
            true => Err(refused(io::ErrorKind::Other)),
            false => Ok(()),
        }
    }

    fn truncate(&self, len: u64) -> Result<()> {
        if self.failing.lock().truncate {
            return Err(refused(io::ErrorKind::Other));
        }
        self.content.lock().truncate(len as usize);
        Ok(())
    }
}

#[derive(Debug)]
struct Whole {
    content: Content,
}

impl TableStore for TestStore {
    fn path(&self) -> &Path {
        Path::new("test")
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        Err(refused(io::ErrorKind::Unsupported))
    }

    fn create(&self, name: &str, _expected_len: u64) -> Result<Box<dyn TableWriter>> {
        self.put(name, Vec::new());
        let content = Arc::clone(&self.files.lock()[name]);
        Ok(Box::new(Whole { content }))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn TableFile>> {
        let content = self.files.lock().get(name).cloned();
        let content = content.ok_or_else(|| Error::NotFound { path: name.into() })?;
        Ok(Arc::new(Whole { content }))
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        Ok(self.infos())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.delete(name)
    }

    fn link(&self, _name: &str, _target: &Path) -> Result<()> {
        Err(refused(io::ErrorKind::Unsupported))
    }

    fn sync_dir(&self) -> Result<()> {
        Ok(())
    }
}

impl TableWriter for Whole {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.content.lock().extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }

    fn finish_unsynced(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl TableFile for Whole {
    fn path(&self) -> &Path {
        Path::new("test")
    }

    fn len(&self) -> u64 {
        self.content.lock().len() as u64
    }

    fn read(&self, offset: u64, len: usize) -> Result<IoBuf> {
        let content = self.content.lock();
        let bytes = content.get(offset as usize..offset as usize + len);
        bytes
            .map(IoBuf::copy_from)
            .ok_or_else(|| refused(io::ErrorKind::UnexpectedEof))
    }
}
