//! Bugs that the crash and fault tests found, each with a test of its own.

use std::sync::atomic::{AtomicBool, Ordering};

use thermocline::storage::{CrashStyle, Fault, Operation};
use thermocline::{Batch, Db, Durability, Error, Expect};
use thermocline_torture::life::{FAST, SIDE, SLOW, Step, Stop, Trial};

/// Recovery skips log records at or below their keyspace's flushed-through sequence (I5), and took
/// a keyspace without one for a dropped keyspace. A new keyspace had none before its first flush.
/// So everything that was written to it until then, synced or not, was gone after reopening.
#[test]
fn a_new_keyspace_keeps_what_was_written_before_its_first_flush() {
    let mut trial = Trial::new(1);
    let db = trial.db().unwrap();
    let side = db.create_keyspace(SIDE).unwrap();
    side.put_with("key", "value", Durability::Sync).unwrap();
    drop((db, side));
    let disk = trial.disk.crash(CrashStyle::LoseAll);
    trial.db = None;
    trial.disk = disk;
    let side = trial.open_at([FAST, SLOW]).unwrap().keyspace(SIDE).unwrap();
    assert_eq!(side.get("key").unwrap().as_deref(), Some(&b"value"[..]));
}

/// A failed sync of the manifest's edit was reported to the caller who created or dropped a
/// keyspace, but not to the store, which went on acknowledging writes (I9).
#[test]
fn a_failed_sync_while_a_keyspace_is_created_or_dropped_stops_writing() {
    for drops in [false, true] {
        let mut trial = Trial::new(1);
        let db = trial.db().unwrap();
        db.create_keyspace("old").unwrap();
        let manifest =
            |operation, name: &str| operation == Operation::Sync && name.starts_with("MANIFEST");
        trial.disk.fail_where(manifest, Fault::SyncFails);
        let failed = if drops {
            db.drop_keyspace("old")
        } else {
            db.create_keyspace("new").map(|_| ())
        };
        assert!(matches!(failed, Err(Error::Poisoned { .. })), "{failed:?}");
        trial.disk.heal();
        let refused = db.put("key", "value");
        assert!(
            matches!(refused, Err(Error::Poisoned { .. })),
            "{refused:?}"
        );
        assert!(db.get("key").unwrap().is_none());
    }
}

/// A failed sync of the directory loses the removal of an obsolete log segment. After reopening,
/// the store trimmed its log further. Then the power went, and the old segment came back without
/// those that had followed it. The store refused to open, because a hole in the log reads as
/// damage.
#[test]
fn a_log_segment_whose_removal_was_lost_is_no_damage() {
    let mut trial = Trial::new(1);
    let go_on = |trial: &mut Trial| {
        for step in [Step::Write(5), Step::Flush, Step::Write(5), Step::Flush] {
            trial.step(step)?;
        }
        Ok::<(), Stop>(())
    };
    go_on(&mut trial).unwrap();
    let directory = |operation, name: &str| operation == Operation::SyncDir && name.is_empty();
    trial.disk.fail_where(directory, Fault::SyncFails);
    let failed = trial.step(Step::Flush).and_then(|()| go_on(&mut trial));
    assert!(
        matches!(failed, Err(Stop::Failed(Error::Poisoned { .. }))),
        "{failed:?}"
    );
    trial.disk.heal();
    trial.db = None;
    go_on(&mut trial).unwrap();
    trial.step(Step::Reopen).unwrap();
    trial.survive(CrashStyle::LoseAll).unwrap();
}

/// A compaction that was asked for by hand wanted room on the fast tier for all of its output. It
/// failed for good where a compaction of the store's own would have gone to the slow tier (I8). It
/// left tables of L0 with nothing below them where they were.
#[test]
fn a_compaction_by_hand_without_room_on_the_fast_tier_goes_to_the_slow_one() {
    let mut trial = Trial::new(1);
    trial.options.l0_trigger = 30;
    trial.options.l0_slowdown = 31;
    let db = trial.db().unwrap();
    let (free, mut n) = (
        |db: &Db| {
            let tier = &db.metrics().tiers[0];
            tier.capacity - tier.file_bytes - tier.reserved_bytes
        },
        0,
    );
    let of_l0 = |db: &Db| db.metrics().levels[0].bytes;
    while free(&db) > 130 << 10 || of_l0(&db) <= free(&db) {
        db.put(format!("key{:06}", n * 7919 % 10_007), [7; 500])
            .unwrap();
        n += 1;
        if n % 30 == 0 {
            db.flush().unwrap();
        }
    }
    db.compact_range::<&[u8]>(..).unwrap();
    let metrics = db.metrics();
    assert_eq!(metrics.levels[0].tables, 0);
    assert!(metrics.tiers[1].table_bytes > 0);
    assert!(metrics.tiers[0].file_bytes <= metrics.tiers[0].capacity);
    assert_eq!(db.iter().count(), n);
}

