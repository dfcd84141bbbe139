//! Runs over time: figures 14 and 15 of the paper.

use super::super::plot::{Ink, Line, Plot, Shape, Table, Unit, of_activity, of_engine};
use super::points::{Points, step, table, thinned};
use super::settings::{self, Shown};
use super::titles::name;
use super::{Captioned, Section, commands, label, namesakes};
use crate::results::{Cell, Run, Second};

/// A run of several stages has more to show than one of one.
const POINTS_OF_STAGES: usize = 4;

/// From more workloads than that on only those are shown that time matters for.
const MANY: usize = 6;

/// Throughput, hit rate and hot set of every run with a series; at most `points` points a line.
pub(super) fn section(cells: &[Cell], points: usize) -> Section {
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
        let work = Work::new(number + 1, work, name(work, &works), points);
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
    let staged = |cell: &&Cell| cell.first().is_some_and(|run| run.stages.len() > 1);
    let figure = |cell: &&Cell| cell.figures.iter().any(|figure| figure == "14");
    work.iter().any(|cell| staged(cell) || figure(cell))
}

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
}

impl<'a> Work<'a> {
    fn new(number: usize, cells: &'a [&'a Cell], name: String, points: usize) -> Self {
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
            points
        } else {
            points * POINTS_OF_STAGES
        };
        let series: Vec<&[Second]> = runs.iter().map(|(_, _, run)| &run.series[..]).collect();
        Self {
            number,
            name,
            cells,
            step: step(&series, points),
            runs,
            stages,
        }
    }

    fn line(&self, run: &Run, value: impl Fn(usize, &Second) -> Option<f64>) -> Points {
        let all: Points = run
            .series
            .iter()
            .enumerate()
            .map(|(at, second)| (second.second, value(at, second)))
            .collect();
        thinned(all, self.step)
    }

    fn throughput(&self) -> Plot {
        let lines = self.of_engines(|_, second| Some(second.ops_s));
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
        let lines = self.of_engines(|_, second| second.fd_hit_rate);
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

    fn of_engines(&self, value: impl Fn(usize, &Second) -> Option<f64>) -> Vec<Line> {
        let lines = self.runs.iter().map(|(label, ink, run)| Line {
            label: label.clone(),
            ink: *ink,
            limit: false,
            points: self.line(run, &value),
        });
        lines
            .filter(|line| line.points.iter().any(|(_, y)| y.is_some()))
            .collect()
    }

    fn hot_set(&self) -> Option<Plot> {
        let mut lines = Vec::new();
        for (label, ink, run) in &self.runs {
            let size = self.line(run, |_, s| Some(s.hot_set_bytes? as f64));
            let limit = self.line(run, |_, s| Some(s.hot_set_limit_bytes? as f64));
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
            if !cell.figures.iter().any(|figure| figure == "14") {
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
        let io = run
            .activity_series
            .as_ref()
            .and_then(|series| series.io.get(tier));
        io.into_iter()
            .flatten()
            .map(|(activity, kinds)| Line {
                label: activity.clone(),
                ink: of_activity(activity),
                limit: false,
                points: self.line(run, |at, second| {
                    let before = at.checked_sub(1).and_then(|at| run.series.get(at));
                    let length = second.second - before.map_or(0.0, |before| before.second);
                    let bytes: f64 = ["read_bytes", "write_bytes"]
                        .iter()
                        .filter_map(|kind| kinds.get(*kind)?.get(at))
                        .fold(0.0, |sum, bytes| sum + bytes);
                    (length > 0.0).then(|| bytes / length)
                }),
            })
            .collect()
    }

    fn plot(&self, name: &str, title: &str, unit: Unit, axis: &str, lines: Vec<Line>) -> Plot {
        let mut notes = Vec::new();
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
    use super::*;
    use crate::results::tests::cell;

    #[test]
    fn engines_of_the_same_work_share_a_plot() {
        let cells = [
            cell("hotrap", "uniform", &[10.0]),
            cell("leveled", "uniform", &[20.0]),
            cell("hotrap", "latest", &[30.0]),
        ];
        let section = section(&cells, 5);
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
        let plots = section(&cells, 5).plots;
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
        let section = section(&cells, 5);
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
        let section = section(&cells, 5);
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
        let section = section(&[staged], 5);
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
        let section = section(&[one], 10);
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
}
