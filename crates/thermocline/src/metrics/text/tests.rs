//! The parts of the text and their units.

use crate::metrics::{Metrics, fixture};

/// The words of the line under `section` that starts with `name`.
fn line<'a>(text: &'a str, section: &str, name: &str) -> &'a str {
    text.split("\n\n")
        .find(|part| part.starts_with(section))
        .and_then(|part| part.lines().find_map(|l| l.trim().strip_prefix(name)))
        .unwrap_or_else(|| panic!("no {name:?} under {section:?} in\n{text}"))
}

#[track_caller]
fn check(text: &str, section: &str, name: &str, words: &[&str]) {
    let line = line(text, section, name);
    for word in words {
        assert!(line.contains(word), "{word:?} is not in {line:?}");
    }
}

#[test]
fn every_part_is_shown_with_its_units() {
    let text = fixture::metrics().to_text();
    check(&text, "Store", "uptime", &["0h20m07s"]);
    check(
        &text,
        "Store",
        "written by users",
        &["1202 records", "1.17 KiB"],
    );
    check(
        &text,
        "Store",
        "snapshots",
        &["1203", "oldest at sequence 1204"],
    );
    check(&text, "Store", "space amplification", &["2.00"]);
    check(&text, "Store", "compression ratio", &["1.00"]);
    check(&text, "Store", "oldest obsolete file", &["0h20m06s"]);
    check(&text, "Store", "ERROR", &["a sync failed"]);
    check(&text, "Tiers", "0", &["1.00 GiB", "0.1 %", "/tier0"]);
    check(&text, "Tiers", "1", &["unlimited", " - ", "/tier1"]);
    check(&text, "Device I/O", "0 wal", &["1000101", "1000103"]);
    check(&text, "Processor time", "compaction", &["0h25m02s"]);
    check(&text, "Levels", "L1", &["20001", "20006", "19.54 KiB"]);
    check(&text, "Reads", "memtable", &["502"]);
    check(&text, "Reads", "record cache", &["513"]);
    check(&text, "Reads", "promotion cache", &["512"]);
    check(&text, "Reads", "tier 1", &["504"]);
    check(&text, "Reads", "block cache", &["508 of 1017 (50.0 %)"]);
    check(&text, "Reads", "filter", &["510 skipped, 511 false"]);
    check(&text, "Reads", "passed by iterators", &["514"]);
    check(
        &text,
        "Flushes",
        "L0 > L1",
        &["601", "602", "608", "609", "0h10m07s", "603 B", "606 B"],
    );
    check(&text, "Flushes", "debt", &["701 B"]);
    check(&text, "Stalls", "because of l0 tables", &["0h13m24s"]);
    check(&text, "Stalls", "now", &["l0 tables"]);
    check(&text, "Stalls", "speed limit", &["806 B/s"]);
    check(
        &text,
        "Latencies",
        "get",
        &["901", "2.00 ms", "4.00 ms", "5.00 ms"],
    );
    check(&text, "Memory", "budget", &["unlimited"]);
}

#[test]
fn a_lack_of_memory_for_indexes_is_shown_where_there_is_one() {
    let unpinned = "unpinned for want of room";
    let text = fixture::metrics().to_text();
    check(&text, "Memory", unpinned, &["1.08 KiB"]);
    assert!(!Metrics::default().to_text().contains(unpinned));
}

#[test]
fn memtables_that_only_iterators_hold_are_shown_where_there_are_any() {
    let held = "flushed, held by iterators";
    let text = fixture::metrics().to_text();
    check(&text, "Memory", held, &["1.08 KiB"]);
    assert!(!Metrics::default().to_text().contains(held));
    check(&text, "Memory", "buffers of large values", &["1.08 KiB"]);
}

