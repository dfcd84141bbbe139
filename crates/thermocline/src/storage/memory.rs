//! A file system in memory.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::{self, Debug, Formatter};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::{
    FileInfo, IoBuf, LogFile, LogStore, Medium, StoreLock, TableFile, TableStore, TableWriter, part,
};
use crate::error::{Error, Result};
use crate::sync::{Arc, Mutex};

/// Directories in memory. All clones of this handle share them, and they go away with the last
/// clone. For tests, and for stores that need not outlive the process.
///
/// ```
/// use std::path::Path;
/// use thermocline::storage::{Medium, Memory};
/// let memory = Memory::new();
/// let logs = memory.log_store(Path::new("fast"), true)?;
/// logs.create("1.wal")?.append(b"record")?;
/// assert_eq!(memory.clone().log_store(Path::new("fast"), false)?.read("1.wal")?, b"record");
/// # Ok::<(), thermocline::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Memory {
    files: Arc<Mutex<Files>>,
}

/// A file's content. Readers of a table take the inner reference and read without the lock. An open
/// handle keeps the content of a file that was removed.
type Content = Arc<Mutex<Arc<Vec<u8>>>>;

#[derive(Default)]
struct Files {
    directories: HashMap<PathBuf, BTreeMap<String, Content>>,
    locked: HashSet<(PathBuf, Kind)>,
}

/// One of a directory's two stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Log,
    Table,
}

#[derive(Debug)]
struct MemoryStore {
    memory: Memory,
    dir: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
struct MemoryLock {
    memory: Memory,
    key: (PathBuf, Kind),
}

struct MemoryLog {
    path: PathBuf,
    content: Content,
}

struct MemoryTable {
    path: PathBuf,
    bytes: Arc<Vec<u8>>,
}

struct MemoryWriter {
    memory: Memory,
    dir: PathBuf,
    name: String,
    bytes: Vec<u8>,
}

/// Prints no content, which belongs to the users.
impl Debug for Memory {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

impl Debug for MemoryLog {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLog")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Debug for MemoryTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTable")
            .field("path", &self.path)
            .field("len", &self.bytes.len())
            .finish()
    }
}

impl Debug for MemoryWriter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryWriter")
            .field("path", &self.dir.join(&self.name))
            .field("len", &self.bytes.len())
            .finish()
    }
}

impl Memory {
    /// An empty file system.
    pub fn new() -> Self {
        Self::default()
    }

    fn store(&self, dir: &Path, create: bool, kind: Kind) -> Result<MemoryStore> {
        let mut files = self.files.lock();
        if !files.directories.contains_key(dir) {
            if !create {
                let path = dir.to_path_buf();
                return Err(Error::NotFound { path });
            }
            files
                .directories
                .insert(dir.to_path_buf(), BTreeMap::default());
        }
        Ok(MemoryStore {
            memory: self.clone(),
            dir: dir.to_path_buf(),
            kind,
        })
    }
}

impl Medium for Memory {
    fn log_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn LogStore>> {
        Ok(Arc::new(self.store(dir, create, Kind::Log)?))
    }

    fn table_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn TableStore>> {
        Ok(Arc::new(self.store(dir, create, Kind::Table)?))
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        let mut files = self.files.lock();
        if files.directories.get(dir).is_some_and(BTreeMap::is_empty) {
            files.directories.remove(dir);
        }
        Ok(())
    }
}

impl Files {
    fn find(&self, dir: &Path, name: &str) -> Option<&Content> {
        self.directories.get(dir)?.get(name)
    }

    /// Enters a file under a name that must not be taken.
    fn enter_new(
        &mut self,
        operation: &'static str,
        dir: &Path,
        name: &str,
        content: Content,
    ) -> Result<()> {
        let failed = |kind: ErrorKind| Error::io(operation, dir.join(name), io::Error::from(kind));
        let entries = self
            .directories
            .get_mut(dir)
            .ok_or_else(|| failed(ErrorKind::NotFound))?;
        if entries.contains_key(name) {
            return Err(failed(ErrorKind::AlreadyExists));
        }
        entries.insert(name.to_owned(), content);
        Ok(())
    }
}

impl MemoryStore {
    fn take_lock(&self) -> Result<Box<dyn StoreLock>> {
        let key = (self.dir.clone(), self.kind);
        if !self.memory.files.lock().locked.insert(key.clone()) {
            let path = self.dir.clone();
            return Err(Error::Locked { path });
        }
        Ok(Box::new(MemoryLock {
            memory: self.memory.clone(),
            key,
        }))
    }

