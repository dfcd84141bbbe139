//! Tests of table files.

use proptest::prelude::*;

use super::*;
use crate::storage::{Disk, Medium};

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

/// No test told whether a copy is synced before it gets its name, and whether a failure to do so is
/// final (I4, I9).
#[test]
fn a_copy_that_cannot_be_synced_is_an_error_for_good() {
    let home = tempfile::tempdir().unwrap();
    let (from, to) = (home.path().join("from"), home.path().join("to"));
    fs::write(&from, b"content").unwrap();
    // The copy goes to a device that has nothing to sync.
    std::os::unix::fs::symlink("/dev/null", temporary(&to)).unwrap();
    let failed = copy_durably(&from, &to);
    assert!(matches!(failed, Err(Error::Poisoned { .. })), "{failed:?}");
    assert!(!to.exists());
}

/// A process that was killed while it copied left half a copy under the final name. The next repair
/// took that half for the copy that it had set aside, and removed the original.
#[test]
fn a_copy_has_its_name_when_it_is_whole() {
    let home = tempfile::tempdir().unwrap();
    let (from, to) = (home.path().join("from"), home.path().join("to"));
    let made = std::process::Command::new("mkfifo").arg(&from).status();
    if !made.is_ok_and(|made| made.success()) {
        return;
    }
    // More than a pipe holds: once all of it is in the pipe, some of it has been copied.
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
    // What is left of an interrupted copy does not hinder the next one.
    fs::write(from.with_extension("whole"), b"whole").unwrap();
    fs::write(temporary(&to), b"ha").unwrap();
    copy_durably(&from.with_extension("whole"), &to).unwrap();
    assert_eq!(fs::read(&to).unwrap(), b"whole");
    assert!(!temporary(&to).exists());
}

#[test]
fn tables_are_linked_across_filesystems_by_copy() {
    // A memory filesystem and a disk: two devices, one of them without direct I/O.
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

/// A store whose tables have at most `most` files open.
fn bounded(home: &Path, most: u64) -> DiskTableStore {
    DiskTableStore {
        directory: Arc::new(Directory::open(home, true).unwrap()),
        direct: Detection::new(false),
        open: Box::leak(Box::new(OpenFiles::new(most))),
    }
}

/// Each table kept its file open for as long as the table was in use. A store of a thousand tables
/// needed more open files than Linux allows a process by default, and its writes stopped.
#[test]
fn many_tables_are_read_with_few_files_open() {
    const TABLES: usize = 100;
    let home = tempfile::tempdir().unwrap();
    let store = bounded(home.path(), 16);
    let content = |number: usize| pattern(100 + number);
    let open = |number: usize| {
        let name = format!("{number}.sst");
        write(&store, &name, &content(number));
        store.open(&name).unwrap()
    };
    let tables: Vec<_> = (0..TABLES).map(open).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let tables = &tables;
            scope.spawn(move || {
                for read in 0..3 * TABLES {
                    let number = (thread + read * 37) % TABLES;
                    let file = &tables[number];
                    let len = file.len() as usize;
                    assert_eq!(file.read(0, len).unwrap()[..], content(number)[..]);
                }
            });
        }
    });
    let open = store.open.len();
    assert!((1..=16).contains(&open), "{open} files are open");
    drop(tables);
    assert_eq!(store.open.len(), 0, "of tables that nobody has any more");
}

/// A file that was closed to make room for others is found again by its name. A store that was
/// closed but still has readers may have lost its directory to another store by then.
#[test]
fn a_file_that_has_the_name_of_another_is_not_read() {
    let home = tempfile::tempdir().unwrap();
    let store = bounded(home.path(), 16);
    write(&store, "1.sst", b"content");
    let (first, second) = (store.open("1.sst").unwrap(), store.open("1.sst").unwrap());
    store.open.files_are_closed();
    assert_eq!(&first.read(0, 7).unwrap()[..], b"content");
    let path = home.path().join("1.sst");
    fs::rename(&path, home.path().join("aside")).unwrap();
    write(&store, "1.sst", b"another");
    assert_eq!(&first.read(0, 7).unwrap()[..], b"content", "it is open");
    let read = second.read(0, 7);
    assert!(read.is_err_and(|error| error.is_corruption()));
    fs::remove_file(&path).unwrap();
    let read = second.read(0, 7);
    assert!(read.is_err_and(|error| error.is_corruption()));
}
