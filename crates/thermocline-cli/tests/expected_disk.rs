//! A slow disk is measured. If it is not as slow as was asked, the run is refused with the figures.

#![cfg(unix)]

mod common;

use common::{Run, thermocline};

/// A small run, with these flags.
fn bench(flags: &[&str]) -> Run {
    let mut command = thermocline(&["bench", "--engine", "leveled", "--workload", "ro"]);
    command.args(["--data-size", "200kB", "--record-size", "200"]);
    command.args([
        "--fast-capacity",
        "2MiB",
        "--memory",
        "16MiB",
        "--ops",
        "100",
    ]);
    Run::new(command.args(flags).output().expect("the command runs"))
}

#[test]
fn an_emulation_faster_than_expected_is_refused_with_both_figures() {
    let flags = ["--slow-iops", "1000", "--expect-slow-iops", "400"];
    bench(&flags).fails(
        2,
        &["--expect-slow-iops 400", "faster", "a second were measured"],
    );
    let flags = ["--slow-iops", "1000", "--expect-slow-iops", "1000"];
    bench(&flags).ok();
}

/// The limits are only there once the command has set them, so the disk is measured after it.
#[test]
fn with_a_command_after_the_warm_up_the_disk_is_measured_after_that() {
    let dir = tempfile::tempdir().expect("a directory");
    let mark = dir.path().join("limits-set");
    let command = format!("touch {}", mark.display());
    let json = dir.path().join("result.json");
    // Every disk is faster than that. One that cannot be measured is refused as well.
    bench(&[
        "--warm-up",
        "100",
        "--after-warm-up",
        &command,
        "--expect-slow-iops",
        "1",
        "--json",
        json.to_str().expect("UTF-8"),
    ])
    .fails(2, &["--expect-slow-iops"]);
    assert!(mark.exists(), "refused before the limits were set");
    assert!(
        !json.exists(),
        "a result was written of a disk that is not slow"
    );
}
