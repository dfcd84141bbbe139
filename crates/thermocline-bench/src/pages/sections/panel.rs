//! Cells that belong into one plot of bars, because they were measured alike, for the same figure.

use super::super::plot::{Bar, Group, Ink, Plot, Shape, Table, Unit, of_engine};
use super::settings::{self, Shown};
use super::{commands, label, namesakes, work_label};
use crate::results::{Cell, Run, Summary};

/// Cells of the same settings and figure.
pub(crate) struct Panel<'a> {
    /// Part of anchors and file names.
    pub(super) slug: String,
    /// What tells it from other panels.
    pub(super) title: String,
    /// Its cells, in the order of the suite.
    pub(super) cells: Vec<&'a Cell>,
    /// The names of those cells that their engines do not tell apart.
    namesakes: Vec<&'a str>,
}

/// Figures of the paper that compare the throughput of engines; a cell of one of them may serve
/// other figures too.
const THROUGHPUT_FIGURES: [&str; 5] = ["6", "7", "10", "11", "16"];

/// All cells that ran on one distribution with all techniques, by panel.
pub(crate) fn of(cells: &[Cell]) -> Vec<Panel<'_>> {
    let all = alike(cells);
    let each = all.iter().enumerate();
    each.map(|(at, panel)| {
        let mut slug = match panel.figure {
            Some(figure) => format!("figure-{figure}"),
            None => "other".to_owned(),
        };
        let earlier = all.iter().take(at);
        match earlier.filter(|other| other.figure == panel.figure).count() {
            0 => {}
            earlier => slug.push_str(&format!("-{}", earlier + 1)),
        }
        Panel {
            slug,
            title: panel.title(&all),
            namesakes: namesakes(&panel.cells),
            cells: panel.cells.clone(),
        }
    })
    .collect()
}

/// Cells of one figure that were given the same.
struct Alike<'a> {
    figure: Option<&'static str>,
    given: Vec<String>,
    records: String,
    cells: Vec<&'a Cell>,
}

fn alike(cells: &[Cell]) -> Vec<Alike<'_>> {
    let mut all: Vec<Alike<'_>> = Vec::new();
    for cell in cells {
        let usual = |run: &&Run| run.stages.len() <= 1 && run.without().is_empty();
        let Some(run) = cell.first().filter(usual) else {
            continue;
        };
        let (figure, mut given) = (figure(cell), settings::given(run));
        let mut records = settings::records(run);
        if has_own_records(run) {
            let own = "records of each cluster's own".to_owned();
            given.retain(|phrase| *phrase != records);
            given.push(own.clone());
            records = own;
        }
        let known = |panel: &&mut Alike<'_>| panel.figure == figure && panel.given == given;
        if let Some(panel) = all.iter_mut().find(known) {
            panel.cells.push(cell);
            continue;
        }
        all.push(Alike {
            figure,
            given,
            records,
            cells: vec![cell],
        });
    }
    all
}

impl Alike<'_> {
    /// The figure, the records, and what else is not the same in all panels of the figure.
    fn title(&self, all: &[Alike<'_>]) -> String {
        let mut title = Vec::new();
        match self.figure {
            Some(figure) => title.push(format!("HotRAP's figure {figure}")),
            None if all.iter().any(|other| other.figure.is_some()) => {
                title.push("other cells".to_owned());
            }
            None => {}
        }
        title.push(self.records.clone());
        let others = all.iter().filter(|other| other.figure == self.figure);
        let apart = settings::apart(&self.given, others.map(|other| other.given.as_slice()));
        let apart = apart.into_iter().filter(|phrase| *phrase != self.records);
        title.extend(apart.map(str::to_owned));
        title.join(", ")
    }
}

/// Whether its records belong to what it does. Regression: by its records, each cluster had a plot
/// of its own, and no plot had two of them beside each other.
fn has_own_records(run: &Run) -> bool {
    run.distribution.starts_with("cluster:")
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
    /// The unit of the values.
    pub(super) unit: Unit,
    /// The values in the unit's words.
    pub(super) axis: &'a str,
    /// Whether a README might show it.
    pub(super) main: bool,
}

