//! Finished table files.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::direct::DirectIo;
use super::directory::Directory;
use super::writer::DiskTableWriter;
use super::{open_failed, sync_failed};
use crate::error::{Error, Result};
use crate::storage::buffer_pool::AlignedBuf;
use crate::storage::readers::read_overlapped;
use crate::storage::{FileInfo, IoBuf, ReadRequest, StoreLock, TableFile, TableStore, TableWriter};
use crate::sync::Arc;

/// Not the log store's lock: one database takes both in its fast directory.
pub(super) const LOCK_FILE: &str = "LOCK-TABLES";

/// The tables of a directory.
#[derive(Debug)]
pub(super) struct DiskTableStore {
    directory: Arc<Directory>,
    direct: DirectIo,
}

/// An open table.
#[derive(Debug)]
struct DiskTable {
    path: PathBuf,
    file: File,
    len: u64,
    /// What offsets and lengths of reads are multiples of; 1 without direct I/O.
    block: usize,
}

impl DiskTableStore {
    pub(super) fn new(directory: Directory, direct: DirectIo) -> Self {
        Self {
            directory: Arc::new(directory),
            direct,
        }
    }
}

impl TableStore for DiskTableStore {
    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        self.directory.lock(LOCK_FILE)
    }

    fn create(&self, name: &str, expected_len: u64) -> Result<Box<dyn TableWriter>> {
        let writer = DiskTableWriter::create(&self.directory, name, expected_len, self.direct)?;
        Ok(Box::new(writer))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn TableFile>> {
        let path = self.directory.file(name);
        let file = self
            .direct
            .apply(File::options().read(true))
            .open(&path)
            .map_err(|e| open_failed("open", &path, e))?;
        let len = file
            .metadata()
            .map_err(|e| Error::io("inspect", &path, e))?
            .len();
        let block = self.direct.read_block();
        Ok(Arc::new(DiskTable {
            path,
            file,
            len,
            block,
        }))
    }

    fn read_many(&self, requests: &[ReadRequest]) -> Vec<Result<IoBuf>> {
        read_overlapped(requests)
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        self.directory.list()
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.directory.remove(name)
    }

    fn link(&self, name: &str, target: &Path) -> Result<()> {
        let from = self.directory.file(name);
        let to = target.join(name);
        match fs::hard_link(&from, &to) {
            Ok(()) => Ok(()),
            // Another filesystem, one without links, or one whose rules forbid them here.
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::CrossesDevices
                        | ErrorKind::PermissionDenied
                        | ErrorKind::Unsupported
                        | ErrorKind::TooManyLinks
                ) =>
            {
                copy_durably(&from, &to)
            }
            Err(e) => Err(Error::io("link", &from, e)),
        }
    }

    fn sync_dir(&self) -> Result<()> {
        self.directory.sync()
    }
}

fn temporary(to: &Path) -> PathBuf {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    to.with_file_name(name)
}

/// Copies a file to a name that must be free; the copy's content is durable on return. It has that name only then: half a
/// copy must not be taken for a table.
fn copy_durably(from: &Path, to: &Path) -> Result<()> {
    let mut source = File::open(from).map_err(|e| open_failed("open", from, e))?;
    match fs::symlink_metadata(to) {
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(Error::io("inspect", to, e)),
        Ok(_) => return Err(Error::io("create", to, ErrorKind::AlreadyExists.into())),
    }
    let begun = temporary(to);
    let mut copy = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&begun)
        .map_err(|e| Error::io("create", &begun, e))?;
    let copied = io::copy(&mut source, &mut copy)
        .map_err(|e| Error::io("copy to", &begun, e))
        .and_then(|_| copy.sync_data().map_err(|e| sync_failed(&begun, &e)))
        .and_then(|()| fs::rename(&begun, to).map_err(|e| Error::io("rename", &begun, e)));
    if copied.is_err() {
        // The first error is the one that counts.
        let _ = fs::remove_file(&begun);
    }
    copied
}

impl DiskTable {
    /// The range ends past the file: a handle to it came from damaged bytes, or the file was
    /// cut behind our back.
    fn past_the_end(&self, offset: u64, len: usize, file_len: u64) -> Error {
        let what = format!("the file has {file_len} bytes, too few for {len} bytes read here");
        Error::corruption(&self.path, offset, what)
    }
}

