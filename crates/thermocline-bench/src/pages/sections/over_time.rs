//! Runs over time: figures 14 and 15 of the paper.

use std::collections::BTreeSet;

use super::super::plot::{Ink, Line, Plot, Shape, Table, Unit, of_activity, of_engine};
use super::points::{Points, step, table, thinned};
use super::settings::{self, Shown};
use super::titles::name;
use super::{Captioned, Detail, Section, commands, label, namesakes};
use crate::results::{ActivitySeries, Cell, Run, Second};

/// From more workloads than that on only those are shown that time matters for.
const MANY: usize = 6;

/// Throughput, hit rate and hot set of every run with a series.
pub(super) fn section(cells: &[Cell], detail: Detail) -> Section {
    let mut works: Vec<Vec<&Cell>> = Vec::new();
    for cell in cells {
        let Some(run) = cell.first().filter(|run| run.series.len() > 1) else {
            continue;
        };
        let given = settings::given(run);
        let alike = |other: &Run| {
            (&other.workload, &other.distribution) == (&run.workload, &run.distribution)
                && settings::given(other) == given
        };
        if !run.without().is_empty() {
            continue;
        }
        match works
            .iter_mut()
            .find(|work| work[0].first().is_some_and(alike))
        {
            Some(work) => work.push(cell),
            None => works.push(vec![cell]),
        }
    }
    let mut missing = Vec::new();
    if works.len() > MANY {
        let before = works.len();
        works.retain(|work| tells_by_time(work));
        missing.push(format!(
            "Left out of {before} workloads: {} that neither change while they run nor are for figure 14; \
             every second is in the files in runs/.",
            before - works.len()
        ));
    }
    let mut plots = Vec::new();
    let mut tables = Vec::new();
    for (number, work) in works.iter().enumerate() {
        let work = Work::new(number + 1, work, name(work, &works), detail);
        plots.push(work.throughput());
        plots.extend(work.hit_rate());
        plots.extend(work.hot_set());
        plots.extend(work.devices());
        tables.extend(work.stages());
    }
    Section {
        id: "over-time",
        title: "Over time",
        intro: "Each point is the mean of some seconds. With several repeats, of the one in the middle.",
        plots,
        tables,
        missing,
    }
}

/// Whether time is what these cells are about.
fn tells_by_time(work: &[&Cell]) -> bool {
    let staged = |cell: &Cell| cell.first().is_some_and(|run| run.stages.len() > 1);
    work.iter()
        .any(|cell| staged(cell) || is_for_figure_14(cell))
}

fn is_for_figure_14(cell: &Cell) -> bool {
    cell.figures.iter().any(|figure| figure == "14")
}

/// A run, or its warm-up.
struct Part<'a> {
    /// When it began, since measuring did.
    begin: f64,
    series: &'a [Second],
    spent: Option<&'a ActivitySeries>,
}

impl Part<'_> {
    fn seconds(&self) -> f64 {
        self.series.last().map_or(0.0, |last| last.second)
    }

    /// Bytes a second of `kinds` in entry `at` of the series.
    fn rate(&self, at: usize, tier: &str, activity: &str, kinds: &[&str]) -> Option<f64> {
        let before = at.checked_sub(1).and_then(|at| self.series.get(at));
        let length = self.series.get(at)?.second - before.map_or(0.0, |before| before.second);
        // What took nothing is left out.
        let columns = self.spent?.io.get(tier).and_then(|io| io.get(activity));
        let bytes: f64 = kinds
            .iter()
            .filter_map(|kind| columns?.get(*kind)?.get(at))
            .fold(0.0, |sum, bytes| sum + bytes);
        (length > 0.0).then(|| bytes / length)
    }
}

/// What an engine does not attribute is drawn in two lines: its reads are those of its clients, for the most part.
const UNATTRIBUTED: &str = "unattributed";

/// Cells that did the same work.
struct Work<'a> {
    number: usize,
    name: String,
    cells: &'a [&'a Cell],
    /// The typical run of each, with its colour.
    runs: Vec<(String, Ink, &'a Run)>,
    stages: Vec<(f64, String)>,
    /// What a point of a line stands for, in seconds, where that is more than one sample.
    step: Option<f64>,
    /// Whether warm-ups are shown: figure 14 is of how what is hot comes to the fast disk.
    with_warm_up: bool,
}

