//! The stores of a faulty disk, and their handles. Every call is counted and may be hit.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::files::{EntryChange, Inode, InodeRef, device_gone};
use super::plan::{Fault, Operation};
use super::{Faulty, State};
use crate::error::{Error, Result};
use crate::storage::memory::{past_the_end, range};
use crate::storage::{
    FileInfo, IoBuf, LogFile, LogStore, StoreLock, TableFile, TableStore, TableWriter,
};
use crate::sync::{Arc, Mutex, MutexGuard};

/// Which of a directory's two stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Log,
    Table,
}

/// Either store of a directory.
#[derive(Debug)]
pub(super) struct FaultyStore {
    disk: Faulty,
    dir: PathBuf,
    kind: Kind,
}

/// An open file.
#[derive(Debug, Clone)]
struct Handle {
    disk: Faulty,
    dir: PathBuf,
    name: String,
    path: PathBuf,
    file: InodeRef,
}

#[derive(Debug)]
struct FaultyWriter {
    handle: Handle,
    finished: bool,
}

#[derive(Debug)]
struct FaultyTable {
    handle: Handle,
    len: u64,
}

#[derive(Debug)]
struct FaultyLock {
    disk: Faulty,
    key: (PathBuf, Kind),
}

impl Faulty {
    /// Counts a call and takes the disk's state for it. `Err` when the device is gone; the
    /// fault that hits the call is left to the caller.
    fn begin(
        &self,
        operation: Operation,
        path: &Path,
        name: &str,
    ) -> Result<(MutexGuard<'_, State>, Option<Fault>)> {
        let mut state = self.state.lock();
        if state.gone {
            return Err(device_gone(operation.verb(), path));
        }
        let fault = state.plan.next(operation, name);
        Ok((state, fault))
    }

    /// As [`Faulty::begin`], for calls of which nothing is done when a fault hits.
    fn call(&self, operation: Operation, path: &Path, name: &str) -> Result<MutexGuard<'_, State>> {
        match self.begin(operation, path, name)? {
            (state, None) => Ok(state),
            (_, Some(fault)) => Err(fault.error(operation, path)),
        }
    }

    fn sync_directory(&self, dir: &Path) -> Result<()> {
        let (mut state, fault) = self.begin(Operation::SyncDir, dir, "")?;
        let directory = state.directory_or_new(dir);
        match fault {
            None => {
                directory.sync();
                Ok(())
            }
            Some(fault) => {
                directory.lose_unsynced();
                Err(fault.error(Operation::SyncDir, dir))
            }
        }
    }
}

impl FaultyStore {
    pub(super) fn new(disk: Faulty, dir: &Path, kind: Kind) -> Self {
        Self {
            disk,
            dir: dir.to_path_buf(),
            kind,
        }
    }

    fn call(&self, operation: Operation, name: &str) -> Result<MutexGuard<'_, State>> {
        self.disk.call(operation, &self.dir.join(name), name)
    }

    fn handle(&self, name: &str, file: InodeRef) -> Handle {
        Handle {
            disk: self.disk.clone(),
            dir: self.dir.clone(),
            name: name.to_owned(),
            path: self.dir.join(name),
            file,
        }
    }

    fn failed(&self, operation: Operation, name: &str, kind: ErrorKind) -> Error {
        Error::io(operation.verb(), self.dir.join(name), io::Error::from(kind))
    }

    fn take_lock(&self) -> Result<Box<dyn StoreLock>> {
        let mut state = self.disk.state.lock();
        if state.gone {
            return Err(device_gone("lock", &self.dir));
        }
        let key = (self.dir.clone(), self.kind);
        if state.locked.contains(&key) {
            let path = self.dir.clone();
            return Err(Error::Locked { path });
        }
        state.locked.push(key.clone());
        let disk = self.disk.clone();
        Ok(Box::new(FaultyLock { disk, key }))
    }

    fn list_files(&self) -> Result<Vec<FileInfo>> {
        drop(self.disk.call(Operation::List, &self.dir, "")?);
        Ok(self.disk.list_raw(&self.dir))
    }

    fn remove_file(&self, name: &str) -> Result<()> {
        let mut state = self.call(Operation::Remove, name)?;
        let directory = state.directory_or_new(&self.dir);
        if directory.find(name).is_some() {
            directory.change(EntryChange::Remove(name.to_owned()));
        }
        Ok(())
    }
}

