//! What is hot, as commands show it.

mod common;

use common::{Store, run};

#[test]
fn the_hottest_keys_and_the_curve_come_as_text_and_as_json() {
    let store = Store::filled(50, 100);
    // Its directory is what marks a store that tracks hotness.
    std::fs::create_dir_all(store.fast().join("ralt")).expect("a directory");
    let text = store.run("hot", &[]).ok();
    assert!(
        text.contains(" of data\n") && text.contains("  cold "),
        "{text}"
    );
    let json = store.run("hot --json --limit 3", &[]).json();
    assert!(json["data_bytes"].as_u64() > Some(5000), "{json}");
    let hottest = json["hottest"].as_array().expect("keys");
    assert!(hottest.len() <= 3 && json["curve"].is_array(), "{json}");
    let stats = store.run("stats --json", &[]).json();
    assert!(stats["hotrap"]["hot_set_limit_bytes"].is_u64(), "{stats}");
    assert!(store.run("stats", &[]).ok().contains("\nHotness\n"));
}

#[test]
fn where_nothing_is_tracked_that_is_said() {
    let store = Store::new();
    let mut options = store.options();
    options.placement = thermocline::Placement::ByLevel;
    let db = thermocline::Db::open(options).expect("opens");
    db.put("k", "v").expect("written");
    db.close().expect("closes");
    drop(db);
    store.run("hot", &[]).fails(2, &["by level", "ralt"]);
    // No command begins to track it.
    store.run("put", &["k", "w"]).ok();
    assert!(!store.fast().join("ralt").exists());
    assert!(store.run("stats --json", &[]).json()["hotrap"].is_null());

    let dir = store.path("single");
    let one = ["--one-tier", "--fast", dir.to_str().expect("UTF-8")];
    run(&[&["put", "--create", "k", "v"], &one[..]].concat()).ok();
    run(&[&["hot"], &one[..]].concat()).fails(2, &["one tier"]);
}

#[test]
fn inspection_lists_the_files_of_the_access_records() {
    let store = Store::filled(1, 1);
    let dir = store.fast().join("ralt");
    std::fs::create_dir_all(&dir).expect("a directory");
    std::fs::write(dir.join("extra.tmp"), "1234567").expect("written");
    let text = store.run("inspect hotness", &["--file", "extra.tmp"]).ok();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let file = dir.join("extra.tmp");
    assert_eq!(
        lines,
        [
            format!("7  {}", file.display()),
            "7  bytes of access records".to_owned()
        ]
    );
    let json = store.run("inspect hotness --json", &[]).ok();
    assert!(
        json.contains("{\"file\":") && json.contains("\"bytes\":7"),
        "{json}"
    );
}
