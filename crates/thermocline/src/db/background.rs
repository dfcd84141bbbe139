//! What runs behind the writers: scheduling of flushes and compactions, and their failures.

use std::sync::OnceLock;

use super::engine::Engine;
use super::flush::FlushJob;
use super::tree::Tree;
use crate::compaction::{CompactionJob, Plan};
use crate::error::{Error, Result};
use crate::executor::Lane;
use crate::options::MEMTABLES;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex};
use crate::tier::Reservation;

/// Failures and counts of background work.
#[derive(Debug, Default)]
pub(crate) struct Background {
    /// The sync failure that ended writing (I9). Never cleared.
    poison: OnceLock<Arc<str>>,
    /// The last failure that may pass, until a job succeeds or is tried again.
    error: Mutex<Option<Error>>,
    /// Compactions queued or running, over all keyspaces.
    pub(crate) compactions: AtomicUsize,
}

impl Background {
    /// # Errors
    /// [`Error::Poisoned`] once a sync has failed.
    pub(crate) fn check_poison(&self) -> Result<()> {
        match self.poison.get() {
            Some(cause) => Err(Error::Poisoned {
                cause: Arc::clone(cause),
            }),
            None => Ok(()),
        }
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.poison.get().is_some()
    }

    /// Remembers a failure: a failed sync for good (I9), others until work succeeds again.
    pub(crate) fn note(&self, error: &Error) {
        match error {
            Error::Poisoned { cause } => {
                let _ = self.poison.set(Arc::clone(cause));
            }
            Error::Closed | Error::ConditionFailed { .. } | Error::UnknownKeyspace { .. } => {}
            other => *self.error.lock() = Some(other.clone()),
        }
    }

    /// Remembers a failed sync (I9), and nothing else: for work whose caller hears of the rest.
    pub(crate) fn note_poison(&self, error: &Error) {
        if matches!(error, Error::Poisoned { .. }) {
            self.note(error);
        }
    }

    /// Forgets a passing failure: a job has succeeded, or is about to be tried again.
    pub(crate) fn clear(&self) {
        *self.error.lock() = None;
    }

    /// The failure that holds now.
    pub(crate) fn error(&self) -> Option<Error> {
        self.check_poison()
            .err()
            .or_else(|| self.error.lock().clone())
    }
}

impl Engine {
    /// Frozen memtables that wait for their flush.
    pub(crate) fn immutables(&self) -> usize {
        self.trees
            .load()
            .values()
            .map(|tree| tree.peek().immutables.len())
            .sum()
    }

    /// Frozen memtables that the memory budget allows (I8).
    pub(crate) fn max_immutables(&self) -> usize {
        MEMTABLES as usize - 1
    }

    /// Queues a flush of `tree`, unless one is queued or nothing waits.
    pub(crate) fn schedule_flush(self: &Engine, tree: &Arc<Tree>) {
        let Some(engine) = self.me() else { return };
        let mut state = tree.state.lock();
        if state.flushing || tree.peek().immutables.is_empty() || self.background.is_poisoned() {
            return;
        }
        state.flushing = true;
        drop(state);
        let job = FlushJob::new(engine, Arc::clone(tree));
        self.executor.spawn(Lane::Flush, Box::new(job));
    }

    /// Queues every flush that waits and every compaction that can start.
    pub(crate) fn schedule(&self) {
        for tree in self.all_trees() {
            self.schedule_flush(&tree);
        }
        self.schedule_compactions();
    }

    fn schedule_compactions(&self) {
        while self.background.compactions.load(Ordering::Relaxed) < self.options.compaction_threads
            && !self.background.is_poisoned()
            && self.check_open().is_ok()
        {
            if !self.start_one_compaction() {
                return;
            }
        }
    }

