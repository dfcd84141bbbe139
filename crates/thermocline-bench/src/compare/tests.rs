use std::fs;

use serde_json::{Value, json};

use super::*;
use crate::results::tests::{value, write};

fn args(a: &Path, b: &Path) -> CompareArgs {
    CompareArgs {
        a: a.to_owned(),
        b: b.to_owned(),
        fail_on_regression: None,
        different_hosts: false,
        json: false,
        html: None,
    }
}

fn runs(ops: &[f64]) -> Vec<Value> {
    ops.iter()
        .map(|ops| value("hotrap", "uniform", *ops))
        .collect()
}

/// The comparison of two files of one run, the second of which was changed.
fn compared(change: impl FnOnce(&mut Value)) -> Result<Comparison> {
    let home = tempfile::tempdir().unwrap();
    let mut run = value("fjall", "uniform", 10.0);
    run["memory_limited"] = json!(true);
    run["warm_up_seconds"] = json!(20.0);
    run["commit"] = json!("first");
    run["command"] = json!("thermocline bench");
    run["loaded_by"] = json!({"engine": "fjall", "commit": "first"});
    let [a, b] = ["a.json", "b.json"].map(|name| home.path().join(name));
    fs::write(&a, run.to_string()).unwrap();
    change(&mut run);
    fs::write(&b, run.to_string()).unwrap();
    compare(&args(&a, &b))
}

#[test]
fn work_that_was_not_the_same_is_named() {
    let warnings = compared(|_| {}).unwrap().warnings;
    assert!(
        !warnings.iter().any(|w| w.contains("not the same")),
        "{warnings:?}"
    );
    for (field, other, word) in [
        ("memory_limited", json!(false), "memory limit"),
        ("warm_up_seconds", json!(600.0), "warm-up"),
        ("workloads", json!(2), "definition of workloads"),
        (
            "loaded_by",
            json!({"engine": "other", "commit": "first"}),
            "loaded state",
        ),
        (
            "loaded_by",
            json!({"engine": "fjall", "commit": "first", "ingested": true}),
            "loaded state",
        ),
        (
            "loaded_by",
            json!({"engine": "fjall", "commit": "second"}),
            "different commits loaded",
        ),
    ] {
        let warnings = compared(|run| run[field] = other).unwrap().warnings;
        assert!(warnings.iter().any(|w| w.contains(word)), "{warnings:?}");
    }
    for (field, other, word) in [
        ("rate", json!(7), "same rate"),
        ("target", json!("cost:0.4"), "same target"),
    ] {
        let warnings = compared(|run| run[field] = other).unwrap().warnings;
        assert!(warnings.iter().any(|w| w.contains(word)), "{warnings:?}");
    }
    // A run ten times as long, and an engine that needs ten times as long for the same number of
    // operations.
    for (ops, is_named) in [(1000, true), (100, false)] {
        let longer = |run: &mut Value| (run["seconds"], run["ops"]) = (json!(100.0), json!(ops));
        let warnings = compared(longer).unwrap().warnings;
        let named = warnings.iter().any(|w| w.contains("same length"));
        assert_eq!(named, is_named, "{warnings:?}");
    }
    // Regression: a disk half as fast, or scans ten times as long, looked like a slower engine.
    for (flag, word) in [
        ("--expect-slow-iops 400", "slow disk"),
        ("--scan-length 1000", "scan length"),
        // This is how it is recorded if it was given like this. Regression: it was not read.
        ("'--scan-length=1000'", "scan length"),
    ] {
        let command = json!(format!("thermocline bench {flag}"));
        let changed = |run: &mut Value| {
            // The limits of an emulated disk are in the settings.
            run["settings"]["slow_device"]["iops"] = Value::Null;
            run["command"] = command;
        };
        let warnings = compared(changed).unwrap().warnings;
        assert!(warnings.iter().any(|w| w.contains(word)), "{warnings:?}");
    }
    // The default, whether it is given or not. Regression: there was a warning.
    let usual = |run: &mut Value| run["command"] = json!("thermocline bench --scan-length 100");
    let warnings = compared(usual).unwrap().warnings;
    assert!(
        !warnings.iter().any(|w| w.contains("scan length")),
        "{warnings:?}"
    );
    // Regression: the latency that is added to each operation of an emulated disk was not read, so
    // more of it looked like a slower engine.
    let latency = json!({"secs": 0, "nanos": 5_000_000});
    let slower = |run: &mut Value| run["settings"]["slow_device"]["latency"] = latency;
    let warnings = compared(slower).unwrap().warnings;
    assert!(
        warnings.iter().any(|w| w.contains("same settings")),
        "{warnings:?}"
    );
}

