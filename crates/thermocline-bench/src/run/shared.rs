//! What the clients of a run share.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread::{Scope, ScopedJoinHandle};

use anyhow::{Context, Result};
use thermocline::Target;

use super::inserts::Inserts;
use super::wrongs::Wrongs;
use super::{Latencies, no_latencies};
use crate::distribution::{Chooser, Stages};
use crate::engine::Engine;
use crate::freshness::Freshness;
use crate::keys::{Key, KeySpace};
use crate::plan::{Plan, Source};
use crate::prices::Prices;
use crate::record_sizes::ValueLens;
use crate::targets::Targets;
use crate::workload::Workload;

/// What the clients of a run share.
pub(crate) struct Shared<'a> {
    pub(crate) engine: &'a dyn Engine,
    pub(crate) source: &'a Source,
    pub(crate) keys: KeySpace,
    /// One for each stage. Empty for a trace.
    pub(crate) choosers: Vec<Chooser>,
    pub(crate) value_lens: ValueLens,
    pub(crate) scan_length: usize,
    pub(crate) seed: u64,
    /// Operations a second that all clients offer. None if each goes on when it has its answer.
    pub(crate) rate: Option<u64>,
    pub(crate) max_ops: Option<u64>,
    /// What the disks cost.
    pub(crate) prices: Option<&'a Prices>,
    /// What the store is to aim at.
    pub(crate) targets: Option<&'a Targets>,
    /// Whether the run is not measured yet. Then the first stage lasts, and clients draw other
    /// numbers than later.
    pub(crate) is_warming: bool,
    pub(crate) freshness: Freshness,
    pub(crate) inserts: Inserts,
    /// The greatest key that was loaded. Only scans need it.
    pub(crate) last_key: Option<Key>,
    pub(crate) wrongs: Wrongs,
    /// Number of the next operation.
    pub(crate) next: AtomicU64,
    /// Stage that time has reached.
    pub(crate) stage: AtomicUsize,
    pub(crate) stop: AtomicBool,
    /// What each client has done, by its number.
    pub(crate) tallies: Vec<Tally>,
}

/// What one client has done. It shares its cache lines with no other client.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Tally {
    /// Operations finished.
    pub(crate) done: AtomicU64,
    /// The time that these operations took.
    pub(crate) nanos: AtomicU64,
    /// Estimated processor time of its calls, by [`super::meter::Call`].
    pub(super) call_nanos: [AtomicU64; 2],
    /// Processor time of its thread, as of the last call that was measured.
    pub(super) thread_nanos: AtomicU64,
    /// Latencies since the sampler last took them, which it does once a second. So the client
    /// hardly ever waits for the lock.
    latencies: Mutex<Latencies>,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            call_nanos: Default::default(),
            thread_nanos: AtomicU64::new(0),
            done: AtomicU64::new(0),
            nanos: AtomicU64::new(0),
            latencies: Mutex::new(no_latencies()),
        }
    }

    pub(super) fn latencies(&self) -> MutexGuard<'_, Latencies> {
        self.latencies
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Tells clients to stop when it is dropped. A thread that panics instead of ending them would wait
/// for them for ever, as a scope does for its threads.
pub(super) struct StopOnDrop<'a>(pub(super) &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Starts a client. The system may give fewer threads than were asked for.
pub(super) fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    client: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    std::thread::Builder::new()
        .spawn_scoped(scope, client)
        .context("cannot start a client; ask for fewer --threads")
}

impl<'a> Shared<'a> {
    pub(super) fn new(plan: &'a Plan, engine: &'a dyn Engine) -> Self {
        let keys = plan.source.key_space();
        let scans = match &plan.source {
            Source::Generated { workload, .. } => workload.scans(),
            Source::Trace { .. } => false,
        };
        let choosers = match &plan.source {
            Source::Generated { stages, .. } => stages
                .stages()
                .iter()
                .map(|stage| Chooser::new(&stage.shape, plan.records, plan.seed))
                .collect(),
            Source::Trace { .. } => Vec::new(),
        };
        Self {
            engine,
            source: &plan.source,
            choosers,
            value_lens: plan.value_lens.clone(),
            scan_length: plan.scan_length,
            seed: plan.seed,
            rate: plan.rate,
            max_ops: plan.end.ops,
            prices: plan.settings.prices.as_ref(),
            targets: plan.targets.as_ref(),
            is_warming: false,
            freshness: Freshness::new(plan.records),
            inserts: Inserts::new(plan.records),
            last_key: if scans {
                keys.last_key(plan.records)
            } else {
                None
            },
            keys,
            wrongs: Wrongs::default(),
            next: AtomicU64::new(0),
            stage: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            tallies: (0..plan.threads).map(|_| Tally::new()).collect(),
        }
    }

    /// The measured part after a warm-up. Everything is new except what is in the store.
    pub(super) fn measured(self, plan: &'a Plan) -> Self {
        Self {
            // Distributions that move go on from where they are.
            choosers: self.choosers,
            freshness: self.freshness,
            inserts: self.inserts,
            wrongs: self.wrongs,
            ..Self::new(plan, self.engine)
        }
    }

    /// Whether nothing is left to do.
    pub(super) fn is_over(&self) -> bool {
        let begun = || self.next.load(Ordering::Relaxed);
        self.stop.load(Ordering::Relaxed) || self.max_ops.is_some_and(|most| begun() >= most)
    }

    pub(super) fn workload(&self) -> Workload {
        match self.source {
            Source::Generated { workload, .. } => *workload,
            Source::Trace { .. } => Workload::READ_ONLY,
        }
    }

    pub(super) fn stages(&self) -> Option<&Stages> {
        match self.source {
            Source::Generated { stages, .. } if !self.is_warming => Some(stages),
            _ => None,
        }
    }

    /// Keys and values of the records that were loaded and inserted.
    pub(super) fn user_bytes(&self) -> u64 {
        self.inserts.present() * self.value_lens.record_bytes()
    }

    /// The target in stage `number`.
    pub(super) fn target_in(&self, number: usize) -> Option<Target> {
        match self.changing_targets() {
            Some(targets) => targets.get(number),
            None => self.targets.map(Targets::first),
        }
    }

    /// Targets that change while the run goes on. They make its stages then.
    pub(super) fn changing_targets(&self) -> Option<&'a Targets> {
        let targets = self.targets.filter(|targets| targets.change());
        targets.filter(|_| !self.is_warming)
    }

    /// Number of the stage that the run is in, of which `progress` (0 to 1) is done after so many
    /// seconds.
    pub(super) fn stage_at(&self, progress: f64, seconds: f64) -> usize {
        match (self.changing_targets(), self.stages()) {
            (Some(targets), _) => targets.at(seconds),
            (None, Some(stages)) => stages.at(progress),
            (None, None) => 0,
        }
    }
}
