//! A store, its background work and its clients, all driven by one seed.
//!
//! Several clients take turns that are drawn from the seed: they write, read, scan, hold
//! snapshots, compare and write, flush, compact and copy. Between their turns steps of background
//! jobs run ([`thermocline::executor::Stepped`]), the clock moves, calls of the disk fail
//! ([`thermocline::storage::Faulty`]), the power goes, and the store is opened again with other
//! settings. Every answer is compared with a model (I1, I5). Every call of the storage and every
//! answer enters a hash: the same seed gives the same one, so a failure is replayed whole.
//!
//! A turn runs from its beginning to its end on the only thread that there is. A client that has to
//! wait runs background steps meanwhile, but no other client gets in. So this harness cannot have
//! writers that meet in the middle of a commit, or a read that is overtaken in the middle of its
//! search. The harnesses `threads` and `linearizability` and the models of the commit queue are for
//! those.

mod clients;
mod trace;
mod traced;
mod turns;
mod world;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::Harness;
use crate::cases::{self, Plan};
use crate::verdict::{Tally, Verdict, Violation};

use self::clients::Clients;
use self::world::World;

pub(crate) const HARNESS: Harness = Harness {
    name: "simulation",
    about: "clients, background work, faults and crashes, all in one seeded order",
    small: 300,
    long: 100_000,
    run,
};

/// A run that has not reached these is a failure.
const REACHED: &[&str] = &[
    "flushes",
    "crossings",
    "bytes promoted by flush",
    "bytes promoted by compaction",
    "bytes retained",
    "bytes past the last fast level",
    "evictions of access records",
    "losses of power",
    "ends without closing",
    "clean closes",
    "openings that failed",
    "faults that hit",
    "writes refused after a failed sync",
    "checkpoints",
    "conditions met",
    "conditions not met",
    "records from scans",
    "reads of snapshots",
    "cases run twice",
];

/// Turns of one case.
const TURNS: usize = 900;

/// One in this many cases runs twice, to see that nothing but the seed decides.
const TWICE: u64 = 32;

fn run(plan: &Plan) -> Verdict {
    cases::run(HARNESS.name, plan, case).having_reached(HARNESS.small, REACHED)
}

fn case(seed: u64, tally: &mut Tally) -> Result<(), Violation> {
    let trace = simulate(seed, tally)?;
    if seed.is_multiple_of(TWICE) {
        tally.add("cases run twice", 1);
        if simulate(seed, &mut Tally::default())? != trace {
            return Err(Violation::disorder("the same seed gives another trace"));
        }
    }
    Ok(())
}

/// Runs the case of `seed`; returns the hash of everything that happened.
fn simulate(seed: u64, tally: &mut Tally) -> Result<u64, Violation> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut world = World::new(seed, rng.random())?;
    let mut clients = Clients::default();
    for turn in 0..TURNS {
        turns::take(&mut world, &mut clients, &mut rng)
            .map_err(|v| Violation::new(v.promise, format!("turn {turn}: {}", v.message)))?;
    }
    turns::end(&mut world, &mut clients, &mut rng)?;
    tally.merge(&world.tally);
    Ok(world.trace.hash())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_faults_and_crashes_leave_every_answer_right() {
        let verdict = run(&Plan {
            jobs: 2,
            ..Plan::new(1, 100)
        });
        assert!(verdict.is_clean(), "{verdict}");
        let reached = |what: &&str| verdict.tally.get(what) > 0;
        assert!(REACHED.iter().all(reached), "{verdict}");
    }

    /// Runs on two threads at once, so that nothing may depend on the thread, an address or the
    /// time.
    #[test]
    fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
        let traces = || -> Vec<u64> {
            let mut tally = Tally::default();
            (1..=12)
                .map(|seed| simulate(seed, &mut tally).unwrap())
                .collect()
        };
        let (first, second) = std::thread::scope(|scope| {
            let other = scope.spawn(traces);
            (traces(), other.join().unwrap())
        });
        assert_eq!(first, second);
        let mut different = first.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), first.len(), "{first:x?}");
    }
}
