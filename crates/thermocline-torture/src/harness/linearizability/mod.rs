//! Linearizability of single-key operations and of batches, while memtables are flushed, records
//! come up and tables go down.
//!
//! Eight threads put, delete, compare and write, and read; invocations and responses are stamped
//! in the order in which they happen. What is written together is one object: a register that a
//! batch sets in all its keys at once, and of which a reader sees all or nothing. A batch of one
//! key is the single-key case. The history of each object goes to a checker of its own: a store is
//! linearizable if each object is. The seed fixes what each thread does, not how they meet.

mod history;
mod objects;
mod threads;

use thermocline::{Options, Placement, TierOptions};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::Harness;
use crate::cases::{self, Plan};
use crate::random_options::random_hotrap;
use crate::stores::{memory, open_with_pauses};
use crate::verdict::{Tally, Verdict, Violation};

use self::threads::Race;

pub(crate) const HARNESS: Harness = Harness {
    name: "linearizability",
    about: "histories of eight threads, by a linearizability checker",
    small: 4,
    long: 500,
    run,
};

/// What a run is found wanting without.
const REACHED: &[&str] = &[
    "flushes",
    "crossings",
    "bytes promoted by flush",
    "bytes promoted by compaction",
    "bytes retained",
    "operations that overlapped another of their object",
    "conditions met",
    "conditions not met",
    "batches of several keys",
    "reads of several keys",
];

fn run(plan: &Plan) -> Verdict {
    cases::run(HARNESS.name, plan, case).having_reached(HARNESS.small, REACHED)
}

/// A store so small that a few thousand operations take every way through it.
fn options(seed: u64) -> Options {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut options = Options::with_tiers(vec![
        TierOptions::fast("/fast")
            .capacity(512 << 10)
            .block_size(1024),
        TierOptions::slow("/slow").block_size(2048),
    ]);
    options.memory = 2 << 20;
    options.memtable_size = Some(16 << 10);
    options.table_size = Some(16 << 10);
    options.l0_trigger = rng.random_range(1..=4);
    options.level_ratio = rng.random_range(2..=8);
    options.block_cache = rng.random_bool(0.5).then_some(0);
    if options.block_cache.is_none() {
        options.record_cache = 64 << 10;
    }
    options.seed = Some(seed);
    options.placement = Placement::HotRap(random_hotrap(&mut rng));
    options
}

fn case(seed: u64, tally: &mut Tally) -> Result<(), Violation> {
    let db = open_with_pauses(&options(seed), &memory())?;
    let histories = Race::new(&db, seed)?.run(tally)?;
    let metrics = db.metrics();
    tally.add("flushes", metrics.flushes);
    for job in &metrics.compactions {
        let slow: u64 = job.write_bytes.iter().skip(1).sum();
        let from_fast = job.read_bytes.first().is_some_and(|bytes| *bytes > 0);
        tally.add("crossings", u64::from(from_fast && slow > 0));
    }
    if let Some(hotrap) = metrics.hotrap {
        tally.add("bytes promoted by flush", hotrap.promoted_flush_bytes);
        tally.add(
            "bytes promoted by compaction",
            hotrap.promoted_compaction_bytes,
        );
        tally.add("bytes retained", hotrap.retained_bytes);
    }
    db.close()?;
    histories.iter().try_for_each(|history| {
        tally.add("histories checked", 1);
        history.check(tally)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_threads_leave_histories_that_are_linearizable() {
        let verdict = run(&Plan::new(1, HARNESS.small));
        assert!(verdict.is_clean(), "{verdict}");
    }
}
