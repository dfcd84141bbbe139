//! The last edit of a manifest is damaged: by its bytes alone it looks like one that a crash cut short.
//! Found by `thermocline torture corruption` and `thermocline torture repair`.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::path::Path;
use std::sync::Arc;

use thermocline::storage::{CrashStyle, Faulty};
use thermocline::{Db, DbBuilder, Durability, Error, Options, TierOptions};

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

/// Once, if that edit had put a flushed table in force, and another keyspace's flush had gone further,
/// the log behind it was removed as obsolete, the table as an orphan, and the records were gone.
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
    let mut ends = vec![72];
    let bytes = disk.read_raw(Path::new(DIR), &name).unwrap();
    while let Some(len) = bytes
        .get(ends[ends.len() - 1]..)
        .and_then(|rest| rest.first_chunk())
    {
        ends.push(ends[ends.len() - 1] + 16 + u32::from_le_bytes(*len) as usize);
    }
    assert_eq!(ends.pop(), Some(whole as usize));
    for lost in 1..=2 {
        let before = ends[ends.len() - lost] as u64;
        refused_at(&cut(&disk, before), &name, before);
        refused_at(&cut(&disk, before + 5), &name, before);
    }
    assert!(builder(&disk).open().is_ok());
}

/// Once, what was lost of the edits that a manifest had been begun with went unnoticed, though CURRENT names
/// it only when all of them are durable.
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
