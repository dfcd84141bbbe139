//! Cells that belong into one plot of bars: measured alike, for the same figure.

use super::super::plot::{Bar, Group, Ink, Plot, Shape, Table, Unit, of_engine};
use super::{commands, engine_label, settings, work_label};
use crate::results::{Cell, Run, Summary};

/// Cells of the same settings and figure.
pub(crate) struct Panel<'a> {
    /// Part of anchors and file names.
    pub(super) slug: String,
    /// What tells it from other panels.
    pub(super) title: String,
    /// Its cells, in the order of the suite.
    pub(super) cells: Vec<&'a Cell>,
}

/// Figures of the paper that compare the throughput of engines; a cell of one of them may serve
/// other figures too.
const THROUGHPUT_FIGURES: [&str; 5] = ["6", "7", "10", "11", "16"];

/// All cells that ran on one distribution with all techniques, by panel.
pub(crate) fn of(cells: &[Cell]) -> Vec<Panel<'_>> {
    type Key<'a> = (Option<&'a str>, u64, u64, Option<u64>);
    let mut panels: Vec<(Key<'_>, Panel<'_>)> = Vec::new();
    for cell in cells {
        let Some(run) = cell.first().filter(|run| run.stages.len() <= 1) else {
            continue;
        };
        if !run.without().is_empty() {
            continue;
        }
        let figure = figure(cell);
        let key = (
            figure,
            run.record_bytes,
            run.settings.fast_capacity,
            run.settings.slow_device.iops,
        );
        if let Some((_, panel)) = panels.iter_mut().find(|(known, _)| *known == key) {
            panel.cells.push(cell);
            continue;
        }
        let record = format!("records of {} B", run.record_bytes);
        let title = match figure {
            Some(figure) => format!("HotRAP's figure {figure}, {record}"),
            None => format!("other cells, {record}"),
        };
        let slug = match figure {
            Some(figure) => format!("figure-{figure}"),
            None => "other".to_owned(),
        };
        let same = panels
            .iter()
            .filter(|(_, panel)| panel.slug.starts_with(&slug))
            .count();
        let slug = match same {
            0 => slug,
            more => format!("{slug}-{}", more + 1),
        };
        let cells = vec![cell];
        panels.push((key, Panel { slug, title, cells }));
    }
    panels.into_iter().map(|(_, panel)| panel).collect()
}

fn figure(cell: &Cell) -> Option<&'static str> {
    THROUGHPUT_FIGURES
        .into_iter()
        .find(|known| cell.figures.iter().any(|figure| figure == known))
}

/// What a plot of bars is about.
pub(super) struct Measure<'a> {
    /// Begin of anchors and file names.
    pub(super) name: &'a str,
    /// What it shows.
    pub(super) title: &'a str,
    /// Of the values.
    pub(super) unit: Unit,
    /// The values in the unit's words.
    pub(super) axis: &'a str,
    /// Whether a README might show it.
    pub(super) main: bool,
}

impl<'a> Panel<'a> {
    /// One bar per cell with a value, its engine's colour on it. `None` without any.
    pub(super) fn bars(
        &self,
        measure: &Measure<'_>,
        value: impl Fn(&Run) -> Option<f64>,
    ) -> Option<Plot> {
        let mut table = Table::new(&[
            "workload", "engine", "median", "least", "greatest", "repeats",
        ]);
        let shown = self.groups(|cell| {
            let summary = cell.summary(&value)?;
            let ink = cell
                .first()
                .map_or(Ink::Muted, |run| of_engine(&run.engine));
            table.rows.push(row(cell, &summary, measure.unit));
            Some(Bar {
                label: engine_label(cell),
                parts: vec![(ink, summary.median)],
                range: (summary.repeats > 1).then_some((summary.min, summary.max)),
            })
        });
        self.plot(measure, shown, Vec::new(), table)
    }

    /// The same panel with only these cells.
    pub(super) fn with(&self, cells: Vec<&'a Cell>) -> Self {
        Self {
            slug: self.slug.clone(),
            title: self.title.clone(),
            cells,
        }
    }

