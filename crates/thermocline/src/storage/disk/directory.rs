//! What the log store and the table store of one directory share.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::direct::PROBE_FILE;
use super::{open_failed, sync_failed};
use crate::error::{Error, Result};
use crate::storage::{FileInfo, StoreLock};

/// An open directory.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// Held open, so that a sync cannot fail for lack of a file descriptor (I9).
    handle: File,
}

/// An advisory lock on a file; the system releases it when the process dies.
#[derive(Debug)]
struct FileLock {
    file: File,
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the file is not enough. A child that another thread has just forked has the file
        // open until it runs its own program, and would hold the lock until then. A failure cannot
        // be reported to anybody, and then closing the file releases the lock after all.
        let _ = self.file.unlock();
    }
}

impl StoreLock for FileLock {}

impl Directory {
    pub(super) fn open(path: &Path, create: bool) -> Result<Self> {
        // The path is used to look up names for as long as the store is open, and a process may
        // change its working directory.
        let absolute = std::path::absolute(path).map_err(|e| Error::io("resolve", path, e))?;
        let path = &*absolute;
        if create {
            create_all(path, &mut sync_names)?;
        }
        let handle = File::open(path).map_err(|e| open_failed("open directory", path, e))?;
        let metadata = handle
            .metadata()
            .map_err(|e| Error::io("inspect", path, e))?;
        if !metadata.is_dir() {
            let cause = io::Error::from(io::ErrorKind::NotADirectory);
            return Err(Error::io("open directory", path, cause));
        }
        Ok(Self {
            path: path.to_path_buf(),
            handle,
        })
    }

    /// The directory `path`, except that its names cannot be synced.
    #[cfg(test)]
    pub(super) fn unsyncable(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            handle: super::tests::unsyncable(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Takes the lock that the file `name` stands for. The lock belongs to the open file, so two
    /// handles of one process exclude each other too.
    pub(super) fn lock(&self, name: &str) -> Result<Box<dyn StoreLock>> {
        let path = self.file(name);
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|e| self.not_made("open", name, e))?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(FileLock { file })),
            Err(TryLockError::WouldBlock) => Err(Error::Locked {
                path: self.path.clone(),
            }),
            Err(TryLockError::Error(e)) => Err(Error::io("lock", &path, e)),
        }
    }

    /// Why the file `name` could not be opened for writing or created. If the process may not write
    /// to the directory, the error says so: users do not know the file.
    pub(super) fn not_made(&self, operation: &'static str, name: &str, source: io::Error) -> Error {
        let path = self.file(name);
        let denied = match source.kind() {
            io::ErrorKind::ReadOnlyFilesystem => false,
            io::ErrorKind::PermissionDenied => true,
            _ => return Error::io(operation, path, source),
        };
        let path = match denied && path.exists() {
            true => path,
            false => self.path.clone(),
        };
        let owner = fs::metadata(&path).ok().map(|found| found.uid());
        Error::NotWritable {
            owner: owner.filter(|_| denied),
            path,
            source: source.into(),
        }
    }

    pub(super) fn list(&self) -> Result<Vec<FileInfo>> {
        let failed = |e| Error::io("list", &self.path, e);
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // All files of a store have names that are text.
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                // It was removed after it was listed.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(Error::io("inspect", entry.path(), e)),
            };
            if metadata.is_file() && name != PROBE_FILE {
                files.push(FileInfo {
                    name,
                    len: metadata.len(),
                });
            }
        }
        Ok(files)
    }

    pub(super) fn remove(&self, name: &str) -> Result<()> {
        let path = self.file(name);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", &path, e)),
            _ => Ok(()),
        }
    }

    pub(super) fn sync(&self) -> Result<()> {
        self.handle
            .sync_all()
            .map_err(|e| sync_failed(&self.path, &e))
    }
}

