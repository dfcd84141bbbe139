//! Single techniques turned off: tables 3 to 5 of the paper.

use super::super::plot::{Table, Unit};
use super::settings::{self, Shown};
use super::{Captioned, Section, commands, engine_label, work_label};
use crate::results::{Cell, Run};

/// Each workload for which a technique was turned off, with and without it.
pub(super) fn section(cells: &[Cell]) -> Section {
    let of = |cell: &Cell| cell.first().map(|run| (work_label(cell), run.record_bytes));
    let is_without = |cell: &Cell| cell.first().is_some_and(|run| !run.without().is_empty());
    let mut works = Vec::new();
    for cell in cells.iter().filter(|cell| is_without(cell)) {
        if !works.contains(&of(cell)) {
            works.push(of(cell));
        }
    }
    let tables = works
        .into_iter()
        .map(|work| {
            let engines: Vec<&str> = cells
                .iter()
                .filter(|cell| is_without(cell) && of(cell) == work)
                .filter_map(|cell| Some(cell.first()?.engine.as_str()))
                .collect();
            let beside = |cell: &&Cell| {
                of(cell) == work
                    && cell
                        .first()
                        .is_some_and(|run| engines.contains(&run.engine.as_str()))
            };
            table(&cells.iter().filter(beside).collect::<Vec<_>>())
        })
        .collect();
    Section {
        id: "ablation",
        title: "Single techniques turned off",
        intro: "The same runs with and without one technique: what it is worth. Bytes are over operations, as \
            runs end after so many seconds; compacted is what compactions read and wrote.",
        plots: Vec::new(),
        tables,
        missing: Vec::new(),
    }
}

/// Bytes of a run, and of its warm-up.
type Bytes = fn(&Run) -> [Option<u64>; 2];

const BYTES: [(&str, Bytes); 4] = [
    ("promoted by compaction an operation", |run| {
        [
            run.promoted_compaction_bytes,
            run.warm_up_promoted_compaction_bytes,
        ]
    }),
    ("promoted by flush an operation", |run| {
        [run.promoted_flush_bytes, run.warm_up_promoted_flush_bytes]
    }),
    ("retained an operation", |run| {
        [run.retained_bytes, run.warm_up_retained_bytes]
    }),
    ("compacted an operation", |run| {
        [
            both(run.compaction_read_bytes, run.compaction_write_bytes),
            both(
                run.warm_up_compaction_read_bytes,
                run.warm_up_compaction_write_bytes,
            ),
        ]
    }),
];

fn both(read: Option<u64>, written: Option<u64>) -> Option<u64> {
    Some(read?.saturating_add(written?))
}

/// Bytes over operations: of the run, or, if `whole` is set, of the run and its warm-up.
fn for_each_operation(run: &Run, bytes: Bytes, whole: bool) -> Option<f64> {
    let with = |of_run: u64, of_warm_up: Option<u64>| {
        let before = of_warm_up.filter(|_| whole).unwrap_or(0);
        of_run as f64 + before as f64
    };
    let [of_run, of_warm_up] = bytes(run);
    let (bytes, ops) = (with(of_run?, of_warm_up), with(run.ops?, run.warm_up_ops));
    (ops > 0.0).then(|| bytes / ops)
}

