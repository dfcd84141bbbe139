//! What is hot, as commands show it.

mod common;

use common::{Store, run};
use serde_json::Value as Json;
use thermocline::{HotRapOptions, Placement};

/// Regression: nothing had been read, so the test passed with no key at all.
#[test]
fn the_hottest_keys_and_the_curve_come_as_text_and_as_json() {
    const VALUE: usize = 70_000;
    let store = Store::new();
    let mut options = store.options();
    options.placement = Placement::HotRap(HotRapOptions {
        // 67 KB of the 64 MiB that the fast tier has. Each read is larger than this, so each
        // counts.
        slice: 0.001,
        ..HotRapOptions::default()
    });
    let db = thermocline::Db::open(options).expect("opens");
    for key in ["never", "once", "often", "twice"] {
        db.put(key, vec![b'v'; VALUE]).expect("written");
    }
    for key in ["twice", "often", "once", "often", "twice", "often"] {
        assert!(db.get(key).expect("read").is_some());
    }
    db.close().expect("closes");
    drop(db);

    let text = store.run("hot", &[]).ok();
    assert!(
        text.contains(" of data\n") && text.contains("  cold "),
        "{text}"
    );
    let (_, keys) = text.split_once("\nHottest keys\n").expect("keys");
    let first_words = keys.lines().map(|line| line.split_whitespace().next());
    let first_words: Vec<&str> = first_words.map(|word| word.expect("a key")).collect();
    assert_eq!(first_words, ["key", "often", "twice", "once"], "{text}");

    let json = store.run("hot --json --limit 2", &[]).json();
    assert!(
        json["data_bytes"].as_u64() >= Some(4 * VALUE as u64),
        "{json}"
    );
    let hottest = json["hottest"].as_array().expect("keys");
    let scores = hottest.iter().map(|hot| {
        let score = hot["score"].as_f64().expect("a score");
        (hot["key"].as_str().expect("a key"), score.round())
    });
    let scores: Vec<(&str, f64)> = scores.collect();
    assert_eq!(scores, [("often", 3.0), ("twice", 2.0)], "{json}");
    assert_eq!(hottest[0]["value_bytes"], VALUE);
    let curve = json["curve"].as_array().expect("points");
    assert_eq!(curve.last().expect("a point")["records"], 3, "{json}");
    assert_eq!(json["tracked_records"], 3);

    let stats = store.run("stats --json", &[]).json();
    assert!(stats["hotrap"]["hot_set_limit_bytes"].is_u64(), "{stats}");
    assert!(store.run("stats", &[]).ok().contains("\nHotness\n"));
}

#[test]
fn where_nothing_is_tracked_that_is_said() {
    let store = Store::new();
    let mut options = store.options();
    options.placement = Placement::ByLevel;
    let db = thermocline::Db::open(options).expect("opens");
    db.put("k", "v").expect("written");
    db.close().expect("closes");
    drop(db);
    store.run("hot", &[]).fails(2, &["by level"]);
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
    assert!(json.contains("/RALT\""), "{json}");
}

/// Regression: it showed how long the files are, and nothing of what they say.
#[test]
fn inspection_shows_limits_thresholds_and_fill_of_the_access_records() {
    let store = Store::filled(50, 100);
    read(&store, &["key0001", "key0002"]);
    let text = store.run("inspect hotness", &[]).ok();
    // Shares of the 64 MiB that the fast tier has.
    let usual = HotRapOptions::default();
    let of = |share: f64| ((64 << 20) as f64 * share) as u64;
    let limit = format!("hot set of at most {} bytes", of(usual.hot_set_initial));
    assert!(
        text.contains(&limit) && text.contains("; 0 evictions;"),
        "{text}"
    );
    let lines = store.run("inspect hotness --json", &[]).ok();
    let parsed = |line| serde_json::from_str::<Json>(line).expect("JSON");
    let lines = lines.lines().map(parsed);
    let states: Vec<Json> = lines
        .filter(|line| line["hot_set_limit_bytes"].is_u64())
        .collect();
    let [state] = &states[..] else {
        panic!("{states:?}")
    };
    assert_eq!(state["hot_set_limit_bytes"], of(usual.hot_set_initial));
    assert_eq!(state["physical_limit_bytes"], of(usual.ralt_initial));
    assert!(state["physical_bytes"].as_u64() > Some(0), "{state}");
    assert!(state["records"].as_u64() >= Some(2), "{state}");
    assert_eq!(state["evictions"].as_u64(), Some(0));
    assert_eq!(state["hot_threshold"].as_f64(), Some(0.0));
    assert!(
        state["file"]
            .as_str()
            .is_some_and(|file| file.ends_with("RALT"))
    );
}