impl LogStore for FaultyStore {
    fn path(&self) -> &Path {
        &self.dir
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        self.take_lock()
    }

    fn create(&self, name: &str) -> Result<Arc<dyn LogFile>> {
        let mut state = self.call(Operation::Create, name)?;
        let directory = state.directory_or_new(&self.dir);
        let file = match directory.find(name).cloned() {
            Some(file) => {
                file.lock().truncate(0);
                file
            }
            None => {
                let file = InodeRef::default();
                directory.change(EntryChange::Enter(name.to_owned(), Arc::clone(&file)));
                file
            }
        };
        Ok(Arc::new(self.handle(name, file)))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        let file = self.call(Operation::Read, name)?.file(&self.dir, name)?;
        let content = file.lock().cached.clone();
        Ok(content)
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        self.list_files()
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut state = self.call(Operation::Rename, from)?;
        let directory = state.directory_or_new(&self.dir);
        let Some(file) = directory.find(from).cloned() else {
            return Err(self.failed(Operation::Rename, from, ErrorKind::NotFound));
        };
        directory.change(EntryChange::Rename {
            from: from.to_owned(),
            to: to.to_owned(),
            file,
        });
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.remove_file(name)
    }

    fn sync_dir(&self) -> Result<()> {
        self.disk.sync_directory(&self.dir)
    }
}

impl TableStore for FaultyStore {
    fn path(&self) -> &Path {
        &self.dir
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        self.take_lock()
    }

