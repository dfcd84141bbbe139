//! How many files the command may have open.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::common::Store;

/// Regression: under the usual limit of 1,024, a load ended with "Too many open files" at that many
/// tables, though the system would have allowed more.
#[test]
fn the_command_may_have_as_many_files_open_as_it_is_given() {
    let store = Store::new();
    let load = store.command("load --create --acknowledge 1", &[]);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -Sn 40; exec \"$@\"", "sh"])
        .arg(load.get_program())
        .args(load.get_args())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = limited.spawn().expect("runs");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(b"key\tvalue\n").expect("taken");
    let mut written = String::new();
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    output.read_line(&mut written).expect("acknowledged");
    assert_eq!(written, "1\n");
    // It has the store open, and waits for more.
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id()));
    let limits = limits.expect("the process is there");
    drop(input);
    assert!(child.wait().expect("ends").success());
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let [soft, hard] = [3, 4].map(|at| line.and_then(|line| line.split_whitespace().nth(at)));
    assert!(
        soft.is_some() && soft == hard && soft != Some("40"),
        "{limits}"
    );
}
