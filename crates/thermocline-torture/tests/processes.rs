//! The harnesses that start processes and that take real time, run as a user runs them. The program
//! runs them, because a test program cannot start itself as a child.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::process::Command;

/// Runs a harness and gives back its line of JSON.
fn torture(arguments: &[&str]) -> serde_json::Value {
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_thermocline-torture"))
        .args(arguments)
        .arg("--json")
        .arg("--dir")
        .arg(home.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {text} {said}");
    let left = std::fs::read_dir(home.path()).unwrap().count();
    assert_eq!(left, 0, "stores are left over");
    serde_json::from_str(&text).unwrap()
}

fn counted(verdict: &serde_json::Value, what: &str) -> u64 {
    verdict["counted"][what].as_u64().unwrap_or(0)
}

#[test]
fn processes_are_killed_at_points_and_at_random_moments() {
    let verdict = torture(&["kill", "--cases", "4"]);
    assert!(
        counted(&verdict, "kills at a random moment") >= 3,
        "{verdict}"
    );
    assert!(counted(&verdict, "points killed at") >= 5, "{verdict}");
    assert!(counted(&verdict, "points reached") >= 40, "{verdict}");
    assert!(counted(&verdict, "openings checked") >= 12, "{verdict}");
    assert!(counted(&verdict, "checkpoints checked") >= 4, "{verdict}");
    assert!(
        counted(&verdict, "compactions onto the last tier") > 0,
        "{verdict}"
    );
}

#[test]
fn what_the_system_limits_is_used_up_and_given_back() {
    let verdict = torture(&["exhaustion", "--cases", "4"]);
    assert!(counted(&verdict, "refusals") > 0, "{verdict}");
    assert!(counted(&verdict, "openings refused") > 0, "{verdict}");
    assert_eq!(counted(&verdict, "stores without open files"), 1);
    assert_eq!(counted(&verdict, "stores without room in a file"), 1);
    assert!(
        counted(&verdict, "processes without memory") > 0,
        "{verdict}"
    );
}

#[test]
fn a_short_soak_sees_faults_and_goes_on() {
    let series = tempfile::NamedTempFile::new().unwrap();
    let path = series.path().to_str().unwrap();
    let verdict = torture(&["soak", "--series", path]);
    for what in ["faults planted", "flushes", "compactions", "checkpoints"] {
        assert!(counted(&verdict, what) > 0, "{what}: {verdict}");
    }
    let lines = std::fs::read_to_string(series.path()).unwrap();
    assert!(lines.lines().count() >= 3, "{lines}");
    for line in lines.lines() {
        let sample: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(sample["resident_bytes"].as_u64() > Some(0));
    }
}
