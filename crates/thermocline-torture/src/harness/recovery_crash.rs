//! The power goes while a store is opened after a loss of power, and again while that is repeated,
//! up to five times in a row. What recovery has written by then is as if it had never been (I4,
//! I5): the store opens to a prefix of the writes that holds everything synced.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thermocline::storage::{CrashStyle, Fault};

use super::Harness;
use crate::cases::{self, Plan};
use crate::life::{Trial, Wild, wild_cut, wild_life};
use crate::verdict::{Tally, Verdict, Violation};

pub(crate) const HARNESS: Harness = Harness {
    name: "recovery-crash",
    about: "the power goes during recovery, and during the recovery from that, five deep",
    small: 200,
    long: 10_000,
    run,
};

/// Recoveries in a row in which the power goes.
const DEEP: usize = 5;

/// The call of a life at which the power goes is drawn from this range.
const CALLS: std::ops::Range<u64> = 100..2_500;

/// How often the power went in a recovery, by how many recoveries in a row it had gone in.
const INTERRUPTED: [&str; DEEP] = [
    "recoveries interrupted, 1 deep",
    "recoveries interrupted, 2 deep",
    "recoveries interrupted, 3 deep",
    "recoveries interrupted, 4 deep",
    "recoveries interrupted, 5 deep",
];

fn run(plan: &Plan) -> Verdict {
    cases::run(HARNESS.name, plan, case).having_reached(HARNESS.small, &INTERRUPTED)
}

fn case(seed: u64, tally: &mut Tally) -> Result<(), Violation> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut trial = Trial::new(seed);
    let wild = Wild::new(&mut rng);
    trial.options = wild.options(&mut rng);
    let call = rng.random_range(CALLS);
    trial.disk.fail_nth(call, Fault::PowerLoss);
    trial.name = format!("cut at call {call}");
    trial.run_until_the_power_goes(&wild_life(&mut rng))?;
    for what in INTERRUPTED {
        let how = cut(&mut trial, &mut rng);
        trial.options = wild.options(&mut rng);
        let calls = calls_of_opening(&trial)?;
        let call = rng.random_range(1..=calls);
        trial.disk.fail_nth(call, Fault::PowerLoss);
        trial.name += &format!(", {how:?}, call {call} of {calls} of recovery");
        // Background work may have gone on, and the call may be one of its calls.
        let cut_short = match trial.db() {
            Ok(db) => db.wait_idle().is_err(),
            Err(stop) => {
                let message = stop.clone().unexpected("open").message;
                match stop.error()? {
                    thermocline::Error::Io { .. } | thermocline::Error::Poisoned { .. } => true,
                    _ => return Err(trial.named(Violation::disorder(message))),
                }
            }
        };
        tally.add(what, cut_short.into());
    }
    let how = cut(&mut trial, &mut rng);
    trial.name += &format!(", {how:?}");
    trial.come_back()
}

/// Cuts the power, and goes on with the disk that is left.
fn cut(trial: &mut Trial, rng: &mut SmallRng) -> CrashStyle {
    let how = wild_cut(rng);
    let disk = trial.disk.crash(how);
    trial.wake(disk);
    how
}

/// How many calls opening the store takes, tried on a copy of its disk.
fn calls_of_opening(trial: &Trial) -> Result<u64, Violation> {
    let mut copy = trial.on(trial.disk.image(|_| true));
    copy.db().map_err(|stop| stop.unexpected("open"))?;
    Ok(copy.disk.calls())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_may_be_interrupted_five_times_in_a_row() {
        let verdict = run(&Plan::new(1, 30));
        assert!(verdict.is_clean(), "{verdict}");
        for what in INTERRUPTED {
            assert!(verdict.tally.get(what) > 20, "{verdict}");
        }
    }
}