/// A checkpoint keeps memtables from freezing, so that the tables that it links are of one moment.
/// But `flush` froze them all the same. A keyspace whose flush finished first was linked with
/// writes that the other's tables did not have, and the copy held half a batch.
#[test]
fn a_flush_during_a_checkpoint_does_not_tear_a_batch_in_the_copy() {
    let mut trial = Trial::new(1);
    let db = trial.db().unwrap();
    let side = db.create_keyspace(SIDE).unwrap();
    let both = {
        let (db, side) = (db.clone(), side.clone());
        move |key: &str| {
            let mut batch = Batch::new();
            batch.put_in(&db, key, "default's");
            batch.put_in(&side, key, "side's");
            db.write(batch).unwrap();
        }
    };
    both("before");
    let (intruder, flushed) = (db.clone(), AtomicBool::new(false));
    trial.points.set("flush.installed", move || {
        if !flushed.swap(true, Ordering::SeqCst) {
            both("meanwhile");
            // The flush would wait for this very job, so it fails. What counts is what it did
            // before.
            let _ = intruder.flush();
        }
        Ok(())
    });
    db.checkpoint(&["/c-fast".into(), "/c-slow".into()])
        .unwrap();
    trial.points.clear("flush.installed");
    let copy = trial.open_at(["/c-fast", "/c-slow"]).unwrap();
    let copied_side = copy.keyspace(SIDE).unwrap();
    for key in ["before", "meanwhile"] {
        let (one, other) = (copy.get(key).unwrap(), copied_side.get(key).unwrap());
        assert_eq!(one.is_some(), other.is_some(), "{key}");
    }
    assert!(copy.get("before").unwrap().is_some());
}

/// When a compaction ended because its keyspace was dropped, its place stayed empty: nobody started
/// the compaction that waited for it, and `wait_idle` waited for ever.
#[test]
fn dropping_a_keyspace_while_it_compacts_lets_the_next_compaction_start() {
    for seed in 0..20 {
        drop_while_compacting(seed);
    }
}

fn drop_while_compacting(seed: u64) {
    let mut trial = Trial::new(seed);
    trial.options.compaction_threads = 1;
    let db = trial.db().unwrap();
    let names = ["first", "second"];
    let keyspaces = names.map(|name| db.create_keyspace(name).unwrap());
    let (dropper, done) = (db.clone(), AtomicBool::new(false));
    trial.points.set("compaction.before_edit", move || {
        if !done.swap(true, Ordering::SeqCst) {
            dropper.drop_keyspace("first")?;
        }
        Ok(())
    });
    for round in 0..2 {
        let mut batch = Batch::new();
        for keyspace in &keyspaces {
            batch.put_in(keyspace, "key", [round; 100]);
            batch.put_in(keyspace, [round], "");
        }
        db.write(batch).unwrap();
        db.flush().unwrap();
    }
    db.wait_idle().unwrap();
    trial.points.clear("compaction.before_edit");
    assert_eq!(db.keyspaces(), ["default", "second"]);
    assert_eq!(db.metrics().levels[0].tables, 0, "the second has compacted");
    // What the first compaction was about to install does not become part of the store.
    db.close().unwrap();
    drop((db, keyspaces));
    trial.db = None;
    let db = trial.open_at([FAST, SLOW]).unwrap();
    assert_eq!(db.keyspaces(), ["default", "second"]);
    assert!(db.keyspace("second").unwrap().get("key").unwrap().is_some());
}

