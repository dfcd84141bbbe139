//! The stores of a faulty disk. Every call is counted and may be made to fail.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::files::{EntryChange, Inode, InodeRef, device_gone};
use super::handle::{FaultyTable, FaultyWriter, Handle};
use super::plan::Operation;
use super::{Faulty, State};
use crate::error::{Error, Result};
use crate::storage::{FileInfo, LogFile, LogStore, StoreLock, TableFile, TableStore, TableWriter};
use crate::sync::{Arc, Mutex, MutexGuard};

/// One of a directory's two stores.
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

#[derive(Debug)]
struct FaultyLock {
    disk: Faulty,
    key: (PathBuf, Kind),
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
        Ok(Box::new(FaultyWriter::new(self.handle(name, file))))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn TableFile>> {
        let file = self.call(Operation::Open, name)?.file(&self.dir, name)?;
        Ok(Arc::new(FaultyTable::new(self.handle(name, file))))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{CrashStyle, Fault, Medium};

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

    /// The behaviour behind I9: a sync that is tried again after a failure reports success and
    /// saves nothing.
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
