//! What goes when a store is removed, and what is left on the way.

use std::path::Path;

use super::*;
use crate::Db;
use crate::api::DbBuilder;
use crate::executor::Stepped;
use crate::options::{Options, TierOptions};
use crate::storage::{CrashStyle, Fault, Faulty, Medium};
use crate::testing::scene::{self, KEYS, Scene};

fn builder(disk: &Faulty) -> DbBuilder {
    with_slow(disk, &["/slow"])
}

/// As [`builder`], with these tiers below the first.
fn with_slow(disk: &Faulty, slow: &[&str]) -> DbBuilder {
    let mut tiers = vec![TierOptions::fast("/fast").capacity(64 << 20)];
    tiers.extend(slow.iter().map(|path| TierOptions::slow(*path)));
    let mut builder = Db::builder(Options::with_tiers(tiers));
    for tier in 0..=slow.len() {
        builder = builder.medium(tier, Arc::new(disk.clone()));
    }
    builder.executor(Arc::new(Stepped::new(1)))
}

/// As [`builder`], with the first tier alone.
fn one_tier(disk: &Faulty) -> DbBuilder {
    let mut options = scene::options();
    options.tiers.truncate(1);
    Db::builder(options).medium(0, Arc::new(disk.clone()))
}

/// A closed store that has tables on the slow tier.
fn with_slow_tables() -> Faulty {
    let store = Faulty::new(1);
    let scene = Scene::on(Arc::new(store.clone()), scene::options());
    scene.put_all(&KEYS, "old");
    scene.to_slow();
    scene.db.close().unwrap();
    store
}

/// A closed store that has its table on the last of three tiers.
fn with_tables_on_the_slowest() -> Faulty {
    let store = Faulty::new(1);
    let builder = || with_slow(&store, &["/slow", "/slowest"]);
    let db = builder().open().unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    drop(db);
    // Without a manifest a repair writes all tables to the last tier.
    let log = store.log_store("/fast".as_ref(), false).unwrap();
    for number in manifests(&*log).unwrap() {
        log.remove(&manifest_file_name(number)).unwrap();
    }
    log.remove(CURRENT).unwrap();
    assert!(builder().repair(false).unwrap().rebuilt);
    assert!(has_tables(&store, "/slowest"));
    store
}

fn has_tables(disk: &Faulty, dir: &str) -> bool {
    let mut files = disk.list_raw(dir.as_ref()).into_iter();
    files.any(|file| table_number(&file.name).is_some())
}

/// Puts the directory `dir` of `from` onto `to`.
fn mount(dir: &str, from: &Faulty, to: &Faulty) {
    let dir = Path::new(dir);
    to.table_store(dir, true).unwrap();
    for file in from.list_raw(dir) {
        let bytes = from.read_raw(dir, &file.name).unwrap();
        to.write_raw(dir, &file.name, &bytes);
    }
}

/// Removes what is left of a store, and says whether the first tier had to be given up for that.
fn finish(rest: impl Fn() -> DbBuilder) -> bool {
    match rest().destroy() {
        Ok(()) | Err(Error::NotFound { .. }) => false,
        Err(Error::WrongTier { tier: 0, .. }) => {
            rest().give_up_tier(0).destroy().unwrap();
            true
        }
        Err(error) => panic!("{error}"),
    }
}

fn names(disk: &Faulty) -> Vec<String> {
    let dirs = ["/fast", "/fast/ralt", "/slow", "/slowest"];
    let files = dirs.map(|dir| disk.list_raw(dir.as_ref()));
    files.into_iter().flatten().map(|file| file.name).collect()
}

/// A destruction removes `CURRENT` first. Where one had been cut short, the next destruction was
/// refused as damage, as was opening: people had to remove the tables, which take all of the space,
/// by hand. Temporary files stayed in any case.
#[test]
fn a_destruction_that_is_cut_short_is_finished_by_the_next() {
    let store = Faulty::new(1);
    let db = builder(&store).open().unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    drop(db);
    for (dir, name) in [
        ("/fast", "CURRENT.tmp"),
        ("/fast", "00000007.wal.tmp"),
        ("/slow", "00000099.sst"),
        ("/slow", "TIER.tmp"),
        ("/slow", "TIER.unsynced"),
        ("/slow", "notes.txt"),
    ] {
        store.write_raw(dir.as_ref(), name, b"left");
    }
    let mut cut_short = 0;
    for fault in [Fault::Io, Fault::PowerLoss] {
        for call in 1.. {
            let disk = store.image(|_| true);
            disk.fail_nth(call, fault);
            let done = builder(&disk).destroy();
            if disk.triggered() == 0 {
                done.unwrap();
                assert_eq!(names(&disk), ["notes.txt"]);
                // Otherwise the first tier's `TIER` may be gone and another's be back.
                let slow = Some(Path::new("/slow"));
                let mut unsynced = disk.unsynced().into_iter();
                assert!(unsynced.all(|piece| piece.directory.as_deref() != slow));
                break;
            }
            assert!(done.is_err(), "{fault:?} at call {call}");
            cut_short += 1;
            let images = match fault {
                Fault::PowerLoss => vec![disk.image(|_| false), disk.image(|_| true)],
                _ => vec![disk],
            };
            for left in images {
                let again = builder(&left).destroy();
                assert!(again.is_ok(), "{fault:?} at call {call}: {again:?}");
                assert_eq!(names(&left), ["notes.txt"], "{fault:?} at call {call}");
            }
        }
    }
    assert!(cut_short > 30, "{cut_short}");
    assert!(matches!(
        builder(&Faulty::new(1)).destroy(),
        Err(Error::NotFound { .. })
    ));
}

