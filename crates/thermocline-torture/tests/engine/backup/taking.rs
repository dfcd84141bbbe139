//! Backups as they are taken: what is copied, what is shared, and what they hold of a store.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use thermocline::storage::{CrashStyle, Fault, Faulty, Medium};
use thermocline::{Backups, Batch, Db, Error, FilterPolicy};
use thermocline_torture::life::history::contents;
use thermocline_torture::stores::{memory, open_on, small_options};

use super::support::{BACKUPS, TABLES, at, backed_up, backups, builder, copy, restored, write};

#[test]
fn each_generation_is_the_store_as_it_was_and_only_new_tables_are_copied() {
    let disk = Faulty::new(1);
    let db = builder(&disk, "store").open().unwrap();
    let backups = backups(&disk);
    let mut states = Vec::new();
    write(&db, 0, 6000);
    db.wait_idle().unwrap();
    assert!(
        db.metrics().tiers[1].table_bytes > 0,
        "both tiers are in use"
    );
    for round in 0..3 {
        let report = backups.take(&db).unwrap();
        assert_eq!(report.generation, round as u64 + 1);
        // A small change leaves most tables as they are.
        assert_eq!(
            report.copied_tables == report.tables,
            round == 0,
            "{report:?}"
        );
        assert!(report.copied_tables > 0, "{report:?}");
        states.push(contents(&db).unwrap());
        write(&db, round + 1, 60);
    }
    // Without a change there is nothing to copy.
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let before = backups.take(&db).unwrap();
    assert_eq!(backups.take(&db).unwrap().copied_tables, 0, "{before:?}");
    for (round, state) in states.iter().enumerate() {
        let found = restored(
            &disk,
            &backups,
            round as u64 + 1,
            &format!("restored{round}"),
        );
        assert_eq!(found, *state, "generation {}", round + 1);
    }
    assert_eq!(backups.generations().unwrap().len(), 5);
    assert_eq!(backups.verify(None).unwrap().1.len(), 0);
}

#[test]
fn a_backup_and_a_checkpoint_under_load_are_a_snapshot() {
    let medium = memory();
    let db = open_on(&small_options(), &medium).unwrap();
    let other = db.create_keyspace("other").unwrap();
    let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1u64.. {
                let mut batch = Batch::new();
                batch.put("count", n.to_be_bytes());
                batch.put_in(&other, "count", n.to_be_bytes());
                batch.put_in(&other, format!("filler{}", n % 5000), [n as u8; 300]);
                db.write(batch).unwrap();
                written.store(n, Ordering::SeqCst);
                if stop.load(Ordering::SeqCst) {
                    return;
                }
            }
        });
        let backups = Backups::open_on(&*medium, BACKUPS).unwrap();
        for round in 0..4 {
            while written.load(Ordering::SeqCst) < (round + 1) * 500 {
                thread::yield_now();
            }
            let name = format!("copy{round}");
            let before = written.load(Ordering::SeqCst);
            if round % 2 == 0 {
                backups.take(&db).unwrap();
                let mut builder = Db::builder(at(&name));
                for tier in 0..2 {
                    builder = builder.medium(tier, Arc::clone(&medium));
                }
                backups.restore_with(None, builder).unwrap();
            } else {
                let paths: Vec<_> = at(&name).tiers.into_iter().map(|tier| tier.path).collect();
                db.checkpoint(&paths).unwrap();
            }
            let after = written.load(Ordering::SeqCst) + 1;
            let copy = open_on(&at(&name), &medium).unwrap();
            let count = |value: Option<thermocline::Value>| {
                u64::from_be_bytes(value.unwrap()[..].try_into().unwrap())
            };
            let one = count(copy.get("count").unwrap());
            let two = count(copy.keyspace("other").unwrap().get("count").unwrap());
            assert_eq!(one, two, "half a batch");
            assert!((before..=after).contains(&one), "{before} {one} {after}");
            // It holds every batch up to that one, and none behind it.
            let fillers = copy.keyspace("other").unwrap();
            let fillers = fillers.prefix("filler").count() as u64;
            assert_eq!(fillers, one.min(5000));
        }
        stop.store(true, Ordering::SeqCst);
    });
}

