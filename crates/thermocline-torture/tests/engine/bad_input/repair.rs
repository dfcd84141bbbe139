//! Repairs that are not told of all tiers, or do not find them, and repairs that are cut short.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use thermocline::storage::{CrashStyle, Fault, Faulty, Medium, Operation};
use thermocline::{Db, DbBuilder, Durability, Error};
use thermocline_torture::life::{FAST, SLOW, tiny_options};

use super::{filled, open, with_paths};

/// Regression: a store of two tiers whose manifest is damaged was repaired as a store of one.
/// Everything on the other tier counted as lost. With a whole manifest the command was refused.
#[test]
fn a_repair_that_is_not_told_all_tiers_is_refused() {
    let disk = Faulty::new(1);
    filled(&disk, [FAST, SLOW]);
    let files = disk.list_raw(FAST.as_ref());
    let manifest = files.iter().find(|file| file.name.starts_with("MANIFEST"));
    let manifest = manifest.unwrap();
    for damaged in [false, true] {
        if damaged {
            let middle = manifest.len / 2;
            disk.corrupt(FAST.as_ref(), &manifest.name, middle, 1)
                .unwrap();
        }
        let refused = on_one_tier(&disk).repair(true).map(|_| ());
        let Err(Error::InvalidOption {
            option: "tiers",
            reason,
        }) = &refused
        else {
            panic!("damaged: {damaged}, {refused:?}");
        };
        assert!(reason.contains("name all its tiers"), "{reason}");
    }
}

/// Regression: the edit that dropped a keyspace was damaged, and another keyspace had been made
/// under its name since. The repaired store had two of that name, and whoever asked for it got the
/// one that had been dropped. Nobody could reach the records of the other.
#[test]
fn of_two_keyspaces_of_one_name_the_newer_one_has_it() {
    let disk = Faulty::new(1);
    filled(&disk, [FAST, SLOW]);
    let db = open(&disk, &with_paths([FAST, SLOW])).unwrap();
    let side = db.create_keyspace("side").unwrap();
    side.put("key", "old").unwrap();
    db.wait_idle().unwrap();
    let manifest = || {
        let mut files = disk.list_raw(FAST.as_ref()).into_iter();
        files.find(|file| file.name.starts_with("MANIFEST"))
    };
    let before = manifest().unwrap();
    db.drop_keyspace("side").unwrap();
    assert_eq!(manifest().unwrap().name, before.name);
    let newer = db.create_keyspace("side").unwrap();
    newer.put("key", "new").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    drop((side, newer, db));
    // The first byte behind the header of the record that drops the keyspace.
    disk.corrupt(FAST.as_ref(), &before.name, before.len + 16, 1)
        .unwrap();
    let opened = on_two_tiers(&disk).open().map(|_| ());
    assert!(
        matches!(opened, Err(Error::Corruption { .. })),
        "{opened:?}"
    );
    let report = on_two_tiers(&disk).repair(false).unwrap();
    assert!(report.rebuilt, "{report:?}");
    let db = on_two_tiers(&disk).open().unwrap();
    let names = db.keyspaces();
    let of_that_name = names.iter().filter(|name| *name == "side").count();
    assert_eq!(of_that_name, 1, "{names:?}");
    let side = db.keyspace("side").unwrap();
    assert_eq!(side.get("key").unwrap().as_deref(), Some(&b"new"[..]));
}

/// Regression: if no edit of a manifest could be read, nothing named the tables of a tier that was
/// left out. The tables of the other tier alone became the store, and no loss was reported. The
/// next opening with both tiers took the rest for orphans and removed it.
#[test]
fn without_a_manifest_it_is_refused_too() {
    let disk = Faulty::new(1);
    filled(&disk, [FAST, SLOW]);
    lose_the_manifest(&disk);
    let slow = disk.list_raw(SLOW.as_ref());
    let refused = on_one_tier(&disk).repair(false).map(|_| ());
    let Err(Error::InvalidOption { reason, .. }) = &refused else {
        panic!("{refused:?}");
    };
    assert!(reason.contains("name all its tiers"), "{reason}");
    assert_eq!(disk.list_raw(SLOW.as_ref()), slow);
    assert!(on_two_tiers(&disk).repair(false).unwrap().rebuilt);
    assert_eq!(on_two_tiers(&disk).open().unwrap().iter().count(), 700);
}

