//! The harnesses, one per file.

mod calls;
mod corruption;
mod crash_states;
pub(crate) mod exhaustion;
pub(crate) mod kill;
mod linearizability;
mod metamorphic;
mod nth_call;
mod power_cut;
mod recovery_crash;
mod repair;
mod simulation;
mod soak;
mod threads;

use crate::cases::Plan;
use crate::verdict::Verdict;

/// A way to try to break a store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Harness {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What it does, in one line.
    pub(crate) about: &'static str,
    /// Cases of a small run, which takes seconds.
    pub(crate) small: u64,
    /// Cases of the run behind the figures in docs/reliability.md.
    pub(crate) long: u64,
    /// Runs cases.
    pub(crate) run: fn(&Plan) -> Verdict,
}

/// All harnesses, in the order in which they run.
pub(crate) const ALL: &[Harness] = &[
    power_cut::HARNESS,
    crash_states::HARNESS,
    recovery_crash::HARNESS,
    nth_call::HARNESS,
    corruption::EVERY_BYTE,
    corruption::CORRUPTION,
    metamorphic::HARNESS,
    threads::HARNESS,
    linearizability::HARNESS,
    simulation::HARNESS,
    kill::HARNESS,
    exhaustion::HARNESS,
    soak::HARNESS,
    repair::HARNESS,
];
