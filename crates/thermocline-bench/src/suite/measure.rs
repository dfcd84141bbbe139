//! Measures those cells of a suite that are not measured yet, one after the other.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};

use super::cell::Cell;
use super::definition::SlowLimits;
use super::estimate::Estimate;
use super::harness::{Ended, Harness};
use super::progress::Progress;
use super::results;
use super::schedule::Run;
use crate::bad_arguments::BadArguments;

/// What is to be done.
pub(crate) struct Task<'a> {
    pub(crate) cells: &'a [Cell],
    /// The runs, in the order in which they are made.
    pub(crate) runs: Vec<Run>,
    /// Where the results go.
    pub(crate) out: &'a Path,
    /// A command that sets limits of the slow disk. Operations and bytes a second are appended to
    /// it.
    pub(crate) limit_slow: Option<&'a str>,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Runs that were there already.
    pub(crate) earlier: usize,
    /// Runs measured now.
    pub(crate) measured: usize,
    /// What failed, and how.
    pub(crate) failed: Vec<String>,
}

/// Does `task`. If a run fails, the others are still measured. If a run refuses the slow disk,
/// those that need the same limits of it are not measured, because the reason holds for them as
/// well.
///
/// # Errors
/// A slow disk that is refused, where all need the same limits; an interrupt; the file system's.
pub(crate) fn measure(
    task: &Task<'_>,
    harness: &mut dyn Harness,
    estimate: Estimate,
    progress: &mut Progress,
) -> Result<Outcome> {
    let (done, open): (Vec<Run>, Vec<Run>) = task.runs.iter().partition(|run| {
        let cell = task.cells.get(run.cell);
        cell.is_some_and(|cell| results::finished(task.out, cell, **run).is_some())
    });
    let mut limits = open.iter().map(|run| task.cells.get(run.cell)?.slow);
    let first = limits.next();
    let mut work = Work {
        task,
        needs_one_disk: limits.all(|limits| Some(limits) == first),
        refused: Vec::new(),
        harness,
        estimate,
        progress,
        limits: None,
        on_disk: Vec::new(),
        unloadable: Vec::new(),
        outcome: Outcome {
            earlier: done.len(),
            ..Outcome::default()
        },
    };
    for (index, run) in open.iter().enumerate() {
        let later = open.get(index + 1..).unwrap_or_default();
        let cell = task.cells.get(run.cell).context("no such cell")?;
        let place = format!("{}/{}", done.len() + index + 1, task.runs.len());
        work.run(cell, *run, &place, later)?;
    }
    Ok(work.outcome)
}

struct Work<'a> {
    task: &'a Task<'a>,
    /// Whether all open runs need the same limits of the slow disk.
    needs_one_disk: bool,
    /// Limits that the slow disk turned out not to have, and the message about that.
    refused: Vec<(Option<SlowLimits>, String)>,
    harness: &'a mut dyn Harness,
    estimate: Estimate,
    progress: &'a mut Progress,
    /// The limits that have been set. Nothing if none have.
    limits: Option<Option<SlowLimits>>,
    /// Contents of the states that are known to be on the disks.
    on_disk: Vec<String>,
    /// Contents of states whose load has failed.
    unloadable: Vec<String>,
    outcome: Outcome,
}

