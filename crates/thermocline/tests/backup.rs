//! Backups: generations that share tables, each a whole store as it was at one moment, whatever else goes
//! on and whatever is cut short.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use thermocline::storage::{CrashStyle, Fault, Faulty, Medium, Operation};
use thermocline::{Backups, Batch, Db, DbBuilder, Error, Options, Points};
use thermocline_torture::life::history::{Contents, contents};
use thermocline_torture::stores::{memory, open_on, small_options};

const BACKUPS: &str = "/backups";
const TABLES: &str = "/backups/tables";

/// How long a test waits for what must not happen, or at most for what must.
const A_MOMENT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(30);

/// The options of a store whose tiers lie in directories of this name.
fn at(name: &str) -> Options {
    let mut options = small_options();
    options.tiers[0].capacity = 24 * (32 << 10);
    for tier in &mut options.tiers {
        tier.path = format!("/{name}{}", tier.path.display()).into();
    }
    options
}

fn builder(disk: &Faulty, name: &str) -> DbBuilder {
    let medium: Arc<dyn Medium> = Arc::new(disk.clone());
    let builder = Db::builder(at(name)).medium(0, Arc::clone(&medium));
    builder.medium(1, medium)
}

fn backups(disk: &Faulty) -> Backups {
    Backups::open_on(disk, BACKUPS).unwrap()
}

/// Writes `count` records whose values tell the round, and deletes the odd one; enough of them reach the
/// slow tier.
fn write(db: &Db, round: usize, count: usize) {
    let side = db.create_keyspace("side").unwrap();
    for n in 0..count {
        let key = format!("key{:05}", n * 7919 % count);
        let value = format!("{round}:{n}:{}", "x".repeat(200));
        if n % 3 == 0 {
            side.put(&key, &value).unwrap();
        }
        match n % 11 == round {
            true => db.delete(&key).map(|_| ()).unwrap(),
            false => db.put(&key, value).map(|_| ()).unwrap(),
        }
    }
}

/// What generation `number` is restored to.
fn restored(disk: &Faulty, backups: &Backups, number: u64, name: &str) -> Contents {
    let restored = backups.restore_with(Some(number), builder(disk, name));
    assert_eq!(restored.unwrap().generation, number);
    let db = builder(disk, name).open().unwrap();
    let report = db.verify(&mut |_| {}).unwrap();
    assert_eq!(report.problems.len(), 0, "{:?}", report.problems);
    assert_eq!(db.recovery().orphans, 0);
    contents(&db).unwrap()
}

/// The same files on a disk of their own.
fn copy(disk: &Faulty) -> Faulty {
    let copy = Faulty::new(1);
    for dir in [
        "/store/fast",
        "/store/fast/ralt",
        "/store/slow",
        BACKUPS,
        TABLES,
    ] {
        let dir = Path::new(dir);
        copy.log_store(dir, true).unwrap();
        for file in disk.list_raw(dir) {
            copy.write_raw(dir, &file.name, &disk.read_raw(dir, &file.name).unwrap());
        }
    }
    copy
}

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
            // Every batch up to that one, and none behind it.
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
        // The next one goes on from there.
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
fn a_restore_that_is_cut_short_leaves_no_store() {
    let disk = Faulty::new(1);
    let db = builder(&disk, "store").open().unwrap();
    write(&db, 0, 300);
    backups(&disk).take(&db).unwrap();
    let state = contents(&db).unwrap();
    drop(db);
    for call in 1.. {
        let disk = copy(&disk);
        let begun = backups(&disk);
        disk.fail_nth(call, Fault::PowerLoss);
        let done = begun.restore_with(None, builder(&disk, "restored"));
        let triggered = disk.triggered() > 0;
        drop(begun);
        let disk = disk.crash(CrashStyle::Random);
        let mut options = at("restored");
        options.create_if_missing = false;
        let opened = open_on(&options, &(Arc::new(disk.clone()) as Arc<dyn Medium>));
        match opened {
            Ok(db) => assert_eq!(contents(&db).unwrap(), state, "call {call}"),
            Err(error) => assert!(done.is_err(), "call {call}: {error}"),
        }
        if !triggered {
            break;
        }
    }
}

