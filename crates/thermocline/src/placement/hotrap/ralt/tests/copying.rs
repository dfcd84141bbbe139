//! Copies of RALT, for checkpoints.

use super::*;
use crate::error::Error;
use crate::placement::hotrap::ralt::sizes::LEVEL0_TABLES;
use crate::sync::Mutex;

/// Makes a copy in a directory of its own, and opens it. Asserts that there was one.
fn copied(fixture: &Fixture, path: &Path) -> Fixture {
    let target = fixture.medium.log_store(path, true).unwrap();
    assert!(fixture.ralt.copy_to(&*target).unwrap());
    let (medium, options) = (Arc::clone(&fixture.medium), HotRapOptions::default());
    let copy = Fixture::open(RaltParts {
        path: path.to_owned(),
        ..parts(DATABASE, Some(PlacedBy::Hotness), medium, CAPACITY, options)
    });
    assert_eq!(copy.ralt.trouble(), None);
    copy
}

/// Each checkpoint left a table of level 0, and if checkpoints came before a buffer was full,
/// nothing ever merged these tables: at one every five minutes they were hundreds a day, and every
/// read asked all of them.
#[test]
fn what_copies_leave_in_level_0_is_merged() {
    let fixture = Fixture::new();
    for number in 0..50 {
        fixture.read(3, number, 200);
        let copy = copied(&fixture, &PathBuf::from(format!("copy{number}/ralt")));
        assert_eq!(copy.hot(3, 0..100).len() as u64, number + 1);
        if fixture.ralt.has_work() {
            fixture.work();
        }
        let waiting = fixture.ralt.shared.version.load().level(0).len();
        assert!(waiting <= LEVEL0_TABLES, "{waiting} after {number}");
    }
}

/// The work was kept waiting while tables were copied, so that none of them went. If it goes on, a
/// merge may replace tables before their files are in the copy.
#[test]
fn tables_that_are_merged_away_while_they_are_copied_are_in_the_copy_and_go_after_it() {
    let fixture = Fixture::new();
    for start in [0, 100] {
        (start..start + 100).for_each(|number| fixture.read(3, number, 10));
        fixture.flush();
    }
    let tables = || fixture.ralt.shared.version.load().tables().count();
    assert!(tables() > 1);
    let shared = Arc::clone(&fixture.ralt.shared);
    fixture.points.set("checkpoint.hotness_pinned", move || {
        let files = shared.files.as_ref().unwrap();
        shared.begin_full_merge(files, &mut shared.worker.lock());
        while shared.work() {}
        Ok(())
    });
    let copy = copied(&fixture, Path::new("copy/ralt"));
    fixture.points.clear("checkpoint.hotness_pinned");
    assert_eq!(copy.hot(3, 0..300).len(), 200);
    assert_eq!((tables(), fixture.hot(3, 0..300).len()), (1, 200));
    let on_disk = fixture.medium.table_store(&dir(), true).unwrap().list();
    assert_eq!(on_disk.unwrap().len(), 2, "a table, and the state");
    assert_eq!(fixture.fast.file_bytes(), fixture.bytes_on_disk());
}

/// Closing gave up what copies still held, but not if RALT had stopped. When the copy ended, it
/// removed files that the store's locks no longer guarded, by names that were another store's by
/// then.
#[test]
fn a_copy_that_ends_after_closing_removes_nothing() {
    for has_stopped in [false, true] {
        let fixture = Fixture::new();
        for start in [0, 100] {
            (start..start + 100).for_each(|number| fixture.read(3, number, 10));
            fixture.flush();
        }
        let on_disk = || fixture.medium.table_store(&dir(), true).unwrap().list();
        let before = on_disk().unwrap().len();
        let (shared, left) = (Arc::clone(&fixture.ralt.shared), Arc::new(Mutex::new(None)));
        let seen = Arc::clone(&left);
        fixture.points.set("checkpoint.hotness_pinned", move || {
            let files = shared.files.as_ref().unwrap();
            shared.begin_full_merge(files, &mut shared.worker.lock());
            while shared.work() {}
            if has_stopped {
                shared.stop(&Error::Closed);
            }
            shared.close();
            *seen.lock() = Some(files.log.list()?);
            Ok(())
        });
        let target = fixture.medium.log_store(Path::new("copy/ralt"), true);
        assert!(fixture.ralt.copy_to(&*target.unwrap()).unwrap());
        fixture.points.clear("checkpoint.hotness_pinned");
        let left = left.lock().take().unwrap();
        assert!(left.len() > before, "those that are copied are there");
        assert_eq!(on_disk().unwrap(), left, "stopped: {has_stopped}");
    }
}
