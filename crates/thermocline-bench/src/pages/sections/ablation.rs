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
        intro: "The same runs with and without one technique: what it is worth. Bytes are totals of the \
            run; compaction is what compactions read and wrote.",
        plots: Vec::new(),
        tables,
        missing: Vec::new(),
    }
}

fn table(cells: &[&Cell]) -> Captioned {
    let mut table = Table::new(&[
        "engine",
        "operations a second",
        "hit rate at the end",
        "promoted by compaction",
        "promoted by flush",
        "retained",
        "compaction",
    ]);
    for cell in cells {
        let show = |unit: Unit, value: fn(&Run) -> Option<f64>| {
            let summary = cell.summary(value);
            summary.map_or_else(|| "–".to_owned(), |summary| unit.show(summary.median))
        };
        table.rows.push(vec![
            engine_label(cell),
            show(Unit::PerSecond, |run| run.final_ops_s().or(run.ops_s)),
            show(Unit::Share, |run| run.final_hit_rate().or(run.fd_hit_rate)),
            show(Unit::Bytes, |run| {
                Some(run.promoted_compaction_bytes? as f64)
            }),
            show(Unit::Bytes, |run| Some(run.promoted_flush_bytes? as f64)),
            show(Unit::Bytes, |run| Some(run.retained_bytes? as f64)),
            show(Unit::Bytes, |run| {
                Some(run.compaction_read_bytes? as f64 + run.compaction_write_bytes? as f64)
            }),
        ]);
    }
    Captioned {
        title: cells
            .first()
            .map_or_else(String::new, |cell| work_label(cell)),
        settings: settings::line(cells, Shown::Medians),
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
        off.runs[0].retained_bytes = Some(7);
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
}
