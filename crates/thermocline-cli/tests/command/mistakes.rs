//! Common mistakes: each has its exit code and a message that says what to do.

use crate::common::{Store, run};

/// Regression: it was reported as the fault of a line, the one before the first.
#[test]
fn an_input_that_cannot_be_read_is_no_mistake_in_a_line() {
    let store = Store::new();
    let directory = store.path("records");
    std::fs::create_dir(&directory).expect("a directory");
    let directory = directory.to_str().expect("UTF-8");
    let run = store.run("load --create", &[directory]);
    let run = run.fails(3, &["cannot read", directory, "0 records were loaded"]);
    assert!(!run.err.contains(":0:"), "{}", run.err);
}

#[test]
fn missing_flags_are_named() {
    // Regression: nothing was said of a store of one tier.
    run(&["get", "--fast", "f", "k"]).fails(2, &["--slow", "--one-tier"]);
    run(&["get", "--slow", "s", "k"]).fails(2, &["--fast"]);
    let no_capacity = ["get", "--fast", "f", "--slow", "s", "k"];
    run(&no_capacity).fails(2, &["--fast-capacity", "1GiB"]);
    run(&["get", "--fast", "f", "--slow", "s", "--one-tier", "k"]).fails(2, &["--one-tier"]);
    run(&["frobnicate"]).fails(2, &["frobnicate"]);
}

/// Regression: for a store that may not be written to, the message said that `LOCK` cannot be
/// opened.
#[cfg(target_os = "linux")]
#[test]
fn a_store_that_may_not_be_written_to_is_named_with_what_helps() {
    // Not even root can make a file there.
    let refusing = "/sys/kernel";
    if !std::path::Path::new(refusing).is_dir() {
        return;
    }
    for line in ["get k", "scan", "stats", "verify"] {
        let words: Vec<&str> = line.split(' ').collect();
        let flags = ["--one-tier", "--fast", refusing];
        let run = run(&[&words[..], &flags].concat());
        let run = run.fails(3, &[refusing, "cannot be written to", "open a copy"]);
        assert!(!run.err.contains("LOCK"), "{}", run.err);
    }
}

#[test]
fn a_bad_size_is_refused_with_an_example() {
    let line = "get --fast f --slow s --fast-capacity lots k";
    let args: Vec<&str> = line.split(' ').collect();
    run(&args).fails(2, &["lots", "--fast-capacity", "512MiB"]);
}

#[test]
fn bad_hexadecimal_is_explained() {
    let store = Store::new();
    store
        .run("put --create --hex", &["6b", "zz"])
        .fails(2, &["value", "hexadecimal"]);
}

#[test]
fn reading_makes_no_store_and_writing_only_on_request() {
    let store = Store::new();
    let fast = store.fast();
    let fast_name = fast.to_str().expect("UTF-8");
    for line in [
        "get k",
        "scan",
        "stats",
        "hot",
        "verify",
        "delete k",
        "compact",
        "inspect tables",
        "inspect hotness",
    ] {
        let run = store.run(line, &[]);
        run.fails(3, &[fast_name]);
        assert!(!fast.exists(), "{line} made a directory");
    }
    store
        .run("put", &["k", "v"])
        .fails(3, &[fast_name, "hint: add --create"]);
    assert!(!fast.exists());
}

#[test]
fn a_missing_tier_is_named() {
    let store = Store::filled(1, 1);
    let elsewhere = store.path("elsewhere");
    std::fs::rename(store.slow(), &elsewhere).expect("renamed");
    let slow = store.slow();
    store
        .run("get", &["key0000"])
        .fails(3, &[slow.to_str().expect("UTF-8")]);
    assert!(!slow.exists(), "the tier is not made anew");
    std::fs::rename(&elsewhere, &slow).expect("renamed");
    store.run("get", &["key0000"]).ok();
}

/// Regression: `delete` and `compact` hinted at `--create`, a flag that they do not have. `put`
/// also did so if only the slow tier's directory was missing: on a device that is not mounted, a
/// new store is the last thing wanted.
#[test]
fn a_flag_is_hinted_at_where_there_is_one_and_it_helps() {
    let store = Store::new();
    for line in ["delete k", "compact"] {
        let run = store.run(line, &[]).fails(3, &["there is no"]);
        assert!(!run.err.contains("--create"), "{}", run.err);
    }
    let store = Store::filled(1, 1);
    std::fs::rename(store.slow(), store.path("unmounted")).expect("renamed");
    let slow = store.slow();
    let run = store
        .run("put", &["k", "v"])
        .fails(3, &[slow.to_str().expect("UTF-8")]);
    assert!(!run.err.contains("--create"), "{}", run.err);
}