/// A value of a run, and what it is called beside others of the same run.
pub(super) type Named<'a> = (&'a str, &'a dyn Fn(&Run) -> Option<f64>);

impl<'a> Panel<'a> {
    /// One bar for each cell with a value, in its engine's colour. `None` if there is none.
    pub(super) fn bars(
        &self,
        measure: &Measure<'_>,
        value: impl Fn(&Run) -> Option<f64>,
    ) -> Option<Plot> {
        self.bars_of(measure, &[("", &value)])
    }

    /// The same with several values of each cell: one bar for each that it has, labelled with the
    /// name of the value.
    pub(super) fn bars_of(&self, measure: &Measure<'_>, values: &[Named<'_>]) -> Option<Plot> {
        let mut table = Table::new(&[
            "workload", "engine", "median", "least", "greatest", "repeats",
        ]);
        let shown = self.groups(|cell| {
            let ink = cell
                .first()
                .map_or(Ink::Muted, |run| of_engine(&run.engine));
            let mut bars = Vec::new();
            for (name, value) in values {
                let Some(summary) = cell.summary(value) else {
                    continue;
                };
                let mut label = self.label(cell);
                if !name.is_empty() {
                    label += &format!(", {name}");
                }
                let row = row(work_label(cell), label.clone(), &summary, measure.unit);
                table.rows.push(row);
                bars.push(Bar {
                    label,
                    parts: vec![(ink, summary.median)],
                    range: (summary.repeats > 1).then_some((summary.min, summary.max)),
                });
            }
            bars
        });
        self.plot(measure, shown, Vec::new(), table, Shown::Medians)
    }

    /// What a cell is called beside the others.
    pub(super) fn label(&self, cell: &Cell) -> String {
        label(cell, &self.namesakes)
    }

    /// The same panel with only these cells.
    pub(super) fn with(&self, cells: Vec<&'a Cell>) -> Self {
        Self {
            slug: self.slug.clone(),
            title: self.title.clone(),
            cells,
            namesakes: self.namesakes.clone(),
        }
    }

    /// The plot of `shown`: groups and their cells. `None` if there is nothing in them.
    pub(super) fn plot(
        &self,
        measure: &Measure<'_>,
        (groups, cells): (Vec<Group>, Vec<&'a Cell>),
        legend: Vec<(String, Ink)>,
        table: Table,
        repeats: Shown,
    ) -> Option<Plot> {
        (!cells.is_empty()).then(|| Plot {
            id: format!("{}-{}", measure.name, self.slug),
            title: format!("{}: {}", measure.title, self.title),
            unit: measure.unit,
            axis: measure.axis.to_owned(),
            notes: Vec::new(),
            settings: settings::line(&cells, repeats),
            shape: Shape::Bars { groups, legend },
            table,
            commands: commands(cells),
            main: measure.main,
        })
    }

    /// Bars by workload and distribution, and the cells that had one.
    pub(super) fn groups<B: IntoIterator<Item = Bar>>(
        &self,
        mut bars: impl FnMut(&Cell) -> B,
    ) -> (Vec<Group>, Vec<&'a Cell>) {
        let mut groups: Vec<Group> = Vec::new();
        let mut shown = Vec::new();
        for cell in &self.cells {
            let mut bars = bars(cell).into_iter().peekable();
            if bars.peek().is_none() {
                continue;
            }
            let mut label = work_label(cell);
            if let Some(run) = cell.first().filter(|run| has_own_records(run)) {
                label += &format!(", records of {} B", run.record_bytes);
            }
            let at = groups.iter().position(|group| group.label == label);
            let at = at.unwrap_or_else(|| {
                groups.push(Group {
                    label,
                    bars: Vec::new(),
                });
                groups.len() - 1
            });
            groups[at].bars.extend(bars);
            shown.push(*cell);
        }
        (groups, shown)
    }
}

