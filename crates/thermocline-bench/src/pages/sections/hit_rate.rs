//! Reads answered without the slow disk.

use super::super::plot::Unit;
use super::panel::{Measure, Panel};
use super::{Section, engine_label};
use crate::results::Run;

/// At the end of the run.
pub(super) fn section(panels: &[Panel<'_>]) -> Section {
    let measure = Measure {
        name: "hit-rate",
        title: "Hit rate",
        unit: Unit::Share,
        axis: "percent of reads without the slow disk, last tenth of the run",
        main: true,
    };
    let mut plots = Vec::new();
    let mut silent: Vec<String> = Vec::new();
    for panel in panels {
        plots.extend(panel.bars(&measure, |run| run.final_hit_rate().or(run.fd_hit_rate)));
        for cell in &panel.cells {
            let engine = engine_label(cell);
            let told = cell.summary(|run| run.fd_hit_rate).is_some();
            let read = cell.first().is_some_and(has_point_reads);
            if read && !told && !silent.contains(&engine) {
                silent.push(engine);
            }
        }
    }
    let missing = if silent.is_empty() {
        Vec::new()
    } else {
        vec![format!(
            "Left out, as they do not count which reads needed the slow disk: {}.",
            silent.join(", ")
        )]
    };
    Section {
        id: "hit-rate",
        title: "Hit rates",
        intro: "Point reads answered from memory or the fast disk. Of a tier as large as a tenth of \
            the data, reads without skew can have a tenth.",
        plots,
        tables: Vec::new(),
        missing,
    }
}

/// Whether a run has point reads. No engine counts scans.
fn has_point_reads(run: &Run) -> bool {
    let mut kinds = run
        .latencies
        .iter()
        .map(|latency| latency.operation.as_str());
    kinds.any(|kind| ["read", "read_modify_write"].contains(&kind))
}

#[cfg(test)]
mod tests {
    use super::super::panel;
    use super::*;
    use crate::results::tests::cell;

    /// Regression: the suite `smoke` has scans under hotrap, and the report said that hotrap does
    /// not count.
    #[test]
    fn a_cell_without_point_reads_does_not_tell_that_its_engine_counts_none() {
        let mut cells = [cell("hotrap", "uniform", &[1.0])];
        let run = &mut cells[0].runs[0];
        run.fd_hit_rate = None;
        run.last_tenth = None;
        run.latencies[0].operation = "scan".into();
        assert_eq!(section(&panel::of(&cells)).missing, Vec::<String>::new());
    }

    #[test]
    fn engines_that_do_not_count_are_named() {
        let mut cells = vec![
            cell("hotrap", "uniform", &[1.0]),
            cell("rocksdb", "uniform", &[1.0]),
        ];
        cells[1].runs[0].fd_hit_rate = None;
        cells[1].runs[0].last_tenth = None;
        let section = section(&panel::of(&cells));
        assert_eq!(section.plots[0].table.rows.len(), 1);
        assert!(
            section.missing[0].contains("rocksdb"),
            "{:?}",
            section.missing
        );
    }
}
