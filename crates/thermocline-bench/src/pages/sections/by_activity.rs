//! What processor time and I/O were spent on: figures 12 to 14 of the paper.

use std::collections::BTreeMap;

use super::super::plot::{Bar, Ink, Plot, Table, Unit, of_activity};
use super::panel::{Measure, Panel};
use super::settings::Shown;
use super::{Section, work_label};
use crate::results::{Cell, Io, Run};

/// Activities from left to right. Activities of later versions follow.
const ORDER: [&str; 10] = [
    "read",
    "write",
    "flush",
    "compaction",
    "promotion",
    "ralt",
    "placement",
    "background",
    "unattributed",
    "other",
];

/// Processor time.
pub(super) fn processor(panels: &[Panel<'_>]) -> Section {
    let measure = Measure {
        name: "cpu",
        title: "Processor time by activity",
        unit: Unit::CpuPerOp,
        axis: "microseconds of processor time an operation",
        main: false,
    };
    let mut plots = Vec::new();
    for panel in panels {
        let value = |run: &Run| {
            let ops = run.ops.filter(|ops| *ops > 0)? as f64;
            let times = run.cpu_by_activity.as_ref()?;
            Some(
                times
                    .iter()
                    .map(|(name, s)| (name.clone(), s * 1e6 / ops))
                    .collect(),
            )
        };
        plots.extend(stacked(panel, &measure, value));
    }
    let missing = absent(panels, plots.len(), "processor time", |run| {
        run.cpu_by_activity.is_some()
    });
    Section {
        id: "cpu",
        title: "Processor time by activity",
        intro: "Processor time of the whole process over the operations of the run, harness included (in \
            “other”). Engines that do not tell one kind of background work from another have “background”. \
            With several repeats, of the one in the middle.",
        plots,
        tables: Vec::new(),
        missing,
    }
}

/// Bytes on both disks.
pub(super) fn devices(panels: &[Panel<'_>]) -> Section {
    let mut plots = Vec::new();
    let mut idle = Vec::new();
    for panel in panels {
        for (tier, name, title) in [
            ("fast", "io-fast", "Fast disk by activity"),
            ("slow", "io-slow", "Slow disk by activity"),
        ] {
            let measure = Measure {
                name,
                title,
                unit: Unit::BytesPerOp,
                axis: "bytes read and written an operation",
                main: false,
            };
            let value = |run: &Run| {
                let ops = run.ops.filter(|ops| *ops > 0)? as f64;
                let io = run.io_by_activity.as_ref()?.get(tier)?;
                let bytes = |io: &Io| (io.read_bytes as f64 + io.write_bytes as f64) / ops;
                Some(
                    io.iter()
                        .map(|(name, io)| (name.clone(), bytes(io)))
                        .collect(),
                )
            };
            let plot = stacked(panel, &measure, value);
            let is_told = |cell: &&Cell| cell.typical().and_then(value).is_some();
            match plot {
                Some(mut plot) => {
                    plot.table = totals(panel, tier);
                    plots.push(plot);
                }
                None if panel.cells.iter().any(is_told) => idle.push(format!(
                    "{title}, {}: nothing was read or written there.",
                    panel.title
                )),
                None => {}
            }
        }
    }
    let mut missing = absent(panels, plots.len() + idle.len(), "I/O", |run| {
        run.io_by_activity.is_some()
    });
    missing.extend(idle);
    Section {
        id: "io",
        title: "Bytes on the disks by activity",
        intro: "Bytes read and written over the operations of the run. The log is in “write”. With \
            several repeats, of the one in the middle.",
        plots,
        tables: Vec::new(),
        missing,
    }
}

/// One bar for each cell with a value. `None` if no activity took anything.
fn stacked(
    panel: &Panel<'_>,
    measure: &Measure<'_>,
    value: impl Fn(&Run) -> Option<BTreeMap<String, f64>>,
) -> Option<Plot> {
    let names = names(panel.cells.iter().filter_map(|cell| value(cell.typical()?)));
    if names.is_empty() {
        return None;
    }
    let mut head = vec!["workload".to_owned(), "engine".to_owned()];
    head.extend(names.iter().cloned());
    head.push("sum".to_owned());
    let mut table = Table {
        head,
        rows: Vec::new(),
    };
    let shown = panel.groups(|cell| {
        let values = value(cell.typical()?)?;
        let parts: Vec<(Ink, f64)> = names
            .iter()
            .map(|name| (of_activity(name), values.get(name).copied().unwrap_or(0.0)))
            .collect();
        let mut row = vec![work_label(cell), panel.label(cell)];
        row.extend(names.iter().map(|name| {
            let value = values.get(name);
            value.map_or_else(|| "–".to_owned(), |value| measure.unit.show(*value))
        }));
        // Not `sum`, which makes -0 of nothing.
        let all = values.values().fold(0.0, |sum, value| sum + value);
        row.push(measure.unit.show(all));
        table.rows.push(row);
        Some(Bar {
            label: panel.label(cell),
            parts,
            range: None,
        })
    });
    let legend = names
        .iter()
        .map(|name| (name.clone(), of_activity(name)))
        .collect();
    panel.plot(measure, shown, legend, table, Shown::MiddleRun)
}

/// The activities that took anything, in their order.
fn names(values: impl Iterator<Item = BTreeMap<String, f64>>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, value) in values.flatten() {
        if value > 0.0 && !names.contains(&name) {
            names.push(name);
        }
    }
    let place = |name: &String| {
        ORDER
            .iter()
            .position(|known| known == name)
            .unwrap_or(ORDER.len())
    };
    names.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| a.cmp(b)));
    names
}

