//! A store remembers that it tracks hotness. Its access records are missed if they are lost, and
//! they come and go with the store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use thermocline::storage::{CrashStyle, Fault, Faulty, Medium, Operation};
use thermocline::{Db, DbBuilder, Error, Options, Placement};
use thermocline_torture::stores::small_options;

const FAST: &str = "/fast";
const RALT: &str = "/fast/ralt";
const COPY: [&str; 2] = ["/copy-fast", "/copy-slow"];
const COPIED_RALT: &str = "/copy-fast/ralt";
const KEYS: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

fn by_level() -> Options {
    let mut options = small_options();
    options.placement = Placement::ByLevel;
    options
}

fn of_copy() -> Options {
    let mut options = small_options();
    for (tier, path) in options.tiers.iter_mut().zip(COPY) {
        tier.path = path.into();
    }
    options.create_if_missing = false;
    options
}

fn builder(disk: &Faulty, options: Options) -> DbBuilder {
    let medium: Arc<dyn Medium> = Arc::new(disk.clone());
    Db::builder(options)
        .medium(0, Arc::clone(&medium))
        .medium(1, medium)
}

fn open(disk: &Faulty, options: Options) -> Db {
    builder(disk, options).open().unwrap()
}

/// A closed store in which `a` was read more recently than the others of ten records.
fn read_store() -> Faulty {
    let disk = Faulty::new(1);
    let db = open(&disk, small_options());
    for key in KEYS {
        db.put(key, [7; 100]).unwrap();
        assert!(db.get(key).unwrap().is_some());
    }
    db.close().unwrap();
    assert!(names(&disk, RALT).iter().any(|name| name.ends_with(".sst")));
    disk
}

/// How many records are known to have been read.
fn tracked(db: &Db) -> usize {
    db.heat(100).unwrap().hottest.len()
}

/// Regression: whoever looked at records of a program's store, with the command or otherwise, made
/// them count as hot.
#[test]
fn reads_that_do_not_count_leave_what_is_hot_as_it_was() {
    let disk = read_store();
    let heat = |db: &Db| format!("{:?}", db.heat(100).unwrap().hottest);
    let open = || {
        let builder = builder(&disk, small_options());
        builder.count_accesses(false).open().unwrap()
    };
    let db = open();
    let before = heat(&db);
    assert_eq!(tracked(&db), KEYS.len());
    // From tables, and then from the record cache.
    db.flush().unwrap();
    for _ in 0..10 {
        assert!(db.get("b").unwrap().is_some());
        assert!(db.multi_get(&KEYS).unwrap().iter().all(Option::is_some));
    }
    db.close().unwrap();
    let db = open();
    assert_eq!(heat(&db), before);
    assert_eq!(db.metrics().hotrap.unwrap().ralt.accesses, 0);
}

fn names(disk: &Faulty, dir: &str) -> Vec<String> {
    let files = disk.list_raw(Path::new(dir));
    files.into_iter().map(|file| file.name).collect()
}

fn is_there(disk: &Faulty, dir: &str) -> bool {
    disk.log_store(Path::new(dir), false).is_ok()
}

/// Bytes of those files on the fast tier that grow with what is stored.
fn bytes_on_fast_tier(disk: &Faulty) -> u64 {
    let files = [FAST, RALT].map(|dir| disk.list_raw(Path::new(dir)));
    let counted = files
        .iter()
        .flatten()
        .filter(|f| !["CURRENT", "TIER"].contains(&&*f.name));
    counted.map(|file| file.len).sum()
}

