//! A disk whose every call enters the trace: what was asked, with which bytes, and what came back.

use std::path::Path;
use std::sync::Arc;

use thermocline::Result;
use thermocline::storage::{
    Faulty, FileInfo, IoBuf, LogFile, LogStore, Medium, StoreLock, TableFile, TableStore,
    TableWriter,
};

use super::trace::Trace;

#[derive(Debug, Clone)]
pub(super) struct Traced {
    pub(super) disk: Faulty,
    pub(super) trace: Trace,
}

#[derive(Debug)]
struct Writer {
    trace: Trace,
    name: String,
    inner: Box<dyn TableWriter>,
}

#[derive(Debug)]
struct Log {
    trace: Trace,
    name: String,
    inner: Arc<dyn LogFile>,
}

#[derive(Debug)]
struct Table {
    trace: Trace,
    inner: Arc<dyn TableFile>,
}

#[derive(Debug)]
struct Logs {
    trace: Trace,
    inner: Arc<dyn LogStore>,
}

#[derive(Debug)]
struct Tables {
    trace: Trace,
    inner: Arc<dyn TableStore>,
}

fn none<T>(_: &T) -> Vec<u8> {
    Vec::new()
}

fn listed(files: &Vec<FileInfo>) -> Vec<u8> {
    format!("{files:?}").into_bytes()
}

impl Medium for Traced {
    fn log_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn LogStore>> {
        let inner = self.disk.log_store(dir, create);
        self.trace.answer("log store", &inner, none);
        let (trace, inner) = (self.trace.clone(), inner?);
        Ok(Arc::new(Logs { trace, inner }))
    }

    fn table_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn TableStore>> {
        let inner = self.disk.table_store(dir, create);
        self.trace.answer("table store", &inner, none);
        let (trace, inner) = (self.trace.clone(), inner?);
        Ok(Arc::new(Tables { trace, inner }))
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        let done = self.disk.remove_dir(dir);
        self.trace.outcome("remove directory", &done);
        done
    }
}

impl LogStore for Logs {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        let lock = self.inner.lock();
        self.trace.answer("lock log store", &lock, none);
        lock
    }

    fn create(&self, name: &str) -> Result<Arc<dyn LogFile>> {
        let inner = self.inner.create(name);
        self.trace.note(&[b"create log", name.as_bytes()]);
        self.trace.answer("create log", &inner, none);
        let (trace, inner) = (self.trace.clone(), inner?);
        let name = name.to_owned();
        Ok(Arc::new(Log { trace, name, inner }))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        let bytes = self.inner.read(name);
        self.trace.note(&[b"read log", name.as_bytes()]);
        self.trace.answer("read log", &bytes, Vec::clone);
        bytes
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        let files = self.inner.list();
        self.trace.answer("list logs", &files, listed);
        files
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let done = self.inner.rename(from, to);
        self.trace.note(&[from.as_bytes(), to.as_bytes()]);
        self.trace.outcome("rename", &done);
        done
    }

    fn remove(&self, name: &str) -> Result<()> {
        let done = self.inner.remove(name);
        self.trace.note(&[name.as_bytes()]);
        self.trace.outcome("remove log", &done);
        done
    }

    fn sync_dir(&self) -> Result<()> {
        let done = self.inner.sync_dir();
        self.trace.outcome("sync directory", &done);
        done
    }
}

impl LogFile for Log {
    fn append(&self, bytes: &[u8]) -> Result<()> {
        let done = self.inner.append(bytes);
        self.trace.note(&[self.name.as_bytes(), bytes]);
        self.trace.outcome("append to log", &done);
        done
    }

    fn sync(&self) -> Result<()> {
        let done = self.inner.sync();
        self.trace.note(&[self.name.as_bytes()]);
        self.trace.outcome("sync log", &done);
        done
    }

    fn truncate(&self, len: u64) -> Result<()> {
        let done = self.inner.truncate(len);
        self.trace.note(&[self.name.as_bytes(), &len.to_le_bytes()]);
        self.trace.outcome("truncate log", &done);
        done
    }
}

impl TableStore for Tables {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        let lock = self.inner.lock();
        self.trace.answer("lock table store", &lock, none);
        lock
    }

    fn create(&self, name: &str, expected_len: u64) -> Result<Box<dyn TableWriter>> {
        let inner = self.inner.create(name, expected_len);
        self.trace
            .note(&[name.as_bytes(), &expected_len.to_le_bytes()]);
        self.trace.answer("create table", &inner, none);
        Ok(Box::new(Writer {
            trace: self.trace.clone(),
            name: name.to_owned(),
            inner: inner?,
        }))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn TableFile>> {
        let inner = self.inner.open(name);
        self.trace.note(&[name.as_bytes()]);
        self.trace.answer("open table", &inner, none);
        let (trace, inner) = (self.trace.clone(), inner?);
        Ok(Arc::new(Table { trace, inner }))
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        let files = self.inner.list();
        self.trace.answer("list tables", &files, listed);
        files
    }

    fn remove(&self, name: &str) -> Result<()> {
        let done = self.inner.remove(name);
        self.trace.note(&[name.as_bytes()]);
        self.trace.outcome("remove table", &done);
        done
    }

    fn link(&self, name: &str, target: &Path) -> Result<()> {
        let done = self.inner.link(name, target);
        self.trace
            .note(&[name.as_bytes(), target.as_os_str().as_encoded_bytes()]);
        self.trace.outcome("link table", &done);
        done
    }

    fn sync_dir(&self) -> Result<()> {
        let done = self.inner.sync_dir();
        self.trace.outcome("sync directory", &done);
        done
    }
}

impl TableWriter for Writer {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let done = self.inner.append(bytes);
        self.trace.note(&[self.name.as_bytes(), bytes]);
        self.trace.outcome("append to table", &done);
        done
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let done = self.inner.finish();
        self.trace.note(&[self.name.as_bytes()]);
        self.trace.outcome("finish table", &done);
        done
    }

    fn finish_unsynced(self: Box<Self>) -> Result<()> {
        let done = self.inner.finish_unsynced();
        self.trace.note(&[self.name.as_bytes()]);
        self.trace.outcome("finish table unsynced", &done);
        done
    }
}

impl TableFile for Table {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read(&self, offset: u64, len: usize) -> Result<IoBuf> {
        let bytes = self.inner.read(offset, len);
        let path = self.path().as_os_str().as_encoded_bytes();
        self.trace
            .note(&[path, &offset.to_le_bytes(), &len.to_le_bytes()]);
        self.trace
            .answer("read table", &bytes, |bytes| bytes.to_vec());
        bytes
    }
}