/// Operations and bytes of a tier in both directions.
fn totals(panel: &Panel<'_>, tier: &str) -> Table {
    let head = [
        "workload", "engine", "activity", "read", "reads", "written", "writes",
    ];
    let mut table = Table::new(&head);
    for cell in &panel.cells {
        let io = cell
            .typical()
            .and_then(|run| run.io_by_activity.as_ref()?.get(tier));
        for (name, io) in io.into_iter().flatten() {
            if *io == Io::default() {
                continue;
            }
            let ops = |ops: u64| Unit::PerSecond.show(ops as f64);
            table.rows.push(vec![
                work_label(cell),
                panel.label(cell),
                name.clone(),
                Unit::Bytes.show(io.read_bytes as f64),
                ops(io.read_ops),
                Unit::Bytes.show(io.write_bytes as f64),
                ops(io.write_ops),
            ]);
        }
    }
    table
}

/// A line that names the cells that do not tell.
fn absent(
    panels: &[Panel<'_>],
    plots: usize,
    what: &str,
    told: impl Fn(&Run) -> bool,
) -> Vec<String> {
    let runs = panels
        .iter()
        .flat_map(|panel| &panel.cells)
        .filter_map(|cell| cell.first());
    let mut silent: Vec<&str> = Vec::new();
    for run in runs.filter(|run| run.ops.is_some() && !told(run)) {
        if !silent.contains(&run.engine.as_str()) {
            silent.push(&run.engine);
        }
    }
    match (silent.is_empty(), plots) {
        (true, _) => Vec::new(),
        (false, 0) => vec![format!("Left out: no result has its {what} by activity.")],
        _ => vec![format!(
            "Left out, as their results have no {what} by activity: {}.",
            silent.join(", ")
        )],
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::plot::{Shape, WIDE};
    use super::super::panel;
    use super::*;
    use crate::results::tests::cell;

    #[test]
    fn activities_are_stacked_per_operation() {
        let mut cells = vec![
            cell("hotrap", "uniform", &[100.0]),
            cell("rocksdb", "uniform", &[100.0]),
        ];
        let times = [("other", 0.001), ("read", 0.002), ("log", 0.0)];
        cells[0].runs[0].cpu_by_activity = Some(times.map(|(name, s)| (name.to_owned(), s)).into());
        let section = processor(&panel::of(&cells));
        let Shape::Bars { groups, legend } = &section.plots[0].shape else {
            panic!("no bars")
        };
        // There are 1000 operations.
        assert_eq!(
            groups[0].bars[0].parts,
            [(of_activity("read"), 2.0), (of_activity("other"), 1.0)]
        );
        assert_eq!(legend.len(), 2);
        assert_eq!(groups[0].bars.len(), 1);
        assert!(section.missing[0].contains("rocksdb"));
        assert!(devices(&panel::of(&cells)).missing[0].contains("no result"));
    }

    #[test]
    fn both_directions_of_a_tier_are_in_one_bar() {
        let mut cells = vec![cell("hotrap", "uniform", &[100.0])];
        let io = Io {
            read_ops: 5,
            read_bytes: 3000,
            write_ops: 1,
            write_bytes: 1000,
        };
        let tier = BTreeMap::from([("read".to_owned(), io)]);
        cells[0].runs[0].io_by_activity = Some(BTreeMap::from([("slow".to_owned(), tier)]));
        let section = devices(&panel::of(&cells));
        assert_eq!(section.plots.len(), 1);
        let Shape::Bars { groups, .. } = &section.plots[0].shape else {
            panic!("no bars")
        };
        assert_eq!(groups[0].bars[0].parts[0].1, 4.0);
        assert_eq!(section.plots[0].table.rows[0][3], "3.00 kB");
    }

    /// Regression: a disk from which nothing was read and to which nothing was written had a plot:
    /// bars of "-0 B" beside an axis of "0 B, 0 B, 0 B, 1 B".
    #[test]
    fn nothing_has_no_plot_and_is_not_negative() {
        let on_slow = |io: &[(&str, Io)]| {
            let io = io.iter().map(|(name, io)| ((*name).to_owned(), *io));
            Some(BTreeMap::from([("slow".to_owned(), io.collect())]))
        };
        let mut cells = [
            cell("hotrap", "uniform", &[100.0]),
            cell("rocksdb-fast-only", "uniform", &[100.0]),
        ];
        cells[0].runs[0].io_by_activity = on_slow(&[("read", Io::default())]);
        cells[1].runs[0].io_by_activity = on_slow(&[]);
        let section = devices(&panel::of(&cells));
        assert!(section.plots.is_empty());
        let expected =
            "Slow disk by activity, 1,000 records of 1024 B: nothing was read or written there.";
        assert_eq!(section.missing, [expected]);

        // Now beside a cell that was read from.
        let read = Io {
            read_ops: 1,
            read_bytes: 2048,
            ..Io::default()
        };
        cells[0].runs[0].io_by_activity = on_slow(&[("read", read)]);
        let section = devices(&panel::of(&cells));
        let drawing = section.plots[0].themed_svg(WIDE).unwrap();
        assert!(!drawing.contains("-0 B"), "{drawing}");
        cells[0].runs[0].cpu_by_activity = Some(BTreeMap::from([("read".to_owned(), 1.0)]));
        cells[1].runs[0].cpu_by_activity = Some(BTreeMap::new());
        let section = processor(&panel::of(&cells));
        let of_nothing = &section.plots[0].table.rows[1];
        assert_eq!(of_nothing.last().unwrap(), "0.00 µs");
    }

    #[test]
    fn rows_of_the_same_engine_and_work_have_the_names_of_their_cells() {
        let mut cells = [
            cell("hotrap", "uniform", &[100.0]),
            cell("hotrap", "uniform", &[100.0]),
        ];
        let io = Io {
            read_ops: 1,
            read_bytes: 4096,
            ..Io::default()
        };
        for (cell, id) in cells.iter_mut().zip(["reads-4k", "reads-16k"]) {
            cell.id = id.into();
            let run = &mut cell.runs[0];
            run.cpu_by_activity = Some(BTreeMap::from([("read".to_owned(), 1.0)]));
            let tier = BTreeMap::from([("read".to_owned(), io)]);
            run.io_by_activity = Some(BTreeMap::from([("slow".to_owned(), tier)]));
        }
        let panels = panel::of(&cells);
        for section in [processor(&panels), devices(&panels)] {
            let rows = section.plots[0].table.rows.iter();
            let names = rows.map(|row| row[1].as_str());
            assert!(names.eq(["reads-4k", "reads-16k"]), "{}", section.id);
        }
    }
}