    fn create(&self, name: &str, _expected_len: u64) -> Result<Box<dyn TableWriter>> {
        let mut state = self.call(Operation::Create, name)?;
        let directory = state.directory_or_new(&self.dir);
        if directory.find(name).is_some() {
            return Err(self.failed(Operation::Create, name, ErrorKind::AlreadyExists));
        }
        let file = Arc::new(Mutex::new(Inode::default()));
        directory.change(EntryChange::Enter(name.to_owned(), Arc::clone(&file)));
        Ok(Box::new(FaultyWriter {
            handle: self.handle(name, file),
            finished: false,
        }))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn TableFile>> {
        let file = self.call(Operation::Open, name)?.file(&self.dir, name)?;
        let len = file.lock().cached.len() as u64;
        let handle = self.handle(name, file);
        Ok(Arc::new(FaultyTable { handle, len }))
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        self.list_files()
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.remove_file(name)
    }

    fn link(&self, name: &str, target: &Path) -> Result<()> {
        let mut state = self.call(Operation::Link, name)?;
        let file = state.file(&self.dir, name)?;
        match state.directories.get_mut(target) {
            None => Err(self.failed(Operation::Link, name, ErrorKind::NotFound)),
            Some(directory) if directory.find(name).is_some() => {
                Err(self.failed(Operation::Link, name, ErrorKind::AlreadyExists))
            }
            Some(directory) => {
                directory.change(EntryChange::Enter(name.to_owned(), file));
                Ok(())
            }
        }
    }

    fn sync_dir(&self) -> Result<()> {
        self.disk.sync_directory(&self.dir)
    }
}

impl StoreLock for FaultyLock {}

impl Drop for FaultyLock {
    fn drop(&mut self) {
        self.disk.state.lock().locked.retain(|key| *key != self.key);
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

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.handle.sync_file()?;
        self.handle.disk.sync_directory(&self.handle.dir)?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for FaultyWriter {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        // No call that anyone could see fail, so it is neither counted nor hit.
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
        drop(disk.call(Operation::Read, path, name)?);
        let file = file.lock();
        match range(&file.cached, offset, len) {
            Some(bytes) => Ok(IoBuf::copy_from(bytes)),
            None => Err(past_the_end(path, offset, len, file.cached.len() as u64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{CrashStyle, Medium};

    fn dir() -> &'static Path {
        Path::new("/fast")
    }

    fn logs(disk: &Faulty) -> Arc<dyn LogStore> {
        disk.log_store(dir(), true).unwrap()
    }

    fn tables(disk: &Faulty) -> Arc<dyn TableStore> {
        disk.table_store(dir(), true).unwrap()
    }

    fn write(store: &dyn TableStore, name: &str, bytes: &[u8]) -> Result<()> {
        let mut writer = store.create(name, 0)?;
        writer.append(bytes)?;
        writer.finish()
    }

    #[test]
    fn behaves_like_a_disk_when_nothing_is_planned() {
        let disk = Faulty::new(1);
        assert!(matches!(
            disk.log_store(dir(), false),
            Err(Error::NotFound { .. })
        ));
        let store = logs(&disk);
        let log = store.create("1.wal").unwrap();
        log.append(b"abcdef").unwrap();
        log.truncate(2).unwrap();
        log.append(b"X").unwrap();
        store.rename("1.wal", "2.wal").unwrap();
        assert_eq!(store.read("2.wal").unwrap(), b"abX");
        assert!(matches!(store.read("1.wal"), Err(Error::NotFound { .. })));
        store.remove("2.wal").unwrap();
        store.remove("2.wal").unwrap();
        assert!(store.list().unwrap().is_empty());

        let store = tables(&disk);
        write(&*store, "1.sst", b"content").unwrap();
        assert!(matches!(
            write(&*store, "1.sst", b""),
            Err(Error::Io { .. })
        ));
        let file = store.open("1.sst").unwrap();
        store.remove("1.sst").unwrap();
        assert_eq!(&file.read(3, 4).unwrap()[..], b"tent");
        assert!(file.read(4, 4).unwrap_err().is_corruption());
        drop(store.create("2.sst", 0).unwrap());
        assert!(store.list().unwrap().is_empty());
        assert_eq!(disk.triggered(), 0);
    }

    #[test]
    fn locks_exclude_per_store() {
        let disk = Faulty::new(1);
        let held = logs(&disk).lock().unwrap();
        let _tables = tables(&disk).lock().unwrap();
        assert!(matches!(logs(&disk).lock(), Err(Error::Locked { .. })));
        drop(held);
        logs(&disk).lock().unwrap();
    }

    #[test]
    fn a_finished_table_and_its_name_are_durable() {
        let disk = Faulty::new(1);
        write(&*tables(&disk), "1.sst", b"content").unwrap();
        let mut unfinished = tables(&disk).create("2.sst", 0).unwrap();
        unfinished.append(b"x").unwrap();
        let disk = disk.crash(CrashStyle::LoseAll);
        assert_eq!(disk.read_raw(dir(), "1.sst").unwrap(), b"content");
        assert_eq!(disk.list_raw(dir()).len(), 1);
    }

    #[test]
    fn links_share_the_content_and_need_the_target_synced() {
        let target = Path::new("/checkpoint");
        let disk = Faulty::new(1);
        let store = tables(&disk);
        write(&*store, "1.sst", b"content").unwrap();
        assert!(matches!(store.link("1.sst", target), Err(Error::Io { .. })));
        let copy = disk.table_store(target, true).unwrap();
        store.link("1.sst", target).unwrap();
        assert!(matches!(store.link("1.sst", target), Err(Error::Io { .. })));
        copy.sync_dir().unwrap();
        store.remove("1.sst").unwrap();
        store.sync_dir().unwrap();
        let disk = disk.crash(CrashStyle::LoseAll);
        assert_eq!(disk.read_raw(target, "1.sst").unwrap(), b"content");
        assert!(disk.list_raw(dir()).is_empty());
    }

    /// The behaviour behind I9: trying a failed sync again reports success and saves nothing.
    #[test]
    fn a_sync_after_a_failed_one_does_not_bring_the_bytes_back() {
        let disk = Faulty::new(1);
        let store = logs(&disk);
        let log = store.create("1.wal").unwrap();
        store.sync_dir().unwrap();
        log.append(b"AAAA").unwrap();
        disk.fail_nth(1, Fault::SyncFails);
        assert!(matches!(log.sync(), Err(Error::Poisoned { .. })));
        assert_eq!(store.read("1.wal").unwrap(), b"AAAA");
        log.append(b"BB").unwrap();
        log.sync().unwrap();
        assert_eq!(store.read("1.wal").unwrap(), b"AAAABB");
        let disk = disk.crash(CrashStyle::KeepAll);
        assert_eq!(disk.read_raw(dir(), "1.wal").unwrap(), b"\0\0\0\0BB");
    }

    #[test]
    fn a_name_that_a_failed_directory_sync_lost_stays_lost() {
        let disk = Faulty::new(1);
        let store = logs(&disk);
        store.create("1.wal").unwrap();
        disk.fail_nth(1, Fault::Io);
        assert!(matches!(store.sync_dir(), Err(Error::Poisoned { .. })));
        store.create("2.wal").unwrap();
        store.sync_dir().unwrap();
        assert_eq!(store.list().unwrap().len(), 2);
        let names = disk.crash(CrashStyle::KeepAll).list_raw(dir());
        assert_eq!(names.len(), 1);
        assert_eq!(names[0].name, "2.wal");
    }

    #[test]
    fn a_short_write_leaves_half() {
        let disk = Faulty::new(1);
        let store = logs(&disk);
        let log = store.create("1.wal").unwrap();
        disk.fail_nth(1, Fault::ShortWrite);
        assert!(matches!(log.append(b"12345678"), Err(Error::Io { .. })));
        assert_eq!(store.read("1.wal").unwrap(), b"1234");
        log.truncate(0).unwrap();
        log.append(b"again").unwrap();
        assert_eq!(store.read("1.wal").unwrap(), b"again");
    }

    #[test]
    fn every_call_of_a_script_can_be_failed_and_is_counted() {
        let script = |disk: &Faulty| -> Result<()> {
            let (log_store, store) = (logs(disk), tables(disk));
            let log = log_store.create("1.wal")?;
            log.append(b"record")?;
            log.truncate(3)?;
            log.sync()?;
            log_store.rename("1.wal", "2.wal")?;
            log_store.sync_dir()?;
            log_store.read("2.wal")?;
            log_store.list()?;
            write(&*store, "1.sst", b"content")?;
            store.open("1.sst")?.read(0, 1)?;
            disk.table_store(Path::new("/b"), true)?;
            store.link("1.sst", Path::new("/b"))?;
            store.remove("1.sst")?;
            Ok(())
        };
        let healthy = Faulty::new(1);
        script(&healthy).unwrap();
        assert_eq!(healthy.calls(), 16);
        for n in 1..=healthy.calls() {
            let disk = Faulty::new(1);
            disk.fail_nth(n, Fault::Io);
            assert!(script(&disk).is_err(), "call {n}");
            assert_eq!((disk.calls(), disk.triggered()), (n, 1));
        }
    }

    #[test]
    fn a_full_directory_takes_what_fits_until_its_capacity_is_raised() {
        let disk = Faulty::new(1);
        let (log_store, store) = (logs(&disk), tables(&disk));
        disk.capacity(dir(), 10);
        write(&*store, "1.sst", b"123456").unwrap();
        let log = log_store.create("1.wal").unwrap();
        assert!(log.append(b"abcdef").unwrap_err().is_no_space());
        assert_eq!(log_store.read("1.wal").unwrap(), b"abcd");
        log.truncate(0).unwrap();
        assert!(
            write(&*store, "2.sst", b"1234567")
                .unwrap_err()
                .is_no_space()
        );
        assert_eq!(store.list().unwrap().len(), 2, "the refused table is gone");
        store.remove("1.sst").unwrap();
        log.append(b"abcdef").unwrap();
        disk.capacity(dir(), 20);
        write(&*store, "2.sst", b"1234567").unwrap();
    }
}
