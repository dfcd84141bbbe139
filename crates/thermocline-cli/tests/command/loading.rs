//! `load`, of sorted lines and others.

use crate::common::Store;

/// Lines of `numbers`, of about 10 KiB each.
fn lines(numbers: impl Iterator<Item = u32>, version: &str) -> String {
    let value = "x".repeat(10_000);
    let line = |n: u32| format!("key{n:06}\t{version}{value}\n");
    numbers.map(line).collect()
}

#[test]
fn sorted_lines_are_ingested_and_say_so() {
    let store = Store::new();
    let loaded = store.run_with("load --create --json", &[], lines(0..2000, "a").as_bytes());
    let loaded = loaded.json();
    assert_eq!(loaded["records"], 2000);
    assert_eq!(loaded["ingested"], 2000);
    let keys = store.run("scan --keys-only", &[]).ok();
    assert_eq!(keys.lines().count(), 2000);
    // All of it is on the last level, and nothing is left to do.
    let again = store
        .run_with("load", &[], lines(0..1000, "b").as_bytes())
        .ok();
    assert!(
        again.contains("they were sorted, and were ingested"),
        "{again}"
    );
    assert!(store.run("get", &["key000999"]).ok().starts_with('b'));
    assert!(store.run("get", &["key001000"]).ok().starts_with('a'));
}

/// The last record of a key counts, wherever the order ends.
#[test]
fn from_the_first_line_out_of_order_on_records_go_in_batches() {
    let store = Store::new();
    let mut input = lines(0..1500, "a");
    input += &lines((100..110).rev(), "b");
    input += &lines(1400..1600, "c");
    let loaded = store.run_with("load --create", &[], input.as_bytes()).ok();
    assert!(loaded.contains("the first 1500 were sorted"), "{loaded}");
    for (key, version) in [
        ("key000099", 'a'),
        ("key000105", 'b'),
        ("key001400", 'c'),
        ("key001599", 'c'),
    ] {
        assert!(store.run("get", &[key]).ok().starts_with(version), "{key}");
    }
    // A key that comes twice in a row is not in order either.
    let twice = format!("{}{}", lines(0..1000, "d"), lines(999..1001, "e"));
    let loaded = store.run_with("load --json", &[], twice.as_bytes()).json();
    assert_eq!(
        (&loaded["records"], &loaded["ingested"]),
        (&1002.into(), &1000.into())
    );
    assert!(store.run("get", &["key000999"]).ok().starts_with('e'));
    assert!(store.run("get", &["key000998"]).ok().starts_with('d'));
}

#[test]
fn what_comes_before_a_bad_line_is_loaded() {
    let store = Store::new();
    let input = format!("{}no tab\n", lines(0..1000, "a"));
    let refused = store.run_with("load --create", &[], input.as_bytes());
    refused.fails(2, &["1001", "1000 records before it were loaded"]);
    let keys = store.run("scan --keys-only", &[]).ok();
    assert_eq!(keys.lines().count(), 1000);
}

#[test]
fn little_is_not_worth_a_table_of_its_own() {
    let store = Store::new();
    let loaded = store
        .run_with("load --create --json", &[], b"a\t1\nb\t2\n")
        .json();
    assert_eq!(
        (&loaded["records"], &loaded["ingested"]),
        (&2.into(), &0.into())
    );
}
