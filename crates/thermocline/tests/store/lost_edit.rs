//! The last edit of a manifest is damaged: by its bytes alone it looks like one that a crash cut
//! short. Found by `thermocline torture corruption` and `thermocline torture repair`.

use std::path::Path;
use std::sync::{Arc, Mutex};

use thermocline::executor::Stepped;
use thermocline::storage::{CrashStyle, Faulty};
use thermocline::{Compression, Db, DbBuilder, Durability, Error, Options, Points, TierOptions};

const DIR: &str = "/fast";

fn builder(disk: &Faulty) -> DbBuilder {
    let options = Options::with_tiers(vec![TierOptions::fast(DIR)]);
    Db::builder(options).medium(0, Arc::new(disk.clone()))
}

fn manifest(disk: &Faulty) -> (String, u64) {
    let mut files = disk.list_raw(Path::new(DIR)).into_iter();
    let file = files.find(|file| file.name.starts_with("MANIFEST"));
    file.map(|file| (file.name, file.len)).unwrap()
}

/// Where the manifest's edits end.
fn ends(disk: &Faulty) -> Vec<u64> {
    let bytes = disk.read_raw(Path::new(DIR), &manifest(disk).0).unwrap();
    let (mut ends, mut end) = (Vec::new(), 72);
    while let Some(len) = bytes.get(end..).and_then(|rest| rest.first_chunk()) {
        end += 16 + u32::from_le_bytes(*len) as usize;
        ends.push(end as u64);
    }
    ends
}

/// The same files on a disk of their own, the manifest cut to `len` bytes.
fn cut(disk: &Faulty, len: u64) -> Faulty {
    let (copy, dir) = (Faulty::new(1), Path::new(DIR));
    for file in disk.list_raw(dir) {
        copy.write_raw(dir, &file.name, &disk.read_raw(dir, &file.name).unwrap());
    }
    copy.truncate_raw(dir, &manifest(disk).0, len).unwrap();
    copy
}

fn refused_at(disk: &Faulty, name: &str, offset: u64) {
    match builder(disk).open().unwrap_err() {
        Error::Corruption {
            path, offset: at, ..
        } => {
            assert_eq!((path, at), (Path::new(DIR).join(name), offset));
        }
        other => panic!("{other}"),
    }
}

