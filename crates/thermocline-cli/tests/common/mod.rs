//! A store in a temporary directory, and the command run on it.

// Each test file is a crate of its own and uses a part of this one.
#![allow(dead_code)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value as Json;

/// The command, without what it would read of the tester's environment.
pub(crate) fn thermocline(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thermocline"));
    for name in ["FAST", "SLOW", "FAST_CAPACITY", "SLOW_CAPACITY"] {
        command.env_remove(format!("THERMOCLINE_{name}"));
    }
    command.args(args).stdin(Stdio::null());
    command
}

/// What a run of the command gave.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    #[track_caller]
    pub(crate) fn new(output: Output) -> Self {
        let run = Run {
            code: output.status.code().expect("an exit code"),
            out: String::from_utf8(output.stdout).expect("UTF-8"),
            err: String::from_utf8(output.stderr).expect("UTF-8"),
        };
        assert!(!run.err.contains("panicked"), "{}", run.err);
        run
    }

    /// Standard output of a run that must have succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    #[track_caller]
    pub(crate) fn json(self) -> Json {
        serde_json::from_str(&self.ok()).expect("JSON")
    }

    /// Checks the exit code, and that the message says each of `words`.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not in: {}", self.err);
        }
        self
    }
}

#[track_caller]
pub(crate) fn run(args: &[&str]) -> Run {
    Run::new(thermocline(args).output().expect("the command runs"))
}

/// A place for a store of two tiers.
pub(crate) struct Store {
    dir: tempfile::TempDir,
}

impl Store {
    pub(crate) fn new() -> Self {
        Self {
            dir: tempfile::tempdir().expect("a directory"),
        }
    }

    /// A store that holds `records` records `key0000`, `key0001`, … with values of
    /// `value_len` bytes.
    #[track_caller]
    pub(crate) fn filled(records: usize, value_len: usize) -> Self {
        let store = Self::new();
        let value = "v".repeat(value_len);
        let lines: String = (0..records)
            .map(|i| format!("key{i:04}\t{value}\n"))
            .collect();
        store.run_with("load --create", &[], lines.as_bytes()).ok();
        store
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn fast(&self) -> PathBuf {
        self.path("fast")
    }

    pub(crate) fn slow(&self) -> PathBuf {
        self.path("slow")
    }

    /// The options with which the command opens the store.
    pub(crate) fn options(&self) -> thermocline::Options {
        thermocline::Options::two_tiers(self.fast(), 64 << 20, self.slow())
    }

    /// The command with the words of `line`, then the store's flags, then `rest`.
    pub(crate) fn command(&self, line: &str, rest: &[&str]) -> Command {
        let mut command = thermocline(&line.split_whitespace().collect::<Vec<_>>());
        command
            .arg("--fast")
            .arg(self.fast())
            .arg("--slow")
            .arg(self.slow())
            .args(["--fast-capacity", "64MiB"])
            .args(rest);
        command
    }

    #[track_caller]
    pub(crate) fn run(&self, line: &str, rest: &[&str]) -> Run {
        Run::new(self.command(line, rest).output().expect("the command runs"))
    }

    #[track_caller]
    pub(crate) fn run_with(&self, line: &str, rest: &[&str], input: &[u8]) -> Run {
        let mut child = self
            .command(line, rest)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command runs");
        let mut stdin = child.stdin.take().expect("piped");
        // The command may refuse before it reads anything.
        let _ = stdin.write_all(input);
        drop(stdin);
        Run::new(child.wait_with_output().expect("the command ends"))
    }

    /// Every table file of the store.
    pub(crate) fn tables(&self) -> Vec<PathBuf> {
        let mut tables = Vec::new();
        for dir in [self.fast(), self.slow()] {
            collect_tables(&dir, &mut tables);
        }
        tables.sort();
        tables
    }
}

/// Damages the byte at `offset` of a file.
#[track_caller]
pub(crate) fn damage(file: &Path, offset: usize) {
    let mut bytes = std::fs::read(file).expect("read");
    bytes[offset] ^= 0x40;
    std::fs::write(file, bytes).expect("written");
}

fn collect_tables(dir: &Path, tables: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect_tables(&path, tables);
        } else if path.extension().is_some_and(|e| e == "sst") {
            tables.push(path);
        }
    }
}
