//! Repair, backup and restore.

use std::fs;

use crate::common::{Store, damage, run};

/// The store with its manifest lost.
fn without_manifest() -> Store {
    let store = Store::filled(300, 100);
    for entry in fs::read_dir(store.fast()).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        if name == "CURRENT" || name.starts_with("MANIFEST") {
            fs::remove_file(path).expect("removed");
        }
    }
    store
}

#[test]
fn a_store_without_a_manifest_is_repaired() {
    let store = without_manifest();
    let whole = Store::filled(300, 100).run("scan", &[]).ok();
    let current = store.fast().join("CURRENT");
    let current = current.to_str().expect("UTF-8");
    let run = store.run("verify", &[]).fails(4, &["problem"]);
    assert!(run.out.contains(current), "{}", run.out);
    let run = store.run("verify --json", &[]).fails(4, &[]);
    let json: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
    assert_eq!(
        (&json["ok"], &json["opens"]),
        (&false.into(), &false.into())
    );
    store
        .run("get", &["key0000"])
        .fails(4, &[current, "repair"]);

    let run = store.run("repair --dry-run", &[]).fails(4, &["problem"]);
    assert!(run.out.contains("\ntarget: "), "{}", run.out);
    store.run("get", &["key0000"]).fails(4, &[]);
    // Nothing would tell of tables that are missing besides. Regression: then the repair reported
    // "0 losses", with exit code 0.
    let run = store.run("repair --json", &[]).fails(4, &["1 loss"]);
    let json: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
    assert_eq!(
        (&json["repaired"], &json["rebuilt"]),
        (&true.into(), &true.into())
    );
    assert_eq!(json["losses"].as_array().map(Vec::len), Some(1));
    // It is told apart from losses: no record depends on it.
    let target = json["target"].as_str().expect("words");
    assert!(target.contains("--set TARGET"), "{target}");
    let manifest = store.fast().join("MANIFEST");
    assert_eq!(json["losses"][0]["file"], manifest.to_str().expect("UTF-8"));
    assert_eq!(store.run("scan", &[]).ok(), whole);
    store.run("verify", &[]).ok();
    let text = store.run("repair", &[]).ok();
    assert!(text.contains("the store is sound"), "{text}");
}

#[test]
fn what_a_repair_cannot_save_is_told_by_file_keys_and_sequence() {
    let store = Store::filled(300, 100);
    let table = store.tables().pop().expect("a table");
    damage(&table, 100);
    store
        .run("repair --dry-run", &[])
        .fails(4, &["1 problem found"]);
    // The log has nothing any more of the first block.
    let run = store
        .run("repair --json", &[])
        .fails(4, &["opens now, with"]);
    let json: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
    let loss = &json["losses"][0];
    assert_eq!(loss["file"], table.to_str().expect("UTF-8"));
    assert_eq!(
        (&loss["offset"], &loss["keyspace"]),
        (&0.into(), &"default".into())
    );
    let first = loss["first_key_hex"].as_str().expect("a key");
    assert!(first <= "6b657930303030", "{first}");
    assert!(loss["first_seq"].as_u64() <= loss["last_seq"].as_u64());
    let aside = json["set_aside"].as_array().expect("files").iter();
    let name = table
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let mut aside = aside.filter_map(|file| file.as_str());
    assert!(aside.any(|file| file.contains("lost") && file.ends_with(&name)));
    store.run("verify", &[]).ok();
    store.run("get", &["key0000"]).fails(1, &[]);
    store.run("get", &["key0299"]).ok();
}

#[test]
fn a_slow_tier_that_is_not_mounted_has_to_be_given_up() {
    let store = Store::filled(300, 100);
    fs::rename(store.slow(), store.path("unmounted")).expect("renamed");
    fs::create_dir(store.slow()).expect("made");
    let slow = store.slow();
    store.run("repair", &[]).fails(
        3,
        &[slow.to_str().expect("UTF-8"), "is mounted", "--give-up"],
    );
    store
        .run("repair --give-up slow --dry-run", &[])
        .fails(4, &["problem"]);
    assert!(!slow.join("TIER").exists());
    let fast = store.fast();
    let one_tier = [
        "repair",
        "--give-up",
        "fast",
        "--one-tier",
        "--fast",
        fast.to_str().expect("UTF-8"),
    ];
    run(&one_tier).fails(2, &["two tiers"]);
    let run = store
        .run("repair --give-up slow --json", &[])
        .fails(4, &["1 loss"]);
    let json: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
    // No table lay there yet, but whoever gives the tier up cannot know that.
    assert_eq!(json["losses"][0]["file"], slow.to_str().expect("UTF-8"));
    assert!(slow.join("TIER").exists());
    store.run("scan", &[]).ok();
}