/// A RALT that had stopped while it was young is generous no more. Therefore it was said to have
/// seen that all records are read alike.
#[test]
fn placement_by_hotness_shows_what_is_hot_and_what_moved() {
    let text = fixture::metrics().to_text();
    let hotness = |name: &str, words: &[&str]| check(&text, "Hotness", name, words);
    hotness("hot set", &["1.27 KiB of 1.27 KiB", "(99.9 %)"]);
    hotness("access records", &["1306", "1.27 KiB of 1.27 KiB"]);
    hotness("memory", &["1.27 KiB"]);
    hotness("scores", &["hot from 1307.500", "forgotten below 1308.500"]);
    hotness("state", &["has stopped: nothing more is learnt"]);
    hotness("accesses", &["1310", "1311 dropped", "slice 1309"]);
    hotness("evictions", &["1312"]);
    hotness("work", &["0h21m53s", "1.28 KiB read", "1.28 KiB written"]);
    hotness("TROUBLE", &["its manifest was damaged"]);
    for (young, generous, words) in [
        (true, true, "young: every record read counts as hot"),
        (true, false, "young: no record is read more"),
        (false, true, "learning a hotspot"),
        (false, false, "has told hot from cold"),
    ] {
        let mut metrics = fixture::metrics();
        let ralt = metrics.hotrap.as_mut().map(|hotrap| &mut hotrap.ralt);
        let ralt = ralt.expect("placed by hotness");
        (ralt.has_stopped, ralt.is_young, ralt.is_generous) = (false, young, generous);
        check(&metrics.to_text(), "Hotness", "state", &[words]);
    }
    let promotion = |name: &str, words: &[&str]| check(&text, "Promotion", name, words);
    promotion("waiting in memory", &["1.37 KiB"]);
    promotion("by flush", &["1.37 KiB", "1411 voided"]);
    promotion("by compaction", &["1.37 KiB"]);
    promotion("kept by compactions", &["1.37 KiB"]);
    promotion("past the last fast level", &["1.38 KiB"]);
    promotion("dropped as cold", &["1410 records"]);
    promotion("offered", &["1405 records", "5630 refused"]);
    promotion("refused: old snapshot", &["1408"]);
    promotion("crossings under way", &["1412"]);
}

#[test]
fn the_record_cache_shows_what_it_holds_and_what_it_is_worth() {
    let text = fixture::metrics().to_text();
    let cache = |name: &str, words: &[&str]| check(&text, "Record cache", name, words);
    cache("filled", &["1603 records", "1.56 KiB of 1.56 KiB"]);
    cache("hits", &["513 of 2117 (24.2 %)"]);
    cache("taken in", &["1605, 1606 refused"]);
    cache("taken out", &["1607 for others", "1608 for newer"]);
    cache("refreshed", &["1609"]);
    check(&text, "Memory", "record cache", &["1.08 KiB"]);
    let without = Metrics::default().to_text().to_lowercase();
    assert!(!without.contains("record cache"), "{without}");
}

#[test]
fn what_the_store_costs_is_shown_where_prices_are_known() {
    let text = fixture::metrics().to_text();
    let cost = |name: &str, words: &[&str]| check(&text, "Cost", name, words);
    cost("target", &["cost:0.3125"]);
    cost("now", &["0.3750 $/GB/month", "18.02 $", "1.76 KiB"]);
    cost("possible", &["0.1250 to 0.5000"]);
    cost("to move", &["1.76 KiB"]);
    cost("held up", &["readers hold it"]);
    cost("migrations", &["1805 tables, 1.76 KiB up, 1.77 KiB down"]);
    cost("by compactions", &["1811 tables, 1.77 KiB"]);
    assert!(!Metrics::default().to_text().contains("Cost"));
    let mut empty = fixture::metrics();
    if let Some(cost) = &mut empty.cost {
        cost.data_bytes = 0;
    }
    assert!(!empty.to_text().contains("possible"), "without data");
}

#[test]
fn placement_by_level_shows_nothing_of_hotness() {
    let text = Metrics::default().to_text();
    assert!(
        !text.contains("Hotness") && !text.contains("promotion"),
        "{text}"
    );
}

#[test]
fn columns_line_up() {
    let text = fixture::metrics().to_text();
    let part = text.split("\n\n").find(|p| p.starts_with("Levels"));
    let lines: Vec<&str> = part.expect("levels").lines().skip(1).collect();
    assert!(lines.windows(2).all(|w| w[0].len() == w[1].len()), "{text}");
}

#[test]
fn a_store_that_did_nothing_shows_no_share() {
    let text = Metrics::default().to_text();
    check(&text, "Store", "space amplification", &["1.00"]);
    check(&text, "Reads", "all", &["0", "-"]);
    assert!(!text.contains("NaN") && !text.contains("ERROR"), "{text}");
}
