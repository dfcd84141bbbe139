//! Runs the cases of a harness on several threads and adds up what they found.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use indicatif::{ProgressBar, ProgressStyle};

use crate::verdict::{Promise, Tally, Verdict, Violation};

/// A run is cut short after this many broken promises: more of them say nothing new.
const ENOUGH: usize = 10;

/// How much of a harness to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Seed of the first case; case *i* has the seed plus *i*.
    pub seed: u64,
    /// How many cases.
    pub cases: u64,
    /// Threads that run cases side by side.
    pub jobs: usize,
    /// No case is begun after this time.
    pub limit: Option<Duration>,
    /// Directories for harnesses that use real ones.
    pub places: Places,
}

/// Where harnesses put what they put on disk.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Stores of the harnesses that start processes; by default the system's temporary directory.
    pub dir: Option<PathBuf>,
    /// The fast tier of a soak; by default in `dir`.
    pub fast: Option<PathBuf>,
    /// The slow tier of a soak; by default in `dir`.
    pub slow: Option<PathBuf>,
    /// A file for what a soak measures, a line of JSON a second.
    pub series: Option<PathBuf>,
}

impl Places {
    /// A directory for one store, removed when it is dropped.
    ///
    /// # Errors
    /// What keeps it from being made.
    pub(crate) fn home(&self) -> Result<TempDir, Violation> {
        let home = match &self.dir {
            Some(dir) => std::fs::create_dir_all(dir).and_then(|()| tempfile::tempdir_in(dir)),
            None => tempfile::tempdir(),
        };
        home.map_err(|error| format!("a directory for the store: {error}").into())
    }
}

impl Plan {
    /// The cases from `seed` on, one after another.
    pub fn new(seed: u64, cases: u64) -> Self {
        Self {
            seed,
            cases,
            jobs: 1,
            limit: None,
            places: Places::default(),
        }
    }
}

/// Runs the cases of `plan`. A case that panics has broken [`Promise::Alive`].
pub fn run(
    harness: &'static str,
    plan: &Plan,
    case: impl Fn(u64, &mut Tally) -> Result<(), Violation> + Sync,
) -> Verdict {
    let begun = Instant::now();
    let next = AtomicU64::new(0);
    let bar = progress(harness, plan.cases);
    let found = Mutex::new((0, Tally::default(), Vec::new()));
    let work = || loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let late = plan.limit.is_some_and(|limit| begun.elapsed() >= limit);
        if index >= plan.cases || late {
            return;
        }
        let seed = plan.seed.wrapping_add(index);
        let mut tally = Tally::default();
        let outcome = catch_unwind(AssertUnwindSafe(|| case(seed, &mut tally)))
            .unwrap_or_else(|panic| Err(Violation::new(Promise::Alive, said(&*panic))));
        bar.inc(1);
        let mut found = found.lock().unwrap_or_else(|e| e.into_inner());
        found.0 += 1;
        found.1.merge(&tally);
        if let Err(violation) = outcome {
            found.2.push((seed, violation));
        }
        if found.2.len() >= ENOUGH {
            next.store(plan.cases, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..plan.jobs.max(1) {
            scope.spawn(work);
        }
    });
    bar.finish_and_clear();
    let (cases, tally, mut violations) = found.into_inner().unwrap_or_else(|e| e.into_inner());
    violations.sort_by_key(|(seed, _)| *seed);
    Verdict {
        harness,
        seed: plan.seed,
        cases,
        tally,
        violations,
        elapsed: begun.elapsed(),
    }
    .having_run()
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}

/// A bar on standard error, where that is a terminal.
fn progress(harness: &'static str, cases: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} [{wide_bar}] {pos}/{len} eta {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(cases)
        .with_style(style)
        .with_message(harness)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_promise_names_the_seed_that_shows_it_again() {
        let case = |seed: u64, tally: &mut Tally| {
            tally.add("looked at", 2);
            match seed {
                103 => Err(Violation::new(Promise::Kept, "gone")),
                105 => panic!("ouch"),
                _ => Ok(()),
            }
        };
        let plan = Plan {
            jobs: 3,
            ..Plan::new(100, 8)
        };
        let verdict = run("trial", &plan, case);
        assert_eq!((verdict.cases, verdict.tally.get("looked at")), (8, 16));
        let seeds: Vec<u64> = verdict.violations.iter().map(|(seed, _)| *seed).collect();
        assert_eq!(seeds, [103, 105]);
        assert_eq!(verdict.broken(Promise::Kept), 1);
        assert_eq!(verdict.violations[1].1.promise, Promise::Alive);
        let text = verdict.to_string();
        assert!(
            text.contains("torture trial --seed 103 --cases 1"),
            "{text}"
        );
        let again = run("trial", &Plan::new(103, 1), case);
        assert_eq!(again.violations, verdict.violations[..1]);
    }

    #[test]
    fn no_case_is_begun_after_the_limit() {
        let plan = Plan {
            limit: Some(Duration::ZERO),
            ..Plan::new(1, 5)
        };
        assert_eq!(run("trial", &plan, |_, _| Ok(())).cases, 0);
    }
}
