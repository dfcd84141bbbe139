use std::fs;

use super::*;
use crate::engine;
use crate::engines::memory::{HOT_BYTES_ON_FAST, Lie, Memory};
use crate::plan::tests::parse;

fn plan(flags: &str) -> (BenchArgs, Plan) {
    let args = parse(&format!(
        "--data-size 100kB --record-size 100 --ops 1000 --threads 2 {flags}"
    ))
    .unwrap();
    let mut plan = args.plan().unwrap();
    plan.engine = &Memory(Lie::None);
    (args, plan)
}

#[test]
fn the_json_has_every_stable_field() {
    let (args, plan) = plan("--workload uh");
    let place = Place::temporary().unwrap();
    let report = on_new_state(&args, &plan, &place, &mut ()).unwrap();
    let json = serde_json::to_value(&report).unwrap();
    for field in [
        "version",
        "commit",
        "command",
        "engine",
        "workloads",
        "workload",
        "distribution",
        "records",
        "record_bytes",
        "threads",
        "rate",
        "target",
        "seed",
        "load_ops_s",
        "load_seconds",
        "load_compactions",
        "load_stall_seconds",
        "load_stall_by_reason",
        "load_cpu_by_activity",
        "load_io_by_activity",
        "ops",
        "seconds",
        "ops_s",
        "last_tenth_ops_s",
        "p50_us",
        "p99_us",
        "p999_us",
        "fd_hit_rate",
        "dram_hit_rate",
        "hot_bytes_on_fast",
        "cpu_seconds",
        "max_rss_bytes",
        "fd_bytes",
        "sd_bytes",
        "fd_read_bytes",
        "fd_write_bytes",
        "sd_read_bytes",
        "sd_read_ops",
        "sd_write_bytes",
        "write_amplification",
        "space_amplification",
        "stall_seconds",
        "stall_by_reason",
        "last_tenth",
        "seconds_to_90_percent",
        "cpu_us_per_op",
        "compaction_read_bytes",
        "compaction_write_bytes",
        "compactions",
        "hot_set_bytes",
        "hot_set_limit_bytes",
        "ralt_bytes",
        "ralt_limit_bytes",
        "ralt_memory_bytes",
        "ralt_cpu_seconds",
        "ralt_cpu_share",
        "ralt_read_bytes",
        "ralt_write_bytes",
        "ralt_io_share",
        "promoted_flush_bytes",
        "promoted_compaction_bytes",
        "retained_bytes",
        "admission_attempts",
        "admission_refused",
        "wrong_answers",
        "stages",
        "series",
        "cpu_by_activity",
        "io_by_activity",
        "activity_series",
        "warm_up_seconds",
        "warm_up_ops",
        "warm_up_series",
        "warm_up_activity_series",
        "warm_up_compaction_read_bytes",
        "warm_up_compaction_write_bytes",
        "warm_up_promoted_flush_bytes",
        "warm_up_promoted_compaction_bytes",
        "warm_up_retained_bytes",
        "settings",
        "memory_limited",
        "host",
    ] {
        assert!(json.get(field).is_some(), "{field} is missing");
    }
    for field in [
        "memory",
        "cache",
        "memtable",
        "block_size_fast",
        "block_size_slow",
        "durability",
        "compression",
    ] {
        assert!(
            json["settings"].get(field).is_some(),
            "settings.{field} is missing"
        );
    }
    assert_eq!(json["commit"].as_str(), crate::program::commit());
    assert_eq!(json["ops"], 1000);
    assert_eq!(json["series"][0]["fd_hit_rate"], json["fd_hit_rate"]);
    assert_eq!(json["stages"][0]["ops"], 1000);
    let cpu = json["cpu_by_activity"].as_object().unwrap();
    let sum: f64 = cpu.values().map(|seconds| seconds.as_f64().unwrap()).sum();
    let all = json["cpu_seconds"].as_f64().unwrap();
    // What the clients estimate may exceed what the process used.
    assert!(
        sum >= all * 0.999 && cpu["read"].as_f64() > Some(0.0),
        "{cpu:?}"
    );
    assert!(cpu.contains_key("background"), "the engine does not say");
    let seconds = json["series"].as_array().unwrap().len();
    for column in json["activity_series"]["cpu_seconds"]
        .as_object()
        .unwrap()
        .values()
    {
        assert_eq!(column.as_array().map(Vec::len), Some(seconds));
    }
    assert!(json["host"]["fast"].is_object(), "{}", json["host"]);
    assert_eq!(json["series"][0]["hot_set_limit_bytes"], 1000);
    assert_eq!(json["hot_set_limit_bytes"], 1000);
    assert!(json["compaction_read_bytes"].is_null(), "not known");
    assert_eq!(json["settings"]["durability"], "buffered");
    assert!(json["host"]["cores"].as_u64().unwrap() > 0);
    let text = report.to_string();
    assert!(
        text.contains("wrong answers 0") && text.contains("update"),
        "{text}"
    );
}

