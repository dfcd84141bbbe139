//! What runs behind the writers: scheduling of flushes and compactions, and their failures.

use std::sync::OnceLock;

use super::compactions::{Compactions, Seen};
use super::engine::Engine;
use super::flush::FlushJob;
use super::tree::Tree;
use crate::compaction::{CompactionJob, Plan};
use crate::error::{Error, Result};
use crate::executor::Lane;
use crate::metrics::Activity;
use crate::options::{Compression, MEMTABLES};
use crate::placement::SpacePlan;
use crate::points::point;
use crate::sync::{Arc, Mutex};
use crate::tier::{Reservation, Tier};

/// Failures and counts of background work.
#[derive(Debug, Default)]
pub(crate) struct Background {
    /// The sync failure that ended writing (I9). Never cleared.
    poison: OnceLock<Arc<str>>,
    /// The last failure that may pass, until a job succeeds or is tried again.
    error: Mutex<Option<Error>>,
    pub(crate) compactions: Compactions,
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
        self.spawn(Lane::Flush, Activity::Flush, job);
    }

    /// Queues every flush that waits and every compaction that can start.
    pub(crate) fn schedule(&self) {
        for tree in self.all_trees() {
            self.schedule_flush(&tree);
        }
        self.schedule_compactions();
    }

    fn schedule_compactions(&self) {
        while self.background.compactions.look().running() < self.options.compaction_threads
            && !self.background.is_poisoned()
            && self.check_open().is_ok()
        {
            if !self.start_one_compaction() {
                return;
            }
        }
    }

    /// Starts the most urgent compaction that has room for its output. When none has, a table of
    /// the last fast level goes down to make some; where that cannot be and nothing runs that
    /// could, the most urgent compaction writes to the last tier (I8).
    fn start_one_compaction(&self) -> bool {
        let mut refused: Option<(Arc<Tree>, Plan)> = None;
        for tree in self.all_trees() {
            let state = tree.state.lock();
            let candidates: Vec<Plan> =
                tree.with_picker(self, &state, false, |picker| picker.candidates().collect());
            drop(state);
            for plan in candidates {
                if self.start(&tree, plan.clone()).is_ok() {
                    return true;
                }
                refused.get_or_insert((Arc::clone(&tree), plan));
            }
        }
        refused.is_some_and(|(tree, plan)| self.start_without_room(&tree, plan))
    }

    /// Starts `plan` if there is room for it. One that was overtaken since it was picked, by a job
    /// that it meets, by an edit or by a promotion that is being installed (I2), is dropped: what it
    /// names may not be there any more, and who overtook it has the next picked.
    pub(crate) fn start(&self, tree: &Arc<Tree>, mut plan: Plan) -> Result<()> {
        let space = self.reserve_for(&mut plan)?;
        let mut state = tree.state.lock();
        let is_current = Arc::ptr_eq(&plan.version, &tree.peek().version);
        let newest = plan.newest_of_l0();
        let comes_too_late = newest.is_some_and(|epoch| !state.reservations.admits(epoch));
        if !is_current || comes_too_late || !state.running.admits(&plan) {
            return Ok(());
        }
        let engine = self.me().ok_or(Error::Closed)?;
        let number = Tree::start_compaction(&mut state, &plan);
        // With the state locked: who finds the inputs claimed finds the job counted.
        self.background.compactions.begin();
        drop(state);
        let job = CompactionJob::new(engine, Arc::clone(tree), plan, number, space);
        self.spawn(Lane::Compaction, Activity::Compaction, job);
        Ok(())
    }

    /// Sends a table of a last fast level down, however full the level is, to make room on the
    /// fast tier; whether there was one.
    pub(crate) fn start_crossing(&self) -> bool {
        if self.options.has_flash_cache() {
            // No table is there to go.
            return false;
        }
        self.all_trees().iter().any(|tree| {
            let state = tree.state.lock();
            let crossing = tree.with_picker(self, &state, false, |picker| picker.pick_crossing());
            drop(state);
            crossing.is_some_and(|crossing| self.start(tree, crossing).is_ok())
        })
    }

    /// What to do about a compaction that has no room; whether something was started.
    fn start_without_room(&self, tree: &Arc<Tree>, mut plan: Plan) -> bool {
        if self.start_crossing() {
            return true;
        }
        if point!(self.points, "compaction.no_crossing").is_err() || self.is_compacting() {
            return false;
        }
        self.spill(&mut plan);
        match self.start(tree, plan) {
            Ok(()) => true,
            Err(error) => {
                self.background.note(&error);
                false
            }
        }
    }

    /// Space for what `plan` writes, for each of its outputs. A crossing that finds none on the fast
    /// tier keeps nothing there: it makes room instead.
    pub(crate) fn reserve_for(&self, plan: &mut Plan) -> Result<Vec<Reservation>> {
        let mut space = Vec::new();
        let mut outputs = std::mem::take(&mut plan.outputs).into_iter();
        if let Some(output) = outputs.next() {
            plan.outputs.push(output);
            let tier = &self.tiers[usize::from(output.tier)];
            let margin = if output.tier == 0 {
                self.compaction_margin()
            } else {
                0
            };
            let expected = if plan.is_move {
                0
            } else {
                expected_output(plan, tier)
            };
            space.push(tier.reserve_leaving(expected, margin)?);
        }
        // What stays on the fast tier takes no more than what comes from there, so that a crossing makes
        // room: the job's router has no more to give.
        let stays: u64 = plan.upper.iter().map(|table| table.meta.len).sum();
        for output in outputs.filter(|_| !plan.is_move) {
            if let Ok(reserved) = self.tiers[usize::from(output.tier)].reserve(stays) {
                plan.outputs.push(output);
                space.push(reserved);
            }
        }
        Ok(space)
    }

    /// What compactions and promotions leave free on the fast tier.
    pub(crate) fn compaction_margin(&self) -> u64 {
        SpacePlan::new(&self.options, &self.sizes).margin
    }

    /// Sends all output of `plan` to the last tier, whatever its level.
    fn spill(&self, plan: &mut Plan) {
        for output in &mut plan.outputs {
            output.tier = self.tiers.len() as u8 - 1;
        }
    }

    /// Queues a compaction that was picked by hand, unless it has to wait for others to make room
    /// for it.
    pub(crate) fn start_manual(&self, tree: &Arc<Tree>, plan: Plan) -> Result<()> {
        let seen = self.background.compactions.look();
        let Err(error) = self.start(tree, plan.clone()) else {
            return Ok(());
        };
        // The second look: another thread may have begun one that kept this plan from starting.
        if self.makes_room(seen) || self.start_without_room(tree, plan) || self.makes_room(seen) {
            return Ok(());
        }
        Err(error)
    }

    /// Whether a compaction makes room, or has made some since the counts were `seen`: a
    /// reservation that was refused meanwhile may be tried again.
    pub(crate) fn makes_room(&self, seen: Seen) -> bool {
        seen.running() > 0 || seen.has_begun_by(self.background.compactions.look())
    }

    /// Whether a compaction runs or is queued.
    pub(crate) fn is_compacting(&self) -> bool {
        self.background.compactions.look().running() > 0
    }

    /// Whether nothing runs, waits or wants to run.
    pub(crate) fn is_idle(&self) -> bool {
        let seen = self.background.compactions.look();
        let is_idle = seen.running() == 0
            && self.all_trees().iter().all(|tree| {
                tree.peek().immutables.is_empty()
                    && !tree.state.lock().flushing
                    && !tree.wants_compaction(self)
            })
            && !self.is_promoting();
        // What began between these looks is wanted no more, and may have run in none of them.
        is_idle && self.background.compactions.look() == seen
    }
}

