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

/// A harness that only records what it is asked for.
#[derive(Default)]
struct Fake {
    /// What was asked for, in words.
    log: Vec<String>,
    loaded: Vec<String>,
    /// How the next benchmarks end, by a word of their command lines.
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

/// Regression: an engine may need something that is not available here, such as a memory limit that
/// only root can set. This ended the whole suite, and did so again whenever the suite was to go on.
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

/// Regression: if one group could not be measured on the disk, that ended the whole suite, and did
/// so again whenever the suite was to go on. Figure 16 kept some eighty cells with other limits
/// from being measured.
#[test]
fn a_refusal_leaves_cells_of_other_limits_measured() {
    let mut suite = Suite::new(4, States::Kept);
    let other = SlowLimits {
        iops: 5000,
        ..LIMITS
    };
    for (cell, slow) in suite.cells.iter_mut().zip([LIMITS, other, LIMITS, other]) {
        cell.slow = Some(slow);
    }
    let reason = "--expect-slow-bandwidth 260: the slow disk is slower".to_owned();
    let mut fake = Fake {
        ends: vec![("--json", Ended::Refused(reason))],
        ..Fake::default()
    };
    let outcome = suite.measure(&mut fake).unwrap();
    assert_eq!(outcome.measured, 2);
    assert_eq!(
        fake.log,
        [
            "load hotrap",
            "ro hotrap",
            "load leveled",
            "ro leveled",
            "uh leveled"
        ]
    );
    let failed = outcome.failed;
    for (failed, id) in failed.iter().zip(["reads-hotrap-ro-", "reads-hotrap-uh-"]) {
        let is_told = failed.contains("the slow disk is slower");
        assert!(failed.starts_with(id) && is_told, "{failed}");
    }
    assert_eq!(failed.len(), 2);
    assert!(failed[0].contains("scripts/slow-disk limit DIR 400 260"));
}

#[test]
fn a_refusal_of_the_limits_of_all_ends_the_suite_and_says_how_to_set_them() {
    let mut suite = Suite::new(2, States::Kept);
    for cell in &mut suite.cells {
        cell.slow = Some(LIMITS);
    }
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
