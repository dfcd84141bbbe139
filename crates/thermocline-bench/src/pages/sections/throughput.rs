//! Operations per second: figures 6, 7, 11 and 16 of the paper.

use super::super::plot::Unit;
use super::Section;
use super::panel::{Measure, Panel};

/// For runs the end, for loads the whole.
pub(super) fn section(panels: &[Panel<'_>]) -> Section {
    let run = Measure {
        name: "throughput",
        title: "Throughput",
        unit: Unit::PerSecond,
        axis: "operations a second in the last tenth of the run",
        main: true,
    };
    let load = Measure {
        name: "load",
        title: "Loading",
        unit: Unit::PerSecond,
        axis: "records loaded a second, until the last was acknowledged",
        main: false,
    };
    let mut plots = Vec::new();
    for panel in panels {
        plots.extend(panel.bars(&run, |run| run.final_ops_s().or(run.ops_s)));
        plots.extend(panel.bars(&load, |run| {
            run.ops_s.is_none().then_some(run.load_ops_s).flatten()
        }));
    }
    Section {
        id: "throughput",
        title: "Throughput",
        intro: "The last tenth of the run, as the paper has it: what is hot has been found by then. \
            Bars are medians over repeats, whiskers their least and greatest.",
        plots,
        tables: Vec::new(),
        missing: Vec::new(),
    }
}