/// Once, if that edit had made a keyspace, the store opened without the keyspace, and its
/// writes in the log, acknowledged and synced, were skipped as those of a dropped one.
#[test]
fn a_log_that_writes_to_a_keyspace_without_an_edit_proves_damage() {
    let disk = Faulty::new(1);
    let db = builder(&disk).open().unwrap();
    db.put("before", "1").unwrap();
    let (name, before) = manifest(&disk);
    let side = db.create_keyspace("side").unwrap();
    side.put_with("key", "value", Durability::Sync).unwrap();
    let disk = disk.crash(CrashStyle::KeepAll);
    let (_, whole) = manifest(&disk);
    for len in before..whole {
        refused_at(&cut(&disk, len), &name, before);
    }
    // As it was, and with the keyspace dropped on purpose, there is nothing to complain of.
    let db = builder(&cut(&disk, whole)).open().unwrap();
    let side = db.keyspace("side").unwrap();
    assert_eq!(side.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    let db = builder(&disk).open().unwrap();
    db.drop_keyspace("side").unwrap();
    let disk = disk.crash(CrashStyle::KeepAll);
    assert_eq!(builder(&disk).open().unwrap().keyspaces(), ["default"]);
}

/// Once, if that edit had put a flushed table in force, and another keyspace's flush had gone
/// further, the log behind it was removed as obsolete, the table as an orphan, and the records were
/// gone.
#[test]
fn a_table_whose_records_the_log_lacks_proves_that_an_edit_named_it() {
    let disk = Faulty::new(1);
    let db = builder(&disk).open().unwrap();
    let side = db.create_keyspace("side").unwrap();
    side.put("key", "value").unwrap();
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    let (name, whole) = manifest(&disk);
    // Two flushes; the one written last names the table of either keyspace.
    let disk = disk.crash(CrashStyle::KeepAll);
    let mut ends = ends(&disk);
    assert_eq!(ends.pop(), Some(whole));
    for lost in 1..=2 {
        let before = ends[ends.len() - lost];
        refused_at(&cut(&disk, before), &name, before);
        refused_at(&cut(&disk, before + 5), &name, before);
    }
    assert!(builder(&disk).open().is_ok());
}

/// Once, what was lost of the edits that a manifest had been begun with went unnoticed, though
/// CURRENT names it only when all of them are durable.
#[test]
fn a_manifest_is_whole_when_it_is_put_in_force() {
    let disk = Faulty::new(1);
    let db = builder(&disk).open().unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    drop(db);
    // Opening begins a manifest with the state so far.
    let db = builder(&disk).open().unwrap();
    let disk = disk.crash(CrashStyle::KeepAll);
    drop(db);
    let (name, whole) = manifest(&disk);
    for len in 72..whole {
        let error = builder(&cut(&disk, len)).open().unwrap_err();
        assert!(error.to_string().contains(&name), "{len}: {error}");
    }
    assert!(builder(&disk).open().is_ok());
}

/// Once, damage of the last edit of a closed store could only be told from its log.
#[test]
fn a_clean_close_leaves_nothing_of_worth_in_the_last_edit() {
    let disk = Faulty::new(1);
    let db = builder(&disk).open().unwrap();
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    let (name, flushed) = manifest(&disk);
    db.close().unwrap();
    let (_, closed) = manifest(&disk);
    assert!(flushed < closed);
    let damaged = cut(&disk, closed);
    damaged
        .corrupt(Path::new(DIR), &name, flushed - 1, 1)
        .unwrap();
    let error = builder(&damaged).open().unwrap_err();
    assert!(error.to_string().contains(&name), "{error}");
    let db = builder(&cut(&disk, closed - 1)).open().unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
}

fn with_compactions(disk: &Faulty) -> DbBuilder {
    let tier = TierOptions::fast(DIR).compression(Compression::None);
    let mut options = Options::with_tiers(vec![tier]);
    options.memory = 4 << 20;
    options.memtable_size = Some(16 << 10);
    options.l0_trigger = 2;
    let builder = Db::builder(options).medium(0, Arc::new(disk.clone()));
    builder.executor(Arc::new(Stepped::new(3)))
}

/// Its tables, oldest first.
fn tables(disk: &Faulty) -> Vec<(String, Vec<u8>)> {
    let (files, dir) = (disk.list_raw(Path::new(DIR)).into_iter(), Path::new(DIR));
    let tables = files.filter(|file| file.name.ends_with(".sst"));
    let tables = tables.map(|file| (disk.read_raw(dir, &file.name).unwrap(), file.name));
    let mut tables: Vec<_> = tables.map(|(bytes, name)| (name, bytes)).collect();
    tables.sort();
    tables
}

/// Two tables of one keyspace, compacted into one. The log of what the second of them held is kept
/// for another keyspace, that of the first is gone.
struct Compacted {
    disk: Faulty,
    /// The tables that were compacted.
    inputs: Vec<(String, Vec<u8>)>,
    /// Where the manifest ended before the flush of the first, and behind it.
    flushed: [u64; 2],
}

impl Compacted {
    fn new() -> Self {
        let (disk, points) = (Faulty::new(1), Points::default());
        let db = with_compactions(&disk).points(points.clone());
        let db = db.open().unwrap();
        let side = db.create_keyspace("side").unwrap();
        // Around those of the second table: else both would be moved as they are.
        side.put("first", "value").unwrap();
        side.put("then", "value").unwrap();
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        let ends = ends(&disk);
        let [.., before, behind] = ends[..] else {
            panic!("no edits of two flushes: {ends:?}");
        };
        let (device, before_it) = (disk.clone(), Arc::new(Mutex::new(Vec::new())));
        let found = Arc::clone(&before_it);
        points.set("compaction.start", move || {
            *found.lock().unwrap() = tables(&device);
            Ok(())
        });
        db.put("kept", "value").unwrap();
        for n in 0..40 {
            side.put(format!("side{n:02}"), [n; 600]).unwrap();
        }
        db.wait_idle().unwrap();
        db.sync().unwrap();
        let mut inputs = std::mem::take(&mut *before_it.lock().unwrap());
        inputs.retain(|table| !tables(&disk).contains(table));
        assert_eq!(inputs.len(), 2);
        // Else the log would begin behind all that edits call flushed.
        assert!(
            inputs[0].0 > tables(&disk)[0].0,
            "the other's was the first"
        );
        Self {
            disk: disk.crash(CrashStyle::KeepAll),
            inputs,
            flushed: [before, behind],
        }
    }

    /// Of the inputs only those that are `left`, and of the manifest `len` bytes.
    fn cut(&self, len: u64, left: [bool; 2]) -> Faulty {
        let (copy, dir) = (Faulty::new(1), Path::new(DIR));
        for file in self.disk.list_raw(dir) {
            let bytes = self.disk.read_raw(dir, &file.name).unwrap();
            copy.write_raw(dir, &file.name, &bytes);
        }
        for ((name, bytes), _) in self.inputs.iter().zip(left).filter(|(_, left)| *left) {
            copy.write_raw(dir, name, bytes);
        }
        copy.truncate_raw(dir, &manifest(&copy).0, len).unwrap();
        copy
    }
}

fn has_all(disk: &Faulty) {
    let db = with_compactions(disk).open().unwrap();
    let side = db.keyspace("side").unwrap();
    assert_eq!(side.get("first").unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!((side.iter().count(), db.iter().count()), (42, 2));
}

/// Once, if the edits of the flushes were lost as well, the compaction's table passed for one that
/// a crash had cut short, as its newest records are in the log: it was removed, and so were records
/// that the log had no more. Which of its inputs are there does not matter: a loss of power may
/// have undone the removal of any.
#[test]
fn a_table_that_took_over_tables_without_an_edit_proves_that_they_had_one() {
    let compacted = Compacted::new();
    let (_, whole) = manifest(&compacted.disk);
    for left in [[false, false], [true, false], [false, true], [true, true]] {
        has_all(&compacted.cut(whole, left));
        for len in compacted.flushed.into_iter().flat_map(|len| [len, len + 5]) {
            let disk = compacted.cut(len, left);
            let error = with_compactions(&disk).open().unwrap_err();
            assert!(error.is_corruption(), "{error}");
            let report = with_compactions(&disk).repair(false).unwrap();
            // All that is lost are the edits, and what they named beside these tables nobody can
            // tell.
            let manifest = Path::new(DIR).join(manifest(&compacted.disk).0);
            let lost: Vec<_> = report.losses.iter().map(|loss| &loss.file).collect();
            assert_eq!(lost, [&manifest], "{report:?}");
            assert!(report.rebuilt, "{report:?}");
            has_all(&disk);
        }
    }
}

/// What a compaction left that failed, and whose removal did not last, replaces tables that no
/// version names, too. That a later one took them over says the manifest, or that it was begun
/// since: nothing is lost.
#[test]
fn what_a_failed_compaction_left_is_no_damage() {
    let disk = Faulty::new(1);
    let left = Arc::new(Mutex::new(None));
    let (points, device, kept) = (Points::default(), disk.clone(), Arc::clone(&left));
    points.set("compaction.before_edit", move || {
        let mut kept = kept.lock().unwrap();
        if kept.is_some() {
            return Ok(());
        }
        *kept = tables(&device).pop();
        Err(Error::NoSpace {
            operation: "append to",
            path: DIR.into(),
        })
    });
    let db = with_compactions(&disk).points(points).open().unwrap();
    for n in 0..2 {
        db.put(format!("first{n}"), "value").unwrap();
        db.put(format!("then{n}"), "value").unwrap();
        db.flush().unwrap();
    }
    db.compact_range::<&[u8]>(..).unwrap();
    let (name, bytes) = left.lock().unwrap().take().unwrap();
    let mut disk = disk.crash(CrashStyle::KeepAll);
    for _ in 0..2 {
        assert!(tables(&disk).iter().all(|table| table.0 != name));
        disk.write_raw(Path::new(DIR), &name, &bytes);
        let sound = with_compactions(&disk).repair(true).unwrap();
        assert_eq!(sound.problems, Vec::<String>::new());
        let db = with_compactions(&disk).open().unwrap();
        assert!(db.recovery().orphans > 0);
        assert_eq!(db.iter().count(), 4);
        disk = disk.crash(CrashStyle::KeepAll);
    }
}

/// The edit that named the last table is torn, and so is the table; the log has what it held no
/// more. Its name comes back.
fn without_the_last_table() -> (Faulty, String) {
    let disk = Faulty::new(1);
    let db = with_compactions(&disk).open().unwrap();
    let side = db.create_keyspace("side").unwrap();
    side.put("key", "value").unwrap();
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    let disk = disk.crash(CrashStyle::KeepAll);
    let (last, bytes) = tables(&disk).pop().unwrap();
    let end = bytes.len() as u64 - 1;
    disk.corrupt(Path::new(DIR), &last, end, 1).unwrap();
    (cut(&disk, manifest(&disk).1 - 1), last)
}

/// Where the table of the lost edit cannot be read either, nothing tells of its records, which the
/// log has no more: a repair said that the store was sound.
#[test]
fn a_table_that_cannot_be_read_is_reported_where_an_edit_is_torn_and_the_log_trimmed() {
    let (disk, last) = without_the_last_table();
    let report = with_compactions(&disk).repair(false).unwrap();
    let files = report.losses.iter().map(|loss| loss.file.clone());
    let lost: Vec<_> = files.collect();
    assert_eq!(lost, [Path::new(DIR).join(&last)], "{report:?}");
    let aside = Path::new(DIR).join("lost").join(&last);
    assert!(report.set_aside.contains(&aside), "{report:?}");
    assert!(with_compactions(&disk).open().is_ok());
}

/// Who opened that store in place of repairing it was told nothing, and the table was swept as half
/// a table of a crash. A crash may have left just this, so the store opens; but what may be all
/// that is left of the records is kept, also by an opening that is cut short.
#[test]
fn an_opening_keeps_a_table_that_an_edit_may_have_named() {
    let dir = Path::new(DIR);
    for is_cut_short in [false, true] {
        let (disk, last) = without_the_last_table();
        let bytes = disk.read_raw(dir, &last).unwrap();
        if is_cut_short {
            for point in ["recovery.replayed", "recovery.manifest_begun"] {
                let points = Points::default();
                points.set(point, || Err(Error::Closed));
                assert!(with_compactions(&disk).points(points).open().is_err());
            }
        } else {
            let db = with_compactions(&disk).open().unwrap();
            assert_eq!(db.recovery().set_aside, [dir.join("lost").join(&last)]);
        }
        let disk = disk.crash(CrashStyle::LoseAll);
        let db = with_compactions(&disk).open().unwrap();
        assert!(db.recovery().set_aside.is_empty());
        assert!(tables(&disk).iter().all(|(name, _)| *name != last));
        let kept = disk.read_raw(&dir.join("lost"), &last).unwrap();
        assert!(kept == bytes);
    }
}
