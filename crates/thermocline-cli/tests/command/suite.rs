//! Suites with the real command: measured, interrupted, continued, and refused.

#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{Run, run, thermocline};
use serde_json::Value as Json;

const TINY: &str = r#"
name = "tiny"
description = "For tests."
states = "kept"
directories = "optional"
repeats = 3
guess = { load-bytes-per-second = "1MB", seconds-per-run = 1.0 }

[settings]
data-size = "200kB"
record-size = 200
fast-capacity = "2MiB"
memory = "16MiB"
threads = 2
duration = "300ms"

[[group]]
name = "reads"
state = "all"
figures = ["6"]
engines = ["hotrap", "leveled"]
workloads = ["ro"]
"#;

/// A group, one of whose engines is in no build.
const OPTIONAL: &str = r#"
[[group]]
name = "more"
optional = true
engines = ["hotrap", "no-such"]
workloads = ["ro", "uh"]
"#;

/// A suite's file, and a directory for its results.
struct Suite {
    dir: tempfile::TempDir,
}

impl Suite {
    fn new(text: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("tiny.toml"), text).expect("written");
        Self { dir }
    }

    fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    fn command(&self, rest: &[&str]) -> Command {
        let mut command = thermocline(&["bench", "suite"]);
        command.arg(self.dir.path().join("tiny.toml"));
        command.arg("--out").arg(self.out()).args(rest);
        command
    }

    fn run(&self, rest: &[&str]) -> Run {
        Run::new(self.command(rest).output().expect("the command runs"))
    }

    /// Results by file name.
    fn results(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.out().join("runs")).expect("a directory");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let mut results: Vec<_> = paths
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .map(|path| (path.clone(), fs::read(path).expect("a file")))
            .collect();
        results.sort();
        results
    }
}

fn json(path: &Path) -> Json {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

#[test]
fn an_interrupted_suite_goes_on_and_measures_nothing_twice() {
    let suite = Suite::new(TINY);
    let mut child = suite
        .command(&[])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    let mut said = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("operations/s") {
        line.clear();
        assert!(said.read_line(&mut line).expect("a line") > 0, "it ended");
    }
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status();
    assert!(sent.expect("kill runs").success());
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(3), "{rest}");
    assert!(
        rest.contains("interrupted after") && rest.contains("goes on"),
        "{rest}"
    );
    let first = suite.results();
    assert!((1..6).contains(&first.len()), "{} of 6", first.len());

    let out = suite.run(&[]).ok();
    let summary = format!(
        "{} runs measured, {} were there already",
        6 - first.len(),
        first.len()
    );
    assert!(out.contains(&summary), "{out}");
    let all = suite.results();
    assert_eq!(all.len(), 6);
    assert!(
        first.iter().all(|result| all.contains(result)),
        "a result was measured again"
    );
    for (path, _) in &all {
        let result = json(path);
        assert_eq!(result["kept_state"], true, "{}", path.display());
        assert_eq!(result["wrong_answers"], 0);
    }
    assert!(
        !suite.out().join("stores").exists(),
        "the stores are removed at the end"
    );
    let record = json(&suite.out().join("suite.json"));
    assert_eq!(record["cells"][1]["id"], "reads-leveled-ro");
    assert_eq!(record["cells"][1]["figures"][0], "6");
}

#[test]
fn some_cells_can_be_measured_before_the_others() {
    let suite = Suite::new(&TINY.replace("repeats = 3", "repeats = 1"));
    let only = suite.run(&["--only", "*-leveled-*"]).ok();
    assert!(only.contains("1 runs measured"), "{only}");
    let list = suite.run(&["--list"]).ok();
    assert!(list.contains("2 cells, 2 runs"), "{list}");
    assert!(
        list.contains("thermocline bench --engine hotrap --workload ro"),
        "{list}"
    );
    let rest = suite.run(&[]).ok();
    assert!(
        rest.contains("1 runs measured, 1 were there already"),
        "{rest}"
    );
}