/// Regression: writes that were never synced, and damage among them, are what a crash leaves, and
/// the opening reports which ones it gives up. After a repair no opening does: the store had lost
/// them without a word.
#[test]
fn what_a_repair_gives_up_of_a_log_that_was_not_synced_is_told() {
    // Each time there is another reason for a repair. The second one is found in the log itself.
    for loses_a_keyspace in [false, true] {
        let disk = Faulty::new(1);
        filled(&disk, [FAST, SLOW]);
        let db = open(&disk, &with_paths([FAST, SLOW])).unwrap();
        let manifest = disk.list_raw(FAST.as_ref()).into_iter();
        let mut manifest = manifest.filter(|file| file.name.starts_with("MANIFEST"));
        let manifest = manifest.next().unwrap();
        let side = db.create_keyspace("side").unwrap();
        side.put_with("key", "value", Durability::Buffered).unwrap();
        for n in 0..20 {
            let key = format!("late{n}");
            db.put_with(key, [7; 100], Durability::Buffered).unwrap();
        }
        let left = disk.image(|_| true);
        drop((side, db));
        let logs = left.list_raw(FAST.as_ref()).into_iter();
        let logs = logs.filter(|file| file.name.ends_with(".wal"));
        let log = logs.max_by_key(|file| file.len).unwrap();
        left.corrupt(FAST.as_ref(), &log.name, log.len / 2, 1)
            .unwrap();
        let opened = left.image(|_| true);
        let db = on_two_tiers(&opened).open().unwrap();
        let (file, offset, _) = db.recovery().cut.clone().unwrap();
        assert_eq!(file, Path::new(FAST).join(&log.name));
        let kept = db.prefix("late").count() as u64;
        assert!((1..20).contains(&kept));
        match loses_a_keyspace {
            true => left.truncate_raw(FAST.as_ref(), &manifest.name, manifest.len),
            false => left.corrupt(FAST.as_ref(), "CURRENT", 0, 1),
        }
        .unwrap();
        let report = on_two_tiers(&left).repair(false).unwrap();
        let loss = report.losses.iter().find(|loss| loss.file == file);
        let loss = loss.unwrap_or_else(|| panic!("{report:?}"));
        assert_eq!(loss.offset, Some(offset));
        let (first, last) = loss.seqs.unwrap();
        assert_eq!(last - first + 1, 20 - kept);
        let aside = Path::new(FAST).join("lost");
        assert!(left.read_raw(&aside, &log.name).is_ok());
        let db = on_two_tiers(&left).open().unwrap();
        assert_eq!(db.prefix("late").count() as u64, kept);
    }
}

/// Regression: tables were missing together with the manifest, or the edit, that named them. No
/// edit told of them any more, and the report said that nothing was lost.
#[test]
fn what_a_lost_manifest_named_is_told_as_lost() {
    for is_cut in [false, true] {
        let disk = Faulty::new(1);
        filled(&disk, [FAST, SLOW]);
        let db = open(&disk, &with_paths([FAST, SLOW])).unwrap();
        let manifest = || {
            let mut files = disk.list_raw(FAST.as_ref()).into_iter();
            files
                .find(|file| file.name.starts_with("MANIFEST"))
                .unwrap()
        };
        let (named, begun) = (tables(&disk), manifest());
        for n in 0..2 {
            db.put(format!("new{n}"), "value").unwrap();
            db.flush().unwrap();
        }
        db.close().unwrap();
        drop(db);
        assert_eq!(manifest().name, begun.name, "no other was begun");
        let file = if is_cut {
            let (name, len) = (&begun.name, begun.len);
            disk.truncate_raw(FAST.as_ref(), name, len).unwrap();
            begun.name
        } else {
            lose_the_manifest(&disk);
            "MANIFEST".to_owned()
        };
        let mut new = tables(&disk).into_iter();
        let lost = new.rfind(|name| !named.contains(name)).unwrap();
        for dir in [FAST, SLOW] {
            let store = disk.table_store(dir.as_ref(), false).unwrap();
            store.remove(&lost).unwrap();
        }
        for dry_run in [true, false] {
            let report = on_two_tiers(&disk).repair(dry_run).unwrap();
            let lost: Vec<_> = report.losses.iter().map(|loss| &loss.file).collect();
            assert_eq!(lost, [&Path::new(FAST).join(&file)], "{report:?}");
            assert!(report.rebuilt, "{report:?}");
        }
        let db = on_two_tiers(&disk).open().unwrap();
        let kept = [0, 1].map(|n| db.contains_key(format!("new{n}")).unwrap());
        assert_eq!(kept, [true, false], "{lost}");
    }
}

