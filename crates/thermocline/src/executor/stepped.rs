//! One seeded thread that drives all background work.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::{Executor, Job, Lane, Step};
use crate::sync::Mutex;

/// Runs jobs only while somebody waits, one step at a time, in an order drawn from a seed:
/// the same seed and the same calls give the same history.
#[derive(Debug)]
pub struct Stepped {
    state: Mutex<State>,
}

struct State {
    rng: SmallRng,
    jobs: Vec<Box<dyn Job>>,
    stopped: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("jobs", &self.jobs.len())
            .field("stopped", &self.stopped)
            .finish_non_exhaustive()
    }
}

impl Stepped {
    /// An executor whose choices follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            state: Mutex::new(State {
                rng: SmallRng::seed_from_u64(seed),
                jobs: Vec::new(),
                stopped: false,
            }),
        }
    }

    /// Runs one step of one job; `false` when there is none.
    pub fn step(&self) -> bool {
        let job = {
            let mut state = self.state.lock();
            if state.stopped || state.jobs.is_empty() {
                return false;
            }
            let count = state.jobs.len();
            let chosen = state.rng.random_range(0..count);
            state.jobs.swap_remove(chosen)
        };
        // The lock is not held meanwhile: a job may spawn another.
        let mut job = job;
        if job.step() == Step::Again {
            let mut state = self.state.lock();
            if !state.stopped {
                state.jobs.push(job);
            }
        }
        true
    }

    /// Runs steps until no job is left.
    pub fn drain(&self) {
        while self.step() {}
    }
}

impl Executor for Stepped {
    fn spawn(&self, _lane: Lane, job: Box<dyn Job>) {
        let mut state = self.state.lock();
        if !state.stopped {
            state.jobs.push(job);
        }
    }

    fn wait_until(&self, ready: &mut dyn FnMut() -> bool) -> bool {
        loop {
            if ready() {
                return true;
            }
            if !self.step() {
                return ready();
            }
        }
    }

    fn notify(&self) {}

    fn shutdown(&self) {
        let dropped = {
            let mut state = self.state.lock();
            state.stopped = true;
            std::mem::take(&mut state.jobs)
        };
        drop(dropped);
    }
}
