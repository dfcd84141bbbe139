use super::*;
use crate::Db;
use crate::executor::Stepped;
use crate::options::Options;
use crate::points::Points;
use crate::storage::{Fault, Faulty, Memory, Operation};
use crate::sync::atomic::AtomicUsize;
use crate::wal::FoundLog;

/// A flush that had ended took the flag of the next one away when it was dropped. While the
/// next one waited or ran, a third could then be queued. The store's own threads flush one
/// after the other. An executor that has two threads for flushes would have written one
/// memtable twice, and installed first what was frozen later (I2).
#[test]
fn a_flush_that_has_ended_leaves_the_flag_to_the_next() {
    let stepped = Arc::new(Stepped::new(1));
    let db = Db::builder(Options::one_tier("/fast"))
        .medium(0, Arc::new(Memory::new()))
        .executor(stepped.clone())
        .open()
        .unwrap();
    let (engine, tree) = (db.engine(), db.tree());
    let is_flushing = || tree.state.lock().flushing;
    let mut first = FlushJob::new(Arc::clone(engine));
    assert_eq!(first.step(), Step::Done, "the first is over");

    db.put("key", "value").unwrap();
    engine.freeze_all().unwrap();
    assert!(is_flushing(), "the second is queued");
    drop(first);
    assert!(is_flushing(), "the second is queued still");
    stepped.drain();
    assert!(!is_flushing() && engine.keyspaces.tally.frozen_bytes() == 0);
}

/// A manifest that had grown long could not be replaced for lack of space. So flush after flush
/// the log stayed, which would have given some.
#[test]
fn a_flush_trims_the_log_before_it_wants_space_for_a_manifest() {
    let disk = Faulty::new(1);
    let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(disk.clone()));
    let db = builder.executor(Arc::new(Stepped::new(1))).open().unwrap();
    let long = VersionEdit {
        found_log: Some(FoundLog {
            segments: (0..1 << 20).map(|number| (number, 1 << 20)).collect(),
            ..FoundLog::default()
        }),
        ..VersionEdit::default()
    };
    db.engine().files.manifest.lock().append(&long).unwrap();
    db.put("key", "value").unwrap();
    let is_new =
        |operation, name: &str| operation == Operation::Create && name.starts_with("MANIFEST");
    disk.fail_where(is_new, Fault::NoSpace);
    // The table is in force. What failed after it is tried again after the next one.
    db.flush().unwrap();
    assert!(disk.triggered() > 0);
    let files = disk.list_raw("/fast".as_ref()).into_iter();
    let logs: Vec<_> = files.filter(|file| file.name.ends_with(".wal")).collect();
    assert_eq!(logs.len(), 1, "{logs:?}");
    disk.heal();
    db.put("key", "value").unwrap();
    db.flush().unwrap();
}

/// When a flush failed after its table was in force, nobody was told of the table. Where the
/// log could not be trimmed, L0 grew until writers were stopped, and no compaction had begun.
#[test]
fn a_flush_that_fails_behind_its_table_has_l0_compacted() {
    let disk = Faulty::new(1);
    let mut options = Options::one_tier("/fast");
    options.l0_trigger = 2;
    let stepped = Arc::new(Stepped::new(1));
    let builder = Db::builder(options).medium(0, Arc::new(disk.clone()));
    let db = builder.executor(stepped.clone()).open().unwrap();
    let is_trim = |operation, name: &str| operation == Operation::Remove && name.ends_with(".wal");
    disk.fail_where(is_trim, Fault::Io);
    for _ in 0..4 {
        db.put("key", "value").unwrap();
        db.engine().freeze_all().unwrap();
        stepped.drain();
    }
    assert!(disk.triggered() > 0);
    let tables = db.tree().pin().version.levels[0].tables.len();
    assert!(tables < 4, "{tables} tables in L0");
}

/// Keys as long as a block are in the data and in both levels of the index. A table of them was
/// three times as long as the room reserved for it, and a full fast tier held more than its
/// capacity (I8).
#[test]
fn what_is_set_aside_for_a_flush_is_enough_for_long_keys() {
    let mut options = Options::one_tier("/fast");
    options.memtable_size = Some(4 << 20);
    let builder = Db::builder(options).medium(0, Arc::new(Memory::new()));
    let db = builder.executor(Arc::new(Stepped::new(1))).open().unwrap();
    for n in 0..15u8 {
        let mut key = vec![b'k'; 65_000];
        key.push(n);
        db.put(key, "").unwrap();
    }
    let memtable = Arc::clone(&db.tree().peek().active);
    db.flush().unwrap();
    let table = db.tree().bytes_on(0)[0];
    assert!(table > 2 * memtable.bytes(), "{table} bytes");
    let aside = memtable.table_len();
    assert!(table <= aside, "{table} bytes, {aside} set aside");
}

#[test]
fn a_flush_that_a_shutdown_drops_leaves_no_flag() {
    let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(Memory::new()));
    let db = builder.open().unwrap();
    let (engine, tree) = (db.engine(), db.tree());
    db.put("key", "value").unwrap();
    tree.freeze(engine).unwrap();
    assert!(engine.flushes.enter(tree) && !engine.flushes.enter(tree));
    drop(FlushJob::new(Arc::clone(engine)));
    assert!(!tree.state.lock().flushing);
}

