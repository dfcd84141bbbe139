use super::super::super::plot::WIDE;
use super::*;
use crate::results::Stage;
use crate::results::tests::{CostSecond, cell};

fn points(plain: usize) -> Detail {
    Detail { plain, staged: 20 }
}

#[test]
fn engines_of_the_same_work_share_a_plot() {
    let cells = [
        cell("hotrap", "uniform", &[10.0]),
        cell("leveled", "uniform", &[20.0]),
        cell("hotrap", "latest", &[30.0]),
    ];
    let section = section(&cells, points(5));
    let titles: Vec<&str> = section
        .plots
        .iter()
        .map(|plot| plot.title.as_str())
        .collect();
    assert_eq!(
        titles
            .iter()
            .filter(|t| t.starts_with("Throughput"))
            .count(),
        2,
        "{titles:?}"
    );
    let Shape::Lines { lines, .. } = &section.plots[0].shape else {
        panic!("no lines")
    };
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0].points.len(), 5);
    assert_eq!(section.plots[0].table.rows[0], ["2", "10", "20"]);
    assert!(section.tables.is_empty());
}

/// Regression: the plots said that medians were shown, which the text above them denied.
#[test]
fn one_of_several_repeats_is_shown_and_said_to_be() {
    let cells = [cell("hotrap", "uniform", &[1.0, 2.0, 3.0])];
    let plots = section(&cells, points(5)).plots;
    assert!(!plots.is_empty());
    for plot in plots {
        let said = plot.settings.ends_with("the middle one of 3 repeats");
        assert!(said, "{}: {}", plot.title, plot.settings);
    }
}

#[test]
fn other_experiments_on_the_same_work_have_plots_of_their_own() {
    let mut cells = [
        cell("hotrap", "uniform", &[10.0]),
        cell("hotrap", "uniform", &[20.0]),
        cell("hotrap", "uniform", &[30.0]),
    ];
    cells[1].runs[0].settings.block_size_fast *= 4;
    cells[2].runs[0].threads = 9;
    for (cell, id) in cells.iter_mut().zip(["reads-4k", "reads-16k", "more"]) {
        cell.id = id.into();
    }
    let section = section(&cells, points(5));
    let plots: Vec<(&str, &[String])> = section
        .plots
        .iter()
        .filter(|plot| plot.title.starts_with("Throughput"))
        .map(|plot| (plot.title.as_str(), &plot.table.head[1..]))
        .collect();
    let lines = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (few, many) = (lines(&["reads-4k", "reads-16k"]), lines(&["hotrap"]));
    let expected: [(&str, &[String]); 2] = [
        ("Throughput over time: ro uniform, 4 threads", &few),
        ("Throughput over time: ro uniform, 9 threads", &many),
    ];
    assert_eq!(plots, expected);
}

#[test]
fn of_many_workloads_those_about_time_are_shown() {
    let mut cells: Vec<Cell> = (1..=7)
        .map(|n| cell("hotrap", &format!("hotspot-{n}"), &[10.0]))
        .collect();
    cells[4].figures = vec!["14".into()];
    let section = section(&cells, points(5));
    assert!(
        section
            .plots
            .iter()
            .all(|plot| plot.title.ends_with("hotspot-5"))
    );
    assert!(section.missing[0].starts_with("Left out of 7 workloads: 6"));
}

#[test]
fn stages_are_marked_and_have_a_table() {
    let mut staged = cell("hotrap", "uniform,latest", &[10.0]);
    let mut second = staged.runs[0].stages[0].clone();
    second.begin_seconds = 0.4;
    second.distribution = "latest".into();
    staged.runs[0].stages.push(second);
    let section = section(&[staged], points(5));
    let Shape::Lines { stages, .. } = &section.plots[0].shape else {
        panic!("no lines")
    };
    assert_eq!(stages[1], (0.4, "latest".to_owned()));
    assert!(section.plots[0].notes[0].contains("2 latest (from 0.4 s)"));
    assert_eq!(section.tables[0].table.rows.len(), 2);
    assert_eq!(section.plots[0].title, "Throughput over time: stages");
    assert_eq!(section.tables[0].title, "Stage by stage: stages");
}

/// A run of two targets, a dollar and half of one, each for five seconds.
fn with_targets(engine: &str) -> Cell {
    let mut cell = cell(engine, "latest", &[10.0]);
    let run = &mut cell.runs[0];
    run.target = Some("two".into());
    let of = |begin_seconds: f64, target: f64| Stage {
        begin_seconds,
        seconds: 5.0,
        target: Some(format!("cost:{target}")),
        target_cost: Some(target),
        ..run.stages[0].clone()
    };
    run.stages = vec![of(0.0, 1.0), of(5.0, 0.5)];
    for second in &mut run.series {
        second.cost = Some(CostSecond {
            bill: Some(2.0),
            bill_by_tables: Some(0.75),
        });
    }
    cell
}

#[test]
fn the_bill_has_the_target_as_steps_and_stages_have_its_name() {
    let mut other = with_targets("cost");
    other.runs[0].target = Some("another".into());
    let section = section(&[with_targets("tables"), other], points(20));
    let bills = section.plots.iter();
    let bills: Vec<_> = bills.filter(|plot| plot.unit == Unit::Dollars).collect();
    let titles: Vec<&str> = bills.iter().map(|plot| plot.title.as_str()).collect();
    let expected = ["two", "another"].map(|t| format!("Bill over time: ro latest, target {t}"));
    assert_eq!(titles, expected);
    let Shape::Lines { lines, stages } = &bills[0].shape else {
        panic!("no lines")
    };
    assert_eq!(stages[1], (5.0, "cost:0.5".to_owned()));
    assert_eq!(lines[0].points[3], (4.0, Some(0.75)));
    let steps = [(0.0, 1.0), (5.0, 1.0), (5.0, 0.5), (10.0, 0.5)];
    assert_eq!(
        lines[1].points,
        steps.map(|(at, target)| (at, Some(target)))
    );
    assert!(lines[1].limit && bills[0].axis.contains("live tables"));
}

