//! Open files, the size of files, the disk or memory are used up.
//!
//! While a limit holds, calls fail with an error that names it, reads go on, and nothing that was
//! acknowledged is lost. Once the limit is lifted, everything works again without a restart. Memory
//! is the exception: a Rust program that gets none aborts. That is a kill like any other: the store
//! is sound when it is opened again.

pub(in crate::harness) mod limits;
mod work;

pub(crate) use work::{Task, work};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::{Harness, kill};
use crate::cases::{self, Plan};
use crate::child::{self, Ended, Line, Running, has_own_disks};
use crate::verdict::{Tally, Verdict, Violation};

pub(crate) const HARNESS: Harness = Harness {
    name: "exhaustion",
    about: "open files, file sizes, a small disk and memory are used up, and given back",
    small: 16,
    long: 400,
    run,
};

/// Something that is used up while the store goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Resource {
    OpenFiles,
    FileSize,
    Disk,
}

/// Bytes of the disk that is filled.
const DISK: u64 = 12 << 20;

/// Processes of a store that run out of memory.
const CYCLES: u64 = 3;

fn run(plan: &Plan) -> Verdict {
    let disks = has_own_disks();
    let mut verdict = cases::run(HARNESS.name, plan, |seed, tally| match seed % 4 {
        0 => under(Resource::OpenFiles, plan, seed, tally),
        1 => under(Resource::FileSize, plan, seed, tally),
        2 if disks => under(Resource::Disk, plan, seed, tally),
        2 => {
            tally.add("disks that could not be had", 1);
            Ok(())
        }
        _ => without_memory(plan, seed, tally),
    });
    let counted = |what: &str| verdict.tally.get(what);
    if verdict.cases >= HARNESS.small
        && (counted("refusals") == 0 || counted("processes without memory") == 0)
    {
        let nothing = "nothing was refused, or no process ran out of memory";
        verdict
            .violations
            .push((plan.seed, Violation::disorder(nothing)));
    }
    verdict
}

fn under(resource: Resource, plan: &Plan, seed: u64, tally: &mut Tally) -> Result<(), Violation> {
    let home = plan.places.home()?;
    let path = home.path().to_owned();
    let task = child::Task::Exhaust(Task {
        resource,
        seed,
        home: path.clone(),
    });
    let child = match resource {
        Resource::Disk => Running::start_with_disk(HARNESS.name, &task, &path, DISK)?,
        _ => Running::start(HARNESS.name, &task)?,
    };
    let ended = child.end(None)?;
    count(&ended, tally);
    tally.add(
        match resource {
            Resource::OpenFiles => "stores without open files",
            Resource::FileSize => "stores without room in a file",
            Resource::Disk => "stores on a full disk",
        },
        1,
    );
    ended.check().map_err(|violation| Violation {
        message: format!("{resource:?}: {}", violation.message),
        ..violation
    })
}

/// A store whose processes abort, one after another, for want of memory, and then one process that
/// has enough.
fn without_memory(plan: &Plan, seed: u64, tally: &mut Tally) -> Result<(), Violation> {
    let home = plan.places.home()?;
    let mut rng = SmallRng::seed_from_u64(seed);
    for cycle in 0..=CYCLES {
        let memory = rng.random_range(0..1536u64 << 10);
        let task = kill::Task {
            seed,
            cycle,
            directories: kill::options::Directories {
                home: home.path().to_owned(),
            },
            point: None,
            memory: (cycle < CYCLES).then_some(memory),
        };
        let ended = Running::start(HARNESS.name, &child::Task::Kill(task))?.end(None)?;
        count(&ended, tally);
        let checked = ended.check();
        let is_broken = ended
            .lines
            .iter()
            .any(|line| matches!(line, Line::Broken(..)));
        if ended.had_no_memory() && !is_broken {
            tally.add("processes without memory", 1);
        } else {
            checked.map_err(|violation| Violation {
                message: format!("process {cycle} without memory: {}", violation.message),
                ..violation
            })?;
        }
    }
    Ok(())
}

fn count(ended: &Ended, tally: &mut Tally) {
    const COUNTED: [&str; 3] = ["refusals", "openings refused", "openings checked"];
    for line in &ended.lines {
        if let Line::Counted(what, count) = line
            && let Some(what) = COUNTED.into_iter().find(|counted| counted == what)
        {
            tally.add(what, *count);
        }
    }
}
