//! Records written, read, scanned, loaded and deleted through the command.

use crate::common::{Run, Store, run, thermocline};

#[test]
fn a_record_goes_in_and_comes_out_until_it_is_deleted() {
    let store = Store::new();
    store.run("put --create", &["city", "grün"]).ok();
    assert_eq!(store.run("get", &["city"]).ok(), "grün\n");
    assert_eq!(store.run("get --raw", &["city"]).ok(), "grün");
    store.run("put", &["city", "red"]).ok();
    assert_eq!(store.run("get", &["city"]).ok(), "red\n");
    store.run("delete", &["city", "never-there"]).ok();
    store
        .run("get", &["city"])
        .fails(1, &["the key does not exist"]);
}

#[test]
fn keys_and_values_of_any_bytes_pass_as_escapes_and_as_hex() {
    let store = Store::new();
    store.run("put --create", &["a\\x00\\tb", "\\xff\\\\"]).ok();
    assert_eq!(store.run("get --hex", &["61000962"]).ok(), "ff5c\n");
    store.run("put --hex", &["ff", "00"]).ok();
    assert_eq!(
        store.run("scan", &[]).ok(),
        "a\\x00\\tb\t\\xff\\\\\n\\xff\t\\x00\n"
    );
    assert_eq!(
        store.run("scan --hex", &[]).ok(),
        "61000962\tff5c\nff\t00\n"
    );
    store.run("put", &["-1", "-2.5"]).ok();
    assert_eq!(store.run("get", &["-1"]).ok(), "-2.5\n");
    // A mistyped flag must not become a key.
    store.run("put", &["--jsno", "v"]).fails(2, &["--jsno"]);
    store.run("delete", &["a", "--jsno"]).fails(2, &["--jsno"]);
    store.run("put", &["--", "--jsno", "v"]).ok();
    assert_eq!(store.run("get", &["--", "--jsno"]).ok(), "v\n");
}

#[test]
fn a_value_comes_from_a_file_or_from_standard_input() {
    let store = Store::new();
    let file = store.path("value");
    std::fs::write(&file, b"\x00\n").expect("written");
    let file = file.to_str().expect("UTF-8");
    store.run("put --create", &["k", "--value-file", file]).ok();
    assert_eq!(store.run("get --hex", &["6b"]).ok(), "000a\n");
    store.run_with("put --value-file -", &["k"], b"piped").ok();
    assert_eq!(store.run("get", &["k"]).ok(), "piped\n");
    store.run("put", &["k"]).fails(2, &["<VALUE"]);
}

#[test]
fn scans_take_ranges_prefixes_limits_and_both_directions() {
    let store = Store::new();
    let lines = b"a\t1\nb1\t2\nb2\t3\nc\t4\n";
    store.run_with("load --create", &[], lines).ok();
    let scan = |flags: &str| store.run(&format!("scan {flags}"), &[]).ok();
    assert_eq!(scan("").as_bytes(), lines);
    assert_eq!(scan("--prefix b --keys-only"), "b1\nb2\n");
    assert_eq!(scan("--from b1 --to c --keys-only"), "b1\nb2\n");
    assert_eq!(scan("--reverse --limit 2"), "c\t4\nb2\t3\n");
    assert_eq!(scan("--prefix b --reverse --keys-only"), "b2\nb1\n");
    assert_eq!(scan("--from x"), "");
    assert_eq!(scan("--from b --to b"), "");
    store
        .run("scan --from b --to a", &[])
        .fails(2, &["--reverse"]);
}

/// Regression: `get -5` found its key, but `--from -5` was refused as a flag. `compact` took a
/// range that is the wrong way round for one without keys, and said nothing.
#[test]
fn a_range_may_begin_with_a_minus_and_is_not_the_wrong_way_round() {
    let store = Store::new();
    let lines = b"-5\t1\n-7\t2\n";
    store.run_with("load --create", &[], lines).ok();
    let scan = |flags: &str| store.run(&format!("scan --keys-only {flags}"), &[]).ok();
    assert_eq!(scan("--from -6"), "-7\n");
    assert_eq!(scan("--to -6"), "-5\n");
    assert_eq!(scan("--prefix -7"), "-7\n");
    store.run("compact --from -5 --to -7", &[]).ok();
    store
        .run("compact --from b --to a", &[])
        .fails(2, &["--from", "--to"]);
}

#[test]
fn a_scan_in_either_form_can_be_loaded_again() {
    let from = Store::new();
    let lines = b"a\\x00\t\\xff\nb\t\\\\x\n\\xef\\xbb\\xbf\t\xc3\xbc\\\\n\\n\n";
    from.run_with("load --create", &[], lines).ok();
    for (scan, load) in [
        ("scan", "load --create"),
        ("scan --json", "load --create --format jsonl"),
        ("scan --hex", "load --create --hex"),
        ("scan --hex --json", "load --create --format jsonl"),
        ("scan --hex --json", "load --create --hex --format jsonl"),
    ] {
        let dump = from.run(scan, &[]).ok();
        let to = Store::new();
        to.run_with(load, &[], dump.as_bytes()).ok();
        assert_eq!(to.run("scan", &[]).ok().as_bytes(), lines, "{scan}");
    }
}

