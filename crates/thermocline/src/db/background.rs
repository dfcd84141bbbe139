//! What runs behind the writers: scheduling of flushes and compactions, and their failures.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use super::Engine;
use super::Tree;
use super::compactions::{Compactions, Seen};
use super::flush::FlushJob;
use crate::compaction::{CompactionJob, Picker, Plan};
use crate::error::{Error, Result};
use crate::executor::Lane;
use crate::ids::FileId;
use crate::metrics::Activity;
use crate::options::{Compression, MEMTABLES};
use crate::placement::{SpacePlan, Spilled};
use crate::points::point;
use crate::sync::{Arc, Mutex};
use crate::tier::{Reservation, Tier};
use crate::version::TableHandle;

/// Background work whose failure may pass. Each kind has failures of its own: a slow tier that is full refuses
/// crossings, and has nothing to do with who waits for a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Flush,
    Compaction,
}

/// Failures and counts of background work.
#[derive(Debug, Default)]
pub(crate) struct Background {
    /// Whether the store is open for reading only.
    reads_only: bool,
    /// The sync failure that ended writing (I9). Never cleared.
    poison: OnceLock<Arc<str>>,
    /// By [`Work`], the last failure that may pass, until such work succeeds or is tried again.
    failures: [Mutex<Option<Error>>; 2],
    pub(crate) compactions: Compactions,
}

impl Background {
    pub(crate) fn new(reads_only: bool) -> Self {
        Self {
            reads_only,
            ..Self::default()
        }
    }

    /// Whether the store is open for reading only.
    pub(crate) fn reads_only(&self) -> bool {
        self.reads_only
    }

    /// Whether nothing is to be written: a sync has failed, or the store is open for reading only.
    pub(crate) fn writes_nothing(&self) -> bool {
        self.reads_only || self.is_poisoned()
    }

    /// # Errors
    /// [`Error::Poisoned`] once a sync has failed; [`Error::ReadOnly`] if the store is open for reading only.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.reads_only {
            true => Err(Error::ReadOnly),
            false => self.check_poison(),
        }
    }

    /// # Errors
    /// [`Error::Poisoned`] once a sync has failed.
    fn check_poison(&self) -> Result<()> {
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

    /// Remembers a failure of `work`: a failed sync for good (I9), others until such work succeeds again.
    pub(crate) fn note(&self, work: Work, error: &Error) {
        match error {
            Error::Closed | Error::UnknownKeyspace { .. } => {}
            Error::Poisoned { .. } => self.note_poison(error),
            passing => *self.failures[work as usize].lock() = Some(passing.clone()),
        }
    }

    /// Remembers a failed sync (I9), and nothing else: for work whose caller hears of the rest.
    pub(crate) fn note_poison(&self, error: &Error) {
        if let Error::Poisoned { cause } = error {
            let _ = self.poison.set(Arc::clone(cause));
        }
    }

    /// Forgets a passing failure of `work`: it has succeeded, or is about to be tried again.
    pub(crate) fn clear(&self, work: Work) {
        *self.failures[work as usize].lock() = None;
    }

    /// Forgets all that may pass: everything that is due is about to be tried again.
    pub(crate) fn clear_all(&self) {
        self.clear(Work::Flush);
        self.clear(Work::Compaction);
    }

    /// The failure that keeps `work` from being done now.
    pub(crate) fn failure(&self, work: Work) -> Option<Error> {
        let passing = || self.failures[work as usize].lock().clone();
        self.check_writable().err().or_else(passing)
    }

    /// A failure that holds now, of any work.
    pub(crate) fn error(&self) -> Option<Error> {
        if self.reads_only {
            // There is no work that could fail.
            return None;
        }
        let failure = self.failure(Work::Flush);
        failure.or_else(|| self.failure(Work::Compaction))
    }
}

impl Engine {
    /// Frozen memtables that the memory budget allows (I8).
    pub(crate) fn max_immutables(&self) -> usize {
        MEMTABLES as usize - 1
    }

    /// Queues a flush of `tree`, unless one is queued or nothing waits.
    pub(crate) fn schedule_flush(self: &Engine, tree: &Arc<Tree>) {
        let Some(engine) = self.me() else { return };
        let mut state = tree.state.lock();
        if state.flushing || tree.peek().immutables.is_empty() || self.background.writes_nothing() {
            return;
        }
        state.flushing = true;
        drop(state);
        let job = FlushJob::new(engine, Arc::clone(tree));
        self.spawn(Lane::Flush, Activity::Flush, job);
    }

    /// Queues every flush that waits and every compaction that can start.
    pub(crate) fn schedule(&self) {
        self.schedule_flushes();
        self.schedule_compactions();
    }