/// Creates `dir` and its missing parents. `sync` makes each of them durable in its own parent: a
/// store whose directory is gone after a loss of power would be no store (I4).
fn create_all(dir: &Path, sync: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
    let parent = match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if dir.is_dir() {
        return match is_empty(dir) {
            // It may have been created a moment ago: by a person, or by an attempt that was cut
            // short or whose sync failed.
            true => sync_of_others(parent, sync),
            false => Ok(()),
        };
    }
    create_all(parent, sync)?;
    match fs::create_dir(dir) {
        Ok(()) => {}
        // Another process was faster.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
        Err(e) => return Err(Error::io("create directory", dir, e)),
    }
    sync(parent)
}

/// Whether the directory is known to be empty.
fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none())
}

/// Syncs the names in `parent` as `sync` does, where `dir` may have been created by somebody else.
/// A process that may not read `parent` cannot sync it, and may still use what is in it.
fn sync_of_others(parent: &Path, sync: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
    let forbidden = io::ErrorKind::PermissionDenied;
    match sync(parent) {
        Err(Error::Io { source, .. }) if source.kind() == forbidden => Ok(()),
        synced => synced,
    }
}

/// Makes the names in the directory `dir` durable.
fn sync_names(dir: &Path) -> Result<()> {
    File::open(dir)
        .map_err(|e| Error::io("open directory", dir, e))?
        .sync_all()
        .map_err(|e| sync_failed(dir, &e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Disk, Medium};

    #[test]
    fn a_missing_directory_is_created_with_its_parents_or_not_found() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("a/b/c");
        let missing = Disk::default().log_store(&dir, false).unwrap_err();
        assert!(matches!(missing, Error::NotFound { path } if path == dir));
        assert!(!dir.exists());
        Disk::default().log_store(&dir, true).unwrap();
        assert!(dir.is_dir());
        Disk::default().table_store(&dir, false).unwrap();
    }

    /// A directory that existed was taken to be durable. But an earlier attempt may have created it
    /// and been cut short before it synced the parent. A store was then created in it, and was lost
    /// in a power failure with all that it had acknowledged (I9).
    #[test]
    fn a_directory_that_may_not_be_durable_is_made_so() {
        let home = tempfile::tempdir().unwrap();
        // Makes the directory itself count as durable.
        fs::write(home.path().join("others"), b"").unwrap();
        let (outer, inner) = (home.path().join("a"), home.path().join("a/b"));
        let synced = |dir: &Path| {
            let mut parents = Vec::new();
            let created = create_all(dir, &mut |parent| {
                parents.push(parent.to_path_buf());
                Ok(())
            });
            created.map(|()| parents)
        };
        let failed = create_all(&outer, &mut |parent| {
            let cause = format!("sync of {} failed", parent.display()).into();
            Err(Error::Poisoned { cause })
        });
        assert!(matches!(failed, Err(Error::Poisoned { .. })), "{failed:?}");
        assert_eq!(synced(&outer).unwrap(), [home.path()]);
        // The same holds when it is to be the parent of another.
        assert_eq!(synced(&inner).unwrap(), [home.path(), outer.as_path()]);
        assert_eq!(synced(&inner).unwrap(), [outer.as_path()]);
        // A directory that holds a file was synced by whoever put the file there.
        fs::write(inner.join("CURRENT"), b"").unwrap();
        assert!(synced(&inner).unwrap().is_empty());
        fs::create_dir(outer.join("c")).unwrap();
        let forbidden = create_all(&outer.join("c"), &mut |parent| {
            let denied = io::Error::from(io::ErrorKind::PermissionDenied);
            Err(Error::io("open directory", parent, denied))
        });
        forbidden.unwrap();
    }

    /// No test told whether names on a real disk are made durable, and whether a failure to do so
    /// is final (I4, I9).
    #[test]
    fn names_that_cannot_be_synced_are_an_error_for_good() {
        let of_a_store = Directory::unsyncable("/fast".as_ref()).sync();
        let of_a_parent = sync_names("/dev/null".as_ref());
        for failed in [of_a_store, of_a_parent] {
            assert!(matches!(failed, Err(Error::Poisoned { .. })), "{failed:?}");
        }
    }

    #[test]
    fn a_path_that_is_a_file_is_an_error_that_names_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        fs::write(&path, b"x").unwrap();
        let cases = [(&path, true), (&path, false), (&path.join("below"), true)];
        for (dir, create) in cases {
            let error = Disk::default().table_store(dir, create).unwrap_err();
            assert!(matches!(error, Error::Io { .. }), "{error}");
            assert!(
                error.to_string().contains(path.to_str().unwrap()),
                "{error}"
            );
        }
    }

    #[test]
    fn a_lock_excludes_another_handle_until_it_is_dropped() {
        let home = tempfile::tempdir().unwrap();
        let open = || Directory::open(home.path(), false).unwrap();
        let held = open().lock("LOCK").unwrap();
        let refused = open().lock("LOCK").unwrap_err();
        assert!(matches!(refused, Error::Locked { path } if path == home.path()));
        let _other = open().lock("LOCK-TABLES").unwrap();
        drop(held);
        open().lock("LOCK").unwrap();
    }

    /// For a store on a read-only mount, or one of another user, the error said that `LOCK` could
    /// not be opened: a file that users do not know.
    #[test]
    fn who_may_not_write_is_told_so_and_what_to_do() {
        let home = tempfile::tempdir().unwrap();
        let directory = Directory::open(home.path(), false).unwrap();
        let refused = |kind| directory.not_made("open", "LOCK", io::Error::from(kind));
        let owner = fs::metadata(home.path()).unwrap().uid();
        let named = home.path().display().to_string();
        let read_only = refused(io::ErrorKind::ReadOnlyFilesystem);
        assert!(
            matches!(&read_only, Error::NotWritable { owner: None, path, .. } if path == home.path())
        );
        let denied = refused(io::ErrorKind::PermissionDenied);
        let told = denied.to_string();
        assert!(told.contains(&format!("run as user {owner}")), "{told}");
        for (told, why) in [
            (read_only.to_string(), "read-only"),
            (told, "permission denied"),
        ] {
            assert!(told.contains(why) && told.contains(&named), "{told}");
            assert!(told.contains("copy") && !told.contains("LOCK"), "{told}");
        }
        fs::write(home.path().join("LOCK"), b"").unwrap();
        let read_only = refused(io::ErrorKind::ReadOnlyFilesystem).to_string();
        assert!(!read_only.contains("LOCK"), "{read_only}");
        let denied = refused(io::ErrorKind::PermissionDenied);
        assert!(
            denied.to_string().contains("LOCK"),
            "another user's: {denied}"
        );
        let other = refused(io::ErrorKind::IsADirectory);
        assert!(matches!(other, Error::Io { .. }), "{other}");
    }

    /// A directory in which not even root can make a file.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_directory_that_refuses_files_cannot_be_a_tier() {
        let path = Path::new("/sys/kernel");
        if !path.is_dir() {
            return;
        }
        let opened = crate::Db::open(crate::Options {
            create_if_missing: false,
            ..crate::Options::one_tier(path)
        });
        assert!(
            matches!(opened, Err(Error::NotWritable { .. })),
            "{opened:?}"
        );
        let slow = Disk::default().table_store(path, false);
        let locked = slow.and_then(|store| store.lock());
        assert!(
            matches!(locked, Err(Error::NotWritable { .. })),
            "{locked:?}"
        );
    }

    #[test]
    fn lists_files_only() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("checkpoint")).unwrap();
        fs::write(home.path().join("1.sst"), b"abc").unwrap();
        fs::write(home.path().join(PROBE_FILE), b"left by a crash").unwrap();
        let directory = Directory::open(home.path(), false).unwrap();
        let expected = FileInfo {
            name: "1.sst".into(),
            len: 3,
        };
        assert_eq!(directory.list().unwrap(), [expected]);
    }

    #[test]
    fn removing_what_is_not_there_is_no_error() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("1.sst"), b"abc").unwrap();
        let directory = Directory::open(home.path(), false).unwrap();
        directory.remove("1.sst").unwrap();
        directory.remove("1.sst").unwrap();
        assert!(directory.list().unwrap().is_empty());
    }
}
