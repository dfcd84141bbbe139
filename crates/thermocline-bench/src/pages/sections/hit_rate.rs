//! Reads answered without the slow disk.

use super::super::plot::Unit;
use super::panel::{Measure, Panel};
use super::{Section, engine_label};

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
            let ran = cell.summary(|run| run.ops_s).is_some();
            if ran && !told && !silent.contains(&engine) {
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

#[cfg(test)]
mod tests {
    use super::super::panel;
    use super::*;
    use crate::results::tests::cell;

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