/// A store whose `CURRENT` or manifest was damaged could neither be destroyed, because of the
/// damage, nor restored into, because its directory was not empty.
#[test]
fn a_store_with_a_damaged_manifest_is_removed() {
    let store = Faulty::new(1);
    let db = builder(&store).open().unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    drop(db);
    store.write_raw("/fast".as_ref(), "notes.txt", b"left");
    for what in ["CURRENT", "MANIFEST"] {
        let disk = store.image(|_| true);
        let name = names(&disk).into_iter().find(|name| name.starts_with(what));
        disk.corrupt("/fast".as_ref(), &name.unwrap(), 20, 1)
            .unwrap();
        assert!(builder(&disk).open().unwrap_err().is_corruption());
        builder(&disk).destroy().unwrap();
        assert_eq!(names(&disk), ["notes.txt"], "{what}");
    }
}

/// A mount point without its device has no `CURRENT` either: it was taken for the first tier of a
/// store whose destruction had been begun, and the other tier was removed. With the device back the
/// store could neither be opened nor destroyed.
#[test]
fn a_first_tier_that_is_not_mounted_is_no_destruction_that_was_begun() {
    let (store, slow) = (with_slow_tables(), Path::new("/slow"));
    let unmounted = Faulty::new(1);
    unmounted.log_store("/fast".as_ref(), true).unwrap();
    for file in store.list_raw(slow) {
        let bytes = store.read_raw(slow, &file.name).unwrap();
        unmounted.write_raw(slow, &file.name, &bytes);
    }
    let refused = builder(&unmounted).destroy().unwrap_err();
    assert!(
        matches!(refused, Error::WrongTier { tier: 0, .. }),
        "{refused:?}"
    );
    assert_eq!(unmounted.list_raw(slow), store.list_raw(slow));
    assert!(store.list_raw(slow).len() > 1, "tables, and whose they are");
}

/// When only one tier of a store of two was named, that tier was removed and the call succeeded.
/// The other tier's tables stayed and were nobody's.
#[test]
fn a_store_is_not_removed_without_all_of_its_tiers() {
    let store = with_slow_tables();
    let is_refused = |disk: &Faulty| {
        let before = names(disk);
        let refused = one_tier(disk).destroy().unwrap_err();
        let Error::InvalidOption { option, reason } = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((option, names(disk)), ("tiers", before));
        assert!(reason.contains("; name "), "{reason}");
    };
    is_refused(&store);
    let damaged = store.image(|_| true);
    damaged.corrupt("/fast".as_ref(), "CURRENT", 20, 1).unwrap();
    is_refused(&damaged);
    // Nor without a `CURRENT`: where it was lost, or a destruction had begun, no tier was asked
    // for.
    let lost = store.image(|_| true);
    let log = lost.log_store("/fast".as_ref(), false).unwrap();
    log.remove(CURRENT).unwrap();
    is_refused(&lost);
    let scene = Scene::on(Arc::new(store.clone()), scene::options());
    assert!(KEYS.iter().all(|key| scene.get(key).is_some()));
}

/// What tells of the slow tier is removed after it. Access records went before, so a caller who
/// resumed a destruction with the first tier alone was left with the tables of the other.
#[test]
fn a_destruction_that_is_cut_short_misses_a_tier_as_long_as_there_is_one() {
    let store = with_slow_tables();
    let mut refused = 0;
    for call in 1.. {
        let disk = store.image(|_| true);
        disk.fail_nth(call, Fault::PowerLoss);
        let done = builder(&disk).destroy();
        if disk.triggered() == 0 {
            done.unwrap();
            break;
        }
        for keeps in [false, true] {
            let left = disk.image(|_| keeps);
            let slow = left.list_raw("/slow".as_ref());
            if !slow.is_empty() {
                refused += 1;
                let alone = one_tier(&left).destroy();
                assert!(alone.is_err(), "call {call}, {keeps}");
                assert_eq!(left.list_raw("/slow".as_ref()), slow);
            }
            builder(&left).destroy().unwrap();
        }
    }
    assert!(refused > 10, "{refused}");
}

