//! Statistics, verification, checkpoints, compaction, inspection and removal.

mod common;

use common::{Store, run};

#[test]
fn stats_come_as_text_as_json_and_for_prometheus() {
    let store = Store::filled(100, 100);
    store.run("compact", &[]).ok();
    let fast = store.fast();
    assert!(
        store
            .run("stats", &[])
            .ok()
            .contains(fast.to_str().expect("UTF-8"))
    );
    let json = store.run("stats --json", &[]).json();
    assert_eq!(json["tiers"][0]["path"], fast.to_str().expect("UTF-8"));
    assert_eq!(json["tiers"][0]["capacity"], 64 << 20);
    assert!(json["tiers"][1]["capacity"].is_null(), "unlimited");
    let tables = json["levels"].as_array().expect("levels").iter();
    let tables: u64 = tables.filter_map(|level| level["tables"].as_u64()).sum();
    assert_eq!(tables, store.tables().len() as u64);
    let prometheus = store.run("stats --prometheus", &[]).ok();
    assert!(prometheus.contains("\nthermocline_tier_capacity_bytes{tier=\"0\"} 67108864\n"));
    store
        .run("stats --prometheus --json", &[])
        .fails(2, &["--json"]);
}

#[test]
fn a_sound_store_verifies() {
    let store = Store::filled(500, 100);
    store.run("compact", &[]).ok();
    let text = store.run("verify", &[]).ok();
    for table in store.tables() {
        let name = table.to_str().expect("UTF-8");
        let line = text.lines().find(|line| line.contains(name));
        assert!(line.is_some_and(|line| line.starts_with("ok")), "{text}");
    }
    let json = store.run("verify --json", &[]).json();
    assert_eq!((&json["ok"], &json["entries"]), (&true.into(), &500.into()));
}

#[test]
fn damage_is_found_and_named_by_file_and_offset() {
    let store = Store::filled(500, 100);
    store.run("compact", &[]).ok();
    let table = store.tables().pop().expect("a table");
    let mut bytes = std::fs::read(&table).expect("read");
    bytes[100] ^= 0x40;
    std::fs::write(&table, bytes).expect("written");

    let name = table.to_str().expect("UTF-8");
    let run = store.run("verify", &[]).fails(4, &["1 problem"]);
    let line = run.out.lines().find(|line| line.starts_with("DAMAGED"));
    assert!(line.is_some_and(|line| line.contains(name)), "{}", run.out);
    assert!(
        run.out.contains(&format!("{name} is damaged at offset 0")),
        "{}",
        run.out
    );

    let run = store.run("verify --json", &[]).fails(4, &[]);
    let json: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
    assert_eq!(json["ok"], false);
    assert_eq!(json["problems"][0]["file"], name);
    assert_eq!(json["problems"][0]["offset"], 0);

    store.run("get", &["key0000"]).fails(4, &[name, "offset"]);
}

#[test]
fn a_checkpoint_is_a_store_of_its_own() {
    let store = Store::filled(200, 50);
    let (fast, slow) = (store.path("copy-fast"), store.path("copy-slow"));
    let targets = [
        "--to-fast",
        fast.to_str().expect("UTF-8"),
        "--to-slow",
        slow.to_str().expect("UTF-8"),
    ];
    let json = store.run("checkpoint --json", &targets).json();
    assert_eq!(json["tiers"].as_array().map(Vec::len), Some(2));
    store.run("delete", &["key0000"]).ok();
    let copy = [
        "get",
        "--fast",
        targets[1],
        "--slow",
        targets[3],
        "--fast-capacity",
        "64MiB",
        "key0000",
    ];
    run(&copy).ok();
    store.run("get", &["key0000"]).fails(1, &[]);
    store
        .run("checkpoint --to-fast x", &[])
        .fails(2, &["--to-slow"]);
}

#[test]
fn compaction_gives_back_what_deletes_left() {
    let store = Store::filled(1000, 500);
    // Each run leaves an L0 table; at four they go down a level.
    for _ in 0..3 {
        let scan = store.run("scan", &[]).ok();
        store.run_with("load", &[], scan.as_bytes()).ok();
    }
    let sizes = |json: serde_json::Value, name: &str| -> u64 {
        let tiers = json["tiers"].as_array().expect("tiers").iter();
        tiers.filter_map(|tier| tier[name].as_u64()).sum()
    };
    let before = sizes(store.run("compact --json", &[]).json(), "bytes_after");
    assert!((400_000..800_000).contains(&before), "{before}");
    let keys: Vec<String> = (0..1000).map(|i| format!("key{i:04}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    store.run("delete", &keys).ok();
    let after = sizes(store.run("compact --json", &[]).json(), "bytes_after");
    assert!(after < before / 10, "{after} of {before}");
    let files = store.tables();
    let files: u64 = files
        .iter()
        .map(|t| t.metadata().expect("a file").len())
        .sum();
    assert_eq!(files, after, "what was compacted away is off the disk");
    let text = store.run("compact", &[]).ok();
    assert!(text.contains("tier 0: ") && text.contains(" -> "), "{text}");
}

#[test]
fn destroying_asks_or_takes_yes_and_leaves_other_files_alone() {
    let store = Store::filled(10, 10);
    std::fs::write(store.fast().join("mine.txt"), "x").expect("written");
    store.run("destroy", &[]).fails(2, &["--yes"]);
    store.run("get", &["key0000"]).ok();
    store.run("destroy --yes", &[]).ok();
    store.run("get", &["key0000"]).fails(3, &[]);
    assert!(store.fast().join("mine.txt").exists());
    store.run("destroy --yes", &[]).fails(3, &["fast"]);
}
