//! Tests of the report on a suite as large as `paper-small`. It is one page, and its purpose is
//! still served.

use serde_json::{Value, json};

use super::*;
use crate::results::tests::{value, write as write_results};

const ENGINES: [&str; 4] = ["hotrap", "flash-cache", "rocksdb", "rocksdb-fast-only"];

/// The activities that an engine reports: of processor time, of the fast disk, and of the slow one.
fn activities(engine: &str) -> [&'static str; 3] {
    match engine {
        "hotrap" => [
            "read write flush compaction promotion ralt other",
            "read write flush compaction promotion ralt other",
            "read compaction promotion other",
        ],
        "rocksdb" | "fjall" => [
            "read write background other",
            "unattributed",
            "unattributed",
        ],
        "rocksdb-fast-only" => [
            "read write background other",
            "read write flush compaction other",
            "",
        ],
        "rocksdb-slow-only" => [
            "read write background other",
            "",
            "read write flush compaction other",
        ],
        _ => [
            "read write flush compaction background other",
            "read write flush compaction other",
            "read write flush compaction other",
        ],
    }
}

fn by_activity(activities: &str, one: &Value) -> Value {
    let each = activities.split_whitespace();
    let each: serde_json::Map<String, Value> =
        each.map(|name| (name.to_owned(), one.clone())).collect();
    each.into()
}

fn series(engine: &str, seconds: u32) -> Value {
    let is_told = engine == "hotrap";
    let second = |second: u32| {
        json!({"second": second, "ops_s": 12_345.6 + f64::from(second), "fd_hit_rate": 0.951,
               "hot_set_bytes": is_told.then_some(612_345_678 + second), "hot_set_limit_bytes": is_told.then_some(700_123_456)})
    };
    (1..=seconds).map(second).collect()
}

/// A run of this many seconds with both accounts.
fn run(engine: &str, workload: &str, distribution: &str, seconds: u32) -> Value {
    let mut run = value(engine, distribution, 23_456.7);
    run["workload"] = workload.into();
    run["seconds"] = seconds.into();
    run["series"] = series(engine, seconds);
    let latencies =
        json!([{"operation": "read", "p50_us": 321.5, "p99_us": 4567.8, "p999_us": 12345.6}]);
    run["last_tenth"]["latencies"] = latencies.clone();
    run["latencies"] = latencies;
    // Runs that wait for the slow disk are at its limit.
    let is_free = match engine {
        "hotrap" => distribution.starts_with("hotspot"),
        "rocksdb-fast-only" => true,
        _ => workload == "trace-fitted",
    };
    let reads = if is_free { 1 } else { seconds * 5000 };
    run["sd_read_ops"] = reads.into();
    let [cpu, fast, slow] = activities(engine);
    run["cpu_by_activity"] = by_activity(cpu, &json!(12.345));
    let io = json!({"read_ops": 123_456, "read_bytes": 12_345_678_901_u64, "write_ops": 2345, "write_bytes": 2_345_678_901_u64});
    run["io_by_activity"] = json!({"fast": by_activity(fast, &io), "slow": by_activity(slow, &io)});
    run["command"] = format!(
        "thermocline bench --engine {engine} --workload {workload} --distribution {distribution} --cache 16MiB --data-size 11264000000 \
         --duration 300s --fast-capacity 1GB --memory 256MiB --memtable 16MiB --record-size 1KiB --threads 16 --warm-up 120s \
         --fast /somewhere/fast/bench --slow /somewhere/slow/bench --expect-slow-iops 5000 --expect-slow-bandwidth 500000000 --keep"
    )
    .into();
    run
}

/// The same run, as figure 14 needs it.
fn over_time(engine: &str, mut run: Value) -> Value {
    let spent = |seconds: usize| {
        let column = vec![123_456_789; seconds];
        let io = json!({"read_bytes": column, "write_bytes": column});
        let [_, fast, slow] = activities(engine);
        json!({"io": {"fast": by_activity(fast, &io), "slow": by_activity(slow, &io)}})
    };
    run["activity_series"] = spent(300);
    run["warm_up_activity_series"] = spent(120);
    run["warm_up_series"] = series(engine, 120);
    run
}

/// A hotspot that moves, in seven stages of 300 s.
fn staged() -> Value {
    let mut run = run("hotrap", "ro", "dynamic", 2100);
    let stage = |number: u32| {
        json!({"distribution": format!("hotspot-{number}"), "begin_seconds": number * 300,
               "seconds": 300.0, "ops_s": 23_456.7})
    };
    run["stages"] = (0..7).map(stage).collect();
    run
}

