//! The power goes at a call drawn from the seed. What comes back is a prefix of the writes across
//! keyspaces with everything synced in it (I5), made of files that the manifest names (I4).

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thermocline::storage::{CrashStyle, Fault};

use super::Harness;
use crate::cases::{self, Plan};
use crate::life::{LIFE, Trial, WARMING};
use crate::verdict::{Tally, Verdict, Violation};

pub(crate) const HARNESS: Harness = Harness {
    name: "power-cut",
    about: "the power goes at any call of a store's life",
    small: 200,
    long: 20_000,
    run,
};

/// Calls that a life makes at least.
const CALLS: u64 = 2_500;

fn run(plan: &Plan) -> Verdict {
    cases::run(HARNESS.name, plan, case)
}

fn case(seed: u64, tally: &mut Tally) -> Result<(), Violation> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let life = [LIFE, WARMING][rng.random_range(0..2)];
    let styles = [CrashStyle::LoseAll, CrashStyle::KeepAll, CrashStyle::Random];
    let style = styles[rng.random_range(0..styles.len())];
    let mut trial = Trial::new(seed);
    let call = rng.random_range(1..CALLS);
    trial.name = format!("{style:?} at call {call}");
    trial.disk.fail_nth(call, Fault::PowerLoss);
    let cut_short = trial.run_until_it_fails(life)?.is_some();
    tally.add("lives cut short", cut_short.into());
    trial.survive(style)
}