#[test]
fn the_offered_rate_is_reported() {
    let report = |flags: &str| {
        let (args, plan) = plan(flags);
        let place = Place::temporary().unwrap();
        on_new_state(&args, &plan, &place, &mut ()).unwrap()
    };
    let offered = report("--rate 50000");
    let json = serde_json::to_value(&offered).unwrap();
    assert_eq!(json["rate"], 50_000);
    let text = offered.to_string();
    assert!(
        text.contains("2 threads, 50000 operations/s offered\n"),
        "{text}"
    );
    let free = report("");
    assert!(serde_json::to_value(&free).unwrap()["rate"].is_null());
    assert!(!free.to_string().contains("offered"));
}

/// So that the run begins with data where the target has it. A kept state is for runs with
/// other targets too.
#[test]
fn the_first_target_is_set_before_the_run_and_for_a_new_store_before_loading() {
    let flags = "--engine cost --price-fast 0.5 --price-slow 0.1 --cost-target 0.4";
    let args = parse(&format!("--data-size 100kB --ops 1000 {flags}")).unwrap();
    let mut plan = args.plan().unwrap();
    plan.engine = &Memory(Lie::None);
    let set = |dirs: &Dirs| fs::read_to_string(dirs.fast.join("targets")).unwrap_or_default();
    let place = Place::temporary().unwrap();
    let report = on_new_state(&args, &plan, &place, &mut ()).unwrap();
    assert_eq!(set(&place.run()), "cost:0.4\ncost:0.4\n");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["target"], "cost:0.4");
    let text = report.to_string();
    assert!(text.contains(", target cost:0.4\n"), "{text}");
    place.remove_run().unwrap();
    on_kept_state(&args, &plan, &place, &mut ()).unwrap();
    assert_eq!(set(&place.loaded()), "");
    assert_eq!(set(&place.run()), "cost:0.4\n");
}

/// Of a run of several stages, the last one's is the run's own.
#[test]
fn the_bill_is_reported_if_there_are_prices() {
    let report = |flags: &str| {
        let stages = "--distribution hotspot-5@100ms,uniform@100ms";
        let args = parse(&format!(
            "--data-size 100kB --record-size 100 {stages} {flags}"
        ));
        let args = args.unwrap();
        let mut plan = args.plan().unwrap();
        plan.engine = &Memory(Lie::None);
        let place = Place::temporary().unwrap();
        on_new_state(&args, &plan, &place, &mut ()).unwrap()
    };
    let free = serde_json::to_value(report("")).unwrap();
    assert!(free.get("bill_mean").is_none() && free["series"][0].get("cost").is_none());
    let mut report = report("--price-fast 0.5 --price-slow 0.1");
    let json = serde_json::to_value(&report).unwrap();
    for field in [
        "bill_max",
        "bill_by_tables",
        "target_cost",
        "seconds_to_target",
        "seconds_above_target",
        "tables_up_bytes",
        "tables_down_bytes",
        "migrations",
        "migrations_by_compaction",
        "fast_room_records_bytes",
        "fast_room_tables_bytes",
        "held_up_by",
    ] {
        assert_eq!(json["stages"][1].get(field), json.get(field), "{field}");
        assert!(json.get(field).is_some(), "{field} is missing");
    }
    // The store has nothing but the records, on the fast disk.
    for place in [&json, &json["stages"][0], &json["stages"][1]] {
        let bill = place["bill_mean"].as_f64().unwrap();
        assert!((bill - 0.5).abs() < 1e-9, "{bill}");
    }
    for field in [
        "bill_by_tables",
        "target_cost",
        "floor",
        "ceiling",
        "moving_bytes",
    ] {
        assert!(json["series"][0]["cost"].get(field).is_some(), "{field}");
    }
    assert!(json["series"][0]["cost"]["bill"].as_f64() > Some(0.49));
    assert_eq!(json["settings"]["prices"]["fast"], 0.5);
    let text = report.to_string();
    let said = "bill          $0.5000 per GB of records and month, $0.5000 at most\n";
    assert!(
        text.contains(said) && text.contains(", $0.5000, "),
        "{text}"
    );
    let cost = report.cost.as_mut().unwrap();
    (cost.bill_by_tables, cost.target_cost) = (Some(0.25), Some(0.2));
    (
        cost.migrations,
        cost.tables_up_bytes,
        cost.tables_down_bytes,
    ) = (Some(7), Some(1), Some(2));
    cost.migrations_by_compaction = Some(3);
    cost.held_up_by = Some("a reader".to_owned());
    let text = report.to_string();
    let said = "; $0.2500 by live tables, target $0.2 not kept\n  tables moved  7: 1 B up, 2 B down; 3 by compactions\n  held up by    a reader\n";
    assert!(text.contains(said), "{text}");
}