type Cells = Vec<(String, Vec<&'static str>, Value)>;

/// All cells of `paper-small`, or cells like them.
fn cells() -> Cells {
    let mut cells = Cells::new();
    let mut add = |group: &str, figures: &[&'static str], run: Value| {
        let part = |field: &str| run[field].as_str().unwrap_or_default().replace(':', "-");
        let id = [
            group,
            &part("engine"),
            &part("workload"),
            &part("distribution"),
        ]
        .join("-");
        cells.push((id, figures.to_vec(), run));
    };
    for workload in ["ro", "rw", "wh", "uh"] {
        for distribution in ["hotspot-5", "zipfian:0.99", "uniform"] {
            for engine in ENGINES {
                let run = run(engine, workload, distribution, 300);
                if (workload, distribution) == ("rw", "hotspot-5") && engine != "flash-cache" {
                    add("fig6", &["6", "8", "14"], over_time(engine, run));
                } else {
                    add("fig6", &["6"], run);
                }
            }
        }
    }
    for workload in ["ro", "rw"] {
        for engine in ["leveled", "rocksdb-slow-only", "fjall"] {
            add("fig6", &["6"], run(engine, workload, "hotspot-5", 300));
        }
        for distribution in ["hotspot-5", "uniform"] {
            for engine in ENGINES {
                let mut run = run(engine, workload, distribution, 300);
                run["record_bytes"] = 200.into();
                add("fig7", &["7", "12", "13"], run);
            }
        }
    }
    for number in [11, 17, 19, 16, 53, 10, 29] {
        for engine in ["hotrap", "rocksdb"] {
            let cluster = format!("cluster:{number} (trace-fitted)");
            let mut run = run(engine, "trace-fitted", &cluster, 300);
            run["record_bytes"] = (number * 17).into();
            run["records"] = (4_400_000_000_u64 / (number * 17)).into();
            add("fig11", &["11"], run);
        }
    }
    for engine in ["hotrap", "rocksdb"] {
        let mut run = run(engine, "ro", "hotspot-1", 300);
        run["settings"]["slow_device"]["iops"] = 400.into();
        add("fig16", &["16"], run);
    }
    add("fig15", &["15"], staged());
    for (technique, workload, distribution) in [
        ("no_retention", "rw", "hotspot-5"),
        ("no_hotness_check", "ro", "uniform"),
        ("no_promotion_by_compaction", "rw", "hotspot-5"),
    ] {
        let mut run = run("hotrap", workload, distribution, 300);
        run["settings"]["experiments"] = json!({technique: true});
        add(technique, &["table 3"], run);
    }
    cells
}

fn results() -> Results {
    let home = tempfile::tempdir().unwrap();
    let cells = cells();
    assert_eq!(cells.len(), 90);
    let each = cells
        .iter()
        .map(|(id, figures, run)| (&id[..], &figures[..], vec![run.clone()]));
    write_results(home.path(), &each.collect::<Vec<_>>());
    Results::read(home.path()).unwrap()
}

/// How many rows the table of the hit rate over the seven stages has, and the drawing's PNG.
fn of_stages(sections: &[Section]) -> (usize, Vec<u8>) {
    let mut plots = sections.iter().flat_map(|section| &section.plots);
    let is_it = |plot: &&Plot| plot.main && plot.id.starts_with("hit-rate-over-time");
    let plot = plots.find(is_it).unwrap();
    (plot.table.rows.len(), plot.png().unwrap())
}

/// Regression: with 90 cells, a page had a tenth of its points left: one in 44 s, where stages
/// change every 300 s. The images had no more, although they have no limit.
#[test]
fn the_page_of_a_whole_suite_has_the_stages_in_steps_of_five_seconds() {
    let results = results();
    let len = |detail| {
        let sections = sections::all(&results, detail);
        document::page(&results, &sections).unwrap().len()
    };
    let fits = DETAIL.into_iter().find(|detail| len(*detail) <= MAX_PAGE);
    let fits = fits.expect("one page");
    let (rows, _) = of_stages(&sections::all(&results, fits));
    assert!(rows >= 2100 / 5, "{rows} rows, {fits:?}");
}

/// Regression: images were drawn with the points that a page had room for, and later with those of
/// the most detailed page: for runs in stages, one in 5 s.
#[test]
fn images_have_every_sample() {
    let home = tempfile::tempdir().unwrap();
    let mut run = staged();
    // Throughput goes up and down from sample to sample.
    for (at, second) in (0_u32..).zip(run["series"].as_array_mut().unwrap()) {
        second["ops_s"] = (20_000 + at * 7919 % 4000).into();
    }
    write_results(home.path(), &[("stages", &["15"], vec![run])]);
    let results = Results::read(home.path()).unwrap();
    let [.., coarsest] = DETAIL;
    let coarsest = sections::all(&results, coarsest);
    let room = document::page(&results, &coarsest).unwrap().len();
    let (page, images) = render(&results, room).unwrap();
    assert_eq!(page.len(), room);
    let (rows, png) = of_stages(&sections::all(&results, EVERY_SAMPLE));
    assert_eq!(rows, 2100, "a sample a second");
    let image = images
        .iter()
        .find(|(id, _)| id.starts_with("hit-rate-over-time"));
    let (_, image) = image.unwrap();
    assert!(*image == png, "the image of {rows} points");
    for (id, image) in &images {
        assert!(image.len() < 200 << 10, "{id}: {} bytes", image.len());
    }
    let error = render(&results, room - 1).unwrap_err().to_string();
    assert!(error.contains("split the suite"), "{error}");
}