/// Regression: a slow tier that was not mounted was taken for one that had lost everything. The
/// empty mount point got a `TIER`, and the manifest dropped every table that lay on the device. If
/// a fast tier was given up, with the manifest and the log, no loss was reported at all.
#[test]
fn a_tier_that_is_not_mounted_is_given_up_on_demand_only() {
    const EMPTY: &str = "/mount-point";
    for absent in [0, 1] {
        let disk = Faulty::new(1);
        filled(&disk, [FAST, SLOW]);
        disk.table_store(EMPTY.as_ref(), true).unwrap();
        let mut paths = [FAST, SLOW];
        let builder = |paths| {
            let builder = Db::builder(with_paths(paths)).medium(0, Arc::new(disk.clone()));
            builder.medium(1, Arc::new(disk.clone()))
        };
        paths[absent] = EMPTY;
        let refused = builder(paths).repair(false).map(|_| ());
        let Err(Error::WrongTier { tier, problem, .. }) = &refused else {
            panic!("tier {absent}: {refused:?}");
        };
        assert_eq!(*tier, absent);
        assert!(problem.contains("is mounted"), "{problem}");
        let left = disk.list_raw(EMPTY.as_ref());
        assert!(left.iter().all(|file| file.len == 0), "{left:?}");
        // Once the tier is mounted again, the store is what it was.
        let sound = builder([FAST, SLOW]).repair(true).unwrap();
        assert_eq!(sound.problems, Vec::<String>::new());

        let report = builder(paths).give_up_tier(absent).repair(false).unwrap();
        assert!(report.repaired, "{report:?}");
        let lost = |is_wanted: fn(&Path) -> bool| {
            let mut files = report.losses.iter().map(|loss| loss.file.as_path());
            files.any(is_wanted)
        };
        assert!(lost(|file| file == Path::new(EMPTY)), "{report:?}");
        // Only the manifest says which tables there were, and it lies on the first tier.
        let lost_tables = lost(|file| file.extension().is_some_and(|end| end == "sst"));
        assert_eq!(lost_tables, absent == 1, "{report:?}");
        let db = builder(paths).open().unwrap();
        let kept = db.iter().count();
        assert!(0 < kept && kept < 700, "tier {absent}: {kept} records");
    }
}

/// Regression: a table of another store passed for one whose edit is lost, which an opening never
/// takes it for. A sound store with such a table in its directory was rebuilt.
#[test]
fn a_table_of_another_store_is_no_damage() {
    let (disk, others) = (Faulty::new(1), ["/other", "/others-slow"]);
    filled(&disk, [FAST, SLOW]);
    filled(&disk, others);
    let other = open(&disk, &with_paths(others)).unwrap();
    other.put("key", "value").unwrap();
    other.flush().unwrap();
    let newest = |dir: &str| {
        let files = disk.list_raw(dir.as_ref()).into_iter();
        let names = files.map(|file| file.name);
        names.filter(|name| name.ends_with(".sst")).max().unwrap()
    };
    let stranger = newest(others[0]);
    assert!(newest(FAST).max(newest(SLOW)) < stranger);
    let bytes = disk.read_raw(others[0].as_ref(), &stranger).unwrap();
    disk.write_raw(FAST.as_ref(), &stranger, &bytes);
    let store = Db::builder(with_paths([FAST, SLOW])).medium(0, Arc::new(disk.clone()));
    let sound = store
        .medium(1, Arc::new(disk.clone()))
        .repair(true)
        .unwrap();
    assert_eq!(sound.problems, Vec::<String>::new());
    assert!(open(&disk, &with_paths([FAST, SLOW])).is_ok());
}