/// Regression: a JSON string with a Windows path was stored with a line feed and a tab, and a line
/// of TSV with `\<` was refused.
#[test]
fn what_is_loaded_is_what_the_format_says() {
    let store = Store::new();
    let load = |flags: &str, lines: &str| {
        let line = format!("load --create {flags}");
        store.run_with(&line, &[], lines.as_bytes())
    };
    let path = r#"{"key":"json","value":"C:\\new\\table"}"#;
    load("--format jsonl", path).ok();
    load("", "\u{feff}escaped\t\\<a>\\\\n\\x41\n").ok();
    load("--literal", "literal\tC:\\new\\\\table\n").ok();
    let get = |key: &str| store.run("get --raw", &[key]).ok();
    assert_eq!(get("json"), r"C:\new\table");
    assert_eq!(get("escaped"), r"\<a>\nA");
    assert_eq!(get("literal"), r"C:\new\\table");
    load("--literal --format jsonl", path).fails(2, &["--literal", "TSV"]);
    load("--literal --hex", "6b\t00").fails(2, &["--literal", "--hex"]);
    store.run("put", &[r"a\q", r"\xff\t"]).ok();
    assert_eq!(store.run("get", &[r"a\q"]).ok(), "\\xff\\t\n");
    let record = store.run("get --json", &[r"a\q"]).json();
    let expected = serde_json::json!({"key": r"a\q", "value_hex": "ff09"});
    assert_eq!(record, expected);
}

#[test]
fn json_output_parses() {
    let store = Store::new();
    let summary = store.run_with("load --create --json", &[], b"a\t1\nb\t22\n");
    let summary = summary.json();
    assert_eq!(
        (&summary["records"], &summary["bytes"]),
        (&2.into(), &5.into())
    );
    let record = store.run("get --json", &["b"]).json();
    assert_eq!(record, serde_json::json!({"key": "b", "value": "22"}));
    let lines = store.run("scan --json", &[]).ok();
    let keys: Vec<_> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["key"].clone())
        .collect();
    assert_eq!(keys, ["a", "b"]);
}

#[test]
fn a_bad_line_is_named_and_what_came_before_it_is_loaded() {
    let store = Store::new();
    let run = store.run_with("load --create", &[], b"a\t1\n\nno tab\n");
    run.fails(2, &["-:3: there is no tab", "1 records before"]);
    assert_eq!(store.run("scan", &[]).ok(), "a\t1\n");
}

/// Regression: the store refused the whole batch. No line was named, and what came before it in the
/// batch was not loaded.
#[test]
fn a_line_that_no_store_takes_is_named_like_a_bad_one() {
    let store = Store::new();
    let long = "k".repeat(65_536);
    let input = format!("a\t1\n{long}\t2\nc\t3\n");
    let run = store.run_with("load --create", &[], input.as_bytes());
    run.fails(
        2,
        &["-:2: the key has 65536 bytes", "65535", "1 records before"],
    );
    assert_eq!(store.run("scan", &[]).ok(), "a\t1\n");
}

#[test]
fn a_json_lines_file_is_known_by_its_name() {
    let store = Store::new();
    let file = store.path("r.jsonl");
    std::fs::write(&file, "{\"key\":\"a\",\"value\":\"1\"}\n").expect("written");
    let file = file.to_str().expect("UTF-8");
    store.run("load --create", &[file]).ok();
    assert_eq!(store.run("get", &["a"]).ok(), "1\n");
    store
        .run("load", &["/no/such/file"])
        .fails(3, &["/no/such/file"]);
}

#[test]
fn keyspaces_are_apart_and_made_only_on_request() {
    let store = Store::new();
    store.run("put --create", &["k", "default"]).ok();
    store
        .run("put --keyspace users", &["k", "v"])
        .fails(3, &["\"users\"", "hint: "]);
    store
        .run("put --keyspace users --create", &["k", "user"])
        .ok();
    assert_eq!(store.run("get", &["k"]).ok(), "default\n");
    assert_eq!(store.run("get --keyspace users", &["k"]).ok(), "user\n");
    store.run("delete --keyspace users", &["k"]).ok();
    assert_eq!(store.run("scan --keyspace users", &[]).ok(), "");
    store
        .run("scan --keyspace user", &[])
        .fails(3, &["hint: ", "users"]);
}

