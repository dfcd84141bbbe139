//! Every call of the disk in a fixed script fails in every way that it can, once and from then on.
//! There is no panic, no waiting for ever and no wrong answer: what was acknowledged is there,
//! reads go on where they can, and writing resumes without a restart once there is space again (I8,
//! I9).

mod script;

use std::sync::OnceLock;

use thermocline::storage::{CrashStyle, Fault, Operation};
use thermocline::{Durability, Error};

use self::script::{Healthy, SCRIPT, healthy, store};
use super::Harness;
use crate::cases::{self, Plan};
use crate::life::history::contents;
use crate::life::{Hotness, Step, Trial};
use crate::verdict::{Promise, Tally, Verdict, Violation};

pub(crate) const HARNESS: Harness = Harness {
    name: "nth-call",
    about: "every call of a fixed script fails in every way it can, once and from then on",
    small: 60,
    long: MOST_CALLS,
    run,
};

/// At least as many as the script makes; a test says so.
const MOST_CALLS: u64 = 7_500;

/// Prime, and more than the calls: steps by it reach every call, in an order in which the first few
/// are of all kinds.
const STRIDE: u64 = 7_919;

/// This many times the calls of the script is no longer work, but going round in circles.
const TOO_MANY: u64 = 10;

const FAULTS: [Fault; 5] = [
    Fault::Io,
    Fault::NoSpace,
    Fault::SyncFails,
    Fault::ShortWrite,
    Fault::ShortRead,
];

/// What a run must have met.
const REACHED: &[&str] = &[
    "calls hit",
    "scripts through a fault that lasts",
    "scripts through a fault that passes",
    "stores that stopped writing",
    "stores that resumed writing without a restart",
    "reads compared after a fault",
    "scripts that reach the slow tier",
];

static HEALTHY: OnceLock<Result<Healthy, Violation>> = OnceLock::new();

fn run(plan: &Plan) -> Verdict {
    cases::run(HARNESS.name, plan, case)
        .having_reached(HARNESS.small, REACHED)
        .having_reached(HARNESS.small, &Hotness::COUNTED)
}

/// All faults of one call of the script. Seeds from 1 on reach each call once.
fn case(seed: u64, tally: &mut Tally) -> Result<(), Violation> {
    let healthy = HEALTHY.get_or_init(healthy).as_ref();
    let healthy = healthy.map_err(Violation::clone)?;
    let count = healthy.calls.len() as u64;
    if seed > count {
        return Ok(());
    }
    let index = seed.wrapping_mul(STRIDE) % count;
    let operation = healthy.calls[index as usize];
    healthy.hotness.count(tally);
    tally.add("scripts that reach the slow tier", healthy.crossed.into());
    tally.add("calls hit", 1);
    for fault in FAULTS {
        if !fault.applies_to(operation) {
            continue;
        }
        for passes in [true, false] {
            let mut trial = store();
            let lasting = if passes { "once" } else { "from then on" };
            let call = index + 1;
            trial.name = format!("{fault:?} {lasting} at call {call} of {count}, {operation:?}");
            match passes {
                true => trial.disk.fail_nth(call, fault),
                false => trial.disk.fail_from(call, fault),
            }
            trial.disk.fail_from(TOO_MANY * count, Fault::PowerLoss);
            let script = Script {
                trial: &mut trial,
                operation,
                fault,
                passes,
                tally,
            };
            let lived = script.live(call);
            if trial.disk.calls() >= TOO_MANY * count {
                let message = "goes round in circles, calling the disk again and again";
                return Err(trial.named(Violation::new(Promise::Alive, message)));
            }
            lived.map_err(|problem| trial.named(problem))?;
        }
    }
    Ok(())
}

/// One way through the script.
struct Script<'a> {
    trial: &'a mut Trial,
    /// What fails first.
    operation: Operation,
    fault: Fault,
    /// The fault does not last, so that trying again works.
    passes: bool,
    tally: &'a mut Tally,
}