/// A manifest that had grown long was replaced by one that named the newest sequence number in
/// memory. The power went, and what was not synced was lost. Commits then counted on from a number
/// that the log had never reached, and the store refused every write.
#[test]
fn writes_go_on_after_a_new_manifest_and_a_loss_of_power() {
    let mut trial = Trial::new(1);
    trial.options.tiers[0].capacity = 64 << 20;
    let db = trial.db().unwrap();
    let name = "k".repeat(255);
    let (filled, writer) = (AtomicBool::new(false), db.clone());
    let manifest = |trial: &Trial| {
        let files = trial.disk.list_raw(FAST.as_ref());
        files
            .into_iter()
            .find(|file| file.name.starts_with("MANIFEST"))
    };
    // The edits take a 64th of the capacity, and then there is one more flush: a drop by itself
    // would replace a manifest as long as that.
    loop {
        db.create_keyspace(&name).unwrap();
        if manifest(&trial).expect("a manifest").len >= 1 << 20 {
            break;
        }
        db.drop_keyspace(&name).unwrap();
    }
    db.put_with("synced", "value", Durability::Sync).unwrap();
    trial.points.set("flush.installed", move || {
        if !filled.swap(true, Ordering::SeqCst) {
            writer.put("lost", "value").unwrap();
        }
        Ok(())
    });
    let before = manifest(&trial);
    db.flush().unwrap();
    let after = manifest(&trial);
    assert_ne!(
        after.map(|m| m.name),
        before.map(|m| m.name),
        "no new manifest"
    );
    trial.points.clear("flush.installed");
    drop(db);
    let disk = trial.disk.crash(CrashStyle::LoseAll);
    trial.db = None;
    trial.disk = disk;
    let db = trial.open_at([FAST, SLOW]).unwrap();
    assert!(db.get("lost").unwrap().is_none());
    db.put("after", "value").unwrap();
    assert!(db.get("synced").unwrap().is_some());
}

/// When all memtables together were full, only the largest froze. The memtable of a keyspace that
/// is seldom written to never was the largest, and kept the log of everything that others wrote
/// after its oldest record (I8).
#[test]
fn a_quiet_keyspace_does_not_keep_the_whole_log() {
    let mut trial = Trial::new(1);
    trial.options.tiers.truncate(1);
    trial.options.tiers[0].capacity = u64::MAX;
    let db = trial.db().unwrap();
    let quiet: Vec<_> = (0..5)
        .map(|n| db.create_keyspace(&format!("quiet{n}")).unwrap())
        .collect();
    for keyspace in &quiet {
        keyspace.put("key", "value").unwrap();
    }
    for n in 0..1000 {
        let key = format!("key{:06}", n * 7919 % 10_007);
        db.put(key, [n as u8; 600]).unwrap();
    }
    db.wait_idle().unwrap();
    let files = trial.disk.list_raw(FAST.as_ref()).into_iter();
    let log = files.filter(|file| file.name.ends_with(".wal"));
    let bytes: u64 = log.map(|file| file.len).sum();
    assert!(bytes <= 8 * (16 << 10), "{bytes} bytes of log");
    for keyspace in &quiet {
        assert!(keyspace.get("key").unwrap().is_some());
    }
}

/// Makes a keyspace for each of `count` tasks, puts less into it than a memtable holds, and drops
/// it afterwards.
fn run_tasks(trial: &Trial, db: &Db, count: usize) {
    for _ in 0..count {
        let task = db.create_keyspace("task").unwrap();
        task.put("key", [7; 6000]).unwrap();
        db.drop_keyspace("task").unwrap();
        trial.drain();
    }
}

fn log_bytes(trial: &Trial) -> u64 {
    let files = trial.disk.list_raw(FAST.as_ref()).into_iter();
    let log = files.filter(|file| file.name.ends_with(".wal"));
    log.map(|file| file.len).sum()
}

/// What a keyspace had in the log stayed there when it was dropped. Its bytes no longer counted
/// towards a full memtable, so the log was not rotated, and no flush named a number behind them.
/// Keyspaces that came and went filled the disk (I8).
#[test]
fn dropped_keyspaces_do_not_keep_the_log() {
    for quiet in [false, true] {
        let mut trial = Trial::new(1);
        trial.options.tiers.truncate(1);
        trial.options.tiers[0].capacity = u64::MAX;
        let db = trial.db().unwrap();
        if quiet {
            db.put("key", "value").unwrap();
        }
        run_tasks(&trial, &db, 200);
        db.wait_idle().unwrap();
        let bytes = log_bytes(&trial);
        assert!(bytes <= 8 * (16 << 10), "{bytes} bytes of log");
        drop(db);
        let disk = trial.disk.crash(CrashStyle::LoseAll);
        trial.db = None;
        trial.disk = disk;
        let db = trial.open_at([FAST]).unwrap();
        assert_eq!(db.keyspaces(), ["default"]);
        assert_eq!(db.get("key").unwrap().is_some(), quiet);
    }
}

