//! The power goes, several times in the life of one store, at any call of the disk and at named
//! points. What comes back is a prefix of the writes across keyspaces that holds everything synced
//! (I5), made of files that the manifest names (I4).
//!
//! Every eighth life runs on real threads. What happens in it does not follow from the seed alone.

mod points;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thermocline::storage::Fault;

use self::points::POINTS;
use super::Harness;
use crate::cases::{self, Plan};
use crate::life::{Hotness, Trial, Wild, wild_cut, wild_life};
use crate::verdict::{Tally, Verdict, Violation};

pub(crate) const HARNESS: Harness = Harness {
    name: "power-cut",
    about: "the power goes at any call and at named points, several times in one store's life",
    small: 100,
    long: 10_000,
    run,
};

/// Calls that a long life makes.
const CALLS: u64 = 2_500;
/// Lives of one store.
const LIVES: usize = 3;
/// How many images of one loss of power are opened beside the one that the store goes on from.
const IMAGES: usize = 4;

/// What a run must have met. In a build with named points, there is more.
const REACHED: &[&str] = &[
    IMAGES_OPENED,
    CUT_AT_A_CALL,
    ON_THREADS,
    UNSYNCED,
    ON_LAST_TIER,
];
const IMAGES_OPENED: &str = "crash images opened";
const CUT_AT_A_CALL: &str = "lives cut short at a call";
const CUT_AT_A_POINT: &str = "lives cut short at a named point";
const ON_THREADS: &str = "lives on threads";
const UNSYNCED: &str = "unsynced pieces at a cut";
const ON_LAST_TIER: &str = "lives with tables on the last of several tiers";

fn run(plan: &Plan) -> Verdict {
    reached(cases::run(HARNESS.name, plan, case), HARNESS.small)
        .having_reached(HARNESS.small, &Hotness::COUNTED)
}

/// Requires that a verdict over this many cases has all that a run must have met.
fn reached(verdict: Verdict, cases: u64) -> Verdict {
    let points: &[&str] = match cfg!(debug_assertions) {
        true => &[CUT_AT_A_POINT],
        false => &[],
    };
    verdict
        .having_reached(cases, REACHED)
        .having_reached(cases, points)
}

fn case(seed: u64, tally: &mut Tally) -> Result<(), Violation> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut trial = Trial::new(seed);
    let wild = Wild::new(&mut rng);
    trial.options = wild.options(&mut rng);
    for life in 1..=LIVES {
        trial.threads = rng.random_bool(0.125);
        tally.add(ON_THREADS, trial.threads.into());
        trial.name = format!("life {life}");
        let point = plan_cut(&mut trial, life, &mut rng);
        let style = wild_cut(&mut rng);
        trial.name += &format!(", {style:?}");
        let cut_short = trial.run_until_the_power_goes(&wild_life(&mut rng))?;
        match point {
            None => tally.add(CUT_AT_A_CALL, cut_short.into()),
            Some(point) => {
                tally.add(CUT_AT_A_POINT, cut_short.into());
                tally.add(point, cut_short.into());
            }
        }
        if let Some(db) = &trial.db {
            let tiers = db.metrics().tiers;
            let used = tiers.last().is_some_and(|tier| tier.table_bytes > 0);
            tally.add(ON_LAST_TIER, (used && tiers.len() > 1).into());
        }
        open_images(&trial, &mut rng, tally)?;
        tally.add(IMAGES_OPENED, 1);
        trial.survive(style)?;
        trial.options = wild.options(&mut rng);
    }
    trial.hotness.count(tally);
    Ok(())
}

/// Plans where the power goes: at a named point, or at a call.
fn plan_cut(trial: &mut Trial, life: usize, rng: &mut SmallRng) -> Option<&'static str> {
    if cfg!(debug_assertions) && rng.random_bool(0.4) {
        let point = POINTS[rng.random_range(0..POINTS.len())];
        // Most points are reached a few times, some at every write.
        let nth = 1 << rng.random_range(0..6);
        let nth = rng.random_range(1..=nth);
        trial.name += &format!(", cut at {point} the {nth}. time");
        points::cut_power_at(trial, point, nth);
        return Some(point);
    }
    // The first life must fill the store.
    let least = if life == 1 { CALLS / 3 } else { 1 };
    let call = rng.random_range(least..CALLS);
    trial.name += &format!(", cut at call {call}");
    trial.disk.fail_nth(call, Fault::PowerLoss);
    None
}

/// Opens some of what this loss of power may have left.
fn open_images(trial: &Trial, rng: &mut SmallRng, tally: &mut Tally) -> Result<(), Violation> {
    let pieces = trial.disk.unsynced().len();
    tally.add("unsynced pieces at a cut", pieces as u64);
    for _ in 0..IMAGES {
        let share = rng.random_range(0.0..1.0);
        let kept: Vec<bool> = (0..pieces).map(|_| rng.random_bool(share)).collect();
        // Threads may go on until the first image is taken.
        let keeps = |piece| kept.get(piece).copied().unwrap_or(false);
        let mut image = trial.on(trial.disk.image(keeps));
        image.db().map_err(|stop| stop.unexpected("open"))?;
        tally.add(IMAGES_OPENED, 1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_survive_power_cuts_at_calls_and_at_points() {
        let verdict = reached(run(&Plan::new(100_000, 30)), 30);
        assert!(verdict.is_clean(), "{verdict}");
    }
}
