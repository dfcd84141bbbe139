//! A store at a relative path, in a process that changes its directory. It has a process of its
//! own.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::{env, fs};

use thermocline::{Db, Options};

/// Names of files were looked up from the directory that the process was in by then, while the lock
/// and open files stayed where the store had been opened. A daemon that changed to `/` could not
/// flush, or wrote its tables into another store's directory.
#[test]
fn a_store_stays_where_it_was_opened() {
    let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    env::set_current_dir(home.path()).unwrap();
    let options = || Options::one_tier("store");
    let db = Db::open(options()).unwrap();
    db.put("before", "1").unwrap();
    env::set_current_dir(elsewhere.path()).unwrap();
    db.put("after", "2").unwrap();
    db.flush().unwrap();
    db.put("last", "3").unwrap();
    db.close().unwrap();
    drop(db);
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);

    env::set_current_dir(home.path()).unwrap();
    let db = Db::open(options()).unwrap();
    assert_eq!(db.iter().count(), 3);
}