/// If the first tier had a capacity, that log filled it. Every write was refused, and none could
/// have been flushed to let the log go, not even after reopening.
#[test]
fn dropped_keyspaces_leave_room_for_writes() {
    for tiers in [1, 2] {
        let mut trial = Trial::new(1);
        trial.options.tiers.truncate(tiers);
        let db = trial.db().unwrap();
        db.put("key", "value").unwrap();
        run_tasks(&trial, &db, 200);
        db.put("more", "value").unwrap();
        assert!(db.get("key").unwrap().is_some());
    }
}

/// What others have only in memory stays in the log, whatever is dropped.
#[test]
fn a_drop_lets_no_log_go_that_others_need() {
    let mut trial = Trial::new(1);
    let db = trial.db().unwrap();
    for key in ["first", "second", "third"] {
        db.put(key, "value").unwrap();
        run_tasks(&trial, &db, 1);
    }
    drop(db);
    let disk = trial.disk.crash(CrashStyle::LoseAll);
    trial.db = None;
    trial.disk = disk;
    let db = trial.open_at([FAST, SLOW]).unwrap();
    assert_eq!((db.recovery().replayed, db.iter().count()), (3, 3));
}

/// A removal that fails does not undo a drop. But if there was nothing to flush, nothing tried the
/// removal again.
#[test]
fn log_that_a_drop_has_left_goes_when_a_writer_finds_no_room() {
    let mut trial = Trial::new(1);
    let db = trial.db().unwrap();
    let task = db.create_keyspace("task").unwrap();
    task.put("key", vec![7u8; 300 << 10]).unwrap();
    let removal = |operation, name: &str| operation == Operation::Remove && name.ends_with(".wal");
    trial.disk.fail_where(removal, Fault::Io);
    db.drop_keyspace("task").unwrap();
    assert!(trial.disk.triggered() > 0);
    trial.disk.heal();
    assert!(log_bytes(&trial) > 300 << 10, "the log is there still");
    db.put("key", vec![7u8; 90 << 10]).unwrap();
    assert!(log_bytes(&trial) < 100 << 10);
}

/// Writes to a keyspace that was dropped were acknowledged and went into the log alone, where they
/// counted for nothing: whoever went on to write filled the disk.
#[test]
fn writes_to_a_dropped_keyspace_do_not_fill_the_log() {
    let mut trial = Trial::new(1);
    trial.options.tiers.truncate(1);
    trial.options.tiers[0].capacity = u64::MAX;
    let db = trial.db().unwrap();
    let gone = db.create_keyspace("gone").unwrap();
    db.drop_keyspace("gone").unwrap();
    let before = log_bytes(&trial);
    for _ in 0..2000 {
        let refused = gone.put("key", [7; 600]);
        assert!(
            matches!(&refused, Err(Error::UnknownKeyspace { name }) if name == "gone"),
            "{refused:?}"
        );
    }
    assert_eq!(log_bytes(&trial), before);
    // Together with other writes they are passed over, and their bytes count as the log's.
    for n in 0..300u32 {
        let mut batch = Batch::new();
        batch.put("key", n.to_le_bytes());
        batch.put_in(&gone, "key", [7; 6000]);
        db.write(batch).unwrap();
    }
    db.wait_idle().unwrap();
    let bytes = log_bytes(&trial);
    assert!(bytes <= 8 * (16 << 10), "{bytes} bytes of log");
    let last = |db: &Db| db.get("key").unwrap().map(|value| value.to_vec());
    let wanted = Some(299u32.to_le_bytes().to_vec());
    assert_eq!(last(&db), wanted);
    // One of them comes right behind what the last flush names. It belongs to no keyspace, and has
    // to stay all the same: for an opening, a log that begins behind it has lost its beginning.
    drop((db, gone));
    let disk = trial.disk.crash(CrashStyle::KeepAll);
    trial.db = None;
    trial.disk = disk;
    assert_eq!(last(&trial.open_at([FAST]).unwrap()), wanted);
}