#[test]
fn inspection_tells_of_damaged_access_records_and_exits_with_4() {
    let store = Store::filled(5, 10);
    read(&store, &["key0001"]);
    let state = store.fast().join("ralt").join("RALT");
    let mut bytes = std::fs::read(&state).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&state, bytes).expect("written");
    let damaged = |what: &str| {
        let run = store.run("inspect hotness", &[]).fails(4, &["1 problem"]);
        assert!(run.out.contains(&format!("DAMAGED: {what}")), "{run:?}");
        assert!(run.out.contains("records live by hotness"), "{run:?}");
        let json = store.run("inspect hotness --json", &[]).fails(4, &[]).out;
        assert!(json.contains(&format!("\"damaged\":\"{what}")), "{json}");
    };
    damaged("the state's checksum does not match");
    std::fs::remove_file(&state).expect("removed");
    damaged("the file is missing");
    place_by_level(&store);
    store.run("inspect hotness", &[]).ok();
}

/// Reads records as a program does whose store it is.
fn read(store: &Store, keys: &[&str]) {
    let db = thermocline::Db::open(store.options()).expect("opens");
    for key in keys {
        assert!(db.get(key).expect("read").is_some());
    }
    db.close().expect("closes");
}

/// Regression: whoever looked at a record with the command made it hotter, and each look counted as
/// more accesses.
#[test]
fn what_the_command_reads_is_no_access() {
    let store = Store::filled(5, 10);
    read(&store, &["key0001"]);
    let hottest = || store.run("hot --json", &[]).json()["hottest"].clone();
    let before = hottest();
    assert_eq!(before.as_array().map(Vec::len), Some(1));
    for line in [
        "get key0002",
        "get key0001",
        "scan",
        "verify",
        "stats",
        "keyspaces",
    ] {
        store.run(line, &[]).ok();
    }
    assert_eq!(hottest(), before);
}

/// Opens the store by level and closes it.
fn place_by_level(store: &Store) {
    let mut options = store.options();
    options.placement = Placement::ByLevel;
    let db = thermocline::Db::open(options).expect("opens");
    db.close().expect("closes");
}

#[test]
fn inspection_says_how_records_are_placed() {
    let store = Store::filled(1, 1);
    for (placed_by, json) in [("hotness", "\"hotness\""), ("level", "\"level\"")] {
        let says = format!("records live by {placed_by}");
        for what in ["manifest", "hotness"] {
            let text = store.run(&format!("inspect {what}"), &[]).ok();
            assert!(text.contains(&says), "{what}: {text}");
            let lines = store.run(&format!("inspect {what} --json"), &[]).ok();
            let says = format!("\"placed_by\":{json}");
            assert!(lines.contains(&says), "{what}: {lines}");
        }
        // A command that opens the store leaves that as it is.
        store.run("get", &["key0000"]).ok();
        place_by_level(&store);
    }
    assert!(!store.fast().join("ralt").exists());
}