    /// Queues every flush that waits.
    pub(crate) fn schedule_flushes(&self) {
        for tree in self.all_trees() {
            self.schedule_flush(&tree);
        }
    }

    pub(crate) fn schedule_compactions(&self) {
        while self.background.compactions.look().running() < self.options.compaction_threads
            && !self.background.writes_nothing()
            && self.check_open().is_ok()
        {
            if !self.start_one_compaction() && !self.start_of_spilled() {
                return;
            }
        }
    }

    /// Starts the most urgent compaction that has room for its output. When none has, the most urgent one moves what it can as it
    /// is, or a table of the last fast level goes down to make some room; where that cannot be and nothing runs that
    /// could, the most urgent compaction writes to the last tier (I8).
    fn start_one_compaction(&self) -> bool {
        let mut candidates = self.most_urgent_first(|picker| picker.candidates().collect());
        if self.leave_to_run_alone(&mut candidates) {
            return false;
        }
        let started = |(tree, plan): &(Arc<Tree>, Plan)| self.start(tree, plan.clone()).is_ok();
        if candidates.iter().any(started) {
            return true;
        }
        // What can wait for room has none made.
        let candidates: Vec<_> = candidates
            .into_iter()
            .filter(|(_, plan)| !plan.can_wait())
            .collect();
        // One that lacks room on the slow tier must not keep room from being made on the fast one, nor one that wants more there
        // than can be, as all of a large L0 does.
        let helped = |(_, plan): &(Arc<Tree>, Plan)| self.is_helped_by_crossing(plan);
        let can_be = |(_, plan): &(Arc<Tree>, Plan)| {
            self.is_helped_by_crossing(plan)
                && self.could_be_free(self.wanted_on_fast(plan), plan.upper.tables())
        };
        let first = candidates.iter().position(can_be);
        let first = first.or_else(|| candidates.iter().position(helped));
        let first = first.unwrap_or(0);
        let refused = candidates.into_iter().nth(first);
        refused.is_some_and(|(tree, plan)| self.start_without_room(&tree, plan))
    }

