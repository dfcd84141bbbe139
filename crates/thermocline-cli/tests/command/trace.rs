//! `trace stats`: from a file to its shares, and what is wrong with a file.

use crate::common::run;

/// The path of a file that holds `text`. It lasts as long as the directory.
fn file(dir: &tempfile::TempDir, text: &str) -> String {
    let path = dir.path().join("trace.csv");
    std::fs::write(&path, text).expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn a_trace_is_described_for_people_and_for_programs() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = file(
        &dir,
        "0,a,1,76,1,get,0\n1,a,1,76,1,get,0\n2,b,1,76,1,set,9\n",
    );
    let args = ["trace", "stats", &path, "--format", "twitter"];
    let text = run(&args).ok();
    assert!(text.contains("trace.csv: 3 accesses to 2 keys"), "{text}");
    assert!(text.contains("get 2, set 1"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&run(&[&args[..], &["--json", "--fast-share", "60%"]].concat()).ok())
            .expect("JSON");
    assert_eq!(json["data_bytes"], 200);
    assert_eq!(json["threshold_bytes"], 60);
    assert_eq!(json["sunk_read_share"], 1.0);
    assert_eq!(json["hot_read_share"], 0.5);
    assert_eq!(json["one_hit_share"], 0.5);
}

#[test]
fn a_bad_line_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = file(&dir, "0,a,1,76,1,get,0\n1,a,1,76,1,look,0\n");
    let line = ["trace", "stats", &path, "--format", "twitter"];
    run(&line).fails(
        2,
        &[&path, "line 2", "`look` is no operation; there are get"],
    );
    let bench = ["bench", "--trace", &path, "--format", "twitter"];
    run(&bench).fails(2, &[&path, "line 2"]);
    run(&bench[..3]).fails(2, &[&path, "name its format with --format"]);
    run(&["trace", "stats", &path]).fails(2, &["--format"]);
    let share = [&line[..], &["--fast-share", "10"]].concat();
    run(&share).fails(2, &["like 10%"]);
}