/// Syncs of the log, of the manifest and of directories that it takes to write 4 MiB to `keyspaces`
/// at random, and to flush them.
fn syncs_of(keyspaces: usize) -> usize {
    const RECORDS: u64 = 4 << 10;
    let disk = Faulty::new(1);
    let mut options = Options::one_tier("/fast");
    options.memtable_size = Some(1 << 20);
    let builder = Db::builder(options).medium(0, Arc::new(disk.clone()));
    let db = builder.executor(Arc::new(Stepped::new(1))).open().unwrap();
    let keyspaces: Vec<_> = (0..keyspaces)
        .map(|number| db.create_keyspace(&number.to_string()).unwrap())
        .collect();
    let syncs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&syncs);
    let count = move |operation, name: &str| {
        let is_table = name.ends_with(".sst");
        let is_sync = matches!(operation, Operation::Sync | Operation::SyncDir);
        counted.fetch_add(usize::from(is_sync && !is_table), Ordering::Relaxed);
        false
    };
    disk.fail_where(count, Fault::Io);
    for key in 0..RECORDS {
        // Spread evenly, and not in turn.
        let place = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let keyspace = &keyspaces[place as usize % keyspaces.len()];
        keyspace.put(key.to_be_bytes(), [7; 1000]).unwrap();
    }
    db.flush().unwrap();
    for key in 0..RECORDS {
        let place = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let keyspace = &keyspaces[place as usize % keyspaces.len()];
        assert!(keyspace.get(key.to_be_bytes()).unwrap().is_some());
    }
    syncs.load(Ordering::Relaxed)
}

/// Each freeze took the largest memtable alone, and each flush was an edit and some syncs. Where
/// 300 keyspaces were written to, a flush gave back a few kilobytes, and writers waited for
/// hundreds of them.
#[test]
fn the_memtables_of_many_keyspaces_are_flushed_together() {
    let (one, many) = (syncs_of(1), syncs_of(300));
    assert!(many <= 8 * one, "{many} syncs, and {one} for one keyspace");
}

/// One edit names the tables of several keyspaces. How far one of them is flushed says nothing of
/// another.
#[test]
fn a_keyspace_is_flushed_as_far_as_its_own_memtable_goes() {
    let disk = Faulty::new(1);
    let open = || {
        let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(disk.clone()));
        builder.executor(Arc::new(Stepped::new(1))).open().unwrap()
    };
    let db = open();
    let others = ["a", "b"].map(|name| db.create_keyspace(name).unwrap());
    for (keyspace, value) in others.iter().zip(["1", "2"]) {
        keyspace.put("key", value).unwrap();
    }
    let manifest = || db.engine().files.manifest.lock().len();
    let before = manifest();
    db.flush().unwrap();
    assert!(manifest() > before);
    let through = others
        .each_ref()
        .map(|keyspace| keyspace.tree().state.lock().flushed_through);
    assert_eq!(through, [1, 2]);
}

/// While the tables of a group are written, one of its keyspaces may be dropped.
#[test]
fn a_keyspace_that_is_dropped_does_not_hold_up_the_others_of_its_group() {
    let disk = Faulty::new(1);
    let points = Points::default();
    let open = || {
        let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(disk.clone()));
        let builder = builder.points(points.clone());
        builder.executor(Arc::new(Stepped::new(1))).open().unwrap()
    };
    let db = Arc::new(open());
    for name in ["a", "b"] {
        let keyspace = db.create_keyspace(name).unwrap();
        keyspace.put("key", name).unwrap();
    }
    let held = Arc::downgrade(&db);
    points.set("flush.before_edit", move || {
        held.upgrade().map_or(Ok(()), |db| match db.keyspace("a") {
            Ok(_) => db.drop_keyspace("a"),
            Err(_) => Ok(()),
        })
    });
    db.flush().unwrap();
    points.clear("flush.before_edit");
    let tables = disk.list_raw("/fast".as_ref()).into_iter();
    let tables = tables.filter(|file| file.name.ends_with(".sst"));
    assert_eq!(tables.count(), 1, "the dropped keyspace has left a table");
    drop(db);
    let db = open();
    assert_eq!(db.keyspaces(), ["default", "b"]);
    let found = db.keyspace("b").unwrap().get("key").unwrap();
    assert_eq!(found.as_deref(), Some(&b"b"[..]));
}

/// If there is no room for all tables of a group, those that have some are installed, and give the
/// log's back.
#[test]
fn a_table_that_cannot_be_written_does_not_hold_up_the_others_of_its_group() {
    let disk = Faulty::new(1);
    let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(disk.clone()));
    let db = builder.executor(Arc::new(Stepped::new(1))).open().unwrap();
    let keyspaces = ["a", "b", "c"].map(|name| db.create_keyspace(name).unwrap());
    for keyspace in &keyspaces {
        keyspace.put("key", "value").unwrap();
    }
    let created = AtomicUsize::new(0);
    let second = move |operation, name: &str| {
        let is_new = operation == Operation::Create && name.ends_with(".sst");
        is_new && created.fetch_add(1, Ordering::Relaxed) > 0
    };
    disk.fail_where(second, Fault::NoSpace);
    assert!(db.flush().unwrap_err().is_no_space());
    let flushed = || {
        let tables = keyspaces
            .iter()
            .map(|k| k.tree().version().levels[0].tables.len());
        tables.collect::<Vec<_>>()
    };
    assert_eq!(flushed(), [1, 0, 0]);
    disk.heal();
    db.flush().unwrap();
    assert_eq!(flushed(), [1, 1, 1]);
}