/// Regression: a table that was put into another tier's directory by hand was reported missing. Its
/// file was removed without a copy, though it was whole.
#[test]
fn a_table_in_another_tiers_directory_is_taken_from_there() {
    let disk = Faulty::new(1);
    filled(&disk, [FAST, SLOW]);
    let builder = || on_two_tiers(&disk);
    let all = {
        let db = open(&disk, &with_paths([FAST, SLOW])).unwrap();
        let all = db.iter().count();
        db.close().unwrap();
        all
    };
    let (moved, bytes) = first_table(&disk, SLOW);
    disk.write_raw(FAST.as_ref(), &moved, &bytes);
    let slow = disk.table_store(SLOW.as_ref(), false).unwrap();
    slow.remove(&moved).unwrap();
    assert!(builder().open().unwrap_err().is_corruption());

    let report = builder().repair(false).unwrap();
    assert!(report.losses.is_empty() && !report.rebuilt, "{report:?}");
    assert_eq!(report.rewritten, 1, "{report:?}");
    let aside = Path::new(FAST).join("lost").join(&moved);
    assert!(report.set_aside.contains(&aside), "{report:?}");
    assert!(
        disk.read_raw(&Path::new(FAST).join("lost"), &moved)
            .unwrap()
            == bytes
    );
    let db = builder().open().unwrap();
    assert_eq!(db.iter().count(), all);
}

/// Regression: a repair removed a damaged `TIER` before it wrote a new one. When it was cut short
/// in between, it left a tier that held nothing at all, and the next repair refused that as a
/// device that is not mounted.
#[test]
fn a_repair_that_is_cut_short_at_an_identity_is_repeated() {
    let disk = Faulty::new(1);
    let builder = on_two_tiers;
    let db = builder(&disk).open().unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    drop(db);
    disk.corrupt(SLOW.as_ref(), "TIER", 20, 1).unwrap();
    for call in 1.. {
        let disk = disk.image(|_| true);
        disk.fail_nth(call, Fault::PowerLoss);
        let _cut_short = builder(&disk).repair(false);
        for keeps in [false, true] {
            let left = disk.image(|_| keeps);
            let repaired = builder(&left).repair(false);
            assert!(repaired.is_ok(), "call {call}, {keeps}: {repaired:?}");
            let db = builder(&left).open().unwrap();
            assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
        }
        if disk.triggered() == 0 {
            break;
        }
    }
}

/// Regression: a repair had put a new `TIER` in the place of a damaged one, and the sync of the
/// directory failed. The next process found the new file in the system's cache, and its own sync
/// brought nothing back. After a loss of power the damaged one was there again, and the store, with
/// acknowledged writes, was refused. The same happens when a repair is killed before it syncs.
#[test]
fn an_identity_that_a_repair_has_replaced_is_durable_once_the_store_is_open() {
    for dir in [FAST, SLOW].map(Path::new) {
        let disk = Faulty::new(1);
        on_two_tiers(&disk).open().unwrap().close().unwrap();
        disk.corrupt(dir, "TIER", 20, 1).unwrap();
        let is_renamed = AtomicBool::new(false);
        let next_sync = move |operation, name: &str| match operation {
            Operation::Rename if name == "TIER.tmp" => {
                is_renamed.store(true, Ordering::SeqCst);
                false
            }
            Operation::SyncDir => is_renamed.swap(false, Ordering::SeqCst),
            _ => false,
        };
        disk.fail_where(next_sync, Fault::SyncFails);
        let failed = on_two_tiers(&disk).repair(false);
        assert!(
            matches!(failed, Err(Error::Poisoned { .. })),
            "{dir:?}: {failed:?}"
        );
        disk.heal();
        let sound = on_two_tiers(&disk).repair(false).unwrap();
        assert_eq!(sound.problems, Vec::<String>::new());
        let db = on_two_tiers(&disk).open().unwrap();
        db.put_with("key", "value", Durability::Sync).unwrap();
        let disk = disk.crash(CrashStyle::LoseAll);
        let db = on_two_tiers(&disk).open().unwrap();
        assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    }
}