/// What only the store can tell of a target is told before anything is measured.
#[test]
fn a_target_that_the_store_refuses_is_an_error_before_the_run() {
    let (args, mut plan) = plan("");
    plan.targets = parse("--cost-target 0.4").unwrap().targets.cost_target;
    plan.engine = &Memory(Lie::NoTarget);
    let place = Place::temporary().unwrap();
    let error = on_kept_state(&args, &plan, &place, &mut ()).unwrap_err();
    let error = format!("{error:#}");
    assert!(
        error.contains("the target: cost:0.4 is not possible"),
        "{error}"
    );
}

#[test]
fn every_tier_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let [a, b, c] = ["a", "b", "c"].map(|name| dir.path().join(name));
    let dirs = format!(
        "--fast {} --slow {} --slow {}",
        a.display(),
        b.display(),
        c.display()
    );
    let flags = format!("--data-size 2MiB --memory 2MiB --threads 2 --ops 500 {dirs} --keep");
    let report = |flags: &str| {
        let mut args = parse(flags).unwrap();
        args.engine = "leveled".to_owned();
        bench(&args).unwrap()
    };
    let first = report(&flags);
    let json = serde_json::to_value(&first).unwrap();
    let tiers = json["tiers"].as_array().unwrap();
    let bytes = |tier: &serde_json::Value| tier["bytes"].as_u64().unwrap();
    assert_eq!(tiers.len(), 3);
    assert_eq!(json["fd_bytes"], bytes(&tiers[0]));
    assert_eq!(json["sd_bytes"], bytes(&tiers[1]) + bytes(&tiers[2]));
    assert!(tiers[0]["io_by_activity"]["read"].is_object(), "{tiers:?}");
    assert_eq!(json["host"]["slower"].as_array().map(Vec::len), Some(1));
    let text = first.to_string();
    assert!(text.contains("\n  tier 2        "), "{text}");
    assert!(c.join("loaded").exists() && !c.join("run").exists());
    let second = report(&flags);
    assert!(second.kept_state && second.wrong_answers == 0);
}

/// Regression: of a warm-up, only its length was recorded. So what came to the fast disk during
/// it was in no figure and no table.
#[test]
fn the_warm_up_is_recorded_apart() {
    let (args, plan) = plan("--workload uh --warm-up 800");
    let place = Place::temporary().unwrap();
    let report = on_new_state(&args, &plan, &place, &mut ()).unwrap();
    let json = serde_json::to_value(&report).unwrap();
    let ops = |series: &str| -> u64 {
        let each = json[series].as_array().unwrap().iter();
        each.map(|second| second["ops"].as_u64().unwrap()).sum()
    };
    assert_eq!((ops("warm_up_series"), ops("series")), (800, 1000));
    assert_eq!(json["warm_up_ops"], 800);
    assert_eq!(json["ops"], 1000);
    assert!(json["warm_up_promoted_flush_bytes"].is_u64(), "{json}");
    assert!(json["warm_up_compaction_read_bytes"].is_null(), "not known");
    let cpu = json["warm_up_activity_series"]["cpu_seconds"].as_object();
    let seconds = json["warm_up_series"].as_array().map(Vec::len);
    for column in cpu.unwrap().values() {
        assert_eq!(column.as_array().map(Vec::len), seconds);
    }
}

/// Regression: if the engine had not made a directory, its disk was recorded as unknown. A
/// result of one disk was refused beside one of two, as if it were of another machine.
#[test]
fn the_machine_has_both_disks_whichever_the_engine_uses() {
    let (args, mut plan) = plan("");
    plan.engine = engine::find("fast-only").unwrap();
    let place = Place::temporary().unwrap();
    let report = on_new_state(&args, &plan, &place, &mut ()).unwrap();
    assert!(!place.run().slow.exists());
    assert_eq!(report.host, Host::with_disks(place.dirs()));
    assert_eq!(report.host.slow, report.host.fast, "one disk has both");
}

