//! The stores of a throttled medium: each call waits for its turn, then goes to the store below.

use std::path::Path;
use std::time::Duration;

use super::device::Device;
use crate::error::Result;
use crate::storage::operation::{Gathered, MAX_OPERATION};
use crate::storage::readers::read_overlapped;
use crate::storage::{
    FileInfo, IoBuf, LogFile, LogStore, ReadRequest, StoreLock, TableFile, TableStore, TableWriter,
};
use crate::sync::{Arc, Mutex};

#[derive(Debug)]
pub(super) struct ThrottledLogStore {
    inner: Arc<dyn LogStore>,
    device: Arc<Device>,
}

#[derive(Debug)]
struct ThrottledLog {
    inner: Arc<dyn LogFile>,
    device: Arc<Device>,
    gathered: Mutex<Gathered>,
}

#[derive(Debug)]
pub(super) struct ThrottledTableStore {
    inner: Arc<dyn TableStore>,
    device: Arc<Device>,
}

#[derive(Debug)]
struct ThrottledWriter {
    inner: Box<dyn TableWriter>,
    device: Arc<Device>,
    gathered: Gathered,
    /// When the device will have done the operation under way. As on the disk, one operation is
    /// under way while the next is gathered.
    behind: Duration,
    /// Whether the device has taken in the last, partial operation.
    has_written_rest: bool,
}

#[derive(Debug)]
struct ThrottledTable {
    inner: Arc<dyn TableFile>,
    device: Arc<Device>,
}

impl ThrottledLogStore {
    pub(super) fn new(inner: Arc<dyn LogStore>, device: Arc<Device>) -> Self {
        Self { inner, device }
    }
}

impl ThrottledTableStore {
    pub(super) fn new(inner: Arc<dyn TableStore>, device: Arc<Device>) -> Self {
        Self { inner, device }
    }
}

impl LogStore for ThrottledLogStore {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn waits_for_a_device(&self) -> bool {
        self.inner.waits_for_a_device()
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        self.inner.lock()
    }

    fn create(&self, name: &str) -> Result<Arc<dyn LogFile>> {
        Ok(Arc::new(ThrottledLog {
            inner: self.inner.create(name)?,
            device: Arc::clone(&self.device),
            gathered: Mutex::default(),
        }))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        let bytes = self.inner.read(name)?;
        self.device.read(bytes.len() as u64);
        Ok(bytes)
    }

    fn read_range(&self, name: &str, offset: u64, len: u64) -> Result<Vec<u8>> {
        let bytes = self.inner.read_range(name, offset, len)?;
        self.device.read(bytes.len() as u64);
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
        self.device.write(0);
        self.inner.sync_dir()
    }
}

impl LogFile for ThrottledLog {
    fn append(&self, bytes: &[u8]) -> Result<()> {
        let whole = self.gathered.lock().add(bytes.len());
        if whole > 0 {
            self.device.write(whole);
        }
        self.inner.append(bytes)
    }

    fn sync(&self) -> Result<()> {
        let rest = self.gathered.lock().take();
        self.device.write(rest);
        self.inner.sync()
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.inner.truncate(len)
    }
}

impl TableStore for ThrottledTableStore {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        self.inner.lock()
    }

    fn create(&self, name: &str, expected_len: u64) -> Result<Box<dyn TableWriter>> {
        Ok(Box::new(ThrottledWriter {
            inner: self.inner.create(name, expected_len)?,
            device: Arc::clone(&self.device),
            gathered: Gathered::default(),
            behind: Duration::ZERO,
            has_written_rest: false,
        }))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn TableFile>> {
        Ok(Arc::new(ThrottledTable {
            inner: self.inner.open(name)?,
            device: Arc::clone(&self.device),
        }))
    }

    fn read_many(&self, requests: &[ReadRequest]) -> Vec<Result<IoBuf>> {
        read_overlapped(requests)
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
        self.device.write(0);
        self.inner.sync_dir()
    }
}

impl ThrottledWriter {
    fn write_rest(&mut self) {
        self.device.wait_until(self.behind);
        let rest = self.gathered.take();
        self.device.write(rest);
    }
}

impl TableWriter for ThrottledWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let whole = self.gathered.add(bytes.len());
        for _ in 0..whole / MAX_OPERATION {
            self.device.wait_until(self.behind);
            self.behind = self.device.begin_write(MAX_OPERATION);
        }
        self.inner.append(bytes)
    }

    fn sync_content(&mut self) -> Result<()> {
        self.write_rest();
        self.has_written_rest = true;
        self.inner.sync_content()
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if !self.has_written_rest {
            self.write_rest();
        }
        self.inner.finish()
    }

    fn finish_unsynced(mut self: Box<Self>) -> Result<()> {
        self.write_rest();
        self.inner.finish_unsynced()
    }
}

impl TableFile for ThrottledTable {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read(&self, offset: u64, len: usize) -> Result<IoBuf> {
        // A refused range costs nothing. A read is charged for what the device moved.
        let bytes = self.inner.read(offset, len)?;
        self.device.read(bytes.device_bytes());
        Ok(bytes)
    }

    fn waits_for_a_device(&self) -> bool {
        self.inner.waits_for_a_device()
    }
}
