//! A process that writes is killed, by its parent at a random moment or by itself at a named point.
//! Its store is opened again with other options. What comes back is a prefix of the writes across
//! keyspaces that holds everything that was handed over (I5), made of files that the manifest names
//! (I4). A journal outside of the store keeps what was asked of it.
//!
//! Options, writes and the place of each kill follow from the seed. How the threads of a child
//! meet, and what a kill at a random moment hits, does not.

mod expected;
mod journal;
mod life;
pub(in crate::harness) mod options;
mod points;

pub(crate) use life::{Task, live};

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use self::options::Directories;
use super::Harness;
use crate::cases::{self, Plan};
use crate::child::{self, Ended, Line, Running};
use crate::verdict::{Promise, Tally, Verdict, Violation};

pub(crate) const HARNESS: Harness = Harness {
    name: "kill",
    about: "a writing process is killed at named points and random moments, 6 times a store",
    small: 10,
    long: 400,
    run,
};

/// Kills of one store.
const CYCLES: u64 = 6;

/// The latest random moment, in microseconds after the start: about as long as a child takes that
/// is not killed.
const LATEST: f64 = 500_000.0;

/// After this many stores, every point must have been reached.
const ENOUGH: u64 = 100;

/// How often each point was reached, and how often a process ended there.
type Coverage = Mutex<BTreeMap<&'static str, (u64, u64)>>;

fn run(plan: &Plan) -> Verdict {
    let coverage = Coverage::default();
    let mut verdict = cases::run(HARNESS.name, plan, |seed, tally| {
        case(plan, seed, tally, &coverage)
    });
    let coverage = coverage.into_inner().unwrap_or_else(|e| e.into_inner());
    let killed = coverage.values().filter(|(_, killed)| *killed > 0).count();
    verdict.tally.add("points killed at", killed as u64);
    verdict.tally.add("points reached", coverage.len() as u64);
    if let Some(violation) = missing(&coverage, verdict.cases) {
        verdict.violations.push((plan.seed, violation));
    }
    verdict
}

/// Whether the engine has a point of this name. A run of this harness that never reaches a point is
/// a violation.
#[cfg(test)]
pub(crate) fn is_point(name: &str) -> bool {
    points::named(name).is_some()
}

/// What a run should have reached and did not.
fn missing(coverage: &BTreeMap<&'static str, (u64, u64)>, cases: u64) -> Option<Violation> {
    // A build without debug assertions has no points.
    if !cfg!(debug_assertions) || cases < ENOUGH {
        return None;
    }
    let never: Vec<&str> = points::all()
        .map(|(_, point)| point)
        .filter(|point| coverage.get(point).is_none_or(|(_, killed)| *killed == 0))
        .collect();
    (!never.is_empty()).then(|| {
        let message = format!("no process was killed at {}", never.join(", "));
        Violation::disorder(message)
    })
}

fn case(plan: &Plan, seed: u64, tally: &mut Tally, coverage: &Coverage) -> Result<(), Violation> {
    let home = plan.places.home()?;
    let directories = Directories {
        home: home.path().to_owned(),
    };
    let mut rng = SmallRng::seed_from_u64(seed);
    for cycle in 0..=CYCLES {
        let is_last = cycle == CYCLES;
        let by_itself = cfg!(debug_assertions) && cycle % 2 == 0 && !is_last;
        let point = by_itself.then(|| point(seed, cycle, &mut rng));
        let moment = LATEST.powf(rng.random_range(0.5..1.0));
        let moment = Duration::from_micros(moment as u64);
        let task = Task {
            seed,
            cycle,
            directories: directories.clone(),
            point,
            memory: None,
        };
        let child = Running::start(HARNESS.name, &child::Task::Kill(task))?;
        let ended = child.end((!by_itself && !is_last).then_some(moment))?;
        ended.check().map_err(|violation| Violation {
            message: format!("process {cycle} of the store: {}", violation.message),
            ..violation
        })?;
        count(&ended, tally, coverage)?;
    }
    Ok(())
}

/// Where the child of this cycle kills itself. Cases take all points in turn, whatever seed they
/// begin at.
fn point(seed: u64, cycle: u64, rng: &mut SmallRng) -> (String, u64) {
    let count = points::all().count() as u64;
    let index = (seed.wrapping_mul(CYCLES / 2) + cycle / 2) % count;
    let mut all = points::all().skip(index as usize);
    let (class, name) = all
        .next()
        .unwrap_or((&points::CLASSES[0], "wal.after_sync"));
    let nth = (class.most as f64).powf(rng.random_range(0.0..=1.0));
    (name.to_owned(), nth as u64)
}

/// Adds up what a child said.
fn count(ended: &Ended, tally: &mut Tally, coverage: &Coverage) -> Result<(), Violation> {
    let mut coverage = coverage.lock().unwrap_or_else(|e| e.into_inner());
    let unknown = |name: &str| {
        let message = format!("the point {name} is in no list of points to be killed at");
        Violation::new(Promise::Orderly, message)
    };
    for line in &ended.lines {
        match line {
            Line::Counted(what, count) => {
                const COUNTED: [&str; 4] = [
                    "openings checked",
                    "checkpoints checked",
                    "flushes",
                    "compactions onto the last tier",
                ];
                if let Some(what) = COUNTED.into_iter().find(|counted| counted == what) {
                    tally.add(what, *count);
                }
            }
            Line::Reached(name, times) => {
                let name = points::named(name).ok_or_else(|| unknown(name))?;
                coverage.entry(name).or_default().0 += times;
            }
            Line::Killing(name) => {
                let name = points::named(name).ok_or_else(|| unknown(name))?;
                coverage.entry(name).or_default().1 += 1;
                let mut all = points::all();
                let class = all
                    .find(|(_, point)| *point == name)
                    .map(|(class, _)| class);
                tally.add(class.map_or("kills elsewhere", |class| class.name), 1);
                tally.add("kills", 1);
            }
            Line::Broken(..) | Line::Done => {}
        }
    }
    if ended.killed {
        tally.add("kills at a random moment", 1);
        tally.add("kills", 1);
    } else if ended.is_done() {
        tally.add("lives to the end", 1);
    }
    Ok(())
}
