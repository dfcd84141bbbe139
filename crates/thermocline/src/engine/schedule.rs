//! What runs behind the writers: when flushes and compactions start, and with what room.

use super::tree::TreeState;
use super::{Engine, Tree};
use crate::error::{Error, Result};
use crate::executor::Lane;
use crate::levels::{Between, CompactionJob, FlushJob, Picker, Places, Plan};
use crate::metrics::Activity;
use crate::options::{Compression, MEMTABLES};
use crate::placement::{FastRooms, Output, SpacePlan};
use crate::sync::Arc;
use crate::tier::{Reservation, Tier};
use crate::version::TableHandle;

/// What a look for compactions asks of each keyspace.
type Round = fn(&Tree, &FastRooms, &Engine, &TreeState) -> Vec<(f64, Plan)>;

/// What brings records to where they belong.
const DUE: Round = |tree, rooms, engine, state| {
    tree.with_picker_in(rooms, engine, state, false, |picker| picker.due().collect())
};

/// What gives back hidden records and merges small tables: only when nothing is due.
const TIDYING: Round = Tree::tidying;

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

    /// Queues every compaction that can start.
    pub(crate) fn schedule_compactions(&self) {
        while self.has_idle_thread()
            && !self.background.writes_nothing()
            && self.check_open().is_ok()
        {
            // One that is under way ends sooner, and others may wait for it (I11).
            if self.start_helper() {
                continue;
            }
            if self.placement.migration_is_overdue() && self.start_migration() {
                continue;
            }
            if !self.start_one_compaction() && !self.start_of_spilled() && !self.start_migration() {
                return;
            }
        }
    }

    /// Starts the most urgent compaction that has room for its output. What is hidden or small is
    /// looked for only when nothing that is due can start. When none has room, the most urgent
    /// one moves what it can as it is, or a table of the last fast level goes down to make some
    /// room. If that cannot be, and no running job could make room, the most urgent compaction
    /// writes to the last tier (I8).
    fn start_one_compaction(&self) -> bool {
        let started = |(tree, plan): &(Arc<Tree>, Plan)| self.start(tree, plan.clone()).is_ok();
        let mut refused = Vec::new();
        for round in [DUE, TIDYING] {
            let mut candidates = self.most_urgent_of(round);
            if self.leave_to_run_alone(&mut candidates) {
                break;
            }
            if candidates.iter().any(started) {
                return true;
            }
            refused.append(&mut candidates);
        }
        // No room is made for a plan that can wait for it.
        let candidates = refused.into_iter().filter(|(_, plan)| !plan.can_wait());
        let candidates: Vec<_> = candidates.collect();
        // A compaction that lacks room on the slow tier must not keep room from being made on the
        // fast one. Nor must one that wants more there than can be free, as one of all of a large
        // L0 does.
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

    /// Starts to bring a table to another tier. Returns whether one was started.
    fn start_migration(&self) -> bool {
        let Some((tree, plan)) = self.placement.migration(self) else {
            return false;
        };
        let seen = self.background.compactions.look();
        self.start(&tree, plan).is_ok() && seen.has_begun_by(self.background.compactions.look())
    }

    /// What `pick` gives for each keyspace, the most urgent first: one keyspace's debt must not
    /// keep the others' writers waiting.
    pub(crate) fn most_urgent_first(
        &self,
        pick: impl Fn(&Picker<'_>) -> Vec<(f64, Plan)>,
    ) -> Vec<(Arc<Tree>, Plan)> {
        self.most_urgent_of(|tree, rooms, engine, state| {
            tree.with_picker_in(rooms, engine, state, false, &pick)
        })
    }

    /// As [`Engine::most_urgent_first`], of what `round` gives.
    fn most_urgent_of(
        &self,
        round: impl Fn(&Tree, &FastRooms, &Engine, &TreeState) -> Vec<(f64, Plan)>,
    ) -> Vec<(Arc<Tree>, Plan)> {
        let mut found = Vec::new();
        let rooms = self.fast_rooms();
        for tree in self.all_trees() {
            let of_tree = round(&tree, &rooms, self, &tree.state.lock()).into_iter();
            found.extend(of_tree.map(|(score, plan)| (score, Arc::clone(&tree), plan)));
        }
        // The sort is stable: the first plan of a level stays before the level's others.
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        let plans = found.into_iter();
        plans.map(|(_, tree, plan)| (tree, plan)).collect()
    }

    /// Starts `plan` if there is room for it. The plan is dropped if something has overtaken it
    /// since it was picked: a job that it meets, an edit, or older records that come to L0 (I2).
    /// The tables that it names may be gone by then, and whoever overtook it has the next plan
    /// picked.
    pub(crate) fn start(&self, tree: &Arc<Tree>, mut plan: Plan) -> Result<()> {
        let space = self.reserve_for(&mut plan)?;
        let mut state = tree.state.lock();
        let is_current = Arc::ptr_eq(&plan.version, &tree.peek().version);
        let newest = plan.newest_of_l0();
        let comes_too_late = newest.is_some_and(|epoch| !state.l0_places.admits(epoch));
        if !is_current || comes_too_late || !state.running.admits(&plan) {
            return Ok(());
        }
        let engine = self.me().ok_or(Error::Closed)?;
        let number = Tree::start_compaction(&mut state, &plan);
        // Counted while the state is locked: whoever finds the inputs claimed finds the job
        // counted.
        self.background.compactions.begin();
        drop(state);
        self.placement.job_began(&plan);
        let job = CompactionJob::new(engine, Arc::clone(tree), plan, number, space);
        if job.compaction().wants_help() {
            let divided = Arc::downgrade(job.compaction());
            self.background.divided.lock().push(divided);
        }
        self.spawn(Lane::Compaction, Activity::Compaction, job);
        while self.has_idle_thread() && self.start_helper() {}
        Ok(())
    }

    fn has_idle_thread(&self) -> bool {
        let running = self.background.compactions.look().running();
        running < self.options.compaction_threads
    }

    /// Has another thread work on a compaction that is divided, the longest running first. Returns
    /// whether there is one.
    fn start_helper(&self) -> bool {
        let helper = {
            let mut divided = self.background.divided.lock();
            let compactions = divided.drain(..).filter_map(|c| c.upgrade());
            let wanting: Vec<_> = compactions.filter(|c| c.wants_help()).collect();
            divided.extend(wanting.iter().map(Arc::downgrade));
            wanting.into_iter().find_map(CompactionJob::helping)
        };
        let is_there = helper.is_some();
        if let Some(job) = helper {
            self.spawn(Lane::Compaction, Activity::Compaction, job);
        }
        is_there
    }

    /// Reserves space for what `plan` writes, for each of its outputs. A crossing that finds no
    /// space on the fast tier keeps nothing there: it makes room instead.
    pub(crate) fn reserve_for(&self, plan: &mut Plan) -> Result<Vec<Places>> {
        let mut space = Vec::new();
        let mut outputs = std::mem::take(&mut plan.outputs).into_iter();
        if let Some(output) = outputs.next() {
            let tier = &self.tiers[usize::from(output.tier)];
            let margin = self.margin_of(tier);
            let expected = if plan.is_move {
                0
            } else {
                expected_len(plan.inputs(), tier)
            };
            let place = match tier.reserve_leaving(expected, margin) {
                Ok(space) => space,
                Err(error) if plan.can_wait() => return Err(error),
                Err(error) => self
                    .reserve_on_faster(plan, output, expected)
                    .ok_or(error)?,
            };
            let output = Output {
                tier: place.tier().index,
                ..output
            };
            plan.outputs.push(output);
            space.push(self.with_faster(plan, output, Places::one(place)));
        }
        // What stays on the fast tier takes no more than what comes from there, so that a crossing
        // makes room. The job's router has no more than that to give.
        let stays: u64 = plan.upper.bytes();
        for output in outputs.filter(|_| !plan.is_move) {
            let tier = &self.tiers[usize::from(output.tier)];
            // With a bypass all of it may stay, and a lack of room cannot make it less. Of a
            // descent there stays about as much as lies there now.
            let stays = match plan.bypass {
                Some(_) => expected_len(plan.upper.tables().iter(), tier),
                None if plan.is_descent() => bytes_on(plan.fast_between(), tier),
                None => stays,
            };
            match tier.reserve(stays) {
                Ok(reserved) => {
                    plan.outputs.push(output);
                    space.push(Places::one(reserved));
                }
                // Records of which level f may have a version have nowhere else to go.
                Err(error) if plan.bypass.is_some() => return Err(error),
                // All that is hot there would go down at once.
                Err(error) if plan.is_descent() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(space)
    }

    /// Reserves room for all of an `output` of `plan` on the slowest of the faster tiers that its
    /// tables may lie on, and that has so much: where heat decides, no tier is needed. A full disk
    /// would else keep writers from a faster one that is empty.
    fn reserve_on_faster(&self, plan: &Plan, output: Output, bytes: u64) -> Option<Reservation> {
        let spread = self.placement.spread(self, plan, output)?;
        let tiers = spread.tiers().rev();
        let mut tiers = tiers.map(|tier| &self.tiers[usize::from(tier)]);
        tiers.find_map(|tier| tier.reserve_leaving(bytes, self.margin_of(tier)).ok())
    }

    /// Bytes that compactions leave free on `tier`.
    fn margin_of(&self, tier: &Tier) -> u64 {
        match tier.index {
            0 => self.compaction_margin(),
            _ => 0,
        }
    }

    /// Adds to the `place` of an output of `plan` what can be reserved on faster tiers for those of
    /// its tables that their heat sends there. What finds no room there lies with the rest.
    fn with_faster(&self, plan: &Plan, output: Output, place: Places) -> Places {
        let spread = match plan.is_move {
            true => None,
            false => self.placement.spread(self, plan, output),
        };
        let Some(spread) = spread else {
            return place;
        };
        let reserve = |(tier, bytes): (u8, u64)| {
            let tier = &self.tiers[usize::from(tier)];
            let reserve = || tier.reserve_leaving(bytes, self.margin_of(tier)).ok();
            (bytes > 0).then(reserve).flatten()
        };
        let faster = spread.expected(plan.inputs(), self.sizes.table_size);
        let others = faster.into_iter().filter_map(reserve).collect();
        place.spread(others, spread)
    }

    /// Bytes that compactions, and what comes up beside them, leave free on the fast tier, whatever
    /// is planned for it. They are for writers, who would be slowed down without them.
    pub(crate) fn compaction_margin(&self) -> u64 {
        SpacePlan::new(&self.options, &self.sizes, self.fast().capacity()).margin
    }

    /// Queues a compaction that was picked by hand, unless it has to wait for others to make room
    /// for it.
    pub(crate) fn start_manual(&self, tree: &Arc<Tree>, plan: Plan) -> Result<()> {
        let seen = self.background.compactions.look();
        let Err(error) = self.start(tree, plan.clone()) else {
            return Ok(());
        };
        // The second look: another thread may have begun a compaction that kept this plan from
        // starting.
        if self.makes_room(seen) || self.start_without_room(tree, plan) || self.makes_room(seen) {
            return Ok(());
        }
        Err(error)
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
        let tidying = self.most_urgent_of(TIDYING).into_iter();
        let mut tidying = tidying.filter(|(_, plan)| plan.can_wait());
        tidying.any(|(_, mut plan)| self.reserve_for(&mut plan).is_ok())
    }
}

/// Bytes of what a job takes along that lie on `tier`.
fn bytes_on<'a>(between: impl Iterator<Item = &'a Between>, tier: &Tier) -> u64 {
    let tables = between.flat_map(|between| &between.tables);
    let tables = tables.filter(|table| table.meta.tier == tier.index);
    tables.map(|table| table.meta.len).sum()
}

/// More bytes than any device has.
const MOST_EXPECTED: u64 = 1 << 56;

/// Bytes that a table takes beside its records, and in part for each of them: its sample of keys. A
/// table of few records may take more for it than the tables that they come from.
const BESIDE_RECORDS: u64 = 256;

/// How long the output made of `tables` on `tier` may get. It gets as long as they are, but for the
/// ends of blocks, unless they were compressed. Then it may get longer, unless they lie on `tier`
/// and that compresses: it is taken to compress as well as it did before.
pub(super) fn expected_len<'a>(
    tables: impl Iterator<Item = &'a Arc<TableHandle>>,
    tier: &Tier,
) -> u64 {
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
    // The counts of a damaged or crafted table may come to anything, and reservations are added up.
    let expected = expected.fold(BESIDE_RECORDS, u64::saturating_add);
    expected.min(MOST_EXPECTED)
}

#[cfg(test)]
mod tests;