/// Regression: the repair reported "0 losses", with exit code 0, while what lay on the fast tier
/// was gone and a record that was overwritten had its old value.
#[test]
fn a_fast_tier_that_is_given_up_is_a_loss() {
    let store = Store::filled(300, 100);
    store.run("compact", &[]).ok();
    store.run("put", &["key0000", "new"]).ok();
    fs::remove_dir_all(store.fast()).expect("removed");
    fs::create_dir(store.fast()).expect("made");
    let fast = store.fast();
    let fast = fast.to_str().expect("UTF-8");
    let lost = format!("lost: {fast}: ");
    let run = store
        .run("repair --give-up fast", &[])
        .fails(4, &["opens now, with 1 loss"]);
    assert!(run.out.contains(&lost), "{}", run.out);
    assert!(run.out.contains("; 1 loss\n"), "{}", run.out);
}

/// Regression: opening what an interrupted restore had left was refused with the advice to repair
/// it. The repair ended with "0 losses" and a part of the records.
#[test]
fn a_restore_that_was_interrupted_is_begun_again_or_removed() {
    let store = Store::filled(200, 100);
    let dir = store.path("backups");
    let dir = dir.to_str().expect("UTF-8");
    store.run("backup", &["--to", dir]).ok();
    let paths = ["new-fast", "new-slow"].map(|name| store.path(name));
    let [fast, slow] = paths.each_ref().map(|path| path.to_str().expect("UTF-8"));
    let tiers = ["--fast", fast, "--slow", slow, "--fast-capacity", "64MiB"];
    let on = |command: &str, more: &[&str]| {
        let words: Vec<&str> = command.split(' ').collect();
        run(&[&words[..], &tiers, more].concat())
    };
    let restore = ["restore", "--from", dir];
    let restore = || run(&[&restore[..], &tiers].concat());
    restore().ok();
    // This is what it looks like before its end.
    let interrupt = || {
        fs::remove_file(paths[0].join("CURRENT")).expect("removed");
        for path in &paths {
            fs::write(path.join("UNFINISHED"), "restore").expect("written");
        }
    };
    interrupt();
    let says = ["restore", fast, "same command", "destroy"];
    for command in [
        "get key0000",
        "scan",
        "verify",
        "repair",
        "repair --dry-run",
        "put --create key value",
    ] {
        let (name, operands) = command.split_once(' ').unwrap_or((command, ""));
        let operands: Vec<&str> = operands.split_whitespace().collect();
        on(name, &operands).fails(3, &says);
    }
    restore().ok();
    restore().fails(2, &["not empty"]);
    interrupt();
    on("destroy --yes", &[]).ok();
    on("get", &["key0000"]).fails(3, &["no store"]);
    restore().ok();
    interrupt();
    store
        .run("checkpoint", &["--to-fast", fast, "--to-slow", slow])
        .ok();
    on("get", &["key0000"]).ok();
}

/// Regression: an empty file was removed from a store's directory without a word.
#[test]
fn a_table_that_is_not_the_stores_is_told_of() {
    let store = Store::filled(10, 10);
    let stray = store.slow().join("99999999.sst");
    fs::write(&stray, "").expect("written");
    // A command that only reads removes nothing, and so has nothing to report.
    store.run("get", &["key0000"]).ok();
    assert!(stray.exists());
    let run = store.run("put", &["key0000", "new"]);
    let aside = store.slow().join("lost").join("99999999.sst");
    assert!(run.err.contains(aside.to_str().expect("UTF-8")), "{run:?}");
    run.ok();
    assert!(aside.exists() && !stray.exists());
    let again = store.run("put", &["key0000", "newer"]);
    assert_eq!(again.err, "");
}

/// Regression: if a store's fast device was lost, only `rm` could remove what lay on its slow tier.
#[test]
fn what_is_left_of_a_store_that_has_lost_a_tier_is_destroyed_on_demand() {
    let store = Store::filled(300, 100);
    fs::remove_dir_all(store.fast()).expect("removed");
    fs::create_dir(store.fast()).expect("made");
    let (fast, identity) = (store.fast(), store.slow().join("TIER"));
    store.run("destroy --yes", &[]).fails(
        3,
        &[
            fast.to_str().expect("UTF-8"),
            "is mounted",
            "--give-up fast",
        ],
    );
    assert!(identity.exists());
    store.run("destroy --yes --give-up fast", &[]).ok();
    assert!(!identity.exists());
    let one_tier = ["destroy", "--yes", "--give-up", "fast", "--one-tier"];
    let fast = ["--fast", fast.to_str().expect("UTF-8")];
    run(&[&one_tier[..], &fast].concat()).fails(2, &["two tiers"]);
}

