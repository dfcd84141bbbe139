//! Filters and indexes hold no record. This tests what damage of them costs, and when it is found.

use std::fs;
use std::path::Path;

use thermocline::storage::CrashStyle;
use thermocline::{Db, Error, Options, inspect};
use thermocline_torture::life::{FAST, SLOW, Trial};

/// Regression: filters and index of a small table are read with the end of its file, and damage of
/// them was an error of the opening. A flipped bit kept a store from opening although all its
/// records were there. With a larger table, and with less memory, it was an error of the reads that
/// met it.
#[test]
fn a_damaged_filter_or_index_costs_the_reads_of_its_table() {
    for of_index in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let mut options = Options::one_tier(dir.path());
        options.memory = 8 << 20;
        options.memtable_size = Some(64 << 10);
        let db = Db::open(options.clone()).unwrap();
        db.put("key", "value").unwrap();
        let other = db.create_keyspace("other").unwrap();
        other.put("key", "value").unwrap();
        db.close().unwrap();

        let tables = inspect::tables(&options).unwrap().tables;
        let table = tables.iter().find(|t| t.keyspace == "default").unwrap();
        let contents = table.contents.valid().unwrap();
        // Filters follow the data, the index follows the filters.
        let filters = if of_index { contents.filter_bytes } else { 0 };
        let block = contents.data_bytes + filters;
        let mut bytes = fs::read(&table.file).unwrap();
        bytes[block as usize + 3] ^= 1;
        fs::write(&table.file, bytes).unwrap();

        let db = Db::open(options).unwrap();
        let other = db.keyspace("other").unwrap();
        assert_eq!(other.get("key").unwrap().as_deref(), Some(&b"value"[..]));
        let error = db.get("key").unwrap_err();
        let Error::Corruption { path, offset, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!((path, *offset), (&table.file, block));
        assert_eq!(db.verify(&mut |_| {}).unwrap().problems.len(), 1);
    }
}

/// A table that a flush has written replaces a memtable and its log. If its filter is not what was
/// written, these stay.
#[test]
fn a_flush_looks_at_the_filter_that_it_has_written() {
    let mut trial = Trial::new(1);
    let db = trial.db().unwrap();
    db.put("key", "the value").unwrap();
    let disk = trial.disk.clone();
    trial.points.set("flush.written", move || {
        let dir = Path::new(FAST);
        let mut files = disk.list_raw(dir).into_iter();
        let table = files.find(|file| file.name.ends_with(".sst")).unwrap();
        let bytes = disk.read_raw(dir, &table.name).unwrap();
        let value = bytes.windows(9).position(|bytes| bytes == b"the value");
        // Behind the only record come where it begins, how many such places there are, compression
        // and checksum.
        let filter = value.unwrap() + 9 + 4 + 4 + 1 + 8;
        disk.corrupt(dir, &table.name, filter as u64 + 3, 1)
    });
    let error = db.flush().unwrap_err();
    assert!(error.is_corruption(), "{error}");
    trial.points.clear("flush.written");
    assert!(db.get("key").unwrap().is_some());
    db.flush().unwrap();
    drop(db);
    let disk = trial.disk.crash(CrashStyle::LoseAll);
    trial.db = None;
    trial.disk = disk;
    let db = trial.open_at([FAST, SLOW]).unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"the value"[..]));
}
