//! Runs over time: figures 14 and 15 of the paper.

use std::collections::BTreeSet;

use super::super::plot::{Ink, Line, Plot, Shape, Table, Unit, of_activity, of_engine};
use super::part::Part;
use super::points::{Points, step, table, thinned};
use super::settings::{self, Shown};
use super::titles::name;
use super::{Captioned, Detail, Section, commands, cost, label, namesakes};
use crate::results::{Cell, Run, Second};

/// If there are more workloads than this, only those are shown for which time matters.
const MANY: usize = 6;

/// Throughput, hit rate and hot set of every run with a series.
pub(super) fn section(cells: &[Cell], detail: Detail) -> Section {
    let mut works: Vec<Vec<&Cell>> = Vec::new();
    for cell in cells {
        let Some(run) = cell.first().filter(|run| run.series.len() > 1) else {
            continue;
        };
        let given = settings::given_with_target(run);
        let alike = |other: &Run| {
            (&other.workload, &other.distribution) == (&run.workload, &run.distribution)
                && settings::given_with_target(other) == given
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
        missing.extend(work.without_warm_up());
        plots.push(work.throughput());
        plots.extend(work.hit_rate());
        plots.extend(work.bill());
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

/// Whether these cells are about time.
fn tells_by_time(work: &[&Cell]) -> bool {
    let staged = |cell: &Cell| cell.first().is_some_and(|run| run.stages.len() > 1);
    work.iter()
        .any(|cell| staged(cell) || is_for_figure_14(cell))
}

fn is_for_figure_14(cell: &Cell) -> bool {
    cell.figures.iter().any(|figure| figure == "14")
}

/// What an engine does not attribute is drawn as two lines, so that what is read, mostly by
/// clients, is not lost in what is written.
const UNATTRIBUTED: &str = "unattributed";

/// Cells that did the same work.
struct Work<'a> {
    number: usize,
    name: String,
    cells: &'a [&'a Cell],
    /// The typical run of each cell, with its colour.
    runs: Vec<(String, Ink, &'a Run)>,
    stages: Vec<(f64, String)>,
    /// What a point of a line stands for, in seconds, if that is more than one sample.
    step: Option<f64>,
    /// Whether warm-ups are shown: figure 14 shows how what is hot comes to the fast disk.
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
                    let name = stage.target.as_ref().unwrap_or(&stage.distribution);
                    (stage.begin_seconds, name.clone())
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

    /// The run, with its warm-up before it if that is shown.
    fn parts<'r>(&self, run: &'r Run) -> Vec<Part<'r>> {
        if self.with_warm_up {
            Part::with_warm_up(run)
        } else {
            vec![Part::measured(run)]
        }
    }

    /// Names the cells whose warm-up was not recorded, beside others that begin with theirs.
    fn without_warm_up(&self) -> Option<String> {
        let has_one = |(_, _, run): &(String, Ink, &Run)| !run.warm_up_series.is_empty();
        if !self.with_warm_up || !self.runs.iter().any(has_one) {
            return None;
        }
        let without = self.runs.iter();
        let without: Vec<&str> = without
            .filter(|(_, _, run)| !run.is_recorded_whole())
            .map(|(label, _, _)| label.as_str())
            .collect();
        (!without.is_empty()).then(|| {
            format!(
                "Of {} these begin at second 0, as their results do not have their warm-up: {}.",
                self.name,
                without.join(", ")
            )
        })
    }

    fn line(&self, run: &Run, value: impl Fn(&Part<'_>, usize, &Second) -> Option<f64>) -> Points {
        let mut line = Points::new();
        for part in self.parts(run) {
            let each = part.series.iter().enumerate();
            let points = each
                .map(|(at, second)| (part.begin + second.second, value(&part, at, second)))
                .collect();
            // Each part by itself, because no point belongs to both.
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

    /// By live tables where there is a target, because that is what a target is of.
    fn bill(&self) -> Option<Plot> {
        let target = self.runs.iter().find_map(|(_, _, run)| cost::target(run));
        let by_tables = target.is_some();
        let mut lines = self.of_engines(|second| match by_tables {
            true => second.cost?.bill_by_tables,
            false => second.cost?.bill,
        });
        if lines.is_empty() {
            return None;
        }
        lines.extend(target.map(|points| Line {
            label: "target (thin)".to_owned(),
            ink: Ink::Text,
            limit: true,
            points,
        }));
        let axis = match by_tables {
            true => "dollars per GB of keys and values in live tables and month",
            false => "dollars per GB of records and month",
        };
        Some(self.plot(
            "bill-over-time",
            "Bill over time",
            Unit::Dollars,
            axis,
            lines,
        ))
    }

    fn hot_set(&self) -> Option<Plot> {
        let mut lines = Vec::new();
        for (label, ink, run) in &self.runs {
            let size = self.line(run, |_, _, s| Some(s.hot_set_bytes? as f64));
            let limit = self.line(run, |_, _, s| Some(s.hot_set_limit_bytes? as f64));
            if size.iter().all(|(_, y)| y.is_none()) {
                continue;
            }
            // If there are several engines, a limit has the colour of its hot set: it is the thin
            // line.
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

    /// Both disks by activity, if a cell is there for that figure.
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

    /// Stage by stage, if there are several.
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
                    stage.target.as_ref().unwrap_or(&stage.distribution).clone(),
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
mod tests;