/// Engines without a target know no tables' bill.
#[test]
fn without_a_target_the_bill_is_by_records() {
    let mut cell = with_targets("rocksdb");
    cell.runs[0].target = None;
    cell.runs[0].stages.truncate(1);
    cell.runs[0].stages[0].target_cost = None;
    let section = section(&[cell], points(20));
    let mut plots = section.plots.iter();
    let bill = plots.find(|plot| plot.unit == Unit::Dollars).unwrap();
    let Shape::Lines { lines, .. } = &bill.shape else {
        panic!("no lines")
    };
    assert_eq!((lines.len(), lines[0].points[0].1), (1, Some(2.0)));
    assert!(bill.axis.contains("records"));
}

#[test]
fn devices_by_activity_are_rates() {
    let mut one = cell("hotrap", "uniform", &[10.0]);
    one.figures = vec!["14".into()];
    let series = serde_json::json!({"io": {"slow": {"read": {
        "read_bytes": [100, 200, 0, 0, 0, 0, 0, 0, 0, 0], "write_bytes": [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]}}}});
    one.runs[0].activity_series = Some(serde_json::from_value(series).unwrap());
    let section = section(&[one], points(10));
    let plot = section
        .plots
        .iter()
        .find(|plot| plot.id.starts_with("io-slow"))
        .unwrap();
    let Shape::Lines { lines, .. } = &plot.shape else {
        panic!("no lines")
    };
    assert_eq!(
        lines[0].points[..2],
        [(1.0, Some(101.0)), (2.0, Some(201.0))]
    );
}

/// Regression: warm-ups were not recorded. Figure 14, which shows how hit rates rise, then began
/// where they had risen.
#[test]
fn figure_14_begins_with_the_warm_up_of_those_that_recorded_it() {
    let mut cells = [
        cell("hotrap", "uniform", &[10.0]),
        cell("rocksdb", "uniform", &[10.0]),
    ];
    cells[0].figures = vec!["14".into()];
    let at = |second: u32, fd_hit_rate: f64| Second {
        second: f64::from(second),
        ops_s: 5.0,
        fd_hit_rate: Some(fd_hit_rate),
        ..Second::default()
    };
    let run = &mut cells[0].runs[0];
    run.warm_up_series = (1..=4).map(|second| at(second, 0.1)).collect();
    let io = serde_json::json!({"io": {"slow": {"read": {"read_bytes": [400, 300, 200, 100]}}}});
    run.warm_up_activity_series = Some(serde_json::from_value(io).unwrap());
    // 14 seconds in all, in 7 points of hotrap.
    let section = section(&cells, points(7));
    let plot = |name: &str| {
        let found = section.plots.iter().find(|plot| plot.id.starts_with(name));
        found.unwrap()
    };
    let rates = plot("hit-rate-over-time");
    assert_eq!(rates.table.rows[0], ["-2", "10.0 %", "–"]);
    assert_eq!(rates.table.rows[1], ["0", "10.0 %", "–"]);
    assert_eq!(rates.table.rows[2], ["2", "90.0 %", "90.0 %"]);
    assert!(rates.notes[0].contains("warm-up"), "{:?}", rates.notes);
    let drawing = rates.themed_svg(WIDE).unwrap();
    assert!(drawing.contains("since measuring began"), "{drawing}");
    let reads = plot("io-slow-over-time");
    assert_eq!(reads.table.rows[0], ["-2", "350 B/s"]);
    assert_eq!(reads.table.rows[1], ["0", "150 B/s"]);
}

/// Regression: the note said that some runs had not recorded their warm-up, but not which. A line
/// that began at second 0 looked as if there had been none.
#[test]
fn those_whose_warm_up_was_not_recorded_are_named() {
    let engines = ["hotrap", "rocksdb", "leveled"];
    let mut cells = engines.map(|engine| cell(engine, "uniform", &[10.0]));
    cells[0].figures = vec!["14".into()];
    // The third cell had no warm-up.
    for cell in &mut cells[..2] {
        cell.runs[0].warm_up_seconds = Some(4.0);
    }
    let missing = |cells: &[Cell]| section(cells, points(5)).missing;
    assert_eq!(missing(&cells), Vec::<String>::new());
    let run = &mut cells[0].runs[0];
    run.warm_up_ops = Some(40);
    run.warm_up_series = run.series[..4].to_vec();
    let line = "Of ro uniform these begin at second 0, \
                as their results do not have their warm-up: rocksdb.";
    assert_eq!(missing(&cells), [line]);
}

/// Regression: everything that RocksDB does on two devices was one line. What its clients read
/// could not be told from compactions.
#[test]
fn reads_of_what_is_not_attributed_are_a_line_of_their_own() {
    let mut one = cell("rocksdb", "uniform", &[10.0]);
    one.figures = vec!["14".into()];
    let column = |bytes: u64| vec![bytes; 10];
    let io = serde_json::json!({"io": {"fast": {"unattributed": {
        "read_bytes": column(100), "write_bytes": column(7)}}}});
    one.runs[0].activity_series = Some(serde_json::from_value(io).unwrap());
    let section = section(&[one], points(10));
    let found = section
        .plots
        .iter()
        .find(|plot| plot.id.starts_with("io-fast"));
    let table = &found.unwrap().table;
    let head = ["second", "unattributed, read", "unattributed, written"];
    assert_eq!(table.head, head);
    assert_eq!(table.rows[0], ["1", "100 B/s", "7 B/s"]);
}