/// Regression: what an optional group lacked was dropped in silence. The suite that has to pass
/// before a merge never ran the flash cache, nor anything without a technique, and nobody was told.
#[test]
fn what_a_build_lacks_is_said_to_be_left_out() {
    let once = TINY.replace("repeats = 3", "repeats = 1");
    let suite = Suite::new(&format!("{once}{OPTIONAL}"));
    let list = suite.run(&["--list"]).ok();
    let both = "left out: more-no-such-ro, more-no-such-uh (`no-such` is no engine";
    assert!(list.contains(both), "{list}");
    assert!(list.contains("4 cells, 4 runs"), "{list}");
    let run = suite.run(&["--only", "more-*-ro"]);
    let wanted = "left out: more-no-such-ro (`no-such` is no engine";
    assert!(run.err.contains(wanted), "{}", run.err);
    assert!(run.ok().contains("1 runs measured"));
}

#[test]
fn another_definition_is_refused_and_its_results_stay() {
    let suite = Suite::new(&TINY.replace("repeats = 3", "repeats = 1"));
    suite.run(&["--only", "*-leveled-*"]).ok();
    let before = suite.results();
    let other = TINY.replace("300ms", "200ms");
    fs::write(suite.dir.path().join("tiny.toml"), other).expect("written");
    suite
        .run(&[])
        .fails(2, &["another definition", "300ms", "200ms"]);
    assert_eq!(suite.results(), before);
}

/// Regression: a file that was copied in was taken for the cell's own if engine and workload were
/// the same, and measured over if they were not.
#[test]
fn a_result_of_another_command_is_neither_taken_nor_overwritten() {
    let once = TINY.replace("repeats = 3", "repeats = 1");
    let suite = Suite::new(&once);
    suite.run(&["--only", "*-leveled-*"]).ok();
    let (path, foreign) = suite.results().remove(0);
    assert_eq!(
        json(&path)["command"],
        json(&suite.out().join("suite.json"))["cells"][1]["command"]
    );
    fs::remove_dir_all(suite.out()).expect("removed");
    let longer = once.replace("300ms", "400ms");
    fs::write(suite.dir.path().join("tiny.toml"), longer).expect("written");
    suite.run(&["--only", "*-hotrap-*"]).ok();
    fs::write(&path, &foreign).expect("written");
    suite
        .run(&[])
        .fails(2, &["reads-leveled-ro", "300ms", "400ms", "move it"]);
    assert_eq!(fs::read(&path).expect("a file"), foreign);
    let of_hotrap = fs::read(path.with_file_name("reads-hotrap-ro.1.json")).expect("a file");
    fs::write(&path, &of_hotrap).expect("written");
    let engines = ["--engine hotrap", "--engine leveled", "move it"];
    suite.run(&[]).fails(2, &engines);
    assert_eq!(fs::read(&path).expect("a file"), of_hotrap);
    fs::remove_file(&path).expect("removed");
    assert!(suite.run(&[]).ok().contains("1 runs measured, 1 were"));
}

#[test]
fn mistakes_are_found_before_anything_runs() {
    let refused = |from: &str, to: &str, rest: &[&str], words: &[&str]| {
        let suite = Suite::new(&TINY.replace(from, to));
        suite.run(rest).fails(2, words);
        assert!(!suite.out().exists(), "{to}: something was made");
    };
    refused("\"leveled\"", "\"levelled\"", &[], &["levelled", "hotrap"]);
    refused(
        "threads = 2",
        "threads = 0",
        &[],
        &["reads-hotrap-ro", "--threads"],
    );
    refused(
        "\"optional\"",
        "\"required\"",
        &[],
        &["--fast and --slow", "fast and on a slow disk"],
    );
    refused(
        "threads = 2",
        "thread = 2",
        &[],
        &["tiny.toml", "line", "`thread`"],
    );
    refused("", "", &["--only", "fig9*"], &["fig9*", "--list"]);
    refused("", "", &["--fast", "a"], &["--fast and --slow"]);
    run(&["bench", "suite", "smoek", "--out", "x"]).fails(2, &["smoek", "smoke", "paper-small"]);
    run(&["bench", "suite", "smoke"]).fails(2, &["--out"]);
    run(&["bench", "--ops", "3", "suite", "smoke"]).fails(2, &["suite", "--ops"]);
}

#[test]
fn the_files_that_suites_need_come_with_the_command() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("out");
    let name = out.to_str().expect("UTF-8");
    let smoke = run(&[
        "bench", "suite", "smoke", "--only", "trace-*", "--out", name,
    ]);
    assert!(smoke.ok().contains("1 runs measured"));
    assert_eq!(
        json(&out.join("runs/trace-hotrap.1.json"))["workload"],
        "trace"
    );
}
