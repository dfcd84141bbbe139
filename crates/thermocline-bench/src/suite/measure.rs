//! Measures the cells of a suite that are not measured yet, one after the other.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};

use super::cell::Cell;
use super::definition::SlowLimits;
use super::estimate::Estimate;
use super::harness::{Ended, Harness};
use super::progress::Progress;
use super::results;
use super::schedule::Run;
use crate::bench::BadArguments;

/// What is to be done.
pub(crate) struct Task<'a> {
    pub(crate) cells: &'a [Cell],
    /// In this order.
    pub(crate) runs: Vec<Run>,
    /// Where the results go.
    pub(crate) out: &'a Path,
    /// Sets limits of the slow disk: operations and bytes a second are added to it.
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

/// Does `task`. A run that fails does not keep the others from being measured; one that refuses to
/// begin does, for the reason will be theirs as well.
///
/// # Errors
/// A refusal, an interrupt, the file system's.
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
    let mut work = Work {
        task,
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
    harness: &'a mut dyn Harness,
    estimate: Estimate,
    progress: &'a mut Progress,
    /// Limits that have been set; nothing if none have.
    limits: Option<Option<SlowLimits>>,
    /// Contents of the states that are known to be on the disks.
    on_disk: Vec<String>,
    /// Contents of states whose load has failed.
    unloadable: Vec<String>,
    outcome: Outcome,
}

