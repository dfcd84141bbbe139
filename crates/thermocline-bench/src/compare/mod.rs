//! Two result directories beside each other: what became faster or slower, beyond noise.

pub(crate) mod hosts;
mod noise;
mod page;
mod text;
mod verdict;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use serde::Serialize;

use crate::args::DEFAULT_SCAN_LENGTH;
use crate::bad_arguments::BadArguments;
use crate::pages::{self, expected, slow_disk};
use crate::report::LoadedBy;
use crate::results::{Cell, Commits, Results, Run};
pub use verdict::{Compared, Verdict};

/// Compares throughput, cell by cell: B against A.
#[derive(Debug, Clone, clap::Args)]
pub struct CompareArgs {
    /// Result directory of a suite, or the file of a `bench --json`: what was before
    #[arg(value_name = "A")]
    pub a: PathBuf,

    /// Result directory or file of the same kind: what is now
    #[arg(value_name = "B")]
    pub b: PathBuf,

    /// Exit with 1 when a cell of B is slower beyond noise, and by more than so many percent
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub fail_on_regression: Option<f64>,

    /// Compare although the machines, or their disks, differ
    #[arg(long)]
    pub different_hosts: bool,

    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,

    /// Write the comparison there as a page, too
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err("must be a number from 0 to below 100".to_owned()),
    }
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// Directory or file.
    pub path: PathBuf,
    /// Name of the suite.
    pub suite: String,
    /// Version of the program that measured.
    pub version: String,
    /// The commits that it was built from, in words.
    pub built_from: String,
}

/// B against A.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// What was before.
    pub a: Side,
    /// What is now.
    pub b: Side,
    /// Cells that both have.
    pub cells: Vec<Compared>,
    /// Cells that only A has been measured for.
    pub lost: Vec<String>,
    /// What a reader has to know before believing it.
    pub warnings: Vec<String>,
}

impl Comparison {
    /// Names of cells that are slower beyond noise and by more than `percent`, and of cells that B
    /// lacks: a cell that fails is no better than a slow one.
    pub fn regressions(&self, percent: f64) -> Vec<String> {
        let slower = self.cells.iter().filter(|cell| cell.regressed(percent));
        let slower = slower.map(|cell| cell.cell.clone());
        let lost = self.lost.iter();
        slower
            .chain(lost.map(|cell| format!("{cell} (no result)")))
            .collect()
    }
}

/// Compares what `args` name, and writes the page if one is asked for.
///
/// # Errors
/// [`BadArguments`] when the two cannot be compared: another format, other machines, nothing in
/// common, a directory against a file; and when the page cannot be written.
pub fn compare(args: &CompareArgs) -> Result<Comparison> {
    let comparison = read_and_compare(args).map_err(BadArguments::new)?;
    if let Some(path) = &args.html {
        pages::write(path, page::page(&comparison)?.as_bytes())?;
    }
    Ok(comparison)
}

fn read_and_compare(args: &CompareArgs) -> Result<Comparison> {
    let (mut a, mut b) = (read(&args.a)?, read(&args.b)?);
    ensure!(
        args.a.is_dir() == args.b.is_dir(),
        "{} and {}: compare two directories or two files",
        args.a.display(),
        args.b.display()
    );
    // Two files are compared whatever their cells are called, because they were named.
    if let ([a], [b], false) = (&mut a.cells[..], &mut b.cells[..], args.a.is_dir()) {
        if a.id != b.id {
            a.id = format!("{} / {}", a.id, b.id);
        }
        b.id.clone_from(&a.id);
    }
    let differences = hosts::differences(&a, &b);
    if !differences.is_empty() && !args.different_hosts {
        bail!(
            "measured on different machines, so figures do not compare: {}; with --different-hosts they are compared all the same",
            differences.join("; ")
        );
    }
    let mut warnings: Vec<String> = differences
        .iter()
        .map(|difference| format!("different machines: {difference}"))
        .collect();
    let mut cells = Vec::new();
    let (mut unlike, mut others) = (Vec::new(), Vec::new());
    for before in &a.cells {
        let Some(after) = b.cells.iter().find(|cell| cell.id == before.id) else {
            continue;
        };
        ensure!(
            all_right(before) && all_right(after),
            "{}: there were wrong answers, and how fast they come is no figure",
            before.id
        );
        warnings.extend(other_work(before, after));
        if were_loaded_by_others(before, after) {
            others.push(before.id.as_str());
        }
        match Compared::new(before, after) {
            Some(compared) => cells.push(compared),
            None => unlike.push(format!(
                "{}: not compared, as one side has runs of it and the other loads only",
                before.id
            )),
        }
    }
    let why = match &unlike[..] {
        [] => format!("{} / {}", names(&a), names(&b)),
        [first, ..] => first.clone(),
    };
    ensure!(
        !cells.is_empty(),
        "{} and {} have no measured cell in common: {why}",
        args.a.display(),
        args.b.display()
    );
    if !others.is_empty() {
        warnings.push(format!(
            "run on states that programs of different commits loaded: {}",
            others.join(", ")
        ));
    }
    warnings.extend(unlike);
    warnings.extend(only_in(&a, &b));
    warnings.extend(only_in(&b, &a));
    let lost = missing_in(&a, &b).map(|cell| cell.id.clone()).collect();
    Ok(Comparison {
        a: side(a),
        b: side(b),
        cells,
        lost,
        warnings,
    })
}