/// A drop was durable at once, but what was acknowledged before it was not. Records were copied to
/// another keyspace and the old one was dropped; then the power went, and they were in neither
/// (I5).
#[test]
fn a_drop_does_not_outlive_what_was_written_before_it() {
    for durability in [Durability::None, Durability::Buffered] {
        let mut trial = Trial::new(1);
        let db = trial.db().unwrap();
        let side = db.create_keyspace(SIDE).unwrap();
        side.put_with("key", "value", Durability::Sync).unwrap();
        db.flush().unwrap();
        db.put_with("key", "value", durability).unwrap();
        db.drop_keyspace(SIDE).unwrap();
        drop((db, side));
        let disk = trial.disk.crash(CrashStyle::LoseAll);
        trial.db = None;
        trial.disk = disk;
        let db = trial.open_at([FAST, SLOW]).unwrap();
        let old = db.keyspace(SIDE).ok();
        let in_old = old.is_some_and(|old| old.get("key").unwrap().is_some());
        assert!(in_old || db.get("key").unwrap().is_some(), "{durability:?}");
    }
}

/// Somebody asked for the log while there was no space for what was still in the process's buffer.
/// The newest group there was taken back as if its writers had been told of a failure, but it was
/// acknowledged. Then `sync` said that everything was durable when it was not, or the next write
/// stopped the store, or a store that was closed cleanly did not open.
#[test]
fn asking_for_the_log_takes_nothing_back() {
    let log = |operation, name: &str| operation == Operation::Append && name.ends_with(".wal");
    let refused = |trial: &mut Trial| {
        let db = trial.db().unwrap();
        db.put_with("key", "value", Durability::None).unwrap();
        trial.disk.fail_where(log, Fault::NoSpace);
        let error = db.log_since(1).unwrap_err();
        assert!(error.is_no_space(), "{error}");
        trial.disk.heal();
        db
    };
    let after_a_crash = |mut trial: Trial, how| {
        let disk = trial.disk.crash(how);
        trial.db = None;
        trial.disk = disk;
        let db = trial.open_at([FAST, SLOW]).unwrap();
        assert!(db.get("key").unwrap().is_some());
    };

    let mut trial = Trial::new(1);
    refused(&mut trial).sync().unwrap();
    after_a_crash(trial, CrashStyle::LoseAll);

    let mut trial = Trial::new(1);
    let db = refused(&mut trial);
    db.put_with("next", "value", Durability::Sync).unwrap();
    drop(db);
    after_a_crash(trial, CrashStyle::LoseAll);

    let mut trial = Trial::new(1);
    refused(&mut trial).close().unwrap();
    after_a_crash(trial, CrashStyle::KeepAll);
}

/// A batch that writes nothing was acknowledged without a sync or a hand-over, whichever it asked
/// for. So what its writer had written before, or had just found to be there, was lost.
#[test]
fn a_batch_that_writes_nothing_is_as_durable_as_asked() {
    for (durability, how) in [
        (Durability::Sync, CrashStyle::LoseAll),
        (Durability::Buffered, CrashStyle::KeepAll),
    ] {
        for has_condition in [false, true] {
            let mut trial = Trial::new(1);
            let db = trial.db().unwrap();
            db.put_with("key", "value", Durability::None).unwrap();
            let mut batch = Batch::new();
            if has_condition {
                batch.require(&db, "key", Expect::Present);
            }
            assert_eq!(db.write_with(batch, durability).unwrap(), 1);
            drop(db);
            let disk = trial.disk.crash(how);
            trial.db = None;
            trial.disk = disk;
            let db = trial.open_at([FAST, SLOW]).unwrap();
            let found = db.get("key").unwrap();
            assert!(found.is_some(), "{durability:?}, condition {has_condition}");
        }
    }
}

/// As above: the batch that asked is told of a failure, and nothing that was acknowledged is taken
/// back.
#[test]
fn a_batch_that_writes_nothing_takes_nothing_back() {
    let log = |operation, name: &str| operation == Operation::Append && name.ends_with(".wal");
    let mut trial = Trial::new(1);
    let db = trial.db().unwrap();
    db.put_with("key", "value", Durability::None).unwrap();
    trial.disk.fail_where(log, Fault::NoSpace);
    let mut batch = Batch::new();
    batch.require(&db, "key", Expect::Present);
    for batch in [batch, Batch::new()] {
        for durability in [Durability::Buffered, Durability::Sync] {
            let error = db.write_with(batch.clone(), durability).unwrap_err();
            assert!(error.is_no_space(), "{error}");
        }
    }
    trial.disk.heal();
    db.put_with("next", "value", Durability::Sync).unwrap();
    drop(db);
    let disk = trial.disk.crash(CrashStyle::LoseAll);
    trial.db = None;
    trial.disk = disk;
    let db = trial.open_at([FAST, SLOW]).unwrap();
    assert!(db.get("key").unwrap().is_some() && db.get("next").unwrap().is_some());
}
