//! Statistics, verification, checkpoints, compaction, inspection and removal.

use crate::common::{Run, Store, damage, run, thermocline};
use serde_json::Value as Json;

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
    let levels = json["levels"].as_array().expect("levels");
    assert_eq!(levels[0]["target_bytes"], 0);
    assert!(levels[levels.len() - 1]["target_bytes"].is_null());
    let tables = levels.iter().filter_map(|level| level["tables"].as_u64());
    assert_eq!(tables.sum::<u64>(), store.tables().len() as u64);
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
    damage(&table, 100);

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

/// Regression: what was checked was named by the path as given, and damage by the absolute path, so
/// the damaged table was "ok".
#[test]
fn damage_is_found_in_a_store_at_relative_paths() {
    let store = Store::filled(500, 100);
    store.run("compact", &[]).ok();
    let table = store.tables().pop().expect("a table");
    // Another table, which is whole.
    store.run("put", &["other", "value"]).ok();
    damage(&table, 100);
    let name = table.file_name().and_then(|name| name.to_str());
    let name = name.expect("UTF-8");
    let verify = |args: &[&str]| {
        let tiers = ["--fast", "fast", "--slow", "slow"];
        let line = [&["verify", "--fast-capacity", "64MiB"], &tiers[..], args].concat();
        let output = thermocline(&line).current_dir(store.path(".")).output();
        Run::new(output.expect("the command runs")).fails(4, &["1 problem"])
    };

    let text = verify(&[]).out;
    let lines = text.lines().filter(|line| line.starts_with("DAMAGED"));
    let damaged: Vec<&str> = lines.collect();
    assert_eq!(damaged.len(), 1, "{text}");
    assert!(damaged[0].ends_with(name), "{text}");

    let json: Json = serde_json::from_str(&verify(&["--json"]).out).expect("JSON");
    let files = json["files"].as_array().expect("files");
    let bad: Vec<&Json> = files.iter().filter(|file| file["ok"] == false).collect();
    assert!(files.len() > 1 && bad.len() == 1, "{files:?}");
    assert_eq!(bad[0]["file"], json["problems"][0]["file"]);
}

/// Regression: the verification ended at the damaged `TIER`. No table was named, and there was no
/// JSON.
#[test]
fn a_damaged_tier_file_does_not_hide_what_else_is_damaged() {
    let store = Store::filled(500, 100);
    store.run("compact", &[]).ok();
    let table = store.tables().pop().expect("a table");
    let identity = store.slow().join("TIER");
    damage(&identity, 20);
    damage(&table, 100);
    let run = store.run("verify --json", &[]).fails(4, &["2 problems"]);
    let json: Json = serde_json::from_str(&run.out).expect("JSON");
    assert_eq!(
        (&json["ok"], &json["opens"]),
        (&false.into(), &false.into())
    );
    let problems = json["problems"].as_array().expect("problems");
    for file in [identity, table] {
        let name = file.to_str().expect("UTF-8");
        let mut texts = problems.iter().filter_map(|p| p["problem"].as_str());
        assert!(texts.any(|text| text.starts_with(name)), "{problems:?}");
    }
}

#[test]
fn a_directory_that_is_not_the_tiers_is_not_damaged() {
    let (store, other) = (Store::filled(1, 1), Store::filled(1, 1));
    let slow = store.slow();
    std::fs::rename(&slow, store.path("unmounted")).expect("renamed");
    std::fs::create_dir(&slow).expect("made");
    let verify = || store.run("verify --json", &[]);
    let words = [slow.to_str().expect("UTF-8"), "mounted"];
    assert_eq!(verify().fails(3, &words).out, "");
    std::fs::remove_dir_all(&slow).expect("removed");
    std::fs::rename(other.slow(), &slow).expect("renamed");
    let words = [words[0], "belongs to database"];
    assert_eq!(verify().fails(3, &words).out, "");
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
    // Each run leaves a table on L0; at four they go down a level.
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

fn json_lines(text: &str) -> Vec<Json> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

#[test]
fn inspection_shows_tables_and_the_edits_that_made_them() {
    let store = Store::filled(10, 10);
    let table = store.tables().pop().expect("a table");
    let file = table.file_name().and_then(|f| f.to_str()).expect("UTF-8");
    let text = store.run("inspect tables", &[]).ok();
    assert!(text.contains(file) && text.contains("10 records"), "{text}");
    assert!(text.contains("\"key0000\" to \"key0009\""), "{text}");

    let tables = json_lines(&store.run("inspect tables --json", &[]).ok());
    assert_eq!((tables.len(), &tables[0]["entries"]), (1, &10.into()));
    let edits = json_lines(&store.run("inspect manifest --json", &[]).ok());
    let changes = edits.iter().filter_map(|edit| edit["changes"].as_array());
    let added: Vec<&Json> = changes
        .flatten()
        .map(|c| &c["add_table"]["table"])
        .collect();
    assert!(added.contains(&&tables[0]["table"]), "{edits:?}");

    let only = store.run("inspect tables --json", &["--file", file]).ok();
    assert_eq!(json_lines(&only), tables);
    store
        .run("inspect tables", &["--file", "none.sst"])
        .fails(2, &["none.sst"]);
}

#[test]
fn inspection_shows_the_writes_of_the_log() {
    let store = Store::new();
    // A clean close leaves no write in the log, so the store stays open meanwhile.
    let db = thermocline::Db::open(store.options()).expect("opens");
    db.put("k\0", "four").expect("written");
    db.delete("gone").expect("written");
    db.sync().expect("synced");
    let text = store.run("inspect wal", &[]).ok();
    assert!(
        text.contains("value of 4 bytes") && text.contains("delete \"gone\""),
        "{text}"
    );
    let json = json_lines(&store.run("inspect wal --json", &[]).ok());
    let writes: Vec<&Json> = json
        .iter()
        .filter_map(|group| group["writes"].as_array())
        .flatten()
        .collect();
    assert_eq!(writes[0]["key"], "k\u{0}");
    assert_eq!(
        (&writes[0]["kind"], &writes[1]["kind"]),
        (&"put".into(), &"delete".into())
    );
}

#[test]
fn inspection_goes_on_behind_damage_and_exits_with_4() {
    let store = Store::filled(10, 10);
    store.run("put", &["another", "table"]).ok();
    let table = store.tables().swap_remove(0);
    let bytes = std::fs::read(&table).expect("read");
    std::fs::write(&table, &bytes[..bytes.len() - 1]).expect("written");
    let run = store.run("inspect tables", &[]).fails(4, &["1 problem"]);
    assert!(
        run.out.contains("DAMAGED") && run.out.contains("\"another\""),
        "{}",
        run.out
    );
    let lines = json_lines(&store.run("inspect tables --json", &[]).fails(4, &[]).out);
    let damaged = |line: &&Json| line["damaged"].is_string();
    assert_eq!((lines.len(), lines.iter().filter(damaged).count()), (2, 1));
}