fn table(cells: &[&Cell]) -> Captioned {
    let mut table = Table::new(&["engine", "operations a second", "hit rate at the end"]);
    let bytes = BYTES.iter().map(|(name, _)| (*name).to_owned());
    table.head.extend(bytes);
    // What is hot comes to the fast disk during the warm-up, so what promotes it is not in the
    // run's own bytes.
    let mut runs = cells.iter().flat_map(|cell| &cell.runs);
    let whole = runs.all(Run::is_recorded_whole);
    for cell in cells {
        let show = |unit: Unit, value: &dyn Fn(&Run) -> Option<f64>| {
            let summary = cell.summary(value);
            summary.map_or_else(|| "–".to_owned(), |summary| unit.show(summary.median))
        };
        let ops_s = |run: &Run| run.final_ops_s().or(run.ops_s);
        let hit_rate = |run: &Run| run.final_hit_rate().or(run.fd_hit_rate);
        let mut row = vec![
            engine_label(cell),
            show(Unit::PerSecond, &ops_s),
            show(Unit::Share, &hit_rate),
        ];
        row.extend(BYTES.iter().map(|(_, bytes)| {
            show(Unit::BytesPerOp, &|run: &Run| {
                for_each_operation(run, *bytes, whole)
            })
        }));
        table.rows.push(row);
    }
    let of = if whole {
        "the warm-up too, where there is one"
    } else {
        "what was measured only"
    };
    let settings = settings::line(cells, Shown::Medians);
    Captioned {
        title: cells
            .first()
            .map_or_else(String::new, |cell| work_label(cell)),
        settings: format!("{settings}; bytes are of {of}"),
        table,
        commands: commands(cells.iter().copied()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::cell;

    #[test]
    fn a_technique_stands_beside_the_run_with_it() {
        let mut off = cell("hotrap", "uniform", &[5.0]);
        off.runs[0]
            .settings
            .experiments
            .insert("no_retention".into(), true.into());
        // There are 50 operations.
        off.runs[0].retained_bytes = Some(350);
        let cells = [
            cell("hotrap", "uniform", &[10.0]),
            cell("leveled", "uniform", &[10.0]),
            off,
            cell("hotrap", "latest", &[10.0]),
        ];
        let section = section(&cells);
        assert_eq!(section.tables.len(), 1);
        let rows = &section.tables[0].table.rows;
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0][0].as_str(), rows[0][1].as_str()), ("hotrap", "10"));
        assert_eq!(rows[1][0], "hotrap, no retention");
        assert_eq!(rows[1][5], "7 B");
    }

    /// A run of 1000 operations with all techniques, and one of 500 without copies.
    fn with_and_without(change: impl Fn(&mut Run)) -> [Cell; 2] {
        let mut cells = [
            cell("hotrap", "uniform", &[100.0]),
            cell("hotrap", "uniform", &[50.0]),
        ];
        let experiments = &mut cells[1].runs[0].settings.experiments;
        experiments.insert("no_copies".into(), true.into());
        for cell in &mut cells {
            change(&mut cell.runs[0]);
        }
        cells
    }

    /// Regression: these were totals of runs that end after a number of seconds. A technique
    /// without which fewer operations are done seemed to cost bytes.
    #[test]
    fn bytes_are_over_operations() {
        let cells = with_and_without(|run| {
            run.compaction_read_bytes = Some(1_500_000);
            run.compaction_write_bytes = Some(500_000);
        });
        let section = section(&cells);
        let rows = &section.tables[0].table.rows;
        assert_eq!(
            (rows[0][6].as_str(), rows[1][6].as_str()),
            ("2.00 kB", "4.00 kB")
        );
    }

    /// Regression: the hot set came up during the warm-up, whose bytes were not recorded. The
    /// tables had what was promoted afterwards.
    #[test]
    fn what_a_warm_up_promotes_counts_where_all_have_recorded_it() {
        let mut cells = with_and_without(|run| {
            run.promoted_flush_bytes = Some(1000);
            run.warm_up_seconds = Some(5.0);
            run.warm_up_promoted_flush_bytes = Some(99_000);
            run.warm_up_ops = Some(9000);
        });
        let table = |cells: &[Cell]| section(cells).tables.remove(0);
        let both = table(&cells);
        assert_eq!(both.table.rows[0][4], "10 B");
        assert!(
            both.settings
                .ends_with("the warm-up too, where there is one")
        );
        // If one of the runs did not record it, only the run itself counts for each.
        cells[1].runs[0].warm_up_ops = None;
        let alone = table(&cells);
        assert_eq!(alone.table.rows[0][4], "1 B");
        assert!(alone.settings.ends_with("what was measured only"));
    }
}