    /// The plot of `shown` groups and their cells; `None` if there is nothing in them.
    pub(super) fn plot(
        &self,
        measure: &Measure<'_>,
        (groups, cells): (Vec<Group>, Vec<&'a Cell>),
        legend: Vec<(String, Ink)>,
        table: Table,
    ) -> Option<Plot> {
        (!cells.is_empty()).then(|| Plot {
            id: format!("{}-{}", measure.name, self.slug),
            title: format!("{}: {}", measure.title, self.title),
            unit: measure.unit,
            axis: measure.axis.to_owned(),
            notes: Vec::new(),
            settings: settings::line(&cells),
            shape: Shape::Bars { groups, legend },
            table,
            commands: commands(cells),
            main: measure.main,
        })
    }

    /// Bars by workload and distribution, and the cells that had one.
    pub(super) fn groups(
        &self,
        mut bar: impl FnMut(&Cell) -> Option<Bar>,
    ) -> (Vec<Group>, Vec<&'a Cell>) {
        let mut groups: Vec<Group> = Vec::new();
        let mut shown = Vec::new();
        for cell in &self.cells {
            let Some(mut bar) = bar(cell) else { continue };
            let label = work_label(cell);
            let at = groups.iter().position(|group| group.label == label);
            let at = at.unwrap_or_else(|| {
                groups.push(Group {
                    label,
                    bars: Vec::new(),
                });
                groups.len() - 1
            });
            // Cells of one engine that differ in something else are told apart by their names.
            if groups[at].bars.iter().any(|other| other.label == bar.label) {
                bar.label.clone_from(&cell.id);
            }
            groups[at].bars.push(bar);
            shown.push(*cell);
        }
        (groups, shown)
    }
}

fn row(cell: &Cell, summary: &Summary, unit: Unit) -> Vec<String> {
    vec![
        work_label(cell),
        engine_label(cell),
        unit.show(summary.median),
        unit.show(summary.min),
        unit.show(summary.max),
        summary.repeats.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::cell;

    #[test]
    fn cells_of_one_figure_and_record_size_share_a_panel() {
        let mut cells = vec![
            cell("hotrap", "uniform", &[1.0]),
            cell("leveled", "uniform", &[1.0]),
            cell("hotrap", "latest", &[1.0]),
        ];
        cells[0].figures = vec!["8".into(), "6".into()];
        cells[1].figures = vec!["6".into()];
        let panels = of(&cells);
        assert_eq!(panels.len(), 2);
        assert_eq!(panels[0].cells.len(), 2);
        assert_eq!(panels[0].slug, "figure-6");
        assert_eq!(panels[1].slug, "other");
    }

    #[test]
    fn bars_of_the_same_work_are_beside_each_other() {
        let cells = vec![
            cell("hotrap", "uniform", &[1.0, 3.0, 2.0]),
            cell("hotrap", "latest", &[4.0]),
            cell("leveled", "uniform", &[5.0]),
            cell("leveled", "uniform", &[6.0]),
        ];
        let panels = of(&cells);
        let measure = Measure {
            name: "x",
            title: "X",
            unit: Unit::PerSecond,
            axis: "x",
            main: false,
        };
        let plot = panels[0].bars(&measure, |run| run.ops_s).unwrap();
        let Shape::Bars { groups, .. } = &plot.shape else {
            panic!("no bars")
        };
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[0].bars.len(), 3);
        assert_eq!(groups[0].bars[0].parts[0].1, 2.0);
        assert_eq!(groups[0].bars[0].range, Some((1.0, 3.0)));
        assert_eq!(groups[0].bars[1].range, None);
        assert_ne!(groups[0].bars[1].label, groups[0].bars[2].label);
        assert_eq!(plot.table.rows.len(), 4);
        assert_eq!(plot.commands.len(), 4);
        assert!(panels[0].bars(&measure, |_| None).is_none());
    }
}
