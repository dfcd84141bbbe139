//! A store that this process has open. This test has a file to itself, because a process that
//! another test starts inherits the lock for a moment, until it becomes the command.

mod common;

use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Run, Store};
use thermocline::Db;

#[test]
fn a_store_that_is_open_elsewhere_is_refused() {
    let store = Store::filled(1, 1);
    let db = Db::open(store.options()).expect("opens");
    store
        .run("get", &["key0000"])
        .fails(3, &["open elsewhere", "fast", "hint: --lock-wait"]);
    db.close().expect("closes");
    drop(db);
    store.run("get", &["key0000"]).ok();
}

/// Regression: of two commands at a time, as in a pipe, the second was refused.
#[test]
fn a_store_that_is_open_elsewhere_is_waited_for_on_demand() {
    let store = Store::filled(1, 1);
    let db = Db::open(store.options()).expect("opens");
    let begun = Instant::now();
    let refused = store.run("get --lock-wait 300ms", &["key0000"]);
    refused.fails(3, &["open elsewhere"]);
    assert!(begun.elapsed() >= Duration::from_millis(300));
    store
        .run("get --lock-wait soon", &["key0000"])
        .fails(2, &["--lock-wait", "soon"]);
    let mut waiting = store.command("get --lock-wait 5min", &["key0000"]);
    let waiting = waiting.stdout(Stdio::piped()).stderr(Stdio::piped());
    let waiting = waiting.spawn().expect("runs");
    db.close().expect("closes");
    drop(db);
    let run = Run::new(waiting.wait_with_output().expect("ends"));
    assert_eq!(run.ok(), "v\n");
}
