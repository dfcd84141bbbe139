//! A compaction that runs: what its threads share, and how they divide it.

use super::below::Below;
use super::heirs::Densities;
use super::notes::Done;
use super::parts::{Part, divide};
use super::plan::{Cause, Plan};
use super::spread::Places;
use super::table_size::TableSizes;
use crate::engine::{Engine, Tree};
use crate::error::{Error, Result};
use crate::metrics::CompactionMetrics;
use crate::placement::Output;
use crate::sync::{Arc, Mutex};

/// A running compaction. Each of its threads takes one part after the other; the one that ends the
/// last part installs all of them in one edit (I4). None waits for another.
pub(crate) struct Compaction {
    pub(super) engine: Arc<Engine>,
    pub(super) tree: Arc<Tree>,
    pub(super) number: u64,
    pub(super) below: Arc<Below>,
    pub(super) densities: Arc<Densities>,
    /// How long the tables of each output get, in bytes.
    pub(super) table_sizes: Vec<u64>,
    progress: Mutex<Progress>,
}

/// What is left to do, and what was done.
struct Progress {
    /// Taken out when the compaction ends: it holds the inputs.
    plan: Option<Arc<Plan>>,
    /// The parts that nobody has begun, the next one last.
    waiting: Vec<Part>,
    has_begun: bool,
    /// Parts that are under way.
    running: usize,
    /// Threads that have come to work on it and have not gone.
    threads: usize,
    /// The room for each output of the plan that no part has yet.
    places: Vec<Places>,
    done: Done,
    failure: Option<Error>,
}

/// A part that a thread has taken.
pub(super) struct TakenPart {
    pub(super) plan: Arc<Plan>,
    pub(super) part: Part,
    /// The room for each output.
    pub(super) places: Vec<Places>,
    /// Whether it is the first one of the compaction.
    pub(super) is_first: bool,
}

/// What comes after a part.
pub(super) enum After {
    /// Another part.
    Another,
    /// Others do the rest.
    Nothing,
    /// It was the last.
    End(Box<Ended>),
}

/// What all parts have come to.
pub(super) struct Ended {
    pub(super) plan: Arc<Plan>,
    pub(super) done: Done,
    /// The first failure, if there was one.
    pub(super) outcome: Result<()>,
}

impl Progress {
    fn has_part_for_another(&self) -> bool {
        self.waiting.len() > self.threads - self.running
    }
}

impl Compaction {
    pub(super) fn new(
        engine: Arc<Engine>,
        tree: Arc<Tree>,
        mut plan: Plan,
        number: u64,
        places: Vec<Places>,
    ) -> Self {
        // The version is let go before the work starts: it holds the files that other jobs replace
        // meanwhile.
        let version = std::mem::take(&mut plan.version);
        let below = plan.range().map(|range| Below::new(&version, &range));
        let comes = plan.upper.bytes();
        let sizes = TableSizes::new(
            &engine.options,
            &engine.sizes,
            engine.fast().capacity(),
            tree.last_fast_level,
        );
        let densities = Densities::new(&plan, engine.placement.unknown_density());
        let table_size_of = |output: &Output| {
            let level = usize::from(output.level);
            sizes.of(level, version.levels[level].bytes + comes)
        };
        let table_sizes: Vec<u64> = plan.outputs.iter().map(table_size_of).collect();
        let is_spread = places.iter().any(Places::is_spread);
        let table_size = table_sizes.first().filter(|_| !is_spread);
        let mut waiting = divide(&plan, table_size.copied().unwrap_or(u64::MAX));
        waiting.reverse();
        let done = Done {
            metrics: metrics_of(&plan, engine.tiers.len()),
            ..Done::default()
        };
        Self {
            engine,
            tree,
            number,
            below: Arc::new(below.unwrap_or_default()),
            densities: Arc::new(densities),
            table_sizes,
            progress: Mutex::new(Progress {
                plan: Some(Arc::new(plan)),
                waiting,
                has_begun: false,
                running: 0,
                threads: 0,
                places,
                done,
                failure: None,
            }),
        }
    }

    /// Whether there is a part for one more thread. Once there is none, there never is.
    pub(crate) fn wants_help(&self) -> bool {
        self.progress.lock().has_part_for_another()
    }

    /// Counts a thread that comes to work on it, if there is a part for it.
    pub(super) fn come(&self) -> bool {
        let mut progress = self.progress.lock();
        let comes = progress.has_part_for_another();
        progress.threads += usize::from(comes);
        comes
    }

    /// Takes off a thread that goes.
    pub(super) fn go(&self) {
        self.progress.lock().threads -= 1;
    }

    /// The next part; none if all have been taken.
    pub(super) fn take(&self) -> Option<TakenPart> {
        let mut progress = self.progress.lock();
        let part = progress.waiting.pop()?;
        let plan = Arc::clone(progress.plan.as_ref()?);
        progress.running += 1;
        let places = progress.places.iter_mut();
        Some(TakenPart {
            plan,
            places: places.map(|places| places.split(part.share)).collect(),
            part,
            is_first: !std::mem::replace(&mut progress.has_begun, true),
        })
    }

    /// What has kept another thread from ending its part.
    ///
    /// # Errors
    /// That.
    pub(super) fn check(&self) -> Result<()> {
        let failure = &self.progress.lock().failure;
        failure.as_ref().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// A thread stops with `outcome`: at the end of a part that has come to `done`, or because it
    /// has found none. After a failure no further part begins.
    pub(super) fn end_part(&self, outcome: Result<()>, done: Option<Done>) -> After {
        let mut progress = self.progress.lock();
        if let Some(done) = done {
            progress.running -= 1;
            progress.done.add(done);
        }
        if let Err(error) = outcome {
            progress.waiting.clear();
            progress.failure.get_or_insert(error);
        }
        if !progress.waiting.is_empty() {
            return After::Another;
        }
        let is_last = progress.running == 0;
        match progress.plan.take_if(|_| is_last) {
            None => After::Nothing,
            Some(plan) => {
                progress.places.clear();
                After::End(Box::new(Ended {
                    plan,
                    done: std::mem::take(&mut progress.done),
                    outcome: progress.failure.take().map_or(Ok(()), Err),
                }))
            }
        }
    }
}

impl Drop for Compaction {
    fn drop(&mut self) {
        let mut progress = self.progress.lock();
        // None once it has ended. Else a shutdown has dropped its threads before it could.
        if let Some(plan) = progress.plan.take() {
            let written = &progress.done.written;
            self.engine.discard_outputs(written, &Error::Closed);
            self.tree.end_compaction(self.number, &plan);
        }
    }
}

/// What is counted for a job of `plan` before it has done anything, in a store of `tiers` tiers.
fn metrics_of(plan: &Plan, tiers: usize) -> CompactionMetrics {
    let mut read_bytes = vec![0; tiers];
    for table in plan.inputs().filter(|_| !plan.is_move) {
        read_bytes[usize::from(table.meta.tier)] += table.meta.len;
    }
    CompactionMetrics {
        from: plan.from as u8,
        to: plan.to as u8,
        jobs: 1,
        moves: u64::from(plan.is_move),
        for_hidden: u64::from(plan.cause == Cause::Hidden),
        for_small_tables: u64::from(plan.cause == Cause::SmallTables),
        read_bytes,
        write_bytes: vec![0; tiers],
        seconds: 0.0,
    }
}
