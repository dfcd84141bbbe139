//! What a report shows, from the results of a suite.
//!
//! There is one file for each kind of plot. What a result does not tell is left out, with a line
//! that says so.

mod ablation;
mod by_activity;
mod cost;
mod hit_rate;
mod latency;
mod over_time;
mod panel;
mod part;
mod points;
pub(crate) mod settings;
mod throughput;
mod titles;

use super::plot::{Plot, Table};
use crate::results::{Cell, Results};

/// Plots and tables on one subject.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    /// Its anchor.
    pub(crate) id: &'static str,
    /// What it is about.
    pub(crate) title: &'static str,
    /// How its values were obtained.
    pub(crate) intro: &'static str,
    /// Its plots.
    pub(crate) plots: Vec<Plot>,
    /// Tables that have no plot.
    pub(crate) tables: Vec<Captioned>,
    /// What is not shown, and why.
    pub(crate) missing: Vec<String>,
}

/// A table by itself.
#[derive(Debug, Clone)]
pub(crate) struct Captioned {
    /// What it shows.
    pub(crate) title: String,
    /// Settings of what was measured.
    pub(crate) settings: String,
    /// The values.
    pub(crate) table: Table,
    /// Names and command lines of the cells in it.
    pub(crate) commands: Vec<(String, String)>,
}

/// How many points a line over time has at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Detail {
    /// For a run of one stage.
    pub(crate) plain: usize,
    /// For a run of several stages, which has more to show.
    pub(crate) staged: usize,
}

impl Detail {
    /// This many points for each kind of run.
    pub(crate) const fn new(plain: usize, staged: usize) -> Self {
        Self { plain, staged }
    }
}

/// Everything that `results` show.
pub(crate) fn all(results: &Results, detail: Detail) -> Vec<Section> {
    let panels = panel::of(&results.cells);
    let probe = &results.probe;
    [
        throughput::section(&panels),
        hit_rate::section(&panels),
        over_time::section(&results.cells, detail),
        cost::section(&results.cells),
        latency::section(&panels, probe),
        by_activity::processor(&panels),
        by_activity::devices(&panels),
        ablation::section(&results.cells),
    ]
    .into_iter()
    .filter(|section| {
        !(section.plots.is_empty() && section.tables.is_empty() && section.missing.is_empty())
    })
    .collect()
}

/// Names and command lines of `cells`.
fn commands<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Vec<(String, String)> {
    cells
        .into_iter()
        .map(|cell| (cell.id.clone(), cell.command.clone()))
        .collect()
}

/// An engine, and the techniques that it did without.
pub(crate) fn engine_label(cell: &Cell) -> String {
    cell.first().map_or_else(String::new, |run| {
        let without = run.without();
        if without.is_empty() {
            run.engine.clone()
        } else {
            format!("{}, {without}", run.engine)
        }
    })
}

/// The names of those `cells` whose engine did the same work in another cell.
fn namesakes<'a>(cells: &[&'a Cell]) -> Vec<&'a str> {
    let what: Vec<_> = cells
        .iter()
        .map(|cell| (engine_label(cell), work_label(cell)))
        .collect();
    let is_twice = |one: &(String, String)| what.iter().filter(|other| *other == one).count() > 1;
    let each = cells.iter().zip(&what);
    each.filter(|(_, what)| is_twice(what))
        .map(|(cell, _)| cell.id.as_str())
        .collect()
}

/// What a cell is called if these are the `namesakes`: its engine, if that tells it from the other
/// cells.
fn label(cell: &Cell, namesakes: &[&str]) -> String {
    if namesakes.contains(&cell.id.as_str()) {
        cell.id.clone()
    } else {
        engine_label(cell)
    }
}

/// What an engine was asked to do.
pub(crate) fn work_label(cell: &Cell) -> String {
    cell.first().map_or_else(String::new, |run| {
        format!("{} {}", run.workload, run.distribution)
    })
}
