//! The last edit of a manifest is damaged: by its bytes alone it looks like one that a crash cut short.
//!
//! Once, if that edit had made a keyspace, the store opened without the keyspace, and its
//! writes in the log, acknowledged and synced, were skipped as those of a dropped one. Found by
//! `thermocline torture corruption`.
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
        match builder(&cut(&disk, len)).open().unwrap_err() {
            Error::Corruption { path, offset, .. } => {
                assert_eq!((path, offset), (Path::new(DIR).join(&name), before));
            }
            other => panic!("{len}: {other}"),
        }
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