#[test]
fn every_damaged_file_of_a_backup_is_named_and_not_restored() {
    let disk = Faulty::new(1);
    let db = builder(&disk, "store").open().unwrap();
    write(&db, 0, 300);
    backups(&disk).take(&db).unwrap();
    drop(db);
    let mut files = 0;
    for dir in [BACKUPS, TABLES].map(Path::new) {
        for file in disk.list_raw(dir).into_iter().filter(|file| file.len > 0) {
            files += 1;
            for at in (0..file.len).step_by(file.len as usize / 20 + 1) {
                let disk = copy(&disk);
                disk.corrupt(dir, &file.name, at, 0x08).unwrap();
                let backups = backups(&disk);
                let problem = match backups.verify(None) {
                    Ok((_, mut problems)) => problems.pop().unwrap(),
                    Err(error) => error,
                };
                let restored = backups.restore_with(None, builder(&disk, "restored"));
                for error in [problem, restored.unwrap_err()] {
                    assert!(error.is_corruption(), "{error}");
                    assert!(error.to_string().contains(&file.name), "{error}");
                }
                let mut options = self::at("restored");
                options.create_if_missing = false;
                let medium: Arc<dyn Medium> = Arc::new(disk);
                assert!(open_on(&options, &medium).is_err());
            }
        }
    }
    assert!(files > 2, "{files}");
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

#[test]
fn pruning_keeps_what_the_generations_that_stay_need() {
    let disk = Faulty::new(1);
    let db = builder(&disk, "store").open().unwrap();
    let backups = backups(&disk);
    let mut last = Contents::new();
    for round in 0..4 {
        write(&db, round, 600);
        db.compact_range::<&[u8]>(..).unwrap();
        backups.take(&db).unwrap();
        last = contents(&db).unwrap();
    }
    let bytes = || -> u64 { disk.list_raw(Path::new(TABLES)).iter().map(|f| f.len).sum() };
    let before = bytes();
    assert_eq!(backups.prune(2).unwrap(), [1, 2]);
    assert!(bytes() < before);
    assert_eq!(backups.verify(Some(3)).unwrap().1.len(), 0);
    assert_eq!(restored(&disk, &backups, 4, "restored"), last);
    let gone = backups.restore_with(Some(1), builder(&disk, "gone"));
    assert!(matches!(gone, Err(Error::NotFound { .. })));
    // The last one always stays.
    assert_eq!(backups.prune(0).unwrap(), [3]);
    assert_eq!(backups.verify(None).unwrap().0.bytes, bytes());
}

/// Threads with one handle took no notice of each other: what a backup had copied and not named yet another thread that pruned
/// removed, and both reported success.
#[test]
fn nothing_is_pruned_while_a_backup_is_taken() {
    let (disk, points) = (Faulty::new(1), Points::default());
    let store = builder(&disk, "store").points(points.clone());
    let db = store.open().unwrap();
    let backups = Arc::new(backups(&disk));
    write(&db, 0, 300);
    backups.take(&db).unwrap();
    write(&db, 1, 300);
    let state = contents(&db).unwrap();
    let (answer, answers) = mpsc::channel();
    let answers = Arc::new(Mutex::new(answers));
    let was_early = Arc::new(AtomicBool::new(false));
    let (pruner, asked) = (Arc::clone(&backups), Arc::clone(&answers));
    let is_early = Arc::clone(&was_early);
    points.set("backup.before_generation", move || {
        let (pruner, answer) = (Arc::clone(&pruner), answer.clone());
        thread::spawn(move || answer.send(pruner.prune(1)));
        // Long enough for it to remove what no generation names, if it may.
        let early = asked.lock().unwrap().recv_timeout(A_MOMENT);
        is_early.store(early.is_ok(), Ordering::SeqCst);
        Ok(())
    });
    backups.take(&db).unwrap();
    points.clear("backup.before_generation");
    assert!(!was_early.load(Ordering::SeqCst));
    let pruned = answers.lock().unwrap().recv_timeout(LONG).unwrap();
    assert_eq!(pruned.unwrap(), [1]);
    assert_eq!(backups.verify(None).unwrap().1.len(), 0);
    assert_eq!(restored(&disk, &backups, 2, "restored"), state);
}

/// The directory could not be synced when a backup was put in force. The generation was listed all the same, and the next prune
/// removed all others for it: when the power went, none was left (I9).
#[test]
fn no_generation_goes_for_one_that_is_not_durable() {
    let (disk, points) = (Faulty::new(1), Points::default());
    let store = builder(&disk, "store").points(points.clone());
    let db = store.open().unwrap();
    let first = backups(&disk);
    write(&db, 0, 300);
    first.take(&db).unwrap();
    write(&db, 1, 300);
    let state = contents(&db).unwrap();
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let device = disk.clone();
    points.set("backup.before_generation", move || {
        let is_sync = |operation, _: &str| operation == Operation::SyncDir;
        device.fail_where(is_sync, Fault::SyncFails);
        Ok(())
    });
    let taken = first.take(&db).map(|_| ());
    points.clear("backup.before_generation");
    disk.heal();
    for failed in [
        taken,
        first.take(&db).map(|_| ()),
        first.prune(1).map(|_| ()),
    ] {
        assert!(matches!(failed, Err(Error::Poisoned { .. })), "{failed:?}");
    }
    drop(first);
    let second = backups(&disk);
    assert_eq!(second.generations().unwrap().len(), 2);
    assert_eq!(second.prune(1).unwrap(), [1]);
    drop((second, db));
    let disk = disk.crash(CrashStyle::KeepAll);
    let backups = backups(&disk);
    assert_eq!(restored(&disk, &backups, 2, "restored"), state);
}

/// A table that an earlier generation has was not looked at: where its file was gone or cut short the backup reported success, and
/// could not be restored, while the store had the table all along.
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
        // The one before it is whole again too.
        for number in [1, 2] {
            assert_eq!(backups.verify(Some(number)).unwrap().1.len(), 0);
        }
        assert_eq!(
            restored(&disk, &backups, 2, "restored"),
            contents(&db).unwrap()
        );
    }
}