impl TableFile for DiskTable {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, offset: u64, len: usize) -> Result<IoBuf> {
        let Some(end) = offset
            .checked_add(len as u64)
            .filter(|end| *end <= self.len)
        else {
            return Err(self.past_the_end(offset, len, self.len));
        };
        let block = self.block as u64;
        let first = offset - offset % block;
        let whole = (end.next_multiple_of(block) - first) as usize;
        let skipped = (offset - first) as usize;
        let mut memory = AlignedBuf::take(whole);
        // At the end of the file the system returns less than whole blocks.
        let needed = skipped + len;
        let mut filled = 0;
        while filled < needed {
            match self
                .file
                .read_at(&mut memory[filled..whole], first + filled as u64)
            {
                Ok(0) => return Err(self.past_the_end(offset, len, first + filled as u64)),
                Ok(read) => filled += read,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io("read", &self.path, e)),
            }
            // A direct read that stops inside a block has met the end of the file, and could
            // not go on from there.
            if filled < needed && !filled.is_multiple_of(self.block) {
                return Err(self.past_the_end(offset, len, first + filled as u64));
            }
        }
        Ok(IoBuf::window(memory, skipped, len, whole as u64))
    }

    fn waits_for_a_device(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Disk, Medium};
    use proptest::prelude::*;

    fn table(direct: bool, bytes: &[u8]) -> (tempfile::TempDir, Arc<dyn TableFile>) {
        let home = tempfile::tempdir().unwrap();
        let store = Disk::new(direct).table_store(home.path(), true).unwrap();
        write(&*store, "1.sst", bytes);
        let file = store.open("1.sst").unwrap();
        (home, file)
    }

    fn write(store: &dyn TableStore, name: &str, bytes: &[u8]) {
        let mut writer = store.create(name, bytes.len() as u64).unwrap();
        writer.append(bytes).unwrap();
        writer.finish().unwrap();
    }

    fn pattern(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i % 251) as u8).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn any_range_inside_is_read_and_any_other_is_damage(
            len in 1usize..20_000,
            ranges in proptest::collection::vec((0u64..25_000, 0usize..25_000), 20),
            direct in any::<bool>(),
        ) {
            let bytes = pattern(len);
            let (_home, file) = table(direct, &bytes);
            prop_assert_eq!(file.len(), len as u64);
            for (offset, len) in ranges {
                let expected = bytes.get(offset as usize..offset as usize + len);
                match (file.read(offset, len), expected) {
                    (Ok(read), Some(expected)) => {
                        prop_assert_eq!(&read[..], expected);
                        prop_assert!(read.device_bytes() >= len as u64);
                        prop_assert!(read.device_bytes() <= len as u64 + 2 * 4096);
                    }
                    (Err(error), None) => prop_assert!(error.is_corruption()),
                    (result, _) => prop_assert!(false, "{result:?} at {offset}+{len}"),
                }
            }
        }
    }

    #[test]
    fn the_last_byte_and_absurd_ranges() {
        let bytes = pattern(5000);
        let (_home, file) = table(true, &bytes);
        assert_eq!(file.read(4999, 1).unwrap()[..], bytes[4999..]);
        assert!(file.read(5000, 0).unwrap().is_empty());
        for (offset, len) in [(u64::MAX, 1), (0, usize::MAX), (4999, 2)] {
            assert!(file.read(offset, len).unwrap_err().is_corruption());
        }
    }

    #[test]
    fn a_file_cut_after_it_was_opened_is_damage() {
        for direct in [true, false] {
            let (_home, file) = table(direct, &pattern(9000));
            let cut = File::options().write(true).open(file.path()).unwrap();
            cut.set_len(4100).unwrap();
            for offset in [4096, 8192] {
                let error = file.read(offset, 500).unwrap_err();
                assert!(error.is_corruption(), "{error}");
            }
        }
    }

    #[test]
    fn many_ranges_come_in_order_with_their_own_errors() {
        let bytes = pattern(100_000);
        let (home, file) = table(true, &bytes);
        let store = Disk::default().table_store(home.path(), false).unwrap();
        let requests: Vec<_> = (0..40)
            .map(|i| ReadRequest {
                file: Arc::clone(&file),
                offset: i * 2_600,
                len: 777,
            })
            .collect();
        let results = store.read_many(&requests);
        assert_eq!(results.len(), requests.len());
        for (request, result) in requests.iter().zip(results) {
            let start = request.offset as usize;
            match bytes.get(start..start + request.len) {
                Some(expected) => assert_eq!(&result.unwrap()[..], expected),
                None => assert!(result.unwrap_err().is_corruption()),
            }
        }
    }

    #[test]
    fn a_link_is_a_second_name_and_needs_a_free_one() {
        let home = tempfile::tempdir().unwrap();
        let disk = Disk::default();
        let store = disk.table_store(&home.path().join("a"), true).unwrap();
        let target = disk.table_store(&home.path().join("b"), true).unwrap();
        write(&*store, "1.sst", b"content");
        store.link("1.sst", target.path()).unwrap();
        target.sync_dir().unwrap();
        assert!(matches!(
            store.link("1.sst", target.path()),
            Err(Error::Io { .. })
        ));
        store.remove("1.sst").unwrap();
        assert!(matches!(store.open("1.sst"), Err(Error::NotFound { .. })));
        let linked = target.open("1.sst").unwrap();
        assert_eq!(&linked.read(0, 7).unwrap()[..], b"content");
    }

    #[test]
    fn where_no_link_can_be_a_copy_is_made() {
        let home = tempfile::tempdir().unwrap();
        let (from, to) = (home.path().join("from"), home.path().join("to"));
        fs::write(&from, b"content").unwrap();
        copy_durably(&from, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"content");
        fs::write(&to, b"other").unwrap();
        assert!(matches!(copy_durably(&from, &to), Err(Error::Io { .. })));
        assert_eq!(fs::read(&to).unwrap(), b"other", "an existing file is kept");
    }

    /// Nothing told whether a copy is synced before it has its name, nor that it is final when that fails (I4, I9).
    #[test]
    fn a_copy_that_cannot_be_synced_is_an_error_for_good() {
        let home = tempfile::tempdir().unwrap();
        let (from, to) = (home.path().join("from"), home.path().join("to"));
        fs::write(&from, b"content").unwrap();
        // What is copied goes to a device that has nothing to sync.
        std::os::unix::fs::symlink("/dev/null", temporary(&to)).unwrap();
        let failed = copy_durably(&from, &to);
        assert!(matches!(failed, Err(Error::Poisoned { .. })), "{failed:?}");
        assert!(!to.exists());
    }

    /// A process that was killed while it copied left half a copy under the name of the whole: the next repair took it for what it
    /// had set aside, and removed the original.
    #[test]
    fn a_copy_has_its_name_when_it_is_whole() {
        let home = tempfile::tempdir().unwrap();
        let (from, to) = (home.path().join("from"), home.path().join("to"));
        let made = std::process::Command::new("mkfifo").arg(&from).status();
        if !made.is_ok_and(|made| made.success()) {
            return;
        }
        // More than a pipe holds: once it is written, some of it has been copied.
        let half = pattern(1 << 20);
        let copied = std::thread::scope(|scope| {
            let copying = scope.spawn(|| copy_durably(&from, &to));
            let mut pipe = File::options().write(true).open(&from).unwrap();
            io::Write::write_all(&mut pipe, &half).unwrap();
            let is_named = to.exists();
            io::Write::write_all(&mut pipe, &half).unwrap();
            drop(pipe);
            copying.join().unwrap().unwrap();
            assert!(!is_named, "half of it is there");
            fs::read(&to).unwrap()
        });
        assert!(copied == [&half[..], &half[..]].concat());
        fs::remove_file(&to).unwrap();
        // What is left of a copy that was cut short is in nobody's way.
        fs::write(from.with_extension("whole"), b"whole").unwrap();
        fs::write(temporary(&to), b"ha").unwrap();
        copy_durably(&from.with_extension("whole"), &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"whole");
        assert!(!temporary(&to).exists());
    }

    #[test]
    fn tables_are_linked_across_filesystems_by_copy() {
        // Memory filesystem against disk: two devices, and one without direct I/O.
        let Ok(other) = tempfile::tempdir_in("/dev/shm") else {
            return;
        };
        let home = tempfile::tempdir().unwrap();
        let disk = Disk::default();
        let store = disk.table_store(home.path(), true).unwrap();
        let target = disk.table_store(other.path(), true).unwrap();
        write(&*store, "1.sst", &pattern(5000));
        store.link("1.sst", target.path()).unwrap();
        let linked = target.open("1.sst").unwrap();
        assert_eq!(linked.read(0, 5000).unwrap()[..], pattern(5000)[..]);
    }
}
