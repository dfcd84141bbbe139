//! Records of a prefix or a range deleted through the command.

use crate::common::Store;

/// Regression: only single keys could be deleted. Whoever wanted to be rid of a prefix had to pipe
/// a scan into a command that the scan kept out.
#[test]
fn records_of_a_prefix_or_a_range_are_deleted_and_counted() {
    let store = Store::new();
    let lines = b"a\t1\nb1\t2\nb2\t3\nb\\xff\t4\nc\t5\nd\t6\ne\t7\n";
    store.run_with("load --create", &[], lines).ok();
    let keys = || store.run("scan --keys-only", &[]).ok();
    let all = keys();
    // Nobody is at a terminal to be asked.
    store
        .run("delete --prefix b", &[])
        .fails(2, &["deletes 3 records", "--yes"]);
    assert_eq!(keys(), all);
    let deleted = store.run("delete --prefix b --yes", &[]).ok();
    assert_eq!(deleted, "3 records deleted\n");
    assert_eq!(keys(), "a\nc\nd\ne\n");
    store
        .run("delete --range c e", &[])
        .fails(2, &["deletes 2 records", "--yes"]);
    let deleted = store.run("delete --range c e --yes --json", &[]).json();
    assert_eq!(deleted, serde_json::json!({"deleted": 2}));
    assert_eq!(keys(), "a\ne\n");
    let deleted = store.run("delete --from b --yes", &[]).ok();
    assert_eq!(deleted, "1 records deleted\n");
    let deleted = store.run("delete --prefix zz --yes", &[]).ok();
    assert_eq!(deleted, "0 records deleted\n");
    assert_eq!(keys(), "a\n");
}

#[test]
fn more_records_than_a_batch_takes_are_deleted_without_those_beside_them() {
    let store = Store::filled(2500, 10);
    store.run("put", &["key", "before"]).ok();
    store.run("put", &["kez", "behind"]).ok();
    let deleted = store.run("delete --prefix key0 --yes", &[]).ok();
    assert_eq!(deleted, "1000 records deleted\n");
    let deleted = store.run("delete --prefix key --yes", &[]).ok();
    assert_eq!(deleted, "1501 records deleted\n");
    assert_eq!(store.run("scan", &[]).ok(), "kez\tbehind\n");
}

#[test]
fn single_keys_and_a_range_are_told_apart() {
    let store = Store::filled(1, 1);
    store.run("delete", &[]).fails(2, &["<KEY>", "--prefix"]);
    for mixed in [
        "delete k --prefix key",
        "delete k --yes",
        "delete --prefix k --range a b",
        "delete --from a --range a b",
        "delete --range a",
    ] {
        store.run(mixed, &[]).fails(2, &["--"]);
    }
    store
        .run("delete --range b a --yes", &[])
        .fails(2, &["--from is after --to"]);
    store.run("get", &["key0000"]).ok();
}