impl Work<'_> {
    fn run(&mut self, cell: &Cell, run: Run, place: &str, later: &[Run]) -> Result<()> {
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
            // It sets them itself, and may have ended before it came to that.
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

    /// Loads the state of `cell` unless it is there. Says whether it is there then.
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
            // Loading is not what is measured.
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

    /// Runs a benchmark. Says whether it went well.
    fn bench(&mut self, cell: &Cell, words: &[String], name: &str) -> Result<bool> {
        let progress = &mut *self.progress;
        match self.harness.bench(words, &mut || progress.tick())? {
            Ended::Well => Ok(true),
            // Of the disk that all use: no other cell would be measured right.
            Ended::Refused(text) if text.contains("--expect-slow") => {
                let hint = cell.slow.map_or(String::new(), |slow| {
                    format!(
                        "\n{} needs a slow disk of {} operations and {} bytes a second; set its limits with\n  \
                         scripts/slow-disk limit DIR {} {}\nand start the suite again, or let it do so with \
                         --limit-slow \"scripts/slow-disk limit DIR\"",
                        cell.id, slow.iops, slow.bandwidth, slow.iops, slow.bandwidth
                    )
                });
                let reason = anyhow!("{name}: {text}{hint}");
                Err(BadArguments::new(reason).into())
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::suite::cells::tests::of_small;
    use crate::suite::definition::States;
    use crate::suite::definition::tests::small;
    use crate::suite::schedule::order;

    const LIMITS: SlowLimits = SlowLimits {
        iops: 400,
        bandwidth: 260,
    };

    /// Does what is asked without doing it.
    #[derive(Default)]
    struct Fake {
        /// What was asked for, in words.
        log: Vec<String>,
        loaded: Vec<String>,
        /// Ends of the benchmarks to come, by a word of their command lines.
        ends: Vec<(&'static str, Ended)>,
        /// What is written instead of a whole result.
        torn: bool,
    }

    fn value<'a>(words: &'a [String], flag: &str) -> &'a str {
        let at = words.iter().position(|word| word == flag).unwrap();
        &words[at + 1]
    }

    impl Harness for Fake {
        fn is_loaded(&mut self, cell: &Cell) -> Result<bool> {
            Ok(self.loaded.contains(&cell.content()))
        }

        fn bench(&mut self, words: &[String], tick: &mut dyn FnMut()) -> Result<Ended> {
            tick();
            let [engine, workload] = ["--engine", "--workload"].map(|flag| value(words, flag));
            let load = words.contains(&"load".to_owned());
            let what = if load { "load" } else { workload };
            self.log.push(format!("{what} {engine}"));
            let line = words.join(" ");
            if let Some(at) = self.ends.iter().position(|(word, _)| line.contains(word)) {
                return Ok(self.ends.remove(at).1);
            }
            if !load {
                let result = serde_json::json!({
                    "version": env!("CARGO_PKG_VERSION"), "engine": engine, "workload": workload,
                    "distribution": value(words, "--distribution"), "ops_s": 7.0,
                });
                let mut text = result.to_string();
                if self.torn {
                    text.truncate(20);
                }
                fs::write(value(words, "--json"), text).unwrap();
            }
            Ok(Ended::Well)
        }

        fn shell(&mut self, command: &str) -> Result<()> {
            self.log.push(command.to_owned());
            Ok(())
        }
    }

    /// The first `cells` cells, each once, in a directory of results.
    struct Suite {
        out: tempfile::TempDir,
        cells: Vec<Cell>,
        runs: Vec<Run>,
        limit_slow: Option<&'static str>,
    }

    impl Suite {
        fn new(cells: usize, states: States) -> Self {
            let out = tempfile::tempdir().unwrap();
            fs::create_dir(out.path().join("runs")).unwrap();
            let mut cells: Vec<Cell> = of_small().into_iter().take(cells).collect();
            for cell in &mut cells {
                cell.repeats = 1;
                if states == States::OneAtATime {
                    cell.state.clear();
                }
            }
            let all: Vec<usize> = (0..cells.len()).collect();
            Self {
                runs: order(&cells, &all, states),
                out,
                cells,
                limit_slow: None,
            }
        }

        fn measure(&self, fake: &mut Fake) -> Result<Outcome> {
            let task = Task {
                cells: &self.cells,
                runs: self.runs.clone(),
                out: self.out.path(),
                limit_slow: self.limit_slow,
            };
            let estimate = Estimate::new(small().guess);
            measure(&task, fake, estimate, &mut Progress::hidden())
        }
    }

    #[test]
    fn states_are_loaded_once_and_results_are_not_measured_again() {
        let suite = Suite::new(4, States::Kept);
        let mut fake = Fake::default();
        let outcome = suite.measure(&mut fake).unwrap();
        assert_eq!((outcome.earlier, outcome.measured), (0, 4));
        assert_eq!(
            fake.log,
            [
                "load hotrap",
                "ro hotrap",
                "load leveled",
                "ro leveled",
                "uh hotrap",
                "uh leveled"
            ]
        );
        let result = suite
            .out
            .path()
            .join("runs/reads-leveled-uh-hotspot-5.1.json");
        assert!(result.exists());
        fs::write(result, "{").unwrap();
        let mut fake = Fake {
            loaded: suite.cells.iter().map(Cell::content).collect(),
            ..Fake::default()
        };
        let outcome = suite.measure(&mut fake).unwrap();
        assert_eq!((outcome.earlier, outcome.measured), (3, 1));
        assert_eq!(fake.log, ["uh leveled"], "the damaged one only");
    }

    #[test]
    fn one_state_at_a_time_replaces_the_other() {
        let mut suite = Suite::new(2, States::OneAtATime);
        suite.runs.extend(
            suite
                .runs
                .clone()
                .iter()
                .map(|run| Run { repeat: 2, ..*run }),
        );
        let mut fake = Fake::default();
        suite.measure(&mut fake).unwrap();
        let loads = fake.log.iter().filter(|line| line.starts_with("load"));
        assert_eq!(loads.count(), 4, "{:?}", fake.log);
    }

    #[test]
    fn an_interrupted_suite_goes_on_where_it_was() {
        let suite = Suite::new(4, States::Kept);
        let mut fake = Fake {
            ends: vec![("--workload uh", Ended::Interrupted)],
            ..Fake::default()
        };
        let error = suite.measure(&mut fake).unwrap_err().to_string();
        assert!(error.contains("interrupted after 2 runs"), "{error}");
        let mut fake = Fake::default();
        let outcome = suite.measure(&mut fake).unwrap();
        assert_eq!((outcome.earlier, outcome.measured), (2, 2));
        assert!(
            fake.log.iter().all(|line| !line.starts_with("ro")),
            "{:?}",
            fake.log
        );
    }

    #[test]
    fn half_a_result_is_none() {
        let suite = Suite::new(1, States::Kept);
        let mut fake = Fake {
            torn: true,
            ..Fake::default()
        };
        let error = format!("{:#}", suite.measure(&mut fake).unwrap_err());
        assert!(error.contains("no result of a run"), "{error}");
        assert_eq!(suite.measure(&mut Fake::default()).unwrap().measured, 1);
    }

    #[test]
    fn a_run_that_fails_does_not_keep_others_from_being_measured() {
        let suite = Suite::new(4, States::Kept);
        let mut fake = Fake {
            ends: vec![("--workload uh", Ended::Badly("no space".to_owned()))],
            ..Fake::default()
        };
        let outcome = suite.measure(&mut fake).unwrap();
        assert_eq!(outcome.measured, 3);
        assert_eq!(outcome.failed, ["reads-hotrap-uh-hotspot-5: no space"]);
    }

    /// An engine may need what is not to be had here, as a memory limit that only root can set. With it ended the whole
    /// suite, and did so again whenever it was to go on.
    #[test]
    fn a_refusal_of_one_engine_does_not_keep_others_from_being_measured() {
        let suite = Suite::new(4, States::Kept);
        let mut fake = Fake {
            ends: vec![(
                "--engine leveled --workload uh",
                Ended::Refused("no memory limit".to_owned()),
            )],
            ..Fake::default()
        };
        let outcome = suite.measure(&mut fake).unwrap();
        assert_eq!((outcome.measured, outcome.failed.len()), (3, 1));
        assert!(outcome.failed[0].ends_with("no memory limit"));
    }

    #[test]
    fn a_state_that_cannot_be_loaded_is_tried_once() {
        let suite = Suite::new(4, States::Kept);
        let mut fake = Fake {
            ends: vec![("--engine leveled", Ended::Badly("no space".to_owned()))],
            ..Fake::default()
        };
        let outcome = suite.measure(&mut fake).unwrap();
        assert_eq!((outcome.measured, outcome.failed.len()), (2, 2));
        let loads = fake.log.iter().filter(|line| *line == "load leveled");
        assert_eq!(loads.count(), 1);
    }

    #[test]
    fn a_refusal_ends_the_suite_and_says_how_to_set_the_limits() {
        let mut suite = Suite::new(2, States::Kept);
        suite.cells[0].slow = Some(LIMITS);
        let reason = "--expect-slow-iops 400: the slow disk is faster".to_owned();
        let mut fake = Fake {
            ends: vec![("--json", Ended::Refused(reason))],
            ..Fake::default()
        };
        let error = suite.measure(&mut fake).unwrap_err();
        assert!(error.is::<BadArguments>());
        let error = error.to_string();
        for words in [
            "is faster",
            "scripts/slow-disk limit DIR 400 260",
            "--limit-slow",
        ] {
            assert!(error.contains(words), "{error}");
        }
        assert_eq!(fake.log, ["load hotrap", "ro hotrap"]);
    }

    #[test]
    fn limits_are_set_for_runs_and_lifted_for_loads() {
        let mut suite = Suite::new(4, States::Kept);
        for cell in &mut suite.cells {
            cell.slow = Some(LIMITS);
        }
        suite.limit_slow = Some("limit /slow");
        let mut fake = Fake::default();
        suite.measure(&mut fake).unwrap();
        assert_eq!(
            fake.log,
            [
                "limit /slow 0 0",
                "load hotrap",
                "limit /slow 400 260",
                "ro hotrap",
                "limit /slow 0 0",
                "load leveled",
                "limit /slow 400 260",
                "ro leveled",
                "uh hotrap",
                "uh leveled"
            ]
        );
    }

    #[test]
    fn a_cell_that_warms_up_without_limits_sets_them_itself() {
        let mut suite = Suite::new(2, States::Kept);
        suite.cells[0].slow = Some(LIMITS);
        suite.cells[0].warm_up_unlimited = true;
        suite.limit_slow = Some("limit /slow");
        let mut fake = Fake::default();
        suite.measure(&mut fake).unwrap();
        assert_eq!(
            fake.log,
            [
                "limit /slow 0 0",
                "load hotrap",
                "ro hotrap",
                "limit /slow 0 0",
                "load leveled",
                "ro leveled"
            ],
            "after the first, who knows what is set"
        );
    }
}
