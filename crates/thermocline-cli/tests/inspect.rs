//! Inspection on the command line: manifest, tables and log, damage included.

mod common;

use std::path::Path;

use common::{Store, run};
use serde_json::Value as Json;

#[test]
fn the_manifest_is_printed_edit_by_edit() {
    let store = Store::filled(10, 10);
    let text = store.run("inspect manifest", &[]).ok();
    assert!(text.contains("create keyspace 0 \"default\""), "{text}");
    assert!(
        text.contains("add table ") && text.contains("10 records"),
        "{text}"
    );
    let json = store.run("inspect manifest --json", &[]).json();
    let edits = json["edits"].as_array().expect("edits");
    assert!(!edits.is_empty() && edits.iter().all(|e| e["problem"].is_null()));
    assert_eq!(json["database"].as_str().map(str::len), Some(32));
}

#[test]
fn tables_are_printed_without_the_capacity_being_named() {
    let store = Store::filled(500, 100);
    let (fast, slow) = (store.fast(), store.slow());
    let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let args = [
        "inspect",
        "tables",
        "--json",
        "--fast",
        &path(&fast),
        "--slow",
        &path(&slow),
    ];
    let json = run(&args).json();
    let tables = json["tables"].as_array().expect("tables");
    assert_eq!(tables.len(), store.tables().len());
    let table = &tables[0];
    assert_eq!(
        (&table["keyspace"], &table["first_key"]),
        (&"default".into(), &"key0000".into())
    );
    assert!(
        table["contents"]["data_blocks"].as_u64() > Some(5),
        "{table}"
    );
    let name = Path::new(table["file"].as_str().expect("a path")).file_name();
    let name = name.and_then(|n| n.to_str()).expect("a name");
    let text = store.run("inspect tables", &["--file", name]).ok();
    assert!(
        text.contains(name) && text.contains("data blocks"),
        "{text}"
    );
    store
        .run("inspect tables --file 99999999.sst", &[])
        .fails(2, &["99999999.sst"]);
}

#[test]
fn damage_is_shown_in_its_place_with_an_exit_code_of_its_own() {
    let store = Store::filled(10, 10);
    let table = store.tables().pop().expect("a table");
    let mut bytes = std::fs::read(&table).expect("read");
    let at = bytes.len() - 20;
    bytes[at] ^= 1;
    std::fs::write(&table, bytes).expect("written");
    let run = store.run("inspect tables", &[]).fails(4, &["1 problem"]);
    assert!(
        run.out.contains("DAMAGED") && run.out.contains("footer"),
        "{}",
        run.out
    );
    let run = store.run("inspect tables --json", &[]).fails(4, &[]);
    let json: Json = serde_json::from_str(&run.out).expect("JSON");
    assert!(json["tables"][0]["problem"].is_string() && json["tables"][0]["contents"].is_null());
    store.run("inspect manifest", &[]).ok();
}

#[test]
fn the_log_of_an_open_store_lists_its_writes() {
    let store = Store::new();
    let db = thermocline::Db::open(store.options()).expect("a store");
    db.put("tab\there", "four").expect("written");
    db.delete("gone").expect("written");
    let text = store.run("inspect wal --writes", &[]).ok();
    assert!(
        text.contains("1 keyspace 0: put \"tab\\there\", value of 4 bytes"),
        "{text}"
    );
    assert!(text.contains("2 keyspace 0: delete \"gone\""), "{text}");
    assert!(!store.run("inspect wal", &[]).ok().contains("gone"));
    let lines = store.run("inspect wal --json --writes", &[]).ok();
    let segment: Json = serde_json::from_str(lines.lines().last().expect("a line")).expect("JSON");
    let writes = segment["groups"].as_array().expect("groups").iter();
    let writes: Vec<&Json> = writes
        .flat_map(|g| g["writes"].as_array().expect("writes"))
        .collect();
    assert_eq!(writes[0]["key"], "tab\\there");
    assert_eq!(
        (&writes[1]["kind"], &writes[1]["seq"]),
        (&"delete".into(), &2.into())
    );
}

#[test]
fn a_place_without_a_store_is_an_error_and_stays_empty() {
    let store = Store::new();
    for what in ["manifest", "tables", "wal"] {
        store
            .run(&format!("inspect {what}"), &[])
            .fails(3, &["fast"]);
    }
    assert!(!store.fast().exists());
    store.run("inspect", &[]).fails(2, &["<WHAT>"]);
}
