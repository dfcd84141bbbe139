//! Small workloads, and every state that a loss of power may leave at any call of the last action:
//! all subsets of the unsynced sectors and names. Each of them opens to a prefix of the writes that
//! holds everything synced (I5).
//!
//! As long as a moment has at most 12 unsynced pieces, the states are enumerated, not drawn. If it
//! has more, a long write is torn in fewer places. States are drawn only for a moment with more
//! than 12 unsynced writes and names. The report counts each kind.

mod states;
mod workload;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use thermocline::storage::{CrashStyle, Fault};

use self::states::{Cover, States};
use self::workload::{ALL, Action, prepare, workload};
use super::Harness;
use super::calls::{Calls, reads};
use crate::cases::{self, Plan};
use crate::life::{Stop, Trial};
use crate::verdict::{Tally, Verdict, Violation};

pub(crate) const HARNESS: Harness = Harness {
    name: "crash-states",
    about: "every state that a power cut may leave after every workload of three actions",
    small: 35,
    long: ALL,
    run,
};

const OPENED: &str = "states opened";

/// What a run must have met.
const REACHED: &[&str] = &[
    "moments",
    "moments covered wholly",
    "moments with an unsynced name",
    OPENED,
];

fn run(plan: &Plan) -> Verdict {
    cases::run(HARNESS.name, plan, case).having_reached(HARNESS.small, REACHED)
}

/// Seed 1 is the first workload.
fn case(seed: u64, tally: &mut Tally) -> Result<(), Violation> {
    let actions = workload(seed.wrapping_sub(1));
    let mut healthy = before_the_last(&actions, seed)?;
    let made = Calls::of(&healthy.disk);
    last(&actions, &mut healthy).map_err(|stop| stop.unexpected("without a fault"))?;
    let made = made.so_far();
    drop(healthy);
    let calls = made.len() as u64;
    // One more than there are calls: then the power goes after the action.
    for call in 1..=calls + 1 {
        let previous = made.get(call.wrapping_sub(2) as usize);
        if previous.is_some_and(|operation| reads(*operation)) && call <= calls {
            // The disk is as it was a call ago.
            continue;
        }
        let mut trial = before_the_last(&actions, seed)?;
        trial.name = format!("{actions:?}, the power goes at call {call} of {calls} of the last");
        trial.disk.fail_nth(call, Fault::PowerLoss);
        if let Err(stop) = last(&actions, &mut trial) {
            stop.error()?;
        }
        open_states(&trial, seed, tally)?;
        for how in [CrashStyle::LoseAll, CrashStyle::KeepAll] {
            let kept = how == CrashStyle::KeepAll;
            let mut image = trial.on(trial.disk.image(|_| kept));
            image.name += &format!(", {how:?}");
            image.come_back()?;
        }
    }
    tally.add("workloads", 1);
    Ok(())
}

/// A store that has done all of `actions` except the last.
fn before_the_last(actions: &[Action], seed: u64) -> Result<Trial, Violation> {
    let mut trial = Trial::new(seed);
    let begin = |trial: &mut Trial| -> Result<(), Stop> {
        prepare(trial)?;
        let mut earlier = actions.iter().take(actions.len() - 1).enumerate();
        earlier.try_for_each(|(number, action)| action.take(trial, number))
    };
    begin(&mut trial).map_err(|stop| stop.unexpected("without a fault"))?;
    Ok(trial)
}

fn last(actions: &[Action], trial: &mut Trial) -> Result<(), Stop> {
    match actions.last() {
        Some(action) => action.take(trial, actions.len() - 1),
        None => Ok(()),
    }
}

/// Opens every state that the power may have left, and the checkpoint in it.
fn open_states(trial: &Trial, seed: u64, tally: &mut Tally) -> Result<(), Violation> {
    let pieces = trial.disk.unsynced();
    let states = States::of(&pieces, &mut SmallRng::seed_from_u64(seed));
    for state in 0..states.len() {
        let disk = trial.disk.image(|piece| states.keeps(state, piece));
        let mut image = trial.on(disk);
        let say = |problem: Violation| Violation {
            message: format!("state {state} of {}: {}", states.len(), problem.message),
            ..problem
        };
        image
            .db()
            .map_err(|stop| say(stop.unexpected(&trial.name)))?;
        image.check_copy().map_err(say)?;
    }
    tally.add("moments", 1);
    let cover = match states.cover {
        Cover::Whole => "moments covered wholly",
        Cover::Coarse => "moments with a long write torn in fewer places",
        Cover::Drawn => "moments with states drawn",
    };
    tally.add(cover, 1);
    tally.add(OPENED, states.len() as u64);
    let named = pieces.iter().any(|piece| piece.directory.is_some());
    tally.add("moments with an unsynced name", named.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::workload::count;
    use super::*;

    #[test]
    fn every_state_after_one_action_opens_to_a_prefix() {
        let verdict = run(&Plan::new(1, count(1))).having_reached(count(1), REACHED);
        assert!(verdict.is_clean(), "{verdict}");
        assert!(verdict.tally.get(OPENED) > verdict.tally.get("moments"));
        assert_eq!(verdict.tally.get("workloads"), count(1));
    }
}
