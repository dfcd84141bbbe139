//! Linearizability of single-key operations and of batches, while memtables are flushed, records
//! come up and tables go down.
//!
//! Eight threads put, delete, compare and write, and read. Invocations and responses are stamped in
//! the order in which they happen. Keys that are written together are one object: a register that a
//! batch sets in all its keys at once, and of which a reader sees all or nothing. A batch of one
//! key is the single-key case. The history of each object goes to a checker of its own, because a
//! store is linearizable if each object is. The seed fixes what each thread does, not how they
//! meet.

mod history;
mod objects;
mod threads;

use super::Harness;
use crate::cases::{self, Plan};
use crate::random_options::crowded_options;
use crate::stores::{memory, open_with_pauses};
use crate::verdict::{Tally, Verdict, Violation};
use crate::work_done::count_work;

use self::threads::Race;

pub(crate) const HARNESS: Harness = Harness {
    name: "linearizability",
    about: "histories of eight threads, by a linearizability checker",
    small: 4,
    long: 500,
    run,
};

/// A run that has not reached these is a failure.
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

fn case(seed: u64, tally: &mut Tally) -> Result<(), Violation> {
    let db = open_with_pauses(&crowded_options(seed, 512 << 10), &memory())?;
    let histories = Race::new(&db, seed)?.run(tally)?;
    count_work(&db.metrics(), tally);
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
