//! `plan`: from a description, a trace or a store's own report to what each price buys.

use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;
use thermocline::{Db, ManualClock, Placement};

use crate::common::{Run, Store, run, thermocline};

const PRICES: [&str; 4] = ["--price-fast", "0.5", "--price-slow", "0.1"];

fn plan(line: &str, rest: &[&str]) -> Run {
    let words: Vec<&str> = ["plan"]
        .into_iter()
        .chain(line.split_whitespace())
        .collect();
    run(&[&words[..], rest].concat())
}

fn points(json: &Json, of: &str) -> Vec<(f64, f64)> {
    let points = json[of].as_array().expect("an array");
    let number = |point: &Json, name: &str| point[name].as_f64().expect("a number");
    let each = points.iter();
    each.map(|point| (number(point, "cost"), number(point, "hit_rate")))
        .collect()
}

#[test]
fn a_description_is_told_for_people_and_for_programs() {
    let line =
        "--keys 100000000 --value-size 976 --distribution zipfian:0.99 --reads 5000 --latency 2ms";
    let text = plan(line, &PRICES).ok();
    for words in [
        "zipfian:0.99, 100000000 records of 1000 B: 100.0 GB of keys and values",
        "fast disk 0.5 $/GB/month, 100 us a read; slow disk 0.1 $/GB/month, 10.00 ms a read",
        "slow reads/s",
        "no slow disk",
        "Cheapest with a mean read of 2.00 ms:",
        "placement by record",
        "Assumed:",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let json = plan(line, &[&PRICES[..], &["--json"]].concat()).json();
    let points = points(&json, "by_records");
    assert_eq!(
        (points.len(), points[0].1, points[9]),
        (10, 0.0, (0.5, 1.0))
    );
    assert!(
        points.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1),
        "{points:?}"
    );
    assert_eq!(json["by_tables"], Json::Array(Vec::new()));
    let cheapest = &json["wanted"]["cheapest"];
    assert!(
        cheapest["mean_read_us"].as_f64() <= Some(2000.0),
        "{cheapest}"
    );
    assert!(cheapest["cost"].as_f64() < Some(0.5), "{cheapest}");
}

#[test]
fn a_trace_is_told_by_record_and_by_table() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("reads.trace");
    let keys = (0..50_000_u32).chain((0..20_000).map(|read| read % 500));
    let bytes: Vec<u8> = keys.flat_map(u32::to_le_bytes).collect();
    std::fs::write(&path, bytes).expect("written");
    let path = path.to_str().expect("UTF-8");
    let trace = ["--trace", path, "--format", "cache2k"];
    let json = plan("--json --data-size 10GB", &[&PRICES[..], &trace].concat()).json();
    assert_eq!(json["data_bytes"], 1e10);
    for of in ["by_records", "by_tables"] {
        assert_eq!(points(&json, of).len(), 10, "{of}");
    }
    assert!(
        json["source"]
            .as_str()
            .expect("text")
            .contains("reads.trace, 70000 accesses")
    );
}

/// A closed store of 12 MB, whose tables are placed by their heat. The first tenth of its keys was
/// read.
fn read_store() -> Store {
    let store = Store::new();
    let mut options = store.options();
    options.placement = Placement::ByTable;
    options.memtable_size = Some(256 << 10);
    // What memory answers heats no table.
    options.block_cache = Some(0);
    options.record_cache = Some(0);
    options.tiers[0].price_per_gb_month = Some(0.5);
    options.tiers[1].price_per_gb_month = Some(0.1);
    let clock = Arc::new(ManualClock::default());
    let db = Db::builder(options).clock(clock.clone()).open();
    let db = db.expect("a new store");
    let key = |number: u32| number.to_be_bytes();
    for number in 0..24_000_u32 {
        db.put(key(number), key(number).repeat(125))
            .expect("it is written");
    }
    db.compact_range::<&[u8]>(..).expect("it is compacted");
    clock.advance(Duration::from_secs(60));
    db.cost().expect("it has prices");
    for number in 0..2_400 {
        db.get(key(number)).expect("it is read");
    }
    clock.advance(Duration::from_secs(1));
    db.cost().expect("it has prices");
    db.wait_idle().expect("the second is counted");
    db.close().expect("it is closed");
    store
}

#[test]
fn a_closed_store_tells_what_its_reads_are_worth() {
    let store = read_store();
    let report = store.run("cost --json", &PRICES).ok();
    let path = store.path("cost.json");
    std::fs::write(&path, &report).expect("written");
    let path = path.to_str().expect("UTF-8");
    let json = plan("--json --latency 1ms --curve", &[path]).json();
    let points = points(&json, "by_store");
    assert_eq!(points.len(), 10);
    assert!(
        points.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1),
        "{points:?}"
    );
    // A tenth of the data gets all reads. Half of the steps are a fifth of the way up.
    let (cost, hit_rate) = points[5];
    assert!(cost < 0.25 && hit_rate > 0.9, "{points:?}");
    assert!(
        json["wanted"]["cheapest"]["cost"].as_f64() < Some(0.3),
        "{json}"
    );

    // The same from a pipe.
    let mut child = thermocline(&["plan", "--curve", "-"]);
    let child = child
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = child.spawn().expect("the command runs");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(report.as_bytes()).expect("it reads");
    drop(stdin);
    let text = Run::new(child.wait_with_output().expect("the command ends")).ok();
    assert!(text.contains("As the store places its data"), "{text}");
}

/// Programs write such reports by hand.
#[test]
fn the_report_that_the_document_shows_is_taken() {
    let document = include_str!("../../../../docs/cost.md");
    let (_, report) = document.split_once("```json\n").expect("it shows one");
    let (report, _) = report.split_once("```").expect("it ends");
    let store = Store::new();
    let path = store.path("cost.json");
    std::fs::write(&path, report).expect("written");
    let json = plan("--json --curve", &[path.to_str().expect("UTF-8")]).json();
    let points = points(&json, "by_store");
    assert!((points[0].1 - 0.02).abs() < 1e-9, "{points:?}");
}

#[test]
fn what_tells_nothing_is_refused_with_what_to_do() {
    let store = Store::filled(10, 100);
    let report = store.run("cost --json", &PRICES).ok();
    let path = store.path("cost.json");
    let write = |text: &str| std::fs::write(&path, text).expect("written");
    let file = path.to_str().expect("UTF-8");
    write(&report);
    plan("--curve", &[file]).fails(2, &[file, "its curve is empty", "--trace"]);
    write(&report[..report.len() / 2]);
    plan("--curve", &[file]).fails(2, &[file, "no report of `thermocline cost --json`"]);
    plan("--curve /no/such", &[]).fails(2, &["cannot open /no/such"]);
    plan("--trace /no/such --format twitter", &PRICES).fails(2, &["/no/such"]);
    let described = "--keys 1000000 --value-size 100 --distribution latest";
    plan(described, &[]).fails(2, &["--price-fast"]);
    let equal = ["--price-fast", "0.1", "--price-slow", "0.1"];
    plan(described, &equal).fails(2, &["has to be dearer"]);
    plan("", &PRICES).fails(2, &["--curve", "--trace", "--keys"]);
    let more_than_any = "--keys 1000000000000 --value-size 1GB --distribution uniform";
    plan(more_than_any, &PRICES).fails(2, &["1.0e21 bytes", "more than"]);
    let described_twice = "--trace t.csv --format twitter --key-size 10";
    plan(described_twice, &PRICES).fails(2, &["--key-size", "cannot be used with", "--trace"]);
}