#[test]
fn a_backup_that_is_cut_short_leaves_the_generations_before_it_whole() {
    let disk = Faulty::new(1);
    let db = builder(&disk, "store").open().unwrap();
    write(&db, 0, 300);
    backups(&disk).take(&db).unwrap();
    let first = contents(&db).unwrap();
    write(&db, 1, 300);
    let second = contents(&db).unwrap();
    db.close().unwrap();
    drop(db);
    let mut cut_short = 0;
    for call in 1.. {
        let disk = copy(&disk);
        let db = builder(&disk, "store").open().unwrap();
        let (begun, style) = (backups(&disk), CrashStyle::Random);
        disk.fail_nth(call, Fault::PowerLoss);
        let taken = begun.take(&db);
        if disk.triggered() == 0 {
            assert!(taken.is_ok());
            break;
        }
        cut_short += u64::from(taken.is_err());
        drop((begun, db));
        let disk = disk.crash(style);
        let backups = backups(&disk);
        let there = backups.generations().unwrap().len();
        assert!((1..=2).contains(&there), "{call}");
        assert_eq!(restored(&disk, &backups, 1, "one"), first, "call {call}");
        if there == 2 {
            assert_eq!(restored(&disk, &backups, 2, "two"), second, "call {call}");
        }
        // The next backup goes on from there.
        let db = builder(&disk, "store").open().unwrap();
        let next = backups.take(&db).unwrap().generation;
        assert_eq!(
            restored(&disk, &backups, next, "next"),
            second,
            "call {call}"
        );
    }
    assert!(cut_short > 10, "{cut_short}");
}

#[test]
fn a_damaged_store_is_not_backed_up() {
    let disk = Faulty::new(1);
    let db = builder(&disk, "store").open().unwrap();
    write(&db, 0, 300);
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let dir = Path::new("/store/fast");
    let mut tables = disk.list_raw(dir).into_iter();
    let table = tables.find(|file| file.name.ends_with(".sst")).unwrap();
    disk.corrupt(dir, &table.name, table.len / 3, 1).unwrap();
    let backups = backups(&disk);
    let error = backups.take(&db).unwrap_err();
    assert!(error.is_corruption() && error.to_string().contains(&table.name));
    assert_eq!(backups.generations().unwrap(), []);
}

/// Regression: a table that an earlier generation has was not looked at. If its file was gone or
/// cut short, the backup reported success and could not be restored, although the store had the
/// table all along.
#[test]
fn a_table_that_the_backup_has_lost_is_copied_again() {
    for is_removed in [true, false] {
        let disk = Faulty::new(1);
        let db = builder(&disk, "store").open().unwrap();
        let backups = backups(&disk);
        write(&db, 0, 300);
        db.flush().unwrap();
        db.wait_idle().unwrap();
        backups.take(&db).unwrap();
        let dir = Path::new(TABLES);
        let lost = disk.list_raw(dir).pop().unwrap();
        if is_removed {
            let tables = disk.table_store(dir, false).unwrap();
            tables.remove(&lost.name).unwrap();
        } else {
            let whole = disk.read_raw(dir, &lost.name).unwrap();
            disk.write_raw(dir, &lost.name, &whole[..whole.len() / 2]);
        }
        let report = backups.take(&db).unwrap();
        assert_eq!(report.copied_tables, 1, "{report:?}");
        assert_eq!(report.copied_bytes, lost.len);
        // The backup before it is whole again too.
        for number in [1, 2] {
            assert_eq!(backups.verify(Some(number)).unwrap().1.len(), 0);
        }
        assert_eq!(
            restored(&disk, &backups, 2, "restored"),
            contents(&db).unwrap()
        );
    }
}

/// Two stores that were restored from one backup give the same numbers to different tables. A table
/// in the backup that one of them wrote must not be taken for one that the other wrote.
#[test]
fn stores_that_went_different_ways_do_not_share_tables_by_number() {
    let disk = Faulty::new(1);
    let db = builder(&disk, "store").open().unwrap();
    let backups = backups(&disk);
    db.put("key", "common").unwrap();
    backups.take(&db).unwrap();
    backups.restore_with(None, builder(&disk, "other")).unwrap();
    let other = builder(&disk, "other").open().unwrap();
    // The tables have the same length and one sequence number: only the value differs.
    let mut states = Vec::new();
    for (db, value) in [(&db, "this way"), (&other, "that way")] {
        for n in 0..8 {
            db.put(format!("key{n}"), value).unwrap();
        }
        db.flush().unwrap();
        backups.take(db).unwrap();
        states.push(contents(db).unwrap());
    }
    for (index, state) in states.iter().enumerate() {
        let found = restored(
            &disk,
            &backups,
            index as u64 + 2,
            &format!("restored{index}"),
        );
        assert_eq!(found, *state);
    }
}