fn read(path: &Path) -> Result<Results> {
    if path.is_dir() {
        Results::read(path)
    } else {
        Results::of_one_run(path)
    }
}

fn side(results: Results) -> Side {
    Side {
        built_from: Commits::of(&results.cells).to_string(),
        path: results.path,
        suite: results.suite,
        version: results.version,
    }
}

/// The first names of cells.
fn names(results: &Results) -> String {
    let mut names: Vec<&str> = results.cells.iter().map(|cell| cell.id.as_str()).collect();
    if names.len() > 5 {
        names.truncate(5);
        names.push("…");
    }
    names.join(", ")
}

/// Cells that `one` has and `other` has not.
fn missing_in<'a>(one: &'a Results, other: &'a Results) -> impl Iterator<Item = &'a Cell> {
    let missing = |cell: &&Cell| other.cells.iter().all(|there| there.id != cell.id);
    one.cells.iter().filter(missing)
}

fn only_in(one: &Results, other: &Results) -> Option<String> {
    let only: Vec<&str> = missing_in(one, other).map(|cell| &cell.id[..]).collect();
    (!only.is_empty()).then(|| format!("only in {}: {}", one.path.display(), only.join(", ")))
}

/// Whether no answer was wrong.
fn all_right(cell: &Cell) -> bool {
    cell.runs.iter().all(|run| run.wrong_answers == 0)
}

/// Whether two lengths of time, if there are any, differ by no more than a tenth and a second.
fn alike(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= 0.1 * a.max(b) + 1.0,
        _ => a.is_none() == b.is_none(),
    }
}

/// How many records a scan was to read, if the command is recorded.
fn scanned(run: &Run) -> Option<u64> {
    let command = run.command.as_deref()?;
    Some(expected(command, "--scan-length").unwrap_or(DEFAULT_SCAN_LENGTH as u64))
}

/// Who loaded the states of two runs, if both results tell.
fn loaders<'a>(before: &'a Run, after: &'a Run) -> Option<[&'a LoadedBy; 2]> {
    Some([before.loaded_by.as_ref()?, after.loaded_by.as_ref()?])
}

/// Whether the two states were loaded by different programs, and at least one of them not by the
/// program that ran on it. When builds are compared, each may load its own.
fn were_loaded_by_others(a: &Cell, b: &Cell) -> bool {
    let Some((before, after)) = a.first().zip(b.first()) else {
        return false;
    };
    loaders(before, after).is_some_and(|[a, b]| {
        let is_own = before.commit == a.commit && after.commit == b.commit;
        a.commit != b.commit && !is_own
    })
}

/// A warning if cells of one name did not do the same.
fn other_work(a: &Cell, b: &Cell) -> Option<String> {
    let (before, after) = (a.first()?, b.first()?);
    let mut differ = Vec::new();
    for (what, same) in [
        ("engine", before.engine == after.engine),
        ("workload", before.workload == after.workload),
        ("distribution", before.distribution == after.distribution),
        (
            "definition of workloads",
            before.workloads == after.workloads,
        ),
        ("records", before.records == after.records),
        ("record size", before.record_bytes == after.record_bytes),
        ("threads", before.threads == after.threads),
        ("rate", before.rate == after.rate),
        ("target", before.target == after.target),
        ("settings", before.settings.are_alike(&after.settings)),
        ("techniques", before.without() == after.without()),
        // Engines that share their files may still give the levels different shapes.
        (
            "loaded state",
            loaders(before, after)
                .is_none_or(|[a, b]| a.engine == b.engine && a.ingested == b.ingested),
        ),
        // A real disk's limits, and what is scanned, are only in the command.
        ("slow disk", slow_disk(before) == slow_disk(after)),
        (
            "scan length",
            scanned(before)
                .zip(scanned(after))
                .is_none_or(|(a, b)| a == b),
        ),
        (
            "memory limit",
            before.memory_limited == after.memory_limited,
        ),
        (
            "warm-up",
            alike(before.warm_up_seconds, after.warm_up_seconds),
        ),
        // Runs that end after a number of operations take as long as the engine does.
        (
            "length",
            before.ops == after.ops || alike(before.seconds, after.seconds),
        ),
    ] {
        if !same {
            differ.push(what);
        }
    }
    (!differ.is_empty()).then(|| format!("{}: not the same {}", a.id, differ.join(", ")))
}

#[cfg(test)]
mod tests;