/// Regression: a table was damaged where it belongs, and had a whole copy in another tier's
/// directory. What could be read of the damaged one was kept, what could not counted as lost, and
/// then the whole copy was removed.
#[test]
fn a_whole_copy_of_a_damaged_table_is_taken_from_another_tiers_directory() {
    let disk = Faulty::new(1);
    filled(&disk, [FAST, SLOW]);
    let builder = || on_two_tiers(&disk);
    let (name, bytes) = first_table(&disk, SLOW);
    disk.write_raw(FAST.as_ref(), &name, &bytes);
    disk.corrupt(SLOW.as_ref(), &name, 100, 1).unwrap();

    let report = builder().repair(false).unwrap();
    assert!(report.losses.is_empty(), "{report:?}");
    for dir in [FAST, SLOW] {
        let aside = Path::new(dir).join("lost").join(&name);
        assert!(report.set_aside.contains(&aside), "{report:?}");
    }
    assert_eq!(builder().open().unwrap().iter().count(), 700);
}

/// Regression: a table had the same name as one that an earlier repair, of a store that was
/// destroyed since, had set aside. It was said to be set aside, and was removed: the report named
/// the other's file.
#[test]
fn a_table_is_set_aside_beside_another_of_its_name() {
    let disk = Faulty::new(1);
    filled(&disk, [FAST, SLOW]);
    let builder = || on_two_tiers(&disk);
    let (name, _) = first_table(&disk, SLOW);
    let lost = Path::new(SLOW).join("lost");
    disk.write_raw(&lost, &name, b"another's");
    disk.corrupt(SLOW.as_ref(), &name, 100, 1).unwrap();
    let damaged = disk.read_raw(SLOW.as_ref(), &name).unwrap();

    let report = builder().repair(false).unwrap();
    assert!(!report.losses.is_empty(), "{report:?}");
    let mut tables = report.set_aside.iter().filter(|path| path.ends_with(&name));
    let aside = tables.next().unwrap().parent().unwrap();
    assert!(disk.read_raw(aside, &name).unwrap() == damaged);
    assert_eq!(disk.read_raw(&lost, &name).unwrap(), b"another's");
}

/// Regression: when a repair failed, for want of room on the fast tier for example, what it had
/// merged stayed on the slow one. That was as much as the store, and as much again with each
/// attempt. The repair that succeeded put all of it into `lost/`.
#[test]
fn a_repair_that_fails_leaves_no_table_of_its_own() {
    let disk = Faulty::new(1);
    let db = on_two_tiers(&disk).open().unwrap();
    let side = db.create_keyspace("side").unwrap();
    for n in 0..20u8 {
        db.put(format!("key{n:02}"), [n; 100]).unwrap();
        side.put(format!("key{n:02}"), [n; 100]).unwrap();
    }
    db.flush().unwrap();
    db.close().unwrap();
    drop((side, db));
    lose_the_manifest(&disk);
    let before = tables(&disk);
    let whole = disk.image(|_| true);
    assert!(on_two_tiers(&whole).repair(false).unwrap().rebuilt);
    let mut failed = 0;
    for call in 1..=whole.calls() {
        let disk = disk.image(|_| true);
        disk.fail_nth(call, Fault::NoSpace);
        let repaired = on_two_tiers(&disk).repair(false);
        let is_named = disk.read_raw(FAST.as_ref(), "CURRENT").is_ok();
        // Most calls need no room. Also, a rename of `CURRENT` that failed may have taken effect.
        if repaired.is_ok() || is_named || matches!(repaired, Err(Error::Poisoned { .. })) {
            continue;
        }
        failed += 1;
        assert_eq!(tables(&disk), before, "call {call}: {repaired:?}");
        disk.heal();
        assert!(on_two_tiers(&disk).repair(false).unwrap().repaired);
        for dir in [FAST, SLOW] {
            let mut lost = disk.list_raw(&Path::new(dir).join("lost")).into_iter();
            let own = lost.find(|file| file.name.ends_with(".sst") && !before.contains(&file.name));
            assert_eq!(own, None, "call {call}, {dir}");
        }
        let db = on_two_tiers(&disk).open().unwrap();
        let side = db.keyspace("side").unwrap();
        assert_eq!((db.iter().count(), side.iter().count()), (20, 20));
    }
    // For either merge, the table is created and some blocks are appended to it. Then there is the
    // manifest.
    assert!(failed > 10, "{failed}");
}