fn row(work: String, label: String, summary: &Summary, unit: Unit) -> Vec<String> {
    vec![
        work,
        label,
        unit.show(summary.median),
        unit.show(summary.min),
        unit.show(summary.max),
        summary.repeats.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::results::tests::{SlowTier, cell};

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

    fn measure() -> Measure<'static> {
        Measure {
            name: "x",
            title: "X",
            unit: Unit::PerSecond,
            axis: "x",
            main: false,
        }
    }

    /// Regression: only records, the fast tier and the slow disk told panels apart. Reads of 1 GiB
    /// from the disk and of 256 MiB from a cache of 600 MiB were bars of one group.
    #[test]
    fn what_engines_are_given_alike_tells_panels_apart() {
        let others: [fn(&mut Run); 15] = [
            |run| run.records = 7,
            |run| run.record_bytes = 7,
            |run| run.threads = 7,
            |run| run.rate = Some(7),
            |run| run.settings.fast_capacity = 7,
            |run| run.settings.memory = 7,
            |run| run.settings.cache = 7,
            |run| run.settings.memtable = 7,
            |run| run.settings.durability = "sync".into(),
            |run| run.settings.compression = "lz4".into(),
            |run| run.settings.slow_device.iops = None,
            |run| run.settings.slow_device.bandwidth = Some(7),
            |run| run.settings.slow_device.latency = Some(Duration::from_millis(7)),
            |run| run.settings.slow_capacity = Some(7),
            |run| run.settings.slower.push(SlowTier::default()),
        ];
        for (number, other) in others.into_iter().enumerate() {
            let mut cells = [
                cell("hotrap", "uniform", &[1.0]),
                cell("leveled", "uniform", &[1.0]),
                cell("hotrap", "uniform", &[1.0]),
            ];
            other(&mut cells[2].runs[0]);
            let panels = of(&cells);
            let sizes: Vec<usize> = panels.iter().map(|panel| panel.cells.len()).collect();
            assert_eq!(sizes, [2, 1], "{number}");
            assert_ne!(panels[0].title, panels[1].title, "{number}");
        }
    }

    /// Regression: only an emulated slow disk was looked at. What was measured on a hard disk, and
    /// on one of 5,000 operations a second, were bars of one plot, and nothing in it said that
    /// there were two disks.
    #[test]
    fn slow_disks_that_are_real_are_told_apart_by_what_is_expected_of_them() {
        let mut cells = [
            cell("hotrap", "uniform", &[1.0]),
            cell("leveled", "uniform", &[1.0]),
            cell("hotrap", "uniform", &[1.0]),
        ];
        for (cell, iops) in cells.iter_mut().zip([5000, 5000, 400]) {
            let run = &mut cell.runs[0];
            run.settings.slow_device.iops = None;
            let line = "thermocline bench --expect-slow-bandwidth 500000000 --expect-slow-iops";
            run.command = Some(format!("{line} {iops}"));
        }
        let titles: Vec<String> = of(&cells).into_iter().map(|panel| panel.title).collect();
        let expected = [
            "1,000 records of 1024 B, slow disk of 5,000 operations and 500 MB a second",
            "1,000 records of 1024 B, slow disk of 400 operations and 500 MB a second",
        ];
        assert_eq!(titles, expected);
    }

    /// Regression: clusters come with their own records, and records told panels apart. Figure 11
    /// was seven plots of two bars, each eight times, and they were a third of a page that may have
    /// a megabyte.
    #[test]
    fn clusters_share_a_panel_whatever_their_records() {
        let mut cells = [11, 17, 17].map(|number| {
            let mut cell = cell(
                "hotrap",
                &format!("cluster:{number} (trace-fitted)"),
                &[1.0],
            );
            cell.figures = vec!["11".into()];
            cell.runs[0].record_bytes = number * 10;
            cell.runs[0].records = number;
            cell
        });
        cells[2].runs[0].engine = "rocksdb".into();
        let panels = of(&cells);
        assert_eq!(panels.len(), 1);
        let title = "HotRAP's figure 11, records of each cluster's own";
        assert_eq!(panels[0].title, title);
        let plot = panels[0].bars(&measure(), |run| run.ops_s).unwrap();
        let Shape::Bars { groups, .. } = &plot.shape else {
            panic!("no bars")
        };
        let groups: Vec<(&str, usize)> = groups
            .iter()
            .map(|group| (group.label.as_str(), group.bars.len()))
            .collect();
        let expected = [
            ("ro cluster:11 (trace-fitted), records of 110 B", 1),
            ("ro cluster:17 (trace-fitted), records of 170 B", 2),
        ];
        assert_eq!(groups, expected);
    }

    #[test]
    fn a_title_has_what_tells_the_panel_apart_and_no_more() {
        let mut cells = [
            cell("hotrap", "uniform", &[1.0]),
            cell("hotrap", "uniform", &[1.0]),
            cell("hotrap", "uniform", &[1.0]),
        ];
        cells[1].runs[0].settings.cache = 2 << 20;
        // A cell of another figure does not count among those from which a panel has to be told
        // apart.
        cells[2].runs[0].threads = 9;
        cells[2].figures = vec!["6".into()];
        let titles: Vec<String> = of(&cells).into_iter().map(|panel| panel.title).collect();
        let expected = [
            "other cells, 1,000 records of 1024 B, cache 1 MiB",
            "other cells, 1,000 records of 1024 B, cache 2 MiB",
            "HotRAP's figure 6, 1,000 records of 1024 B",
        ];
        assert_eq!(titles, expected);
    }

    /// Regression: engines have block sizes of their own, so these do not make a panel. The rows of
    /// two sizes were the same except for their values, and so was the first of two bars.
    #[test]
    fn cells_of_the_same_engine_and_work_have_their_names() {
        let mut cells = [
            cell("hotrap", "uniform", &[1.0]),
            cell("hotrap", "uniform", &[2.0]),
            cell("leveled", "uniform", &[3.0]),
        ];
        cells[1].runs[0].settings.block_size_fast *= 4;
        for (cell, id) in cells.iter_mut().zip(["reads-4k", "reads-16k", "else"]) {
            cell.id = id.into();
        }
        let panels = of(&cells);
        assert_eq!(panels.len(), 1);
        let plot = panels[0].bars(&measure(), |run| run.ops_s).unwrap();
        let expected = ["reads-4k", "reads-16k", "leveled"];
        let rows = plot.table.rows.iter().map(|row| row[1].as_str());
        assert!(rows.eq(expected), "{:?}", plot.table);
        let Shape::Bars { groups, .. } = &plot.shape else {
            panic!("no bars")
        };
        let bars = groups[0].bars.iter().map(|bar| bar.label.as_str());
        assert!(bars.eq(expected), "{groups:?}");
        // If one of them is left out, the other still has its name.
        let rest = panels[0].with(vec![&cells[0]]);
        let plot = rest.bars(&measure(), |run| run.ops_s).unwrap();
        assert_eq!(plot.table.rows[0][1], "reads-4k");
    }

    #[test]
    fn bars_of_the_same_work_are_beside_each_other() {
        let mut cells = vec![
            cell("hotrap", "uniform", &[1.0, 3.0, 2.0]),
            cell("hotrap", "latest", &[4.0]),
            cell("leveled", "uniform", &[5.0]),
            cell("leveled", "uniform", &[6.0]),
        ];
        cells[3].id = "again".into();
        let panels = of(&cells);
        let plot = panels[0].bars(&measure(), |run| run.ops_s).unwrap();
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
        assert!(panels[0].bars(&measure(), |_| None).is_none());
    }
}