impl<'a> Work<'a> {
    fn new(number: usize, cells: &'a [&'a Cell], name: String, detail: Detail) -> Self {
        let mut runs: Vec<(String, Ink, &Run)> = Vec::new();
        let mut taken = Vec::new();
        let namesakes = namesakes(cells);
        for cell in cells {
            let Some(run) = cell.typical() else { continue };
            let label = label(cell, &namesakes);
            let ink = of_engine(&run.engine).unless(&taken);
            taken.push(ink);
            runs.push((label, ink, run));
        }
        let first = cells.first().and_then(|cell| cell.typical());
        let stages: Vec<(f64, String)> = first
            .filter(|run| run.stages.len() > 1)
            .map(|run| {
                let begin = |stage: &crate::results::Stage| {
                    (stage.begin_seconds, stage.distribution.clone())
                };
                run.stages.iter().map(begin).collect()
            })
            .unwrap_or_default();
        let points = if stages.is_empty() {
            detail.plain
        } else {
            detail.staged
        };
        let mut work = Self {
            number,
            name,
            cells,
            step: None,
            runs,
            stages,
            with_warm_up: cells.iter().any(|cell| is_for_figure_14(cell)),
        };
        let lengths: Vec<(usize, f64)> = work
            .runs
            .iter()
            .map(|(_, _, run)| {
                let parts = work.parts(run);
                let samples: usize = parts.iter().map(|part| part.series.len()).sum();
                let seconds: f64 = parts.iter().map(Part::seconds).sum();
                (samples, seconds)
            })
            .collect();
        work.step = step(&lengths, points);
        work
    }

    /// A run, and before it its warm-up, where that is shown and was recorded.
    fn parts<'r>(&self, run: &'r Run) -> Vec<Part<'r>> {
        let mut warm_up = Part {
            begin: 0.0,
            series: &run.warm_up_series,
            spent: run.warm_up_activity_series.as_ref(),
        };
        warm_up.begin = -warm_up.seconds();
        let measured = Part {
            begin: 0.0,
            series: &run.series,
            spent: run.activity_series.as_ref(),
        };
        if self.with_warm_up && !warm_up.series.is_empty() {
            vec![warm_up, measured]
        } else {
            vec![measured]
        }
    }

    fn line(&self, run: &Run, value: impl Fn(&Part<'_>, usize, &Second) -> Option<f64>) -> Points {
        let mut line = Points::new();
        for part in self.parts(run) {
            let each = part.series.iter().enumerate();
            let points = each
                .map(|(at, second)| (part.begin + second.second, value(&part, at, second)))
                .collect();
            // Each by itself: no point is of both.
            line.extend(thinned(points, part.begin, self.step));
        }
        line
    }

    fn throughput(&self) -> Plot {
        let lines = self.of_engines(|second| Some(second.ops_s));
        let axis = "operations a second";
        self.plot(
            "throughput-over-time",
            "Throughput over time",
            Unit::PerSecond,
            axis,
            lines,
        )
    }

    fn hit_rate(&self) -> Option<Plot> {
        let lines = self.of_engines(|second| second.fd_hit_rate);
        let axis = "percent of reads without the slow disk";
        (!lines.is_empty()).then(|| {
            self.plot(
                "hit-rate-over-time",
                "Hit rate over time",
                Unit::Share,
                axis,
                lines,
            )
        })
    }

    fn of_engines(&self, value: impl Fn(&Second) -> Option<f64>) -> Vec<Line> {
        let lines = self.runs.iter().map(|(label, ink, run)| Line {
            label: label.clone(),
            ink: *ink,
            limit: false,
            points: self.line(run, |_, _, second| value(second)),
        });
        lines
            .filter(|line| line.points.iter().any(|(_, y)| y.is_some()))
            .collect()
    }

    fn hot_set(&self) -> Option<Plot> {
        let mut lines = Vec::new();
        for (label, ink, run) in &self.runs {
            let size = self.line(run, |_, _, s| Some(s.hot_set_bytes? as f64));
            let limit = self.line(run, |_, _, s| Some(s.hot_set_limit_bytes? as f64));
            if size.iter().all(|(_, y)| y.is_none()) {
                continue;
            }
            // Of several engines, a limit has the colour of its set: it is the thin line.
            let of_limit = if self.runs.len() > 1 { *ink } else { Ink::Text };
            for (what, limited, ink, points) in [
                ("hot set", false, *ink, size),
                ("limit (thin)", true, of_limit, limit),
            ] {
                lines.push(Line {
                    label: format!("{label}: {what}"),
                    ink,
                    limit: limited,
                    points,
                });
            }
        }
        let axis = "bytes of hot records, and what they are limited to";
        (!lines.is_empty())
            .then(|| self.plot("hot-set", "Hot set over time", Unit::Bytes, axis, lines))
    }

    /// Both disks by activity, where a cell is there for that figure.
    fn devices(&self) -> Vec<Plot> {
        let mut plots = Vec::new();
        let tiers = [
            ("fast", "io-fast-over-time", "Fast disk over time"),
            ("slow", "io-slow-over-time", "Slow disk over time"),
        ];
        for (at, (cell, (label, _, run))) in self.cells.iter().zip(&self.runs).enumerate() {
            if !is_for_figure_14(cell) {
                continue;
            }
            for (tier, name, title) in tiers {
                let lines = self.activities(run, tier);
                if lines.is_empty() {
                    continue;
                }
                let axis = "bytes read and written a second, by activity";
                let name = format!("{name}-{}", at + 1);
                let title = format!("{title}, {label}");
                let mut plot = self.plot(&name, &title, Unit::BytesPerSecond, axis, lines);
                plot.settings = settings::line(&[cell], Shown::MiddleRun);
                plot.commands = commands([*cell]);
                plots.push(plot);
            }
        }
        plots
    }

    fn activities(&self, run: &Run, tier: &str) -> Vec<Line> {
        let parts = self.parts(run);
        let series = parts.iter().filter_map(|part| part.spent?.io.get(tier));
        let names: BTreeSet<&String> = series.flat_map(|activities| activities.keys()).collect();
        let mut lines = Vec::new();
        for activity in names {
            let ink = of_activity(activity);
            let mut add = |label: String, ink: Ink, kinds: &[&str]| {
                let points = self.line(run, |part, at, _| part.rate(at, tier, activity, kinds));
                if points.iter().any(|(_, y)| y.is_some_and(|y| y > 0.0)) {
                    lines.push(Line {
                        label,
                        ink,
                        limit: false,
                        points,
                    });
                }
            };
            if activity == UNATTRIBUTED {
                add(format!("{activity}, read"), ink, &["read_bytes"]);
                let other = ink.unless(&[ink]);
                add(format!("{activity}, written"), other, &["write_bytes"]);
            } else {
                add(activity.clone(), ink, &["read_bytes", "write_bytes"]);
            }
        }
        lines
    }

    fn plot(&self, name: &str, title: &str, unit: Unit, axis: &str, lines: Vec<Line>) -> Plot {
        let mut notes = Vec::new();
        let mut points = lines.iter().flat_map(|line| &line.points);
        if points.any(|(second, _)| *second < 0.0) {
            notes.push("Before second 0 is the warm-up of those runs that recorded it.".to_owned());
        }
        if !self.stages.is_empty() {
            let numbered: Vec<String> = self
                .stages
                .iter()
                .enumerate()
                .map(|(at, (begin, name))| {
                    format!("{} {name} (from {} s)", at + 1, settings::seconds(*begin))
                })
                .collect();
            notes.push(format!("Stages: {}.", numbered.join(", ")));
        }
        Plot {
            id: format!("{name}-{}", self.number),
            title: format!("{title}: {}", self.name),
            unit,
            axis: axis.to_owned(),
            notes,
            settings: settings::line(self.cells, Shown::MiddleRun),
            table: table(&lines, unit),
            shape: Shape::Lines {
                lines,
                stages: self.stages.clone(),
            },
            commands: commands(self.cells.iter().copied()),
            main: !self.stages.is_empty(),
        }
    }

    /// Stage by stage, where there are several.
    fn stages(&self) -> Option<Captioned> {
        if self.stages.is_empty() {
            return None;
        }
        let mut table = Table::new(&[
            "engine",
            "stage",
            "seconds",
            "operations a second",
            "hit rate of its last tenth",
            "steady after",
            "hot set at its end",
            "its limit",
        ]);
        let bytes = |bytes: Option<u64>| bytes.map(|bytes| Unit::Bytes.show(bytes as f64));
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        for (label, _, run) in &self.runs {
            for stage in &run.stages {
                let hit_rate = stage.last_tenth_fd_hit_rate;
                table.rows.push(vec![
                    label.clone(),
                    stage.distribution.clone(),
                    settings::seconds(stage.seconds),
                    Unit::PerSecond.show(stage.ops_s),
                    or_none(hit_rate.map(|rate| Unit::Share.show(rate))),
                    or_none(stage.seconds_to_steady.map(|s| format!("{s:.0} s"))),
                    or_none(bytes(stage.hot_set_bytes)),
                    or_none(bytes(stage.hot_set_limit_bytes)),
                ]);
            }
        }
        Some(Captioned {
            title: format!("Stage by stage: {}", self.name),
            settings: settings::line(self.cells, Shown::MiddleRun),
            table,
            commands: commands(self.cells.iter().copied()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::plot::WIDE;
    use super::*;
    use crate::results::tests::cell;

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

    /// They said that medians were shown, which the text above them denied.
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

    /// Warm-ups were not recorded: then figure 14, which is of how hit rates rise, began where they had risen.
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
        let io =
            serde_json::json!({"io": {"slow": {"read": {"read_bytes": [400, 300, 200, 100]}}}});
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

    /// All that RocksDB does on two devices was one line: what its clients read could not be told from compactions.
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
}