/// Regression: a build with flags that turn techniques off lists them all in each result, a default
/// build lists none. Beside each other the two were said to have other settings, although nothing
/// was set.
#[test]
fn techniques_differ_where_one_was_turned_off_and_not_where_one_could_be() {
    let named = |experiments: Value| {
        let listed = |run: &mut Value| run["settings"]["experiments"] = experiments;
        let warnings = compared(listed).unwrap().warnings;
        let named = warnings.into_iter().filter(|w| w.contains("not the same"));
        named.collect::<Vec<_>>()
    };
    let usual = json!({"no_copies": false, "scoring": "smoothing", "hot_set": null});
    assert_eq!(named(usual), Vec::<String>::new());
    for off in [
        json!({"no_copies": true}),
        json!({"scoring": "lru"}),
        json!({"hot_set": 0.55}),
    ] {
        let named = named(off);
        assert!(
            named.len() == 1 && named[0].ends_with("not the same techniques"),
            "{named:?}"
        );
    }
}

/// Regression: who had loaded a state was recorded and not read. A run on another engine's state
/// looked like one that had become slower.
#[test]
fn states_are_told_apart_where_it_is_known_who_loaded_them() {
    for (commit, loaded_by) in [
        ("first", Value::Null),
        ("second", json!({"engine": "fjall", "commit": "first"})),
        // Each of two builds ran on its own state.
        ("second", json!({"engine": "fjall", "commit": "second"})),
    ] {
        let changed = |run: &mut Value| {
            run["commit"] = commit.into();
            run["loaded_by"] = loaded_by;
        };
        let warnings = compared(changed).unwrap().warnings;
        assert!(
            !warnings.iter().any(|w| w.contains("loaded")),
            "{warnings:?}"
        );
    }
}

#[test]
fn wrong_answers_are_no_improvement() {
    let error = compared(|run| run["wrong_answers"] = json!(3)).unwrap_err();
    assert!(format!("{error:#}").contains("wrong answers"), "{error}");
}

#[test]
fn regressions_are_beyond_noise_and_beyond_the_percentage() {
    let home = tempfile::tempdir().unwrap();
    let (a, b) = (home.path().join("a"), home.path().join("b"));
    let before = runs(&[100.0, 101.0, 99.0]);
    write(
        &a,
        &[
            ("down", &[], before.clone()),
            ("noisy", &[], before.clone()),
            ("up", &[], before),
        ],
    );
    write(
        &b,
        &[
            ("down", &[], runs(&[80.0, 81.0, 79.0])),
            ("noisy", &[], runs(&[60.0, 80.0, 130.0])),
            ("up", &[], runs(&[120.0, 121.0, 119.0])),
        ],
    );
    let comparison = compare(&args(&a, &b)).unwrap();
    let verdicts: Vec<Verdict> = comparison.cells.iter().map(|cell| cell.verdict).collect();
    assert_eq!(
        verdicts,
        [Verdict::Slower, Verdict::WithinNoise, Verdict::Faster]
    );
    assert_eq!(comparison.regressions(5.0), ["down"]);
    assert_eq!(comparison.regressions(25.0), Vec::<String>::new());
    assert!(comparison.warnings.is_empty(), "{:?}", comparison.warnings);
    let text = comparison.to_string();
    assert!(text.contains("0.800") && text.contains("slower"), "{text}");
    assert!(
        text.contains("version 0.1.0, commit not recorded)"),
        "{text}"
    );
    let json = serde_json::to_value(&comparison).unwrap();
    assert_eq!(json["cells"][1]["verdict"], "within_noise");
}

#[test]
fn other_machines_are_refused_unless_allowed() {
    let home = tempfile::tempdir().unwrap();
    let (a, b) = (home.path().join("a"), home.path().join("b"));
    write(&a, &[("x", &[], runs(&[1.0, 1.1]))]);
    let elsewhere = |ops: &[f64]| {
        let mut runs = runs(ops);
        for run in &mut runs {
            run["host"]["cores"] = json!(64);
        }
        runs
    };
    let cells = [("x", elsewhere(&[1.0, 1.1])), ("y", elsewhere(&[1.0]))];
    write(&b, &cells.map(|(id, runs)| (id, &[][..], runs)));
    let mut suite: Value =
        serde_json::from_str(&fs::read_to_string(b.join("suite.json")).unwrap()).unwrap();
    suite["host"]["cores"] = json!(64);
    fs::write(b.join("suite.json"), suite.to_string()).unwrap();
    let mut args = args(&a, &b);
    let error = compare(&args).unwrap_err();
    assert!(error.is::<BadArguments>());
    assert!(error.to_string().contains("cores 2 / 64"), "{error}");
    args.different_hosts = true;
    let comparison = compare(&args).unwrap();
    assert_eq!(comparison.cells.len(), 1);
    let warnings = comparison.warnings.join("\n");
    assert!(
        warnings.contains("different machines") && warnings.contains(": y"),
        "{warnings}"
    );
}