impl Script<'_> {
    fn live(mut self, call: u64) -> Result<(), Violation> {
        for &step in SCRIPT {
            let Err(stop) = self.trial.step(step) else {
                continue;
            };
            let error = stop.error()?;
            self.check(step, &error)?;
            let again = self.passes && !matches!(error, Error::Poisoned { .. });
            if again && let Err(again) = self.trial.step(step) {
                let again = again.unexpected("and again").message;
                return Err(format!("{step:?} failed: {error}; {again}").into());
            }
        }
        if self.trial.disk.triggered() == 0 {
            return Err("the fault was never met".into());
        }
        self.tally.add(
            match self.passes {
                true => "scripts through a fault that passes",
                false => "scripts through a fault that lasts",
            },
            1,
        );
        self.trial.disk.heal();
        if self.fault == Fault::NoSpace {
            self.resume()?;
        }
        self.come_back(call)
    }

    /// The error must be one that was planted. A store that is open still answers rightly. After a
    /// failed sync it takes no write (I9).
    fn check(&mut self, step: Step, error: &Error) -> Result<(), Violation> {
        if !self.expects(error) {
            let promise = match error {
                // A wait ends in this if nothing else can end it.
                Error::Closed => Promise::Alive,
                _ => Promise::Orderly,
            };
            let message = format!("{step:?} gives {error:?}");
            return Err(Violation::new(promise, message));
        }
        let Some(db) = self.trial.db.clone() else {
            return Ok(());
        };
        match contents(&db) {
            Ok(found) if found == self.trial.history.visible() => {
                self.tally.add("reads compared after a fault", 1);
            }
            Ok(_) => {
                let message = format!("after {step:?} failed with {error}, reads are wrong");
                return Err(Violation::new(Promise::Right, message));
            }
            // Only a disk that does not read keeps a store from answering.
            Err(error) if self.breaks_reads() && self.expects(&error) => {}
            Err(error) => return Err(format!("after {step:?} a scan gives {error}").into()),
        }
        if matches!(error, Error::Poisoned { .. }) && step != Step::Checkpoint {
            self.tally.add("stores that stopped writing", 1);
            for durability in [Durability::None, Durability::Buffered, Durability::Sync] {
                let refused = db.put_with("key", "value", durability);
                if !matches!(refused, Err(Error::Poisoned { .. })) {
                    let message = format!("after {step:?} failed with {error}: {refused:?}");
                    return Err(message.into());
                }
            }
        }
        Ok(())
    }

    /// Whether `error` may come from the fault.
    fn expects(&self, error: &Error) -> bool {
        match error {
            // Either a sync failed, or it is undecided which of two manifests is in force.
            Error::Poisoned { .. } => {
                use Operation::*;
                !self.passes || matches!(self.operation, Sync | SyncDir | Rename | Truncate)
            }
            Error::Io { .. } => self.fault != Fault::NoSpace,
            Error::NoSpace { .. } => self.fault == Fault::NoSpace,
            Error::Corruption { .. } => self.fault == Fault::ShortRead,
            _ => false,
        }
    }

    /// Whether reads may fail because the fault lasts.
    fn breaks_reads(&self) -> bool {
        !self.passes && self.fault.applies_to(Operation::Read)
    }

    /// There is space again: an open store goes on as if nothing had happened.
    fn resume(&mut self) -> Result<(), Violation> {
        let Some(db) = &self.trial.db else {
            return Ok(());
        };
        if matches!(db.sync(), Err(Error::Poisoned { .. })) {
            return Ok(());
        }
        for step in [Step::Write(60), Step::Read, Step::Compact, Step::Idle] {
            let resumed = self.trial.step(step);
            resumed.map_err(|stop| stop.unexpected("with space again"))?;
        }
        let what = "stores that resumed writing without a restart";
        self.tally.add(what, 1);
        Ok(())
    }

    /// Opens again what is left after the faults, in one of three ways.
    fn come_back(&mut self, way: u64) -> Result<(), Violation> {
        match way % 3 {
            0 => self.trial.survive(CrashStyle::LoseAll),
            1 => self.trial.come_back(),
            _ => {
                // What is readable now may be lost with the power. Once the store has been opened,
                // it may not.
                self.trial.db = None;
                let opened = self.trial.db();
                opened.map_err(|stop| stop.unexpected("open"))?;
                self.trial.survive(CrashStyle::LoseAll)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_long_run_comes_by_every_call_of_the_script() {
        let calls = healthy().map(|healthy| healthy.calls.len() as u64).unwrap();
        assert!((MOST_CALLS / 2..=MOST_CALLS).contains(&calls), "{calls}");
    }

    #[test]
    fn faults_at_some_calls_cost_nothing_that_was_acknowledged() {
        let verdict = run(&Plan::new(1000, 12)).having_reached(12, REACHED);
        assert!(verdict.is_clean(), "{verdict}");
        assert_eq!(verdict.tally.get("calls hit"), 12, "{verdict}");
    }
}
