//! The real command, killed while it writes. Everything that it had acknowledged is there
//! afterwards. What else is there is a prefix of what it was given, in whole batches.

#![cfg(unix)]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::thread::JoinHandle;

use crate::common::{Run, Store, thermocline};

/// Keys are written over and over.
const KEYS: u64 = 1500;
/// Records of a batch.
const BATCH: u64 = 7;
/// After how many acknowledgements the command is killed, cycle by cycle.
const KILLED_AFTER: [usize; 8] = [1, 90, 3, 250, 17, 400, 61, 140];

/// The command, over a fast tier so small that flushes and compactions never cease.
fn command(store: &Store, line: &str) -> std::process::Command {
    let mut command = thermocline(&line.split_whitespace().collect::<Vec<_>>());
    command.arg("--fast").arg(store.fast());
    command.arg("--slow").arg(store.slow());
    command.args(["--fast-capacity", "2MiB"]);
    command
}

fn run(store: &Store, line: &str) -> Run {
    Run::new(command(store, line).output().expect("the command runs"))
}

/// The `n`th record, as a line.
fn line(n: u64) -> String {
    format!("key{:05}\t{n:09}{}\n", n % KEYS, "v".repeat(300))
}

/// Feeds records from `from` on until the command is gone.
fn feed(child: &mut Child, from: u64) -> JoinHandle<()> {
    let mut stdin = child.stdin.take().expect("piped");
    std::thread::spawn(move || {
        for n in from.. {
            if stdin.write_all(line(n).as_bytes()).is_err() {
                return;
            }
        }
    })
}

/// Lets the command write records from `from` on, and kills it. Returns how many it acknowledged.
fn write_until_killed(store: &Store, from: u64, acknowledgements: usize) -> u64 {
    let mut child = command(store, &format!("load --create --acknowledge {BATCH}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("the command runs");
    let feeder = feed(&mut child, from);
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut acknowledged = 0;
    let mut read = |line: std::io::Result<String>| {
        let count: u64 = line.expect("a line").parse().expect("a number");
        assert!(count > acknowledged, "{count} after {acknowledged}");
        acknowledged = count;
    };
    lines.by_ref().take(acknowledgements).for_each(&mut read);
    child.kill().expect("the command runs until it is killed");
    // What it said before it died counts.
    lines.for_each(&mut read);
    let status = child.wait().expect("it is gone");
    assert_eq!(status.signal(), Some(9), "{status}");
    feeder.join().expect("the feeder ends with the pipe");
    acknowledged
}

/// Reads the whole store. Returns up to which record it goes.
fn check(store: &Store) -> u64 {
    let out = run(store, "scan").ok();
    let records: Vec<(&str, &str)> = out
        .lines()
        .map(|line| line.split_once('\t').expect("key and value"))
        .collect();
    let number = |value: &str| value[..9].parse::<u64>().expect("a number");
    let end = records.iter().map(|(_, value)| number(value) + 1).max();
    let end = end.unwrap_or(0);
    // For each key, the last write before the end.
    let mut wanted: Vec<String> = (end.saturating_sub(KEYS)..end).map(line).collect();
    wanted.sort();
    assert!(
        out.lines().eq(wanted.iter().map(|line| line.trim_end())),
        "the store is not what the first {end} writes leave"
    );
    end
}

#[test]
fn a_killed_load_keeps_what_it_acknowledged() {
    let store = Store::new();
    let mut from = 0;
    for (cycle, acknowledgements) in KILLED_AFTER.into_iter().enumerate() {
        let acknowledged = write_until_killed(&store, from, acknowledgements);
        assert!(acknowledged >= acknowledgements as u64 * BATCH);
        let end = check(&store);
        let kept = end - from;
        assert!(
            kept >= acknowledged,
            "cycle {cycle}: {acknowledged} records were acknowledged, {kept} are there"
        );
        assert_eq!(kept % BATCH, 0, "cycle {cycle}: half a batch");
        from = end;
    }
    run(&store, "verify").ok();
    assert!(store.tables().len() > 2, "tables were written meanwhile");
}