/// Regression: everything that had been loaded counted as live, whatever the trace deleted. For
/// a store with half of it left, only half of the space amplification was reported.
#[test]
fn space_is_not_amplified_less_by_deletions() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path();
    let amplification = |operation: &str| {
        let text = format!("0,a,1,76,1,get,0\n1,b,1,76,1,{operation},0\n");
        fs::write(path, text).unwrap();
        let flags = format!("--trace {} --format twitter --threads 1", path.display());
        let args = parse(&flags).unwrap();
        let mut plan = args.plan().unwrap();
        plan.engine = &Memory(Lie::None);
        let place = Place::temporary().unwrap();
        let report = on_new_state(&args, &plan, &place, &mut ()).unwrap();
        report.space_amplification
    };
    assert_eq!(amplification("set"), Some(1.0));
    assert_eq!(amplification("delete"), None);
}

/// Regression: a full disk, or a directory that was removed meanwhile, cost the result of the
/// whole run.
#[test]
fn a_report_that_cannot_be_written_is_told() {
    let (args, plan) = plan("--workload uh");
    let place = Place::temporary().unwrap();
    let report = on_new_state(&args, &plan, &place, &mut ()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let json = JsonFile::try_at(&dir.path().join("x.json")).unwrap();
    fs::remove_dir_all(dir.path()).unwrap();
    let text = report.to_string();
    let error = hand_over(report, Some(json)).unwrap_err().to_string();
    assert!(error.contains(&text), "{error}");
    assert!(error.contains("cannot write") && error.contains("x.json"));
}

#[test]
fn the_text_says_why_writers_were_held_back_if_they_were() {
    let (args, plan) = plan("--workload uh");
    let place = Place::temporary().unwrap();
    let mut report = on_new_state(&args, &plan, &place, &mut ()).unwrap();
    report.write_amplification = Some(3.0);
    report.stall_seconds = Some(2.5);
    report.stall_by_reason = Some([("l0 tables", 2.5), ("memtables", 0.01)].into());
    let text = report.to_string();
    assert!(
        text.contains("held back 2.5 s (l0 tables 2.5 s)\n"),
        "{text}"
    );
    report.stall_by_reason = None;
    let text = report.to_string();
    assert!(text.contains("held back 2.5 s\n"), "{text}");
    report.stall_seconds = None;
    let text = report.to_string();
    assert!(text.contains("amplified 3.0 times\n"), "not known: {text}");
}

/// Regression: the report said which program had measured, but nothing of the program whose
/// levels it had measured.
#[test]
fn a_kept_state_is_known_by_who_loaded_it() {
    let (args, plan) = plan("");
    let place = Place::temporary().unwrap();
    on_kept_state(&args, &plan, &place, &mut ()).unwrap();
    place.remove_run().unwrap();
    let path = place.dirs().fast.join("loaded.json");
    let mut kept: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    kept["commit"] = "an earlier one".into();
    kept["engine"] = "another one".into();
    fs::write(&path, kept.to_string()).unwrap();
    let report = on_kept_state(&args, &plan, &place, &mut ()).unwrap();
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["loaded_by"]["commit"], "an earlier one");
    assert_eq!(json["loaded_by"]["engine"], "another one");
    assert!(json["load_seconds"].is_null());
}

/// Regression: an error of the last flush lost what had been measured.
#[test]
fn what_was_measured_is_told_where_the_store_does_not_close() {
    let (mut args, _) = plan("--warm-up 10");
    let place = Place::temporary().unwrap();
    let after = format!("rm -r {}", place.run().fast.display());
    args.warm_up.after_warm_up = Some(after);
    let mut plan = args.plan().unwrap();
    plan.engine = &Memory(Lie::None);
    let report = measure(&args, &plan, &place, &mut ()).unwrap();
    let text = report.to_string();
    let error = hand_over(report, None).unwrap_err().to_string();
    assert!(error.contains(&text), "{error}");
    assert!(error.contains("after the run"), "{error}");
}