impl Work<'_> {
    fn run(&mut self, cell: &Cell, run: Run, place: &str, later: &[Run]) -> Result<()> {
        if let Some((_, reason)) = self.refused.iter().find(|(slow, _)| *slow == cell.slow) {
            self.outcome.failed.push(format!("{}: {reason}", cell.id));
            return Ok(());
        }
        let name = format!("{place} {} ({} of {})", cell.id, run.repeat, cell.repeats);
        let later = |work: &Self| {
            let there = &work.on_disk;
            work.estimate.all(work.task.cells, later, there)
        };
        if !self.load(cell, &name, later(self))? {
            return Ok(());
        }
        self.limit(cell.slow.filter(|_| !cell.warm_up_unlimited))?;
        self.progress
            .begin(name.clone(), self.estimate.run(cell), later(self));
        let mut words = cell.words.clone();
        let part = results::part(self.task.out, cell, run);
        let part = part.into_os_string().into_string();
        let part = part.map_err(|part| anyhow!("{part:?}: a file's name must be UTF-8"))?;
        words.extend(["--json".to_owned(), part]);
        let went_well = self.bench(cell, &words, &name)?;
        if cell.warm_up_unlimited {
            // The benchmark sets the limits itself, and may have ended before it did so.
            self.limits = None;
        }
        if went_well {
            let finished = results::accept(self.task.out, cell, run)?;
            self.outcome.measured += 1;
            self.progress
                .end(&format!("{name}: {:.0} operations/s", finished.ops_s()));
        }
        Ok(())
    }

    /// Loads the state of `cell` unless it is there. Returns whether it is there afterwards.
    fn load(&mut self, cell: &Cell, name: &str, later: f64) -> Result<bool> {
        let content = cell.content();
        if cell.load || self.on_disk.contains(&content) {
            return Ok(true);
        }
        if self.unloadable.contains(&content) {
            let failed = format!("{}: its state could not be loaded", cell.id);
            self.outcome.failed.push(failed);
            return Ok(false);
        }
        if !self.harness.is_loaded(cell)? {
            // Without limits, because loading is not what is measured.
            self.limit(None)?;
            self.progress.begin(
                format!("{name}: loading"),
                self.estimate.load(cell),
                self.estimate.run(cell) + later,
            );
            if !self.bench(cell, &cell.load_words(), &format!("{name}: loading"))? {
                self.unloadable.push(content);
                return Ok(false);
            }
            let took = self.progress.elapsed();
            self.estimate.loaded(cell, took);
            let said = humantime::format_duration(std::time::Duration::from_secs(took.as_secs()));
            self.progress.end(&format!("{name}: loaded in {said}"));
        }
        // What lay in the same directories is gone.
        let own = format!("{}\n", cell.state);
        self.on_disk.retain(|other| !other.starts_with(&own));
        self.on_disk.push(content);
        Ok(true)
    }

    /// Runs a benchmark. Returns whether it went well.
    fn bench(&mut self, cell: &Cell, words: &[String], name: &str) -> Result<bool> {
        let progress = &mut *self.progress;
        match self.harness.bench(words, &mut || progress.tick())? {
            Ended::Well => Ok(true),
            // The disk was refused, so no other cell that needs these limits of it would be
            // measured correctly.
            Ended::Refused(text) if text.contains("--expect-slow") => {
                let reason = format!("{text}{}", how_to_limit(cell));
                if self.needs_one_disk {
                    return Err(BadArguments::new(anyhow!("{name}: {reason}")).into());
                }
                self.progress.end(&format!("{name}: FAILED: {reason}"));
                self.outcome.failed.push(format!("{}: {reason}", cell.id));
                self.refused.push((cell.slow, text));
                Ok(false)
            }
            Ended::Badly(text) | Ended::Refused(text) => {
                self.progress.end(&format!("{name}: FAILED: {text}"));
                self.outcome.failed.push(format!("{}: {text}", cell.id));
                Ok(false)
            }
            Ended::Interrupted => bail!(
                "interrupted after {} runs; the same command goes on from there",
                self.outcome.earlier + self.outcome.measured
            ),
        }
    }

    /// Puts limits on the slow disk, if there is a way to.
    fn limit(&mut self, slow: Option<SlowLimits>) -> Result<()> {
        let Some(command) = self.task.limit_slow else {
            return Ok(());
        };
        if self.limits == Some(slow) {
            return Ok(());
        }
        let SlowLimits { iops, bandwidth } = slow.unwrap_or(SlowLimits::NONE);
        self.harness
            .shell(&format!("{command} {iops} {bandwidth}"))
            .context("--limit-slow")?;
        self.limits = Some(slow);
        Ok(())
    }
}

/// What to do about a slow disk that does not have the limits that `cell` needs.
fn how_to_limit(cell: &Cell) -> String {
    cell.slow.map_or(String::new(), |slow| {
        format!(
            "\n{} needs a slow disk of {} operations and {} bytes a second; set its limits with\n  \
             scripts/slow-disk limit DIR {} {}\nand start the suite again, or let it do so with \
             --limit-slow \"scripts/slow-disk limit DIR\"",
            cell.id, slow.iops, slow.bandwidth, slow.iops, slow.bandwidth
        )
    })
}

#[cfg(test)]
mod tests;
