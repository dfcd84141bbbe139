//! A medium that counts what passes it, to check what the store says.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thermocline::Result;
use thermocline::storage::{
    FileInfo, IoBuf, LogFile, LogStore, Medium, Memory, StoreLock, TableFile, TableStore,
    TableWriter,
};

/// Bytes that passed.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    read: AtomicU64,
    written: AtomicU64,
    expected: AtomicU64,
}

impl Passed {
    /// Bytes that the tables so far were expected to have when they were begun.
    pub(crate) fn expected(&self) -> u64 {
        self.expected.load(Ordering::Relaxed)
    }

    /// Bytes read and written so far.
    pub(crate) fn now(&self) -> (u64, u64) {
        (
            self.read.load(Ordering::Relaxed),
            self.written.load(Ordering::Relaxed),
        )
    }

    fn read(&self, bytes: u64) {
        self.read.fetch_add(bytes, Ordering::Relaxed);
    }

    fn written(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// Files in memory. All reads and writes are counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counting {
    inner: Memory,
    pub(crate) passed: Arc<Passed>,
}

#[derive(Debug)]
struct Counted<T> {
    inner: T,
    passed: Arc<Passed>,
}

impl Counting {
    fn counted<T>(&self, inner: T) -> Counted<T> {
        let passed = Arc::clone(&self.passed);
        Counted { inner, passed }
    }
}

impl<T> Counted<T> {
    fn with<U>(&self, inner: U) -> Counted<U> {
        let passed = Arc::clone(&self.passed);
        Counted { inner, passed }
    }
}

impl Medium for Counting {
    fn log_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn LogStore>> {
        let store = self.inner.log_store(dir, create)?;
        Ok(Arc::new(self.counted(store)))
    }

    fn table_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn TableStore>> {
        let store = self.inner.table_store(dir, create)?;
        Ok(Arc::new(self.counted(store)))
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.inner.remove_dir(dir)
    }
}

impl LogStore for Counted<Arc<dyn LogStore>> {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        self.inner.lock()
    }

    fn create(&self, name: &str) -> Result<Arc<dyn LogFile>> {
        Ok(Arc::new(self.with(self.inner.create(name)?)))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        let bytes = self.inner.read(name)?;
        self.passed.read(bytes.len() as u64);
        Ok(bytes)
    }

    fn read_range(&self, name: &str, offset: u64, len: u64) -> Result<Vec<u8>> {
        let bytes = self.inner.read_range(name, offset, len)?;
        self.passed.read(bytes.len() as u64);
        Ok(bytes)
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        self.inner.list()
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.inner.remove(name)
    }

    fn sync_dir(&self) -> Result<()> {
        self.inner.sync_dir()
    }
}

impl LogFile for Counted<Arc<dyn LogFile>> {
    fn append(&self, bytes: &[u8]) -> Result<()> {
        self.passed.written(bytes.len());
        self.inner.append(bytes)
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.inner.truncate(len)
    }
}

impl TableStore for Counted<Arc<dyn TableStore>> {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        self.inner.lock()
    }

    fn create(&self, name: &str, expected_len: u64) -> Result<Box<dyn TableWriter>> {
        self.passed
            .expected
            .fetch_add(expected_len, Ordering::Relaxed);
        let writer = self.inner.create(name, expected_len)?;
        Ok(Box::new(self.with(writer)))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn TableFile>> {
        Ok(Arc::new(self.with(self.inner.open(name)?)))
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        self.inner.list()
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.inner.remove(name)
    }

    fn link(&self, name: &str, target: &Path) -> Result<()> {
        self.inner.link(name, target)
    }

    fn sync_dir(&self) -> Result<()> {
        self.inner.sync_dir()
    }
}

impl TableWriter for Counted<Box<dyn TableWriter>> {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.passed.written(bytes.len());
        self.inner.append(bytes)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.inner.finish()
    }

    fn finish_unsynced(self: Box<Self>) -> Result<()> {
        self.inner.finish_unsynced()
    }
}

impl TableFile for Counted<Arc<dyn TableFile>> {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read(&self, offset: u64, len: usize) -> Result<IoBuf> {
        let read = self.inner.read(offset, len)?;
        self.passed.read(read.device_bytes());
        Ok(read)
    }
}