    /// Starts the most urgent compaction that has room for its output. When none has, and
    /// nothing runs that could make room, the most urgent one writes to the next tier (I8).
    fn start_one_compaction(&self) -> bool {
        let mut refused: Option<(Arc<Tree>, Plan)> = None;
        for tree in self.all_trees() {
            let mut state = tree.state.lock();
            let candidates: Vec<Plan> =
                tree.with_picker(self, &state, |picker| picker.candidates().collect());
            for plan in candidates {
                match self.reserve_for(&plan) {
                    Ok(reservation) => {
                        let number = state.running.start(&plan);
                        drop(state);
                        self.spawn_compaction(tree, plan, number, reservation);
                        return true;
                    }
                    Err(_) if refused.is_none() => refused = Some((Arc::clone(&tree), plan)),
                    Err(_) => {}
                }
            }
        }
        let Some((tree, mut plan)) = refused else {
            return false;
        };
        if self.background.compactions.load(Ordering::Relaxed) > 0 {
            return false;
        }
        self.spill(&mut plan);
        match self.reserve_for(&plan) {
            Ok(reservation) => {
                let mut state = tree.state.lock();
                if !state.running.admits(&plan) {
                    return false;
                }
                let number = state.running.start(&plan);
                drop(state);
                self.spawn_compaction(tree, plan, number, reservation);
                true
            }
            Err(error) => {
                self.background.note(&error);
                false
            }
        }
    }

    /// Space for the output of `plan`, on the tier of its first output.
    pub(crate) fn reserve_for(&self, plan: &Plan) -> Result<Reservation> {
        let tier = &self.tiers[usize::from(plan.outputs[0].tier)];
        if plan.is_move {
            return tier.reserve(0);
        }
        // Output from the same tier is as long as its input at most, but for the ends of
        // blocks; from a tier that compresses it may be longer.
        let expected = plan.inputs().map(|table| {
            let same = table.meta.tier == tier.index;
            if same {
                table.meta.len + table.meta.len / 32
            } else {
                table.raw_len()
            }
        });
        tier.reserve(expected.sum())
    }

    /// Sends all output of `plan` to the last tier, whatever its level.
    fn spill(&self, plan: &mut Plan) {
        for output in &mut plan.outputs {
            output.tier = self.tiers.len() as u8 - 1;
        }
    }

    fn spawn_compaction(&self, tree: Arc<Tree>, plan: Plan, number: u64, space: Reservation) {
        let Some(engine) = self.me() else {
            tree.end_compaction(number, &plan);
            return;
        };
        self.background.compactions.fetch_add(1, Ordering::Relaxed);
        let job = CompactionJob::new(engine, tree, plan, number, space);
        self.executor.spawn(Lane::Compaction, Box::new(job));
    }

    /// Queues a compaction that was picked by hand, unless others are making room for it. When none
    /// is, it writes to the next tier, as one that was picked by itself would (I8).
    pub(crate) fn start_manual(&self, tree: &Arc<Tree>, mut plan: Plan) -> Result<()> {
        let space = match self.reserve_for(&plan) {
            Err(_) if self.is_compacting() => return Ok(()),
            Err(_) => {
                self.spill(&mut plan);
                self.reserve_for(&plan)?
            }
            Ok(space) => space,
        };
        let mut state = tree.state.lock();
        if state.running.admits(&plan) {
            let number = state.running.start(&plan);
            drop(state);
            self.spawn_compaction(Arc::clone(tree), plan, number, space);
        }
        Ok(())
    }

    /// Whether a compaction runs or is queued.
    pub(crate) fn is_compacting(&self) -> bool {
        self.background.compactions.load(Ordering::Relaxed) > 0
    }

    /// Whether nothing runs, waits or wants to run.
    pub(crate) fn is_idle(&self) -> bool {
        self.background.compactions.load(Ordering::Relaxed) == 0
            && self.all_trees().iter().all(|tree| {
                tree.peek().immutables.is_empty()
                    && !tree.state.lock().flushing
                    && !tree.wants_compaction(self)
            })
    }
}