/// The size of the hot set was taken for what the fast tier held of it.
#[test]
fn hot_records_on_the_fast_tier_are_told_beside_the_hot_set() {
    let (args, mut plan) = plan("--fast-capacity 2MiB");
    let place = Place::temporary().unwrap();
    let report = measure(&args, &plan, &place, &mut ()).unwrap();
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["hot_bytes_on_fast"], HOT_BYTES_ON_FAST);
    assert_ne!(json["hot_set_bytes"], json["hot_bytes_on_fast"]);
    let text = report.to_string();
    assert!(
        text.contains("35.0 % of the fast tier's capacity"),
        "{text}"
    );

    // What was measured is told without it.
    let place = Place::temporary().unwrap();
    plan.engine = &Memory(Lie::NoHotBytes);
    let report = measure(&args, &plan, &place, &mut ()).unwrap();
    assert!(report.ops_s.is_some() && report.hotness.hot_bytes_on_fast.is_none());
    let why = report.failed_after.unwrap();
    assert!(why.contains("hot on the fast tier"), "{why}");
}

/// Regression: its store stayed, and took the room that the next run needed.
#[test]
fn a_run_that_fails_leaves_no_store_behind() {
    let (args, plan) = plan("");
    let place = Place::temporary().unwrap();
    let run = place.run();
    measure(&args, &plan, &place, &mut ()).unwrap();
    assert!(!run.fast.exists());
    // The directory exists and holds no store, so the engine fails.
    fs::create_dir_all(run.fast.join("map.json")).unwrap();
    measure(&args, &plan, &place, &mut ()).unwrap_err();
    assert!(!run.fast.exists() && !run.slow.exists());
}

/// Where the time and the bytes of a load go was in no result: only how long it took.
#[test]
fn a_load_tells_what_it_took() {
    let flags = "--engine fast-only --data-size 4MB --memory 8MiB --memtable 256KiB --threads 1";
    let args = parse(&format!("{flags} --record-size 1kB --phase load")).unwrap();
    let place = Place::temporary().unwrap();
    let report = on_new_state(&args, &args.plan().unwrap(), &place, &mut ()).unwrap();
    let json = serde_json::to_value(&report).unwrap();
    let of_l0 = &json["load_compactions"][0];
    assert_eq!(of_l0["from"], 0);
    let written = |activity| json["load_io_by_activity"]["fast"][activity]["write_bytes"].as_u64();
    for activity in ["write", "flush", "compaction"] {
        assert!(written(activity) > Some(1_000_000), "{activity}: {json}");
    }
    let cpu = json["load_cpu_by_activity"].as_object().unwrap();
    assert!(cpu["compaction"].as_f64() > Some(0.0), "{cpu:?}");
    assert!(json["load_stall_by_reason"].is_object());
}

#[test]
fn a_kept_state_is_loaded_once_and_never_changed() {
    let (args, plan) = plan("--workload uh");
    let place = Place::temporary().unwrap();
    let first = on_kept_state(&args, &plan, &place, &mut ()).unwrap();
    assert!(!first.kept_state);
    let kept = fs::read(place.loaded().fast.join("map.json")).unwrap();
    let ran = fs::read(place.run().fast.join("map.json")).unwrap();
    assert_ne!(kept, ran, "the run wrote to its copy");
    place.remove_run().unwrap();
    let second = on_kept_state(&args, &plan, &place, &mut ()).unwrap();
    assert!(second.kept_state);
    assert_eq!(second.loaded_by, first.loaded_by);
    assert_eq!(second.load_seconds, first.load_seconds);
    // What an earlier program has counted is not in the state.
    assert!(first.loading.load_cpu_by_activity.is_some());
    assert_eq!(second.loading, LoadingResult::default());
    assert_eq!(second.wrong_answers, 0);
    assert_eq!(
        fs::read(place.loaded().fast.join("map.json")).unwrap(),
        kept
    );
}

/// Regression: the state was loaded anew without a word, and what may have taken hours to load
/// was gone.
#[test]
fn a_kept_state_of_other_settings_is_replaced_only_on_request() {
    let place = Place::temporary().unwrap();
    let run = |flags: &str, phase: Phase| {
        let (mut args, plan) = plan(flags);
        args.phase = phase;
        let report = on_kept_state(&args, &plan, &place, &mut ());
        place.remove_run().unwrap();
        report
    };
    run("", Phase::Both).unwrap();
    let mark = place.loaded().fast.join("mark");
    fs::write(&mark, "").unwrap();
    let other = "--memtable 32KiB";
    let error = run(other, Phase::Both).unwrap_err().to_string();
    assert!(error.contains("memtable is"), "{error}");
    assert!(error.contains("--phase load --keep"), "{error}");
    assert!(mark.exists() && run("", Phase::Both).unwrap().kept_state);
    run(other, Phase::Load).unwrap();
    assert!(!mark.exists() && run(other, Phase::Both).unwrap().kept_state);
}
