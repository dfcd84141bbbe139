//! How a store is made: after an attempt that was cut short, with a device that is not mounted,
//! beside other stores.

use std::path::Path;
use std::sync::Arc;

use thermocline::storage::{CrashStyle, Faulty, Medium};
use thermocline::{Backups, Db, Durability, Error, Options};
use thermocline_torture::life::{FAST, SLOW, tiny_options};

fn open(disk: &Faulty) -> thermocline::Result<Db> {
    open_or_make(disk, true)
}

fn open_or_make(disk: &Faulty, create: bool) -> thermocline::Result<Db> {
    let mut options = tiny_options();
    options.seed = Some(7);
    options.create_if_missing = create;
    let builder = Db::builder(options).medium(0, Arc::new(disk.clone()));
    builder.medium(1, Arc::new(disk.clone())).open()
}

/// Regression: a process that was killed had written `TIER`, and had not synced it. The next one
/// found it in the system's cache and took it for durable. After a loss of power the tier belonged
/// to no store, and a store with acknowledged writes did not open.
#[test]
fn an_identity_that_is_found_is_made_durable() {
    let twin = Faulty::new(1);
    open(&twin).unwrap();
    let disk = Faulty::new(1);
    for dir in [FAST, SLOW].map(Path::new) {
        let bytes = twin.read_raw(dir, "TIER").unwrap();
        let store = disk.log_store(dir, true).unwrap();
        store.create("TIER").unwrap().append(&bytes).unwrap();
    }
    let db = open(&disk).unwrap();
    db.put_with("key", "value", Durability::Sync).unwrap();
    let disk = disk.crash(CrashStyle::LoseAll);
    let db = open(&disk).unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
}

/// Regression: the first tier's device was not mounted. Its mount point was taken for a new, empty
/// tier and got a `TIER`. Then the second tier's directory was in the way, as one that holds tables
/// and no store. Whoever chose another directory had a second store, empty.
#[test]
fn a_first_tier_that_has_nothing_beside_one_that_has_is_not_mounted() {
    let mounted = Faulty::new(1);
    open(&mounted).unwrap().close().unwrap();
    let identity = mounted.read_raw(Path::new(SLOW), "TIER").unwrap();
    let left = [("TIER", &identity[..]), ("00000007.sst", &b"table"[..])];
    for (name, content) in left {
        let disk = Faulty::new(1);
        disk.write_raw(Path::new(SLOW), name, content);
        // The first attempt makes the directory, as far as it goes.
        for create in [true, false] {
            let refused = open_or_make(&disk, create).unwrap_err();
            let Error::WrongTier {
                tier,
                path,
                problem,
            } = refused
            else {
                panic!("{name}: {refused:?}");
            };
            assert_eq!((tier, &*path), (0, Path::new(FAST)), "{name}");
            let said = problem.contains("mounted") && problem.contains(SLOW);
            assert!(said, "{name}: {problem}");
            let made = disk.list_raw(Path::new(FAST));
            assert!(made.iter().all(|file| file.name != "TIER"), "{name}");
        }
    }
}

/// Regression: only one check tells that such tables belong to somebody. An attempt that was cut
/// short has marked the first tier, and the second one's path is another by now. Without that check
/// the directory was claimed, and its tables went as orphans of the new store.
#[test]
fn tables_behind_an_attempt_that_was_cut_short_are_left_alone() {
    let twin = Faulty::new(1);
    open(&twin).unwrap().close().unwrap();
    let [fast, slow] = [FAST, SLOW].map(Path::new);
    let identity = twin.read_raw(fast, "TIER").unwrap();
    let disk = Faulty::new(1);
    disk.write_raw(fast, "TIER", &identity);
    disk.write_raw(slow, "00000007.sst", b"table");
    let refused = open(&disk).unwrap_err();
    let is_slow = matches!(&refused, Error::WrongTier { tier: 1, path, .. } if path == slow);
    assert!(is_slow, "{refused}");
    assert_eq!(disk.read_raw(slow, "00000007.sst").unwrap(), b"table");
    assert!(disk.read_raw(slow, "TIER").is_err(), "it was claimed");
}

/// Regression: the identity of a store was drawn from `Options::seed`, so all stores of an
/// application that sets a seed were the same store. One opened with another's slow tier, and
/// backups of one were taken into the directory of another.
#[test]
fn stores_of_one_seed_are_told_apart() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let options = |fast: &str, slow: &str| {
        let mut options = Options::two_tiers(path(fast), 64 << 20, path(slow));
        options.seed = Some(42);
        options
    };
    let backups = Backups::open(path("backups")).unwrap();
    let first = Db::open(options("fast", "slow")).unwrap();
    backups.take(&first).unwrap();
    let second = Db::open(options("other-fast", "other-slow")).unwrap();
    let is_refused = |error: &Error| matches!(error, Error::WrongTier { .. });
    assert!(is_refused(&backups.take(&second).unwrap_err()));
    first.close().unwrap();
    second.close().unwrap();
    for (fast, slow) in [("fast", "other-slow"), ("other-fast", "slow")] {
        let refused = Db::open(options(fast, slow)).unwrap_err();
        let is_slow = matches!(refused, Error::WrongTier { tier: 1, .. });
        assert!(is_slow, "{refused}");
    }
}
