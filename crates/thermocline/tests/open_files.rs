//! A store of more tables than the process may have files open. It has a process of its own, since
//! the limit is one of the whole process.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::fs::{self, File};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thermocline::{Db, Options};

/// Files that the process may have open.
const LIMIT: u64 = 96;

/// Keyspaces of one table each: several tables of one keyspace would be merged.
const KEYSPACES: usize = 120;

fn name(number: usize) -> String {
    format!("keyspace {number}")
}

fn read_all(db: &Db) {
    for number in 0..KEYSPACES {
        let keyspace = db.keyspace(&name(number)).unwrap();
        let value = keyspace.get("key").unwrap().unwrap();
        assert_eq!(*value, *number.to_string().as_bytes());
    }
}

/// A store had as many files open as it had tables. A small fast tier makes some thousand tables of
/// a large load. Such a store could neither be written to nor opened within the limit that Linux
/// sets by default.
#[test]
fn a_store_has_more_tables_than_files_open() {
    let home = tempfile::tempdir().unwrap();
    let mut options = Options::one_tier(home.path());
    // No block is found in memory: every read is of a file.
    options.memory = 1 << 20;
    let before = getrlimit(Resource::Nofile);
    let limited = Rlimit {
        current: Some(LIMIT),
        ..before
    };
    setrlimit(Resource::Nofile, limited).unwrap();
    let db = Db::open(options.clone()).unwrap();
    for number in 0..KEYSPACES {
        let keyspace = db.create_keyspace(&name(number)).unwrap();
        keyspace.put("key", number.to_string()).unwrap();
    }
    db.flush().unwrap();
    read_all(&db);
    db.close().unwrap();

    let db = Db::open(options).unwrap();
    let tables: u64 = db.metrics().levels.iter().map(|level| level.tables).sum();
    assert!(tables >= KEYSPACES as u64, "{tables} tables");
    read_all(&db);
    // The store also gets by with what others, somebody else's sockets, say, leave of the limit.
    let mut others = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        others.push(file);
    }
    others.truncate(others.len() - 4);
    read_all(&db);
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    drop(others);
    let open = fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    assert!(open < LIMIT, "{open} files are open");
    db.close().unwrap();
}