#[test]
fn keyspaces_are_listed_with_what_they_hold_and_removed() {
    let store = Store::filled(30, 100);
    store
        .run("put --keyspace users --create", &["k", "user"])
        .ok();
    store.run("delete --keyspace users", &["k"]).ok();
    let listed = |args: &[&str]| {
        let lines = store.run("keyspaces --json", args).ok();
        let lines = lines.lines().map(serde_json::from_str);
        lines
            .collect::<Result<Vec<serde_json::Value>, _>>()
            .expect("JSON")
    };
    let all = listed(&[]);
    let names: Vec<_> = all.iter().map(|line| &line["keyspace"]).collect();
    assert_eq!(names, ["default", "users"]);
    assert_eq!(
        (&all[0]["records"], &all[0]["deletes"]),
        (&30.into(), &0.into())
    );
    assert!(all[0]["table_bytes"][0].as_u64() > Some(3000), "{}", all[0]);
    let text = store.run("keyspaces", &[]).ok();
    assert!(text.starts_with("\"default\"  30 records, "), "{text}");

    store
        .run("keyspaces --drop users", &[])
        .fails(2, &["--yes"]);
    store
        .run("keyspaces --drop user --yes", &[])
        .fails(3, &["hint: ", "users"]);
    store
        .run("keyspaces --drop default --yes", &[])
        .fails(2, &["default"]);
    assert_eq!(listed(&["--drop", "users", "--yes"]).len(), 1);
    assert_eq!(listed(&[]).len(), 1);
}

/// Regression: with the environment of the README's example, every command with --one-tier was
/// refused because it cannot be used with --slow, which nobody had typed. Later, the capacity of
/// the environment's fast tier applied to it.
#[test]
fn a_store_of_one_tier_may_be_used_beside_one_in_the_environment() {
    let store = Store::new();
    let dir = store.path("single");
    let dir = dir.to_str().expect("UTF-8");
    let run = |words: &[&str]| {
        let one = ["--one-tier", "--fast", dir];
        let output = thermocline(&[words, &one].concat())
            .env("THERMOCLINE_FAST", store.fast())
            .env("THERMOCLINE_SLOW", store.slow())
            .env("THERMOCLINE_FAST_CAPACITY", "64MiB")
            .env("THERMOCLINE_SLOW_CAPACITY", "1GiB")
            .output();
        Run::new(output.expect("runs"))
    };
    run(&["put", "--create", "k", "v"]).ok();
    assert_eq!(run(&["get", "k"]).ok(), "v\n");
    assert!(!store.slow().exists());
    let capacity = |flags: &[&str]| {
        let stats = run(&[&["stats", "--json"], flags].concat()).json();
        stats["tiers"][0]["capacity"].as_u64()
    };
    assert_eq!(capacity(&[]), None);
    assert_eq!(capacity(&["--fast-capacity", "32MiB"]), Some(32 << 20));
    let slow = store.slow().display().to_string();
    run(&["get", "k", "--slow", &slow]).fails(2, &["--one-tier", "--slow"]);
}

/// Regression: the command could name two tiers at most. A store of three was refused with the
/// advice to name all of them.
#[test]
fn a_store_may_have_three_tiers() {
    let home = Store::new();
    let path = |name: &str| home.path(name).display().to_string();
    let [fast, middle, slow] = ["three-fast", "three-middle", "three-slow"].map(path);
    let with = |words: &[&str], slower: &[&String]| {
        let mut command = thermocline(words);
        command.args(["--fast", &fast, "--fast-capacity", "64MiB"]);
        for dir in slower {
            command.arg("--slow").arg(dir);
        }
        Run::new(command.output().expect("runs"))
    };
    let all = [&middle, &slow];
    with(&["put", "--create", "k", "v"], &all).ok();
    let stats = with(&["stats", "--json", "--slow-capacity", "1GiB"], &all).json();
    let capacities = [0_usize, 1, 2].map(|tier| stats["tiers"][tier]["capacity"].as_u64());
    assert_eq!(capacities, [Some(64 << 20), None, Some(1 << 30)]);
    // They have to be named in the store's order.
    with(&["get", "k"], &[&slow, &middle]).fails(3, &["in the order"]);
    let copy = ["copy-fast", "copy-middle", "copy-slow"].map(path);
    let mut checkpoint = vec!["checkpoint", "--to-fast", &copy[0]];
    checkpoint.extend(["--to-slow", &copy[1], "--to-slow", &copy[2]]);
    with(&checkpoint[..5], &all).fails(2, &["3 tiers"]);
    with(&checkpoint, &all).ok();
    let mut copied = vec!["get", "k", "--fast-capacity", "64MiB"];
    copied.extend(["--fast", &copy[0], "--slow", &copy[1], "--slow", &copy[2]]);
    assert_eq!(run(&copied).ok(), "v\n");
}

#[test]
fn the_environment_can_name_the_store() {
    let store = Store::new();
    store.run("put --create", &["k", "v"]).ok();
    let output = thermocline(&["get", "k"])
        .env("THERMOCLINE_FAST", store.fast())
        .env("THERMOCLINE_SLOW", store.slow())
        .env("THERMOCLINE_FAST_CAPACITY", "64MiB")
        .output()
        .expect("runs");
    assert_eq!(output.stdout, b"v\n");
}
