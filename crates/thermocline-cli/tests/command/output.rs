//! Output that somebody else reads: pipes that close early, completions, help.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use crate::common::{Run, Store, run, thermocline};
use serde_json::json;

#[test]
fn a_pipe_that_closes_early_is_no_error() {
    // Far more than a pipe holds, so that the command meets the closed end.
    let store = Store::filled(4000, 200);
    let (first, run) = read_one_line(store.command("scan", &[]));
    assert!(first.starts_with("key0000\t"));
    assert_eq!((run.code, run.err.as_str()), (0, ""));
}

/// Runs `command`, closes its standard output after the first line, and waits for its end.
fn read_one_line(mut command: Command) -> (String, Run) {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    let mut first = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    out.read_line(&mut first).expect("a line");
    drop(out);
    (first, Run::new(child.wait_with_output().expect("ends")))
}

/// Runs `command` with its standard output a pipe that nobody reads.
fn unread(mut command: Command) -> Run {
    let (reader, writer) = io::pipe().expect("a pipe");
    drop(reader);
    let output = command.stdout(writer).output();
    Run::new(output.expect("runs"))
}

/// Regression: the demo panicked, and waited for clients that nothing ended any more.
#[test]
fn a_demo_that_nobody_reads_ends() {
    let (first, run) = read_one_line(thermocline(&["demo", "--seconds", "3600"]));
    assert!(first.starts_with("Two stores"), "{first}");
    assert_eq!((run.code, run.err.as_str()), (0, ""));
}

/// Regression: a message that could not be written was a panic, with an exit code that no
/// documentation has.
#[test]
fn exit_codes_do_not_depend_on_who_reads_messages() {
    let store = Store::filled(1, 1);
    for (line, key, code) in [("get", "absent", 1), ("load", "/absent", 3)] {
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let mut command = store.command(line, &[key]);
        let status = command.stderr(writer).status().expect("runs");
        assert_eq!(status.code(), Some(code), "{line}");
    }
}

/// Regression: a reader that closed the pipe made everything a success. `verify | head` on a
/// damaged store ended with 0, for scripts that look at nothing else.
#[test]
fn a_verdict_does_not_depend_on_who_reads() {
    let store = Store::filled(300, 100);
    let backups = store.path("backups");
    let backups = backups.to_str().expect("UTF-8");
    store.run("backup", &["--to", backups]).ok();
    let copies = fs::read_dir(store.path("backups").join("tables")).expect("a directory");
    let copy = copies.map(|file| file.expect("a file").path()).next();
    let table = store.tables().pop();
    for path in [copy, table] {
        let path = path.expect("a table");
        let mut bytes = fs::read(&path).expect("read");
        bytes[100] ^= 0x40;
        fs::write(&path, bytes).expect("written");
    }
    let damaged = |command| unread(command).fails(4, &["problem"]);
    damaged(store.command("verify", &[]));
    damaged(store.command("verify --json", &[]));
    damaged(thermocline(&["backups", "--verify", "--in", backups]));
    damaged(store.command("repair --dry-run", &[]));
    fs::remove_file(store.fast().join("CURRENT")).expect("removed");
    damaged(store.command("verify", &[]));

    let store = Store::filled(10, 10);
    let table = store.tables().swap_remove(0);
    let bytes = fs::read(&table).expect("read");
    fs::write(&table, &bytes[..bytes.len() - 1]).expect("written");
    damaged(store.command("inspect tables", &[]));
}

/// As above: a closed pipe passed the check `bench compare --fail-on-regression`.
#[test]
fn a_regression_does_not_depend_on_who_reads() {
    let dir = tempfile::tempdir().expect("a directory");
    let measured = |name: &str, ops_s: f64| {
        let series: Vec<_> = (1..=40)
            .map(|second| json!({"second": second, "ops_s": ops_s}))
            .collect();
        let run = json!({
            "engine": "hotrap", "workload": "ro", "distribution": "uniform", "records": 1000,
            "record_bytes": 1024, "threads": 4, "seconds": 40.0, "ops_s": ops_s, "series": series,
            "settings": {"fast_capacity": 1, "memory": 1, "cache": 1, "memtable": 1,
                "block_size_fast": 1, "block_size_slow": 1, "durability": "none", "compression": "none"},
        });
        let path = dir.path().join(name);
        fs::write(&path, run.to_string()).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let (before, after) = (measured("a.json", 100.0), measured("b.json", 50.0));
    let compare = [
        "bench",
        "compare",
        &before,
        &after,
        "--fail-on-regression",
        "5",
    ];
    run(&compare).fails(1, &["slower than allowed"]);
    unread(thermocline(&compare)).fails(1, &["slower than allowed"]);
}

/// Regression: JSON cannot hold a path that is not UTF-8. Commands that were asked for JSON
/// panicked over such a path, after they had done their work.
#[test]
fn json_shows_a_directory_whose_name_is_not_utf_8() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &[u8]| dir.path().join(OsStr::from_bytes(name));
    let (fast, copy) = (at(b"fast\xff"), at(b"copy\xff"));
    let shown = |line: &str, more: &[&OsStr]| {
        let mut command = thermocline(&line.split_whitespace().collect::<Vec<_>>());
        command.arg("--fast").arg(&fast).args(more);
        Run::new(command.output().expect("runs")).ok()
    };
    shown("put --create --one-tier key value", &[]);
    for line in [
        "stats --json --one-tier",
        "verify --json --one-tier",
        "inspect manifest --json --one-tier",
        "inspect tables --json --one-tier",
        "inspect wal --json --one-tier",
    ] {
        let json = shown(line, &[]);
        assert!(json.contains("fast\u{fffd}"), "{line}: {json}");
    }
    let to = [OsStr::new("--to-fast"), copy.as_os_str()];
    let json = shown("checkpoint --json --one-tier", &to);
    assert!(json.contains("copy\u{fffd}"), "{json}");
}

#[test]
fn completions_know_the_subcommands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]).ok();
        assert!(script.contains("checkpoint"), "{shell}");
    }
    run(&["completions", "dos"]).fails(2, &["bash"]);
}

#[test]
fn help_lists_exit_codes_and_shows_what_each_subcommand_does() {
    let help = run(&["--help"]).ok();
    assert!(help.contains("Exit codes:") && help.contains("  4  bytes on disk are damaged"));
    for (command, about) in [
        ("get", "Print the value of a key"),
        ("put", "Write a value under a key"),
        ("verify", "Read every table and check it"),
        ("bench", "Measure"),
        ("demo", "Show"),
        ("hot", "Print the hottest keys"),
    ] {
        let help = run(&[command, "--help"]).ok();
        assert!(help.starts_with(about), "{help}");
        assert!(help.contains("Examples:"), "{help}");
    }
}

/// Regression: only the help of `get` did. `load` and `put` changed data with backslashes, and
/// nothing had said so.
#[test]
fn help_tells_of_escapes_wherever_keys_are_taken_or_printed() {
    for command in ["get", "put", "load", "delete", "scan", "compact"] {
        let help = run(&[command, "--help"]).ok();
        assert!(help.contains(r"\xNN"), "{help}");
    }
    let help = run(&["load", "--help"]).ok();
    for word in ["--literal", "key_hex", "byte-order mark"] {
        assert!(help.contains(word), "{word}: {help}");
    }
}