    /// What `pick` gives for each keyspace, by how urgent it is: one keyspace's debt must not keep the others' writers
    /// waiting.
    fn most_urgent_first(
        &self,
        pick: impl Fn(&Picker<'_>) -> Vec<(f64, Plan)>,
    ) -> Vec<(Arc<Tree>, Plan)> {
        let mut found = Vec::new();
        let rooms = self.fast_rooms();
        for tree in self.all_trees() {
            let state = tree.state.lock();
            let picked = tree.with_picker_in(&rooms, self, &state, false, &pick);
            drop(state);
            let of_tree = picked.into_iter();
            found.extend(of_tree.map(|(score, plan)| (score, Arc::clone(&tree), plan)));
        }
        // Stable: of one level the first of its plans stays before the others.
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        let plans = found.into_iter();
        plans.map(|(_, tree, plan)| (tree, plan)).collect()
    }

    /// Starts `plan` if there is room for it. One that was overtaken since it was picked, by a job
    /// that it meets, by an edit or by older records that come to L0 (I2), is dropped: what it
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

    /// Sends a table down to make room on the fast tier, however full its level is; whether there was one. Levels above f give one
    /// first of a keyspace whose part of the tier they exceed; else a last fast level does, the fullest of those over their targets, or
    /// the one with the coldest; and where none of these has any, the levels above. One that readers hold gives no room until they let go: it goes only where there is no other.
    pub(crate) fn start_crossing(&self) -> bool {
        self.start_crossing_among(true, &[])
    }

    /// As [`Engine::start_crossing`], to have `wanted` bytes free there while the tables `kept` stay; nothing goes where these
    /// cannot be. Where obsolete files that readers have held for long are all that is wanting (I8), no table goes that such
    /// readers hold: it would give no room, and what stays of it takes some.
    pub(crate) fn start_crossing_for(&self, wanted: u64, kept: &[Arc<TableHandle>]) -> bool {
        self.could_be_free(wanted, kept)
            && self.start_crossing_among(!self.is_room_held(wanted), kept)
    }

    /// Whether `wanted` bytes could be free on the fast tier, were all levels down to f gone but for `kept`, and all that jobs
    /// and readers hold.
    fn could_be_free(&self, wanted: u64, kept: &[Arc<TableHandle>]) -> bool {
        let fast = self.fast();
        let trees = self.all_trees();
        let levels = trees.iter().map(|tree| tree.bytes_down_to_f()).sum::<u64>();
        let held = fast.in_flight() + self.graveyard.pinned(fast.index).0;
        let kept = kept.iter().filter(|table| table.meta.tier == fast.index);
        let kept = kept.map(|table| table.meta.len).sum();
        let could_go = levels.saturating_sub(kept) + held;
        wanted <= fast.free_for_jobs().saturating_add(could_go)
    }

    /// As [`Engine::start_crossing`], of none of `kept`; a table that readers hold goes only if they `may_be_held`.
    fn start_crossing_among(&self, may_be_held: bool, kept: &[Arc<TableHandle>]) -> bool {
        if self.level_tiers()[0] != self.fast().index {
            // No table is there to go.
            return false;
        }
        let held = self.long_held_tables();
        let goes = |table: &TableHandle| kept.iter().all(|kept| kept.meta.id != table.meta.id);
        self.start_crossing_of(|table| goes(table) && !held.contains(&table.meta.id))
            || may_be_held && !held.is_empty() && self.start_crossing_of(goes)
    }

    /// As [`Engine::start_crossing`], of a table that `may` go.
    fn start_crossing_of(&self, may: impl Fn(&TableHandle) -> bool) -> bool {
        let started = |(tree, plan): &(Arc<Tree>, Plan)| self.start(tree, plan.clone()).is_ok();
        let excess = |picker: &Picker<'_>| picker.pick_excess(&may).into_iter().collect();
        let crossing = |picker: &Picker<'_>| picker.pick_crossing(&may).into_iter().collect();
        if self.most_urgent_first(excess).iter().any(started)
            || self.most_urgent_first(crossing).iter().any(started)
        {
            return true;
        }
        let descent = |picker: &Picker<'_>| picker.pick_descent(&may).into_iter().collect();
        let mut descents = self.most_urgent_first(descent).into_iter();
        descents.any(|(tree, mut plan)| {
            self.start(&tree, plan.clone()).is_ok() || {
                self.spill(&mut plan);
                self.start(&tree, plan).is_ok()
            }
        })
    }

    /// Brings a table that was spilled to the last tier to where placement wants it. Whether there was one.
    fn start_of_spilled(&self) -> bool {
        let Some(go) = self.placement.spilled_go() else {
            return false;
        };
        let plans = self.most_urgent_first(|picker| {
            let plan = match go {
                Spilled::Up => picker.pick_rise(),
                Spilled::Down => picker.pick_sinking(),
            };
            plan.map(|plan| (0.0, plan)).into_iter().collect()
        });
        let mut plans = plans.into_iter();
        plans.any(|(tree, plan)| self.start(&tree, plan).is_ok())
    }

    /// Numbers of the tables on the fast tier that readers have held for long by a past version. Who holds obsolete files of one keyspace
    /// need not hold anything of another, and holds nothing that was written since. A reader of the present version comes to light
    /// when that has become a past one.
    fn long_held_tables(&self) -> BTreeSet<FileId> {
        let (now, fast) = (self.clock.now(), self.fast().index);
        let mut held = BTreeSet::new();
        for tree in self.all_trees() {
            let past = tree.state.lock().past.long_held(now);
            let tables = past.iter().flat_map(|version| version.tables());
            let on_fast = tables.filter(|table| table.meta.tier == fast);
            held.extend(on_fast.map(|table| table.meta.id));
        }
        held
    }

    /// Whether all that is wanting of `wanted` bytes on the fast tier is in obsolete files that readers have held for long (I8).
    fn is_room_held(&self, wanted: u64) -> bool {
        let fast = self.fast();
        let wanting = wanted.saturating_sub(fast.free_for_jobs());
        wanting > 0 && self.graveyard.long_held(fast.index) >= wanting
    }

    /// Whether `plan` may start once a table of a last fast level has gone down: it wants room on the fast tier, or is due to make
    /// some there, as another table may in its place. What lacks room on the slow tier would lack more.
    fn is_helped_by_crossing(&self, plan: &Plan) -> bool {
        let first = plan.outputs.first();
        plan.is_crossing || first.is_some_and(|output| output.tier == self.fast().index)
    }

    /// What has to be free on the fast tier for `plan` to start, in bytes.
    fn wanted_on_fast(&self, plan: &Plan) -> u64 {
        let fast = self.fast();
        match (plan.outputs.first(), &plan.bypass) {
            (Some(first), _) if first.tier == fast.index => {
                expected_len(plan.inputs(), fast).saturating_add(self.compaction_margin())
            }
            (_, Some(_)) => expected_len(plan.upper.tables().iter(), fast),
            // Where none is free, nothing of it stays there.
            _ => 0,
        }
    }

    /// What to do about a compaction that has no room; whether something was started.
    fn start_without_room(&self, tree: &Arc<Tree>, mut plan: Plan) -> bool {
        // Files that nobody holds any more may be all that is in the way.
        if self.sweep() && self.start(tree, plan.clone()).is_ok() {
            return true;
        }
        // What was to be dropped of the table stays in it until it is written the next time.
        if let Some(moved) = plan.as_move() {
            return self.start(tree, moved).is_ok();
        }
        // For a table to get shorter where it lies, no table changes its tier.
        if plan.is_in_place() {
            return false;
        }
        // What it brings down stays until it has ended; what it meets may go, and it is smaller then.
        let wanted = self.wanted_on_fast(&plan);
        if self.is_helped_by_crossing(&plan) && self.start_crossing_for(wanted, plan.upper.tables())
        {
            return true;
        }
        if point!(self.points, "compaction.no_crossing").is_err() || self.is_compacting() {
            return false;
        }
        self.spill(&mut plan);
        match self.start(tree, plan) {
            Ok(()) => true,
            Err(error) => {
                self.background.note(Work::Compaction, &error);
                // No job ends that would tell it: who waits may have looked when another had forgotten the last failure.
                self.executor.notify();
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
                expected_len(plan.inputs(), tier)
            };
            space.push(tier.reserve_leaving(expected, margin)?);
        }
        // What stays on the fast tier takes no more than what comes from there, so that a crossing makes
        // room: the job's router has no more to give.
        let stays: u64 = plan.upper.bytes();
        for output in outputs.filter(|_| !plan.is_move) {
            let tier = &self.tiers[usize::from(output.tier)];
            // Of a bypass it may be all, and cannot be less for want of room.
            let stays = match plan.bypass {
                Some(_) => expected_len(plan.upper.tables().iter(), tier),
                None => stays,
            };
            match tier.reserve(stays) {
                Ok(reserved) => {
                    plan.outputs.push(output);
                    space.push(reserved);
                }
                // What level f may have a version of has nowhere else to go.
                Err(error) if plan.bypass.is_some() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(space)
    }

    /// What compactions, and what comes up beside them, leave free on the fast tier, whatever is
    /// planned for it: it is room for writers, who would be slowed down for the lack of it.
    pub(crate) fn compaction_margin(&self) -> u64 {
        SpacePlan::new(&self.options, &self.sizes, self.fast().capacity()).margin
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

    /// As [`Engine::makes_room`], but compactions that fail make none.
    pub(crate) fn may_make_room(&self, seen: Seen) -> bool {
        self.background.failure(Work::Compaction).is_none() && self.makes_room(seen)
    }

    /// Whether a compaction runs or is queued.
    pub(crate) fn is_compacting(&self) -> bool {
        self.background.compactions.look().running() > 0
    }

    /// Whether nothing runs, waits or wants to run.
    pub(crate) fn is_idle(&self) -> bool {
        !self.placement.is_copying() && self.makes_no_room() && !self.wants_tidying()
    }

    /// Whether tables could be written anew where they lie, and there is room for it.
    fn wants_tidying(&self) -> bool {
        let tidying = self.most_urgent_first(|picker| {
            let plans = picker.candidates();
            plans.filter(|(_, plan)| plan.can_wait()).collect()
        });
        let has_room = |(_, mut plan): (_, Plan)| self.reserve_for(&mut plan).is_ok();
        tidying.into_iter().any(has_room)
    }

    /// Whether nothing runs, waits or wants to run that could make room.
    pub(crate) fn makes_no_room(&self) -> bool {
        let seen = self.background.compactions.look();
        let rooms = self.fast_rooms();
        let is_idle = seen.running() == 0
            && self.all_trees().iter().all(|tree| {
                tree.peek().immutables.is_empty()
                    && !tree.state.lock().flushing
                    && !tree.wants_compaction(&rooms, self)
            })
            && !self.placement.is_moving(self);
        // What began between these looks is wanted no more, and may have run in none of them.
        is_idle && self.background.compactions.look() == seen
    }
}

/// More bytes than any device has.
const MOST_EXPECTED: u64 = 1 << 56;

/// What a table takes beside its records and in part for each, in bytes, which of few records is
/// more than of the tables that they come from: its sample of keys.
const BESIDE_RECORDS: u64 = 256;

/// How long what is made of `tables` on `tier` may get: as long as they are but for the ends of blocks, unless
/// they were compressed. It may be longer then, unless the tier itself compresses, which is taken to do
/// so as it did before.
fn expected_len<'a>(tables: impl Iterator<Item = &'a Arc<TableHandle>>, tier: &Tier) -> u64 {
    let compresses = tier.options.compression != Compression::None;
    let expected = tables.map(|table| {
        let as_before = table.meta.len + table.meta.len / 32;
        let is_own = table.meta.tier == tier.index;
        if is_own && compresses || !table.is_compressed() {
            as_before
        } else {
            table.raw_len().max(as_before)
        }
    });
    // Counts of a damaged or crafted table may come to anything; what is reserved is added up.
    let expected = expected.fold(BESIDE_RECORDS, u64::saturating_add);
    expected.min(MOST_EXPECTED)
}

#[cfg(test)]
mod tests;
