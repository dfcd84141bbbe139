//! A store that is made where an attempt was cut short.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::path::Path;
use std::sync::Arc;

use thermocline::storage::{CrashStyle, Faulty, Medium};
use thermocline::{Db, Durability};
use thermocline_torture::life::{FAST, SLOW, tiny_options};

fn open(disk: &Faulty) -> thermocline::Result<Db> {
    let mut options = tiny_options();
    options.seed = Some(7);
    let builder = Db::builder(options).medium(0, Arc::new(disk.clone()));
    builder.medium(1, Arc::new(disk.clone())).open()
}

/// A process that was killed had written `TIER`, and not synced it. The next one found it, in the system's cache, and took it for
/// durable: after a loss of power the tier was nobody's, and a store with acknowledged writes did not open.
#[test]
fn an_identity_that_is_found_is_made_durable() {
    let twin = Faulty::new(1);
    open(&twin).unwrap();
    let disk = Faulty::new(1);
    for dir in [FAST, SLOW].map(Path::new) {
        let bytes = twin.read_raw(dir, "TIER").unwrap();
        let store = disk.log_store(dir, true).unwrap();
        store.create("TIER").unwrap().append(&bytes).unwrap();
    }
    let db = open(&disk).unwrap();
    db.put_with("key", "value", Durability::Sync).unwrap();
    let disk = disk.crash(CrashStyle::LoseAll);
    let db = open(&disk).unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
}