    fn content(&self, name: &str) -> Result<Arc<Vec<u8>>> {
        let files = self.memory.files.lock();
        match files.find(&self.dir, name) {
            Some(content) => Ok(Arc::clone(&content.lock())),
            None => Err(Error::NotFound {
                path: self.dir.join(name),
            }),
        }
    }

    fn list_files(&self) -> Vec<FileInfo> {
        let files = self.memory.files.lock();
        let entries = files.directories.get(&self.dir).into_iter().flatten();
        entries
            .map(|(name, content)| FileInfo {
                name: name.clone(),
                len: content.lock().len() as u64,
            })
            .collect()
    }

    fn remove_file(&self, name: &str) {
        let mut files = self.memory.files.lock();
        if let Some(entries) = files.directories.get_mut(&self.dir) {
            entries.remove(name);
        }
    }
}

impl LogStore for MemoryStore {
    fn path(&self) -> &Path {
        &self.dir
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        self.take_lock()
    }

    fn create(&self, name: &str) -> Result<Arc<dyn LogFile>> {
        let mut files = self.memory.files.lock();
        let entries = files.directories.entry(self.dir.clone()).or_default();
        let content = Arc::clone(entries.entry(name.to_owned()).or_default());
        *content.lock() = Arc::default();
        Ok(Arc::new(MemoryLog {
            path: self.dir.join(name),
            content,
        }))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        Ok(self.content(name)?.to_vec())
    }

    fn read_range(&self, name: &str, offset: u64, len: u64) -> Result<Vec<u8>> {
        Ok(part(&self.content(name)?, offset, len).to_vec())
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        Ok(self.list_files())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut files = self.memory.files.lock();
        let entries = files.directories.entry(self.dir.clone()).or_default();
        let Some(content) = entries.remove(from) else {
            let cause = io::Error::from(ErrorKind::NotFound);
            return Err(Error::io("rename", self.dir.join(from), cause));
        };
        entries.insert(to.to_owned(), content);
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.remove_file(name);
        Ok(())
    }

    fn sync_dir(&self) -> Result<()> {
        Ok(())
    }
}

impl TableStore for MemoryStore {
    fn path(&self) -> &Path {
        &self.dir
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        self.take_lock()
    }

    fn create(&self, name: &str, _expected_len: u64) -> Result<Box<dyn TableWriter>> {
        Ok(Box::new(MemoryWriter {
            memory: self.memory.clone(),
            dir: self.dir.clone(),
            name: name.to_owned(),
            bytes: Vec::new(),
        }))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn TableFile>> {
        Ok(Arc::new(MemoryTable {
            bytes: self.content(name)?,
            path: self.dir.join(name),
        }))
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        Ok(self.list_files())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.remove_file(name);
        Ok(())
    }

    fn link(&self, name: &str, target: &Path) -> Result<()> {
        let mut files = self.memory.files.lock();
        let Some(content) = files.find(&self.dir, name).cloned() else {
            let path = self.dir.join(name);
            return Err(Error::NotFound { path });
        };
        files.enter_new("link", target, name, content)
    }

    fn sync_dir(&self) -> Result<()> {
        Ok(())
    }
}

impl StoreLock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.memory.files.lock().locked.remove(&self.key);
    }
}

impl LogFile for MemoryLog {
    fn append(&self, bytes: &[u8]) -> Result<()> {
        Arc::make_mut(&mut self.content.lock()).extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn truncate(&self, len: u64) -> Result<()> {
        let len = usize::try_from(len).map_err(|_| {
            let cause = io::Error::from(ErrorKind::FileTooLarge);
            Error::io("truncate", &self.path, cause)
        })?;
        Arc::make_mut(&mut self.content.lock()).resize(len, 0);
        Ok(())
    }
}

impl TableWriter for MemoryWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let this = *self;
        let content = Arc::new(Mutex::new(Arc::new(this.bytes)));
        let mut files = this.memory.files.lock();
        files.enter_new("create", &this.dir, &this.name, content)
    }

    fn finish_unsynced(self: Box<Self>) -> Result<()> {
        self.finish()
    }
}

impl TableFile for MemoryTable {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, offset: u64, len: usize) -> Result<IoBuf> {
        match range(&self.bytes, offset, len) {
            Some(bytes) => Ok(IoBuf::copy_from(bytes)),
            None => Err(past_the_end(&self.path, offset, len, self.len())),
        }
    }
}

