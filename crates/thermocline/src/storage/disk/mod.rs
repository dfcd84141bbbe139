//! Files of the operating system. Tables use direct I/O where the filesystem allows it, logs use
//! the page cache.

mod direct;
mod directory;
mod log;
mod open_files;
mod table;
mod writer;

use std::fs;
use std::io::ErrorKind::{DirectoryNotEmpty, NotFound};
use std::path::Path;

use self::direct::Detection;
use self::directory::Directory;
use self::log::DiskLogStore;
use self::table::DiskTableStore;
use super::{LogStore, Medium, TableStore};
use crate::error::{Error, Result};
use crate::sync::Arc;

/// Whether the file belongs to the directory itself and says nothing about what else is there: a
/// lock file, or the file that tests for direct I/O.
pub(crate) fn is_of_directory(name: &str) -> bool {
    [log::LOCK_FILE, table::LOCK_FILE, direct::PROBE_FILE].contains(&name)
}

/// Whether two paths lead to one directory: they are equal, or the filesystem says so. The
/// filesystem knows nothing of other media, nor of directories that do not exist yet.
pub(crate) fn is_one_dir(a: &Path, b: &Path) -> bool {
    let real = |dir: &Path| dir.canonicalize().ok();
    a == b || real(a).is_some_and(|a| real(b) == Some(a))
}

/// Directories of a local filesystem.
///
/// Tables are read and written around the page cache: the engine has a cache of its own, and a
/// second copy would halve the memory. On filesystems without direct I/O (some network ones, tmpfs
/// of older kernels) the page cache is used silently.
///
/// ```
/// use thermocline::storage::{Disk, Medium};
/// # let home = tempfile::tempdir().unwrap();
/// let tables = Disk::default().table_store(&home.path().join("fast"), true)?;
/// assert!(tables.list()?.is_empty());
/// # Ok::<(), thermocline::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Disk {
    direct_io: bool,
}

impl Default for Disk {
    fn default() -> Self {
        Self::new(true)
    }
}

impl Disk {
    /// Local files; `direct_io` says whether tables go around the page cache where the
    /// filesystem can.
    pub fn new(direct_io: bool) -> Self {
        Self { direct_io }
    }
}

impl Medium for Disk {
    fn log_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn LogStore>> {
        let directory = Directory::open(dir, create)?;
        Ok(Arc::new(DiskLogStore::new(directory)))
    }

    fn table_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn TableStore>> {
        let directory = Directory::open(dir, create)?;
        let direct = Detection::new(self.direct_io);
        Ok(Arc::new(DiskTableStore::new(directory, direct)))
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        match fs::remove_dir(dir) {
            Err(e) if !matches!(e.kind(), NotFound | DirectoryNotEmpty) => {
                Err(Error::io("remove directory", dir, e))
            }
            _ => Ok(()),
        }
    }
}

/// A failed sync: whatever the reason given, it is unknown what the device holds (I9).
fn sync_failed(path: &Path, source: &std::io::Error) -> Error {
    Error::Poisoned {
        cause: format!("sync of {} failed: {source}", path.display()).into(),
    }
}

/// A missing file is told apart, because callers expect it. Anything else is the system's error.
fn open_failed(operation: &'static str, path: &Path, source: std::io::Error) -> Error {
    match source.kind() {
        std::io::ErrorKind::NotFound => Error::NotFound {
            path: path.to_path_buf(),
        },
        _ => Error::io(operation, path, source),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_directory_is_known_by_all_of_its_names() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("dir");
        let [other, alias] = ["other", "alias"].map(|name| home.path().join(name));
        fs::create_dir(&dir).unwrap();
        fs::create_dir(&other).unwrap();
        symlink(&dir, &alias).unwrap();
        assert!(is_one_dir(&dir, &alias));
        assert!(is_one_dir(&dir, &other.join("../dir")));
        assert!(!is_one_dir(&dir, &other));
        let (missing, also) = (Path::new("/fast"), Path::new("/slow"));
        assert!(is_one_dir(missing, missing) && !is_one_dir(missing, also));
    }

    /// A file that cannot be synced: the null device cannot make anything durable.
    pub(super) fn unsyncable() -> File {
        File::options()
            .read(true)
            .write(true)
            .open("/dev/null")
            .unwrap()
    }
}