/// Access records tell that one tier of two is left out. After a destruction that was cut short,
/// with two tiers of three named, those two were removed; with one tier of two named and no access
/// records, that one was. Then nothing could remove the tables of the tier that was left out.
#[test]
fn a_destruction_that_is_cut_short_misses_any_tier_with_tables() {
    let by_level = Faulty::new(1);
    let tracked = with_slow_tables();
    for dir in ["/fast", "/slow"] {
        mount(dir, &tracked, &by_level);
    }
    let three = with_tables_on_the_slowest();
    let stores = [
        (by_level, &["/slow"][..]),
        (three, &["/slow", "/slowest"][..]),
    ];
    for (store, slow) in stores {
        let (last, named) = slow.split_last().unwrap();
        let mut refused = 0;
        for call in 1.. {
            let disk = store.image(|_| true);
            disk.fail_nth(call, Fault::PowerLoss);
            let _cut_short = with_slow(&disk, slow).destroy();
            if disk.triggered() == 0 {
                break;
            }
            for keeps in [false, true] {
                let left = disk.image(|_| keeps);
                let (before, has_tables) = (names(&left), has_tables(&left, last));
                let gone_on = with_slow(&left, named).destroy();
                if has_tables {
                    let Err(Error::InvalidOption { option, .. }) = gone_on else {
                        panic!("{last}, call {call}, {keeps}: {gone_on:?}");
                    };
                    assert_eq!(option, "tiers");
                    assert_eq!(names(&left), before, "{last}, call {call}, {keeps}");
                    refused += 1;
                }
                let is_given_up = finish(|| with_slow(&left, slow));
                assert!(!(has_tables && is_given_up), "{last}, call {call}, {keeps}");
                assert_eq!(names(&left), [""; 0], "{last}, call {call}, {keeps}");
            }
        }
        assert!(refused > 10, "{last}: {refused}");
    }
}

/// A destruction was cut short, and the slow tier was not mounted when it was resumed. The empty
/// mount point passed for a tier that the destruction had come to, and the first tier was removed
/// together with its mark. With the device back, its tables were refused by every destruction,
/// opening and repair.
#[test]
fn a_later_tier_that_is_not_mounted_is_none_that_a_destruction_has_come_to() {
    let store = with_slow_tables();
    let (mut refused, mut given_up) = (0, 0);
    for call in 1.. {
        let disk = store.image(|_| true);
        disk.fail_nth(call, Fault::PowerLoss);
        let _cut_short = builder(&disk).destroy();
        if disk.triggered() == 0 {
            break;
        }
        for keeps in [false, true] {
            let left = disk.image(|_| keeps);
            let unmounted = Faulty::new(1);
            mount("/fast", &left, &unmounted);
            mount("/fast/ralt", &left, &unmounted);
            unmounted.table_store("/slow".as_ref(), true).unwrap();
            let (before, has_tables) = (names(&unmounted), has_tables(&left, "/slow"));
            let gone_on = builder(&unmounted).destroy();
            if has_tables {
                let is_refused = matches!(gone_on, Err(Error::WrongTier { tier: 1, .. }));
                assert!(is_refused, "call {call}, {keeps}: {gone_on:?}");
                assert_eq!(names(&unmounted), before, "call {call}, {keeps}");
                refused += 1;
            }
            mount("/slow", &left, &unmounted);
            let is_given_up = finish(|| builder(&unmounted));
            assert!(!(has_tables && is_given_up), "call {call}, {keeps}");
            assert_eq!(names(&unmounted), [""; 0], "call {call}, {keeps}");
            given_up += usize::from(is_given_up);
        }
    }
    // Once a tier has only its `TIER` left, nothing tells of it any more.
    assert!(refused > 10 && given_up > 0, "{refused}, {given_up}");
}

/// If a store had lost a device, nothing removed what the others held.
#[test]
fn a_store_without_a_tier_is_removed_on_demand() {
    let store = with_slow_tables();
    let dirs = ["/fast", "/slow"];
    for lost in [0, 1] {
        let disk = Faulty::new(1);
        disk.table_store(dirs[lost].as_ref(), true).unwrap();
        mount(dirs[1 - lost], &store, &disk);
        let refused = builder(&disk).destroy().unwrap_err();
        assert!(
            matches!(refused, Error::WrongTier { tier, .. } if tier == lost),
            "{refused:?}"
        );
        builder(&disk).give_up_tier(lost).destroy().unwrap();
        assert_eq!(names(&disk), [""; 0], "tier {lost}");
    }
}

/// The sync after the removal of a slow tier's `TIER` failed. The next destruction saw no `TIER`
/// there, its own sync had no effect, and it removed the first tier's. After a loss of power the
/// slow tier's `TIER` was back, and nothing removed it.
#[test]
fn what_a_failed_sync_brings_back_is_removed_on_demand() {
    let store = with_slow_tables();
    let whole = store.image(|_| true);
    builder(&whole).destroy().unwrap();
    let mut back = 0;
    for call in 1..=whole.calls() {
        let disk = store.image(|_| true);
        disk.fail_nth(call, Fault::SyncFails);
        let failed = builder(&disk).destroy();
        // Most calls are no syncs.
        if disk.triggered() == 0 {
            continue;
        }
        assert!(failed.is_err(), "call {call}");
        builder(&disk).destroy().unwrap();
        let disk = disk.crash(CrashStyle::KeepAll);
        if disk.read_raw("/slow".as_ref(), identity::NAME).is_ok() {
            assert!(finish(|| builder(&disk)), "call {call}");
            assert_eq!(names(&disk), [""; 0], "call {call}");
            back += 1;
        }
    }
    assert!(back > 0);
}