/// The part of `bytes` that a read asks for, if all of it is there.
pub(super) fn range(bytes: &[u8], offset: u64, len: usize) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    bytes.get(start..start.checked_add(len)?)
}

/// The error of a read whose range ends past the file's end.
pub(super) fn past_the_end(path: &Path, offset: u64, len: usize, file_len: u64) -> Error {
    let what = format!("the file has {file_len} bytes, too few for {len} bytes read here");
    Error::corruption(path, offset, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIR: &str = "/fast";

    fn tables(memory: &Memory) -> Arc<dyn TableStore> {
        memory.table_store(Path::new(DIR), true).unwrap()
    }

    fn logs(memory: &Memory) -> Arc<dyn LogStore> {
        memory.log_store(Path::new(DIR), true).unwrap()
    }

    fn write(store: &dyn TableStore, name: &str, bytes: &[u8]) {
        let mut writer = store.create(name, 0).unwrap();
        writer.append(bytes).unwrap();
        writer.finish().unwrap();
    }

    #[test]
    fn a_directory_must_be_created_first() {
        let memory = Memory::new();
        let missing = memory.log_store(Path::new(DIR), false).unwrap_err();
        assert!(matches!(missing, Error::NotFound { .. }));
        tables(&memory);
        memory.clone().log_store(Path::new(DIR), false).unwrap();
    }

    #[test]
    fn a_log_is_appended_to_truncated_renamed_and_emptied() {
        let memory = Memory::new();
        let store = logs(&memory);
        let log = store.create("1.wal").unwrap();
        log.append(b"abcdef").unwrap();
        log.truncate(2).unwrap();
        log.append(b"X").unwrap();
        store.create("2.wal").unwrap().append(b"gone").unwrap();
        store.rename("1.wal", "2.wal").unwrap();
        log.append(b"Y").unwrap();
        assert_eq!(store.read("2.wal").unwrap(), b"abXY");
        assert!(matches!(store.read("1.wal"), Err(Error::NotFound { .. })));
        assert!(matches!(store.rename("1.wal", "x"), Err(Error::Io { .. })));
        store.create("2.wal").unwrap();
        assert_eq!(store.read("2.wal").unwrap(), b"");
    }

    #[test]
    fn a_table_shows_only_when_finished_and_outlives_its_name() {
        let store = tables(&Memory::new());
        let mut writer = store.create("1.sst", 0).unwrap();
        writer.append(b"con").unwrap();
        assert!(store.list().unwrap().is_empty());
        writer.append(b"tent").unwrap();
        writer.finish().unwrap();
        let file = store.open("1.sst").unwrap();
        store.remove("1.sst").unwrap();
        store.remove("1.sst").unwrap();
        assert!(matches!(store.open("1.sst"), Err(Error::NotFound { .. })));
        assert_eq!(&file.read(3, 4).unwrap()[..], b"tent");
        for (offset, len) in [(4, 4), (u64::MAX, 1), (1, usize::MAX)] {
            assert!(file.read(offset, len).unwrap_err().is_corruption());
        }
    }

    #[test]
    fn a_table_is_never_overwritten() {
        let store = tables(&Memory::new());
        write(&*store, "1.sst", b"first");
        let second = store.create("1.sst", 0).unwrap();
        assert!(matches!(second.finish(), Err(Error::Io { .. })));
        assert_eq!(store.list().unwrap()[0].len, 5);
    }

    #[test]
    fn links_need_a_directory_and_a_free_name() {
        let memory = Memory::new();
        let store = tables(&memory);
        write(&*store, "1.sst", b"content");
        let target = Path::new("/checkpoint");
        assert!(matches!(store.link("1.sst", target), Err(Error::Io { .. })));
        let copy = memory.table_store(target, true).unwrap();
        store.link("1.sst", target).unwrap();
        assert!(matches!(store.link("1.sst", target), Err(Error::Io { .. })));
        store.remove("1.sst").unwrap();
        assert_eq!(copy.list().unwrap()[0].len, 7);
    }

    #[test]
    fn each_store_has_its_lock() {
        let memory = Memory::new();
        let held = logs(&memory).lock().unwrap();
        let _tables = tables(&memory).lock().unwrap();
        let refused = logs(&memory).lock().unwrap_err();
        assert!(matches!(refused, Error::Locked { path } if path == Path::new(DIR)));
        drop(held);
        logs(&memory).lock().unwrap();
    }
}