/// Tables stayed behind from a restore that failed: the next one found its directories not empty, and there was no store to destroy.
#[test]
fn a_restore_that_failed_can_be_repeated() {
    let disk = Faulty::new(1);
    let db = builder(&disk, "store").open().unwrap();
    write(&db, 0, 6000);
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let state = contents(&db).unwrap();
    backups(&disk).take(&db).unwrap();
    drop(db);
    let mut one_tier = at("restored");
    one_tier.tiers.truncate(1);
    let one_tier = Db::builder(one_tier).medium(0, Arc::new(disk.clone()));
    let refused = backups(&disk).restore_with(None, one_tier);
    assert!(
        matches!(refused, Err(Error::InvalidOption { .. })),
        "{refused:?}"
    );
    assert_eq!(restored(&disk, &backups(&disk), 1, "restored"), state);
}

/// As above, wherever a restore is cut short.
#[test]
fn what_a_restore_leaves_can_be_restored_over_or_destroyed() {
    let disk = Faulty::new(1);
    let db = builder(&disk, "store").open().unwrap();
    write(&db, 0, 300);
    backups(&disk).take(&db).unwrap();
    let state = contents(&db).unwrap();
    drop(db);
    let (mut repeated, mut destroyed) = (0, 0);
    for fault in [Fault::Io, Fault::PowerLoss] {
        for call in 1.. {
            let mut disk = copy(&disk);
            let begun = backups(&disk);
            disk.fail_nth(call, fault);
            let done = begun.restore_with(None, builder(&disk, "restored"));
            if disk.triggered() == 0 {
                done.unwrap();
                break;
            }
            drop(begun);
            if fault == Fault::PowerLoss {
                disk = disk.crash(CrashStyle::KeepAll);
            }
            // A fault may have come where it does no harm.
            if done.is_ok() {
                continue;
            }
            let again = backups(&disk).restore_with(None, builder(&disk, "restored"));
            if again.is_ok() {
                repeated += 1;
            } else {
                assert!(
                    matches!(done, Err(Error::Poisoned { .. })) || fault == Fault::PowerLoss,
                    "{fault:?} at call {call}: {done:?}, then {again:?}"
                );
                let gone = builder(&disk, "restored").destroy();
                if fault == Fault::PowerLoss && gone.is_err() {
                    // Before it was written whose the directories are there was nothing else.
                    let dirs = ["/restored/fast", "/restored/slow"].map(Path::new);
                    let mut left = dirs.iter().flat_map(|dir| disk.list_raw(dir));
                    assert!(
                        left.all(|file| file.name == "TIER"),
                        "call {call}: {gone:?}"
                    );
                    continue;
                }
                assert!(
                    gone.is_ok(),
                    "{fault:?} at call {call}: {done:?}, then {gone:?}"
                );
                let again = backups(&disk).restore_with(None, builder(&disk, "restored"));
                again.unwrap();
                destroyed += 1;
            }
            let db = builder(&disk, "restored").open().unwrap();
            assert_eq!(contents(&db).unwrap(), state, "{fault:?} at call {call}");
        }
    }
    assert!(repeated > 10 && destroyed > 10, "{repeated}, {destroyed}");
}

/// Two stores that were restored from one backup give the same numbers to different tables. What one of
/// them has in the backup must not be taken for what the other one wrote.
#[test]
fn stores_that_went_different_ways_do_not_share_tables_by_number() {
    let disk = Faulty::new(1);
    let db = builder(&disk, "store").open().unwrap();
    let backups = backups(&disk);
    db.put("key", "common").unwrap();
    backups.take(&db).unwrap();
    backups.restore_with(None, builder(&disk, "other")).unwrap();
    let other = builder(&disk, "other").open().unwrap();
    // The same length, and one sequence number: nothing but the value differs.
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
