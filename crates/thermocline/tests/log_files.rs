//! How many files the log has, and how many of them are open.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use thermocline::storage::Faulty;
use thermocline::{Db, DbBuilder, Options};

/// Files of the log in `dir` that this process has open.
fn open_segments(dir: &Path) -> usize {
    let open = fs::read_dir("/proc/self/fd").unwrap();
    let targets = open.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    targets
        .filter(|file| file.starts_with(dir) && file.extension().is_some_and(|end| end == "wal"))
        .count()
}

/// Each drop of a keyspace begins a segment, and older segments stay as long as another keyspace
/// has something in one of them. Every one of them stayed open. After a thousand the process had no
/// file left to open: no segment could be begun, so no memtable could be frozen whose flush would
/// have let the segments go.
#[test]
fn segments_that_take_no_more_are_not_open() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().canonicalize().unwrap();
    let db = Db::open(Options::one_tier(&dir)).unwrap();
    db.put("quiet", "value").unwrap();
    for _ in 0..50 {
        let task = db.create_keyspace("task").unwrap();
        task.put("key", "value").unwrap();
        db.drop_keyspace("task").unwrap();
    }
    let files = fs::read_dir(&dir).unwrap();
    let names = files.map(|file| file.unwrap().file_name());
    let segments = names
        .filter(|name| name.to_string_lossy().ends_with(".wal"))
        .count();
    assert!(segments > 40, "{segments} segments");
    let open = open_segments(&dir);
    assert!((1..=3).contains(&open), "{open} of {segments}");
    db.flush().unwrap();
}

/// Opening a store only to read it began a segment, and closing wrote into the segment that it was
/// closed. So the segment stayed until something was flushed: each look at a store left a file.
#[test]
fn a_look_at_a_store_leaves_no_segment() {
    const DIR: &str = "/fast";
    let disk = Faulty::new(1);
    let builder = || -> DbBuilder {
        let options = Options::one_tier(DIR);
        Db::builder(options).medium(0, Arc::new(disk.clone()))
    };
    let segments = || {
        let files = disk.list_raw(Path::new(DIR)).into_iter();
        files.filter(|file| file.name.ends_with(".wal")).count()
    };
    let db = builder().open().unwrap();
    db.put("key", "value").unwrap();
    drop(db);
    let before = segments();
    for _ in 0..20 {
        let db = builder().open().unwrap();
        assert!(db.get("key").unwrap().is_some());
        db.close().unwrap();
        assert!(segments() <= before + 1, "{} segments", segments());
    }
}