/// Regression: with the fast tier's device not mounted, `put` hinted at `--create`. That left a
/// `TIER` in the mount point, and asked for an empty directory in place of the one that had the
/// records. Whoever gave one had a new, empty store.
#[test]
fn no_store_is_made_where_only_the_slow_tier_has_one() {
    let store = Store::filled(1, 1);
    let (fast, slow, mounted) = (store.fast(), store.slow(), store.path("mounted"));
    let fast_name = fast.to_str().expect("UTF-8");
    let slow_name = slow.to_str().expect("UTF-8");
    std::fs::rename(&fast, &mounted).expect("renamed");
    for is_there in [false, true] {
        if is_there {
            std::fs::create_dir(&fast).expect("made");
        }
        let run = store.run("put", &["k", "v"]);
        let run = run.fails(3, &[fast_name, slow_name, "mounted"]);
        assert!(!run.err.contains("--create"), "{}", run.err);
    }
    let run = store.run("put --create", &["k", "v"]);
    run.fails(3, &[fast_name, slow_name, "mounted"]);
    assert!(!fast.join("TIER").exists());
    std::fs::remove_dir_all(&fast).expect("removed");
    std::fs::rename(&mounted, &fast).expect("renamed");
    store.run("get", &["key0000"]).ok();
}

/// Regression: with tables on the slow tier, they were called damaged, and a backup or a repair was
/// advised. Without tables, the message said that there was no store.
#[test]
fn swapped_tiers_are_refused() {
    let store = Store::filled(1, 1);
    let swap = || {
        let aside = store.path("aside");
        std::fs::rename(store.fast(), &aside).expect("renamed");
        std::fs::rename(store.slow(), store.fast()).expect("renamed");
        std::fs::rename(&aside, store.slow()).expect("renamed");
    };
    for has_tables in [false, true] {
        if has_tables {
            // Without a manifest a repair writes all tables to the last tier.
            for entry in std::fs::read_dir(store.fast()).expect("a directory") {
                let entry = entry.expect("an entry");
                let name = entry.file_name().to_string_lossy().into_owned();
                if name == "CURRENT" || name.starts_with("MANIFEST") {
                    std::fs::remove_file(entry.path()).expect("removed");
                }
            }
            store.run("repair", &[]).fails(4, &["1 loss"]);
        }
        let on_slow = store.tables().iter().any(|t| t.starts_with(store.slow()));
        assert_eq!(on_slow, has_tables);
        swap();
        store.run("get", &["key0000"]).fails(3, &["in the order"]);
        swap();
        store.run("get", &["key0000"]).ok();
    }
}

/// Regression: `get` answered, and removed the access records. `destroy` said that the store was
/// gone, and left the slow tier's `TIER`.
#[test]
fn a_store_of_two_tiers_is_not_used_as_one_of_a_single_tier() {
    let store = Store::filled(1, 1);
    let fast = store.fast();
    let one = ["--one-tier", "--fast", fast.to_str().expect("UTF-8")];
    for words in [&["get", "key0000"][..], &["destroy", "--yes"]] {
        run(&[words, &one].concat()).fails(2, &["name them all"]);
    }
    assert!(fast.join("ralt").exists());
    store.run("get", &["key0000"]).ok();
}

#[test]
fn one_tier_stores_take_no_slow_tier() {
    let store = Store::new();
    let dir = store.path("single");
    let dir = dir.to_str().expect("UTF-8");
    let one = ["--one-tier", "--fast", dir];
    let with = |words: &[&'static str]| [words, &one].concat();
    run(&with(&["put", "--create", "k", "v"])).ok();
    assert_eq!(run(&with(&["get", "k"])).ok(), "v\n");
    let args = with(&["checkpoint", "--to-fast", "x", "--to-slow", "y"]);
    run(&args).fails(2, &["--to-slow"]);
}

/// Regression: this was found out after everything had been measured, and the result was lost with
/// it.
#[test]
fn a_result_that_cannot_be_written_is_found_before_anything_is_made() {
    let dir = tempfile::tempdir().expect("a directory");
    let [fast, slow] = ["fast", "slow"].map(|tier| dir.path().join(tier));
    let (fast_name, slow_name) = (fast.to_str().expect("UTF-8"), slow.to_str().expect("UTF-8"));
    let line = [
        "bench",
        "--ops",
        "10",
        "--data-size",
        "200kB",
        "--fast",
        fast_name,
        "--slow",
        slow_name,
    ];
    let to = |json| run(&[&line[..], &["--json", json]].concat());
    to("/no/such/x.json").fails(2, &["--json", "/no/such/x.json"]);
    to(dir.path().to_str().expect("UTF-8")).fails(2, &["--json", "directory"]);
    assert!(!fast.exists() && !slow.exists());
}