#[test]
fn access_records_that_were_deleted_are_missed_once() {
    let disk = read_store();
    let store = disk.log_store(Path::new(RALT), false).unwrap();
    for name in names(&disk, RALT) {
        store.remove(&name).unwrap();
    }
    disk.remove_dir(Path::new(RALT)).unwrap();
    let db = open(&disk, small_options());
    let trouble = db.recovery().hotness.clone().unwrap();
    assert!(trouble.contains("/fast/ralt/RALT"), "{trouble}");
    assert_eq!(db.metrics().hotrap.unwrap().ralt.trouble, Some(trouble));
    assert_eq!((db.iter().count(), tracked(&db)), (10, 0));
    assert!(db.get("b").unwrap().is_some());
    db.close().unwrap();
    let db = open(&disk, small_options());
    assert_eq!((&db.recovery().hotness, tracked(&db)), (&None, 1));
}

#[test]
fn a_store_that_was_never_read_misses_nothing() {
    let disk = Faulty::new(1);
    open(&disk, small_options()).close().unwrap();
    let db = open(&disk, small_options());
    assert_eq!(db.recovery().hotness, None);
    // Nor are they missed when the power goes before the store is closed.
    for how in [CrashStyle::LoseAll, CrashStyle::KeepAll] {
        let disk = Faulty::new(1);
        let _open = open(&disk, small_options());
        let disk = disk.crash(how);
        assert_eq!(open(&disk, small_options()).recovery().hotness, None);
    }
}

#[test]
fn destroying_takes_the_access_records_along_and_nothing_else() {
    let disk = read_store();
    let others = disk.log_store(Path::new(RALT), false).unwrap();
    for name in ["notes.txt", "1.sst"] {
        others.create(name).unwrap();
    }
    builder(&disk, small_options()).destroy().unwrap();
    assert_eq!(names(&disk, RALT), ["1.sst", "notes.txt"]);

    let disk = read_store();
    builder(&disk, small_options()).destroy().unwrap();
    assert!(!is_there(&disk, RALT));
    let db = open(&disk, small_options());
    assert_eq!((&db.recovery().hotness, tracked(&db)), (&None, 0));
}

#[test]
fn what_is_read_in_another_keyspace_is_tracked_until_that_is_dropped() {
    let disk = read_store();
    let db = open(&disk, small_options());
    let side = db.create_keyspace("side").unwrap();
    side.put("k", [7; 100]).unwrap();
    for _ in 0..3 {
        assert!(side.get("k").unwrap().is_some());
    }
    db.close().unwrap();
    let db = open(&disk, small_options());
    let of_side = |db: &Db| {
        let hottest = db.heat(100).unwrap().hottest;
        hottest.iter().filter(|key| key.keyspace == "side").count()
    };
    assert_eq!((of_side(&db), tracked(&db)), (1, 11));
    db.drop_keyspace("side").unwrap();
    assert_eq!((of_side(&db), tracked(&db)), (0, 10));
    // Nothing of it comes back under the same name.
    db.create_keyspace("side").unwrap();
    db.close().unwrap();
    let db = open(&disk, small_options());
    assert_eq!((of_side(&db), tracked(&db)), (0, 10));
}

/// Regression: access records learnt that a keyspace had been dropped only when they were written
/// again. After a crash before that, the keyspace counted, and `heat` gave fewer keys than it was
/// asked for: those of the dropped keyspace were among the hottest, and had no name.
#[test]
fn a_keyspace_that_was_dropped_before_a_crash_is_not_tracked_either() {
    let disk = read_store();
    let db = open(&disk, small_options());
    let side = db.create_keyspace("side").unwrap();
    for key in KEYS {
        side.put(key, [7; 100]).unwrap();
        assert!(side.get(key).unwrap().is_some());
    }
    db.close().unwrap();
    let db = open(&disk, small_options());
    assert_eq!(tracked(&db), 20);
    db.drop_keyspace("side").unwrap();
    let disk = disk.crash(CrashStyle::KeepAll);
    let db = open(&disk, small_options());
    let hottest = db.heat(10).unwrap().hottest;
    assert_eq!(hottest.len(), 10);
    assert!(hottest.iter().all(|key| key.keyspace == "default"));
}