/// Regression: the reason why a table was condemned and what was lost of it were reported as two
/// problems, in different words.
#[test]
fn a_damaged_block_is_one_problem() {
    let disk = Faulty::new(1);
    filled(&disk, [FAST, SLOW]);
    for (damaged, dir) in [SLOW, FAST].into_iter().enumerate() {
        let (table, _) = first_table(&disk, dir);
        disk.corrupt(dir.as_ref(), &table, 100, 1).unwrap();
        let report = on_two_tiers(&disk).repair(true).unwrap();
        assert!(!report.rebuilt, "{report:?}");
        assert_eq!(report.problems.len(), damaged + 1, "{report:?}");
        let file = Path::new(dir).join(table).display().to_string();
        let mut problems = report.problems.iter();
        assert!(problems.any(|problem| problem.starts_with(&file)));
    }
}

/// Regression: when a repair could not remove a table that it had replaced, it failed and its
/// report was gone. The store was sound by then: the next repair found nothing wrong, and nobody
/// was told which keys were lost.
#[test]
fn a_repair_that_cannot_clear_away_says_what_is_lost() {
    let disk = Faulty::new(1);
    filled(&disk, [FAST, SLOW]);
    let (damaged, _) = first_table(&disk, SLOW);
    disk.corrupt(SLOW.as_ref(), &damaged, 100, 1).unwrap();
    let removal = |operation, name: &str| operation == Operation::Remove && name.ends_with(".sst");
    disk.fail_where(removal, Fault::Io);
    let report = on_two_tiers(&disk).repair(false).unwrap();
    assert!(disk.triggered() > 0, "{report:?}");
    assert!(report.repaired && !report.losses.is_empty(), "{report:?}");
    let mut problems = report.problems.iter();
    let is_told = problems.any(|problem| problem.contains("planted fault"));
    assert!(is_told, "{report:?}");
    disk.heal();
    let sound = on_two_tiers(&disk).repair(true).unwrap();
    assert_eq!(sound.problems, Vec::<String>::new());
    let db = on_two_tiers(&disk).open().unwrap();
    assert!(db.recovery().orphans > 0);
}

/// The store of these tests, as one of a single tier.
fn on_one_tier(disk: &Faulty) -> DbBuilder {
    let mut options = tiny_options();
    options.tiers.truncate(1);
    options.tiers[0].path = FAST.into();
    Db::builder(options).medium(0, Arc::new(disk.clone()))
}

/// The store of these tests.
fn on_two_tiers(disk: &Faulty) -> DbBuilder {
    let builder = Db::builder(with_paths([FAST, SLOW])).medium(0, Arc::new(disk.clone()));
    builder.medium(1, Arc::new(disk.clone()))
}

/// A table in `dir`, by name and bytes.
fn first_table(disk: &Faulty, dir: &str) -> (String, Vec<u8>) {
    let files = disk.list_raw(dir.as_ref()).into_iter();
    let mut names = files.map(|file| file.name);
    let name = names.find(|name| name.ends_with(".sst")).unwrap();
    let bytes = disk.read_raw(dir.as_ref(), &name).unwrap();
    (name, bytes)
}

/// The tables of both tiers, by name.
fn tables(disk: &Faulty) -> Vec<String> {
    let files = [FAST, SLOW].map(|dir| disk.list_raw(dir.as_ref()));
    let names = files.into_iter().flatten().map(|file| file.name);
    names.filter(|name| name.ends_with(".sst")).collect()
}

pub(crate) fn lose_the_manifest(disk: &Faulty) {
    let log = disk.log_store(FAST.as_ref(), false).unwrap();
    for file in disk.list_raw(FAST.as_ref()) {
        if file.name == "CURRENT" || file.name.starts_with("MANIFEST") {
            log.remove(&file.name).unwrap();
        }
    }
}