#[test]
fn backups_are_incremental_and_each_can_be_restored() {
    let store = Store::filled(200, 100);
    let dir = store.path("backups");
    let dir = dir.to_str().expect("UTF-8");
    let first = store.run("backup --json", &["--to", dir]).json();
    assert_eq!(first["generation"], 1);
    assert_eq!(first["copied_tables"], first["tables"]);
    store.run("delete", &["key0000"]).ok();
    let second = store.run("backup --json", &["--to", dir]).json();
    assert_eq!(
        (&second["generation"], &second["copied_tables"]),
        (&2.into(), &1.into())
    );
    let list = run(&["backups", "--verify", "--in", dir]).ok();
    assert!(list.lines().all(|line| line.starts_with("ok")), "{list}");

    let restore = |name: &str, generation: &[&str]| {
        let (fast, slow) = (
            store.path(&format!("{name}-fast")),
            store.path(&format!("{name}-slow")),
        );
        let (fast, slow) = (fast.display().to_string(), slow.display().to_string());
        let tiers = ["--fast", &fast, "--slow", &slow, "--fast-capacity", "64MiB"];
        run(&[&["restore", "--from", dir], generation, &tiers].concat()).ok();
        let get = run(&[&["get"], &tiers[..], &["key0000"]].concat());
        // A store is not written over.
        run(&[&["restore", "--from", dir], generation, &tiers].concat()).fails(2, &["not empty"]);
        get.code
    };
    // A generation whose file is damaged does not keep the others from being reported.
    let file = store.path("backups").join("GENERATION-00000001");
    let whole = fs::read(&file).expect("read");
    let mut bytes = whole.clone();
    bytes[20] ^= 1;
    fs::write(&file, bytes).expect("written");
    for args in [&["--verify"][..], &[]] {
        let listed = run(&[&["backups", "--in", dir], args].concat()).fails(4, &["1 problem"]);
        let lines: Vec<&str> = listed.out.lines().collect();
        assert_eq!(lines[0], "DAMAGED  generation 1");
        assert!(lines[1].contains("GENERATION-00000001"), "{lines:?}");
        assert!(lines[2].contains("generation 2  "), "{lines:?}");
    }
    // The store is whole. What has to be done has to be done to the backup.
    let refused = store.run("backup", &["--to", dir]);
    let refused = refused.fails(4, &["GENERATION-00000001", "Remove that file"]);
    assert!(!refused.err.contains("repair"), "{}", refused.err);
    // Nor does a generation of a later release.
    let mut later = b"TCLNBKUP\x02\0\0\0".to_vec();
    let xxh3_of_that: u64 = 0xb322_eb8d_c0a0_780e;
    later.extend(xxh3_of_that.to_le_bytes());
    fs::write(&file, later).expect("written");
    for args in [&["--verify"][..], &[]] {
        let listed = run(&[&["backups", "--in", dir], args].concat());
        let listed = listed.fails(3, &["format version 2"]);
        let lines: Vec<&str> = listed.out.lines().collect();
        assert_eq!(lines[0], "UNREAD   generation 1");
        assert!(lines[1].contains("format version 2"), "{lines:?}");
        assert!(lines[2].contains("generation 2  "), "{lines:?}");
    }
    fs::write(&file, whole).expect("written");

    assert_eq!(restore("old", &["--generation", "1"]), 0);
    assert_eq!(restore("new", &[]), 1);

    run(&["backups", "--keep", "1", "--in", dir]).ok();
    let table = fs::read_dir(store.path("backups").join("tables")).expect("a directory");
    let table = table
        .map(|file| file.expect("a file").path())
        .next()
        .expect("a table");
    let mut bytes = fs::read(&table).expect("read");
    bytes[10] ^= 1;
    fs::write(&table, bytes).expect("written");
    let run = run(&["backups", "--verify", "--in", dir]).fails(4, &["1 problem"]);
    assert!(
        run.out.contains(table.to_str().expect("UTF-8")),
        "{}",
        run.out
    );
}