/// How long the output of `plan` on `tier` may get: as long as the input but for the ends of blocks, unless
/// that was compressed. It may be longer then, unless the tier itself compresses, which is taken to do
/// so as it did before.
fn expected_output(plan: &Plan, tier: &Tier) -> u64 {
    let compresses = tier.options.compression != Compression::None;
    let expected = plan.inputs().map(|table| {
        let as_before = table.meta.len + table.meta.len / 32;
        let is_own = table.meta.tier == tier.index;
        if is_own && compresses || !table.is_compressed() {
            as_before
        } else {
            table.raw_len().max(as_before)
        }
    });
    expected.sum()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::compaction::Manual;
    use crate::db::Db;
    use crate::executor::Stepped;
    use crate::key::KeyRange;
    use crate::options::{Options, TierOptions};
    use crate::points::Points;
    use crate::storage::Memory;
    use crate::sync::atomic::{AtomicBool, Ordering};

    fn plan_of_l0(db: &Db) -> Plan {
        let (engine, tree) = (db.engine(), db.tree());
        let all = KeyRange {
            first: Bytes::new(),
            last: Bytes::from_static(b"z"),
        };
        let state = tree.state.lock();
        match tree.with_picker(engine, &state, true, |picker| picker.pick_range(0, &all)) {
            Manual::Start(plan) => *plan,
            Manual::Wait | Manual::Done => panic!("L0 has tables"),
        }
    }

    /// Output was taken to become no longer than its input from the same tier. After an opening that had
    /// turned compression off it became several times as long, and so did what was in use of a
    /// capacity that is a promise (I8).
    #[test]
    fn what_is_reserved_does_not_rest_on_how_the_input_was_compressed() {
        let medium = Arc::new(Memory::new());
        let open = |compression| {
            let tier = TierOptions::fast("/fast").compression(compression);
            let mut options = Options::with_tiers(vec![tier]);
            options.l0_trigger = 20;
            let builder = Db::builder(options).medium(0, medium.clone());
            builder.executor(Arc::new(Stepped::new(1))).open().unwrap()
        };
        let db = open(Compression::Lz4);
        for _ in 0..2 {
            for key in 0..50u8 {
                db.put([key], [0; 500]).unwrap();
            }
            db.flush().unwrap();
        }
        db.close().unwrap();
        let db = open(Compression::None);
        let plan = plan_of_l0(&db);
        let space = db.engine().reserve_for(&mut plan.clone()).unwrap();
        let reserved: u64 = space.iter().map(Reservation::left).sum();
        drop(space);
        db.engine().start(db.tree(), plan).unwrap();
        db.wait_idle().unwrap();
        let bytes = db.tree().bytes_on(0);
        let written: u64 = bytes.iter().sum();
        assert!(
            bytes[0] == 0 && written <= reserved,
            "{written} bytes, {reserved} reserved"
        );
    }

    /// A bound that holds whatever was compressed, and that counts 24 bytes a record, refused jobs that fitted where nothing
    /// is compressed and records are small.
    #[test]
    fn what_is_reserved_for_small_records_is_about_their_length() {
        let mut options = Options::with_tiers(vec![TierOptions::fast("/fast")]);
        options.l0_trigger = 20;
        let builder = Db::builder(options).medium(0, Arc::new(Memory::new()));
        let db = builder.executor(Arc::new(Stepped::new(1))).open().unwrap();
        for _ in 0..2 {
            for key in 0..2000u32 {
                db.put(format!("a long prefix that all have {key:06}"), [7; 8])
                    .unwrap();
            }
            db.flush().unwrap();
        }
        let mut plan = plan_of_l0(&db);
        let space = db.engine().reserve_for(&mut plan).unwrap();
        let reserved: u64 = space.iter().map(Reservation::left).sum();
        let input: u64 = plan.inputs().map(|table| table.meta.len).sum();
        assert!(
            reserved >= input && reserved <= input + input / 20,
            "{reserved} for {input}"
        );
    }

    /// Regression: `compact_range` gave `NoSpace` on a fast tier that was full only for a moment.
    /// Its plan found no room while none ran; before a table of the last fast level was to make
    /// some, another thread had begun a compaction. That one makes room, or makes the plan
    /// obsolete: the plan has to wait for it, not to fail. Threads that read, write and compact the
    /// same keys came upon it within a second.
    #[test]
    fn a_plan_that_another_threads_compaction_kept_from_starting_has_not_failed() {
        let points = Points::default();
        let mut options = Options::with_tiers(vec![
            TierOptions::fast("/fast").capacity(4 << 20),
            TierOptions::slow("/slow"),
        ]);
        options.memory = 4 << 20;
        let medium = Arc::new(Memory::new());
        let db = Db::builder(options)
            .medium(0, medium.clone())
            .medium(1, medium)
            .executor(Arc::new(Stepped::new(1)))
            .points(points.clone())
            .open()
            .unwrap();
        for value in ["old", "new"] {
            db.put("key", value).unwrap();
            db.flush().unwrap();
        }
        let engine = db.engine();
        let tree = engine.tree(0).unwrap();
        let plan = plan_of_l0(&db);
        let free = engine.fast().free_for_jobs();
        let _full = engine.fast().reserve(free).unwrap();
        let other = Arc::clone(engine);
        points.set("compaction.no_crossing", move || {
            other.background.compactions.begin();
            Ok(())
        });
        engine.start_manual(&tree, plan).unwrap();
        assert!(engine.is_compacting(), "it is another's that runs");
        points.clear("compaction.no_crossing");
        engine.background.compactions.end();
    }

    /// A writer that is stopped forgets the last failure and queues what is due. One that came when a
    /// compaction had failed and still held its inputs queued nothing, and the job did not either:
    /// the writer waited for ever.
    #[test]
    fn a_failure_that_is_forgotten_while_its_job_still_ends_is_made_good() {
        let mut options = Options::with_tiers(vec![TierOptions::fast("/fast")]);
        options.memory = 4 << 20;
        options.memtable_size = Some(16 << 10);
        options.l0_trigger = 2;
        let (points, stepped) = (Points::default(), Arc::new(Stepped::new(1)));
        let db = Db::builder(options)
            .medium(0, Arc::new(Memory::new()))
            .executor(stepped.clone())
            .points(points.clone())
            .open()
            .unwrap();
        let has_failed = Arc::new(AtomicBool::new(false));
        let fails = Arc::clone(&has_failed);
        points.set("compaction.start", move || {
            match fails.swap(true, Ordering::Relaxed) {
                true => Ok(()),
                false => Err(Error::NoSpace {
                    operation: "write",
                    path: "/fast".into(),
                }),
            }
        });
        let engine = Arc::downgrade(db.engine());
        points.set("compaction.failed", move || {
            if let Some(engine) = engine.upgrade() {
                engine.background.clear();
                engine.schedule();
            }
            Ok(())
        });
        while !has_failed.load(Ordering::Relaxed) {
            db.put("first", [0; 100]).unwrap();
            db.put("last", [0; 100]).unwrap();
            db.flush().unwrap();
            stepped.drain();
        }
        assert!(db.engine().is_idle(), "what is due is not queued");
    }
}