/// Regression: a cell that failed in B was left out, and the check passed.
#[test]
fn a_cell_that_was_lost_is_a_regression() {
    let home = tempfile::tempdir().unwrap();
    let (a, b) = (home.path().join("a"), home.path().join("b"));
    write(&a, &[("x", &[], runs(&[1.0])), ("y", &[], runs(&[1.0]))]);
    write(&b, &[("x", &[], runs(&[1.0])), ("z", &[], runs(&[1.0]))]);
    let comparison = compare(&args(&a, &b)).unwrap();
    assert_eq!(comparison.regressions(5.0), ["y (no result)"]);
}

#[test]
fn nothing_in_common_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let (a, b) = (home.path().join("a"), home.path().join("b"));
    write(&a, &[("x", &[], runs(&[1.0]))]);
    write(&b, &[("y", &[], runs(&[1.0]))]);
    let error = compare(&args(&a, &b)).unwrap_err().to_string();
    assert!(
        error.contains("no measured cell in common: x / y"),
        "{error}"
    );
}

/// Regression: a cell that one side ran and the other only loaded was left out without a word, and
/// --fail-on-regression passed.
#[test]
fn a_cell_of_which_nothing_can_be_compared_is_named() {
    let home = tempfile::tempdir().unwrap();
    let (a, b) = (home.path().join("a"), home.path().join("b"));
    let mut load = value("hotrap", "uniform", 1.0);
    load["ops_s"] = Value::Null;
    load["load_ops_s"] = json!(50.0);
    let (ran, loaded) = (runs(&[1.0, 1.1]), vec![load]);
    write(&a, &[("x", &[], ran.clone()), ("y", &[], ran.clone())]);
    write(&b, &[("x", &[], loaded.clone()), ("y", &[], ran.clone())]);
    let comparison = compare(&args(&a, &b)).unwrap();
    assert_eq!(comparison.cells.len(), 1);
    let named = |text: &str| text.contains("x: not compared");
    let warnings = comparison.warnings;
    assert!(warnings.iter().any(|w| named(w)), "{warnings:?}");
    // If there is no other cell, the error says that this is why.
    write(&a, &[("x", &[], ran)]);
    write(&b, &[("x", &[], loaded)]);
    let error = compare(&args(&a, &b)).unwrap_err().to_string();
    assert!(named(&error), "{error}");
}

#[test]
fn two_files_are_compared_whatever_they_are_called() {
    let home = tempfile::tempdir().unwrap();
    let (a, b) = (home.path().join("a.json"), home.path().join("b.json"));
    fs::write(&a, value("hotrap", "uniform", 10.0).to_string()).unwrap();
    fs::write(&b, value("leveled", "uniform", 5.0).to_string()).unwrap();
    let comparison = compare(&args(&a, &b)).unwrap();
    assert_eq!(comparison.cells[0].ratio, Some(0.5));
    assert!(comparison.warnings[0].contains("not the same engine"));
    let error = compare(&args(&a, home.path())).unwrap_err().to_string();
    assert!(error.contains("result directory"), "{error}");
}

#[test]
fn the_page_escapes_and_shows_every_cell() {
    let home = tempfile::tempdir().unwrap();
    let (a, b) = (home.path().join("a"), home.path().join("<b>"));
    write(
        &a,
        &[("x", &[], runs(&[100.0, 101.0])), ("y", &[], runs(&[1.0]))],
    );
    write(
        &b,
        &[("x", &[], runs(&[50.0, 51.0])), ("y", &[], runs(&[1.0]))],
    );
    let mut args = args(&a, &b);
    args.html = Some(home.path().join("compare.html"));
    compare(&args).unwrap();
    let page = fs::read_to_string(home.path().join("compare.html")).unwrap();
    let html = scraper::Html::parse_document(&page);
    assert_eq!(html.errors, Vec::<std::borrow::Cow<'_, str>>::new());
    let rows = scraper::Selector::parse("#cells tbody tr").unwrap();
    assert_eq!(html.select(&rows).count(), 2);
    let slower = scraper::Selector::parse("tr.slower").unwrap();
    assert_eq!(html.select(&slower).count(), 1);
    assert!(!page.contains("<b>") && page.contains("&lt;b&gt;"));
}
