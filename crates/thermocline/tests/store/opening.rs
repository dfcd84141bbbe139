//! What an opening reads.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thermocline::storage::{Fault, Faulty, Operation};
use thermocline::{Db, Error, Options};

/// Tables, of a keyspace each: those of one would be merged.
const TABLES: u64 = 200;

fn open(disk: &Faulty) -> Db {
    let builder = Db::builder(Options::one_tier("/fast"));
    builder.medium(0, Arc::new(disk.clone())).open().unwrap()
}

fn name(number: u64) -> String {
    format!("keyspace {number}")
}

/// Each opening read 64 KiB of the end of every table: to get one key from a store of a thousand,
/// it read nearly all of them.
#[test]
fn an_opening_reads_no_table_and_a_read_those_that_it_needs() {
    let disk = Faulty::new(1);
    let db = open(&disk);
    for number in 0..TABLES {
        let keyspace = db.create_keyspace(&name(number)).unwrap();
        for key in 0..20 {
            keyspace.put(format!("key {key}"), vec![7u8; 1000]).unwrap();
        }
    }
    db.flush().unwrap();
    db.close().unwrap();
    drop(db);

    let [opened, read] = [Operation::Open, Operation::Read].map(|wanted| {
        let count = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&count);
        let is_met = move |operation, name: &str| {
            if operation == wanted && name.ends_with(".sst") {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            false
        };
        disk.fail_where(is_met, Fault::Io);
        move || count.load(Ordering::Relaxed)
    });
    let db = open(&disk);
    assert_eq!((opened(), read()), (0, 0));
    let keyspace = db.keyspace(&name(7)).unwrap();
    assert!(keyspace.get("key 3").unwrap().is_some());
    assert_eq!(opened(), 1);
    let reads = read();
    assert!((1..=8).contains(&reads), "{reads}");
    assert!(keyspace.get("key 4").unwrap().is_some());
    assert_eq!(
        (opened(), read()),
        (1, reads),
        "its end is known, and its block cached"
    );
    let tables: u64 = db.metrics().levels.iter().map(|level| level.tables).sum();
    assert!(tables >= TABLES, "{tables} tables");
}

fn names(disk: &Faulty) -> Vec<String> {
    let files = disk.list_raw(Path::new("/fast")).into_iter();
    files.map(|file| file.name).collect()
}

/// What an opening removes after a crash may be all that is left of what a table held, where the
/// device had lied about it: so the ends of all tables are looked at before. Of a store that was
/// closed nothing goes, and who needs the table hears of it.
#[test]
fn the_end_of_a_table_is_looked_at_before_anything_goes() {
    let disk = Faulty::new(1);
    let open = |disk: &Faulty| {
        let builder = Db::builder(Options::one_tier("/fast"));
        builder.medium(0, Arc::new(disk.clone())).open()
    };
    let db = open(&disk).unwrap();
    let other = db.create_keyspace("other").unwrap();
    for keyspace in [&*db, &other] {
        keyspace.put("key", "value").unwrap();
        db.flush().unwrap();
    }
    let crashed = disk.image(|_| true);
    db.close().unwrap();
    for (disk, was_closed) in [(&crashed, false), (&disk, true)] {
        let before = names(disk);
        let table = before.iter().find(|name| name.ends_with(".sst")).unwrap();
        let bytes = disk.read_raw(Path::new("/fast"), table).unwrap();
        let footer = bytes.len() as u64 - 20;
        disk.corrupt(Path::new("/fast"), table, footer, 1).unwrap();
        let opened = open(disk);
        assert_eq!(opened.is_ok(), was_closed, "{opened:?}");
        let Ok(db) = opened else {
            assert_eq!(names(disk), before);
            continue;
        };
        let read = db.get("key");
        assert!(matches!(read, Err(Error::Corruption { .. })), "{read:?}");
        let other = db.keyspace("other").unwrap().get("key").unwrap();
        assert_eq!(other.as_deref(), Some(&b"value"[..]));
        assert_eq!(db.verify(&mut |_| {}).unwrap().problems.len(), 1);
    }
}
