//! Ctrl-C while something runs on temporary directories.

#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::common::thermocline;

/// Regression: both stores of an interrupted demo stayed, a hundred megabytes each time.
#[test]
fn an_interrupted_demo_leaves_nothing_behind() {
    let home = tempfile::tempdir().expect("a directory");
    let entries = || fs::read_dir(home.path()).expect("is there").count();
    let mut child = thermocline(&["demo", "--seconds", "3600"])
        .env("TMPDIR", home.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("runs");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    // From here on the demo reads from both stores, for an hour.
    let loaded = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("loaded in")));
    assert!(loaded.is_some() && entries() == 1);
    let interrupt = format!("kill -INT {}", child.id());
    let sent = Command::new("sh").args(["-c", &interrupt]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    let status = child.wait().expect("ends");
    assert!(!status.success(), "{status}");
    assert_eq!(entries(), 0);
}
