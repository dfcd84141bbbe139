//! Direct access to the platter for tests: past the cache, the faults and the locks.

use std::path::Path;

use super::Faulty;
use super::files::Inode;
use crate::error::{Error, Result};
use crate::storage::FileInfo;
use crate::sync::{Arc, Mutex};

impl Faulty {
    /// Flips the bits of `mask` in the byte at `offset`, in the cache and on the platter.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such file, [`Error::Corruption`] when it is too short.
    pub fn corrupt(&self, dir: &Path, name: &str, offset: u64, mask: u8) -> Result<()> {
        self.edit(dir, name, |content| {
            let len = content.len();
            match usize::try_from(offset)
                .ok()
                .and_then(|o| content.get_mut(o))
            {
                Some(byte) => {
                    *byte ^= mask;
                    Ok(())
                }
                None => {
                    let what = format!("the file has {len} bytes, none is here to corrupt");
                    Err(Error::corruption(dir.join(name), offset, what))
                }
            }
        })
    }

    /// The content of a file as a running process sees it.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such file.
    pub fn read_raw(&self, dir: &Path, name: &str) -> Result<Vec<u8>> {
        let file = self.state.lock().file(dir, name)?;
        let content = file.lock().cached.clone();
        Ok(content)
    }

    /// Puts `content` into a file; neither the file nor its directory need exist. Content and name
    /// are durable at once. Open handles see the new content.
    pub fn write_raw(&self, dir: &Path, name: &str, content: &[u8]) {
        let inode = Inode::durable(content.to_vec());
        let mut state = self.state.lock();
        match state.file(dir, name) {
            Ok(file) => *file.lock() = inode,
            Err(_) => state
                .directory_or_new(dir)
                .enter_durably(name, Arc::new(Mutex::new(inode))),
        }
    }

    /// Cuts a file to `len` bytes, or extends it with zeros, in the cache and on the platter.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such file.
    pub fn truncate_raw(&self, dir: &Path, name: &str, len: u64) -> Result<()> {
        self.edit(dir, name, |content| {
            content.resize(len as usize, 0);
            Ok(())
        })
    }

    /// The files of a directory, by name; none when there is no such directory.
    pub fn list_raw(&self, dir: &Path) -> Vec<FileInfo> {
        let state = self.state.lock();
        let entries = state.directories.get(dir).map(|d| d.entries());
        entries
            .into_iter()
            .flatten()
            .map(|(name, file)| FileInfo {
                name: name.clone(),
                len: file.lock().cached.len() as u64,
            })
            .collect()
    }

    /// Changes a file's content; the result is on the platter at once.
    fn edit(
        &self,
        dir: &Path,
        name: &str,
        change: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let file = self.state.lock().file(dir, name)?;
        let mut inode = file.lock();
        let mut content = inode.cached.clone();
        change(&mut content)?;
        *inode = Inode::durable(content);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{CrashStyle, Medium};

    #[test]
    fn what_is_written_past_the_cache_is_durable_and_seen_by_open_handles() {
        let dir = Path::new("/fast");
        let disk = Faulty::new(1);
        disk.write_raw(dir, "1.sst", b"content");
        let store = disk.table_store(dir, false).unwrap();
        let open = store.open("1.sst").unwrap();
        disk.corrupt(dir, "1.sst", 1, 0x20).unwrap();
        assert_eq!(&open.read(0, 7).unwrap()[..], b"cOntent");
        disk.truncate_raw(dir, "1.sst", 3).unwrap();
        assert!(open.read(0, 7).unwrap_err().is_corruption());
        let disk = disk.crash(CrashStyle::LoseAll);
        assert_eq!(disk.read_raw(dir, "1.sst").unwrap(), b"cOn");
        disk.write_raw(dir, "1.sst", b"new");
        assert_eq!(disk.read_raw(dir, "1.sst").unwrap(), b"new");
        let expected = FileInfo {
            name: "1.sst".into(),
            len: 3,
        };
        assert_eq!(disk.list_raw(dir), [expected]);
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let dir = Path::new("/fast");
        let disk = Faulty::new(1);
        assert!(disk.list_raw(dir).is_empty());
        disk.write_raw(dir, "f", b"ab");
        assert!(disk.corrupt(dir, "f", 2, 1).unwrap_err().is_corruption());
        for error in [
            disk.corrupt(dir, "g", 0, 1).unwrap_err(),
            disk.read_raw(dir, "g").unwrap_err(),
            disk.truncate_raw(dir, "g", 0).unwrap_err(),
        ] {
            assert!(matches!(error, Error::NotFound { .. }));
        }
    }
}