#[test]
fn a_checkpoint_knows_what_is_hot() {
    let disk = read_store();
    let db = open(&disk, small_options());
    // What is still in a buffer is copied too.
    db.put("late", "value").unwrap();
    assert!(db.get("late").unwrap().is_some());
    db.checkpoint(&COPY.map(PathBuf::from)).unwrap();
    let known = db.heat(100).unwrap();
    assert_eq!(known.hottest.len(), 11);
    // What becomes of the original does not matter to the copy.
    db.close().unwrap();
    builder(&disk, small_options()).destroy().unwrap();
    let disk = disk.crash(CrashStyle::LoseAll);
    let copy = open(&disk, of_copy());
    assert_eq!(copy.recovery().hotness, None);
    assert_eq!(copy.heat(100).unwrap().hottest, known.hottest);
    assert_eq!(copy.iter().count(), 11);
    copy.close().unwrap();
}

/// Hotness is advice (I7): a copy of the data is worth having without it.
#[test]
fn a_checkpoint_goes_without_hotness_where_it_cannot_be_copied() {
    let disk = read_store();
    let db = open(&disk, small_options());
    disk.fail_where(
        |operation, name| operation == Operation::Create && name == "RALT.tmp",
        Fault::Io,
    );
    db.checkpoint(&COPY.map(PathBuf::from)).unwrap();
    disk.heal();
    assert!(!is_there(&disk, COPIED_RALT), "half a copy is removed");
    let copy = open(&disk, of_copy());
    assert_eq!((&copy.recovery().hotness, tracked(&copy)), (&None, 0));
    assert_eq!(copy.iter().count(), 10);
}

#[test]
fn a_checkpoint_overwrites_no_access_records() {
    let disk = read_store();
    disk.write_raw(Path::new(COPIED_RALT), "RALT", b"another's");
    let db = open(&disk, small_options());
    let refused = db.checkpoint(&COPY.map(PathBuf::from)).unwrap_err();
    assert!(matches!(refused, Error::InvalidOption { .. }), "{refused}");
    assert_eq!(names(&disk, COPIED_RALT), ["RALT"]);
}

#[test]
fn access_records_go_when_records_live_by_level_and_the_space_comes_back() {
    let disk = read_store();
    let db = open(&disk, small_options());
    let tracking = db.metrics().tiers[0].file_bytes;
    assert_eq!(tracking, bytes_on_fast_tier(&disk));
    db.close().unwrap();
    drop(db);

    let db = open(&disk, by_level());
    assert_eq!(db.recovery().hotness, None);
    assert!(!is_there(&disk, RALT));
    assert_eq!(
        db.metrics().tiers[0].file_bytes,
        bytes_on_fast_tier(&disk),
        "what is counted is what is there"
    );
    assert_eq!((db.iter().count(), tracked(&db)), (10, 0));
    db.close().unwrap();
    drop(db);

    // They are not missed when hotness decides again.
    let db = open(&disk, small_options());
    assert_eq!((&db.recovery().hotness, tracked(&db)), (&None, 0));
}

/// I8: what is on the fast tier counts, whether it is wanted or not.
#[test]
fn access_records_that_cannot_be_removed_are_told_and_count() {
    let disk = read_store();
    disk.fail_where(
        |operation, name| operation == Operation::Remove && name.ends_with(".sst"),
        Fault::Io,
    );
    let db = open(&disk, by_level());
    let told = db.recovery().hotness.clone().unwrap();
    assert!(told.contains(RALT), "{told}");
    assert!(names(&disk, RALT).iter().all(|n| n.ends_with(".sst")));
    assert_eq!(db.metrics().tiers[0].file_bytes, bytes_on_fast_tier(&disk));
    disk.heal();
    db.close().unwrap();
    drop(db);
    let db = open(&disk, by_level());
    assert_eq!(db.recovery().hotness, None);
    assert!(!is_there(&disk, RALT));
    assert_eq!(db.metrics().tiers[0].file_bytes, bytes_on_fast_tier(&disk));
}