#[test]
fn one_directory_takes_backups_of_one_store_and_one_process() {
    let disk = Faulty::new(1);
    let db = builder(&disk, "store").open().unwrap();
    let backups = backups(&disk);
    backups.take(&db).unwrap();
    let second = Backups::open_on(&disk, BACKUPS);
    assert!(matches!(second, Err(Error::Locked { .. })));
    let mut options = at("foreign");
    options.seed = Some(99);
    let medium: Arc<dyn Medium> = Arc::new(disk.clone());
    let foreign = open_on(&options, &medium).unwrap();
    let refused = backups.take(&foreign);
    assert!(
        matches!(refused, Err(Error::WrongTier { .. })),
        "{refused:?}"
    );
    let into_itself = backups.restore_with(None, builder(&disk, "store"));
    assert!(into_itself.is_err(), "a store is not overwritten");
}

/// Regression: records do not say which keyspace they belong to. A table of one store was taken for
/// one of another keyspace of the other store. That store's generation was verified and restored,
/// and could not be opened.
#[test]
fn a_table_of_another_keyspace_with_the_same_data_is_another() {
    let disk = Faulty::new(1);
    let db = builder(&disk, "store").open().unwrap();
    db.put("key", "value").unwrap();
    let backups = backups(&disk);
    backups.take(&db).unwrap();
    let stores = [("a", "one"), ("b", "two")].map(|(name, written)| {
        let restored = builder(&disk, name);
        backups.restore_with(Some(1), restored).unwrap();
        let db = builder(&disk, name).open().unwrap();
        for keyspace in ["one", "two"] {
            db.create_keyspace(keyspace).unwrap();
        }
        let keyspace = db.keyspace(written).unwrap();
        keyspace.put("new", "same").unwrap();
        db.flush().unwrap();
        db
    });
    for store in &stores {
        backups.take(store).unwrap();
    }
    for (number, written) in [(2, "one"), (3, "two")] {
        let name = format!("again{number}");
        let restored = builder(&disk, &name);
        backups.restore_with(Some(number), restored).unwrap();
        let db = builder(&disk, &name).open().unwrap();
        let found = db.keyspace(written).unwrap().get("new").unwrap();
        assert_eq!(found.as_deref(), Some(&b"same"[..]), "generation {number}");
    }
}

/// Regression: two stores that were restored from one backup give their files the same numbers.
/// Tables of the same data with different filters have different lengths. One store's file was
/// taken for the other's, so the other's generation was damaged from its beginning, and the next
/// backup removed the file that the first store's generation needed.
#[test]
fn a_file_of_another_store_with_the_same_data_is_another() {
    let (disk, _) = backed_up(300);
    let of = |name: &str, filter| {
        let mut options = at(name);
        for tier in &mut options.tiers {
            tier.filter = filter;
        }
        let builder = Db::builder(options).medium(0, Arc::new(disk.clone()));
        builder.medium(1, Arc::new(disk.clone()))
    };
    let backups = backups(&disk);
    let names = [("a", FilterPolicy::Fuse8), ("b", FilterPolicy::None)];
    let stores = names.map(|(name, filter)| {
        backups.restore_with(Some(1), of(name, filter)).unwrap();
        let db = of(name, filter).open().unwrap();
        for n in 0..100 {
            db.put(format!("new{n:03}"), [7; 100]).unwrap();
        }
        db.flush().unwrap();
        db
    });
    for store in [0, 1, 1] {
        backups.take(&stores[store]).unwrap();
    }
    for generation in 2..=4 {
        let (_, problems) = backups.verify(Some(generation)).unwrap();
        assert!(problems.is_empty(), "{generation}: {problems:?}");
    }
}