/// Regression: backups forgot who decides where records live, and not only what was hot. The
/// command took a restored store that places records by level for one that does so by hotness, and
/// began to move its records.
#[test]
fn a_restored_store_lives_as_its_original_did() {
    for by_level in [false, true] {
        let store = Store::filled(5, 10);
        if by_level {
            place_by_level(&store);
        }
        let backups = store.path("backups").display().to_string();
        store.run("backup", &["--to", &backups]).ok();
        let [fast, slow] = ["restored-fast", "restored-slow"].map(|tier| store.path(tier));
        let (fast, slow) = (fast.display().to_string(), slow.display().to_string());
        let tiers = ["--fast", &fast, "--slow", &slow, "--fast-capacity", "64MiB"];
        run(&[&["restore", "--from", &backups], &tiers[..]].concat()).ok();
        let stats = run(&[&["stats", "--json"], &tiers[..]].concat());
        // Where hotness decides, nothing is missed: what was hot is not in a backup.
        assert_eq!(stats.err, "");
        assert_eq!(stats.json()["hotrap"].is_null(), by_level);
    }
}

#[test]
fn lost_access_records_are_a_warning_and_the_store_works() {
    let store = Store::filled(5, 10);
    let ralt = store.fast().join("ralt");
    std::fs::remove_dir_all(&ralt).expect("removed");
    let run = store.run("get", &["key0001"]);
    let place = ralt.join("RALT").display().to_string();
    assert!(run.err.starts_with("warning: access records"), "{run:?}");
    assert!(run.err.contains(&place), "{run:?}");
    assert_eq!(run.ok(), "vvvvvvvvvv\n");
    assert!(!ralt.exists(), "who only reads makes none");
    store.run("put", &["key", "value"]).ok();
    // The store still tracks hotness, and nothing more is missed.
    let run = store.run("stats --json", &[]);
    assert_eq!(run.err, "");
    assert!(run.json()["hotrap"].is_object());
}

#[test]
fn a_log_that_a_crash_cut_short_is_a_warning() {
    let store = Store::new();
    let db = thermocline::Db::open(store.options()).expect("opens");
    db.put("key", "value").expect("written");
    // What a killed process leaves. Its last write is torn.
    let killed = Store::new();
    for (from, to) in [(store.fast(), killed.fast()), (store.slow(), killed.slow())] {
        std::fs::create_dir_all(&to).expect("a directory");
        for file in std::fs::read_dir(&from).expect("listed") {
            let file = file.expect("a file");
            if file.path().is_file() {
                std::fs::copy(file.path(), to.join(file.file_name())).expect("copied");
            }
        }
    }
    let files = std::fs::read_dir(killed.fast()).expect("listed");
    let mut paths = files.map(|file| file.expect("a file").path());
    let is_log = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "wal");
    let log = paths.find(is_log).expect("a log");
    let mut bytes = std::fs::read(&log).expect("read");
    bytes.truncate(bytes.len() - 1);
    std::fs::write(&log, &bytes).expect("written");
    let run = killed.run("scan", &[]);
    let cut = format!("warning: {}: ", log.display());
    assert!(run.err.contains(&cut), "{run:?}");
    assert_eq!(run.ok(), "");
    assert!(
        killed.run("scan", &[]).err.contains(&cut),
        "nothing was cut"
    );
    killed.run("put", &["key", "value"]).ok();
    assert_eq!(killed.run("scan", &[]).err, "", "it is cut once");
}

/// Regression: each command opened the store with the default settings. If a program had opened it
/// with settings of its own, its access records were thrown away, by the command and once more by
/// the program.
#[test]
fn commands_forget_nothing_of_a_store_with_settings_of_its_own() {
    let store = Store::new();
    let mut options = store.options();
    options.placement = Placement::HotRap(HotRapOptions {
        decay: 0.99,
        slice: 9.0,
        hot_set_max: 0.03,
        hot_set_min: 0.01,
        hot_set_initial: 0.02,
        ..HotRapOptions::default()
    });
    let open = || thermocline::Db::open(options.clone()).expect("opens");
    let db = open();
    db.put("k", "v").expect("written");
    db.close().expect("closes");
    drop(db);
    let stats = store.run("stats --json", &[]).json();
    assert!(stats["hotrap"]["ralt"]["trouble"].is_null(), "{stats}");
    assert_eq!(open().recovery().hotness, None);
}
