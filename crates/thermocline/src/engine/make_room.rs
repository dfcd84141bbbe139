//! What is done where the fast tier has no room: tables go down, or output goes to the last tier.

use std::collections::BTreeSet;

use super::schedule::expected_len;
use super::{Engine, Seen, Tree, Work};
use crate::ids::FileId;
use crate::levels::{Picker, Plan};
use crate::placement::Spilled;
use crate::points::point;
use crate::sync::Arc;
use crate::version::TableHandle;

impl Engine {
    /// Sends a table down to make room on the fast tier, however full its level is. Returns whether
    /// there was one. It is taken from the first of these that has any:
    ///
    /// 1. the levels above f of a keyspace, where they exceed the keyspace's part of the tier;
    /// 2. a last fast level, the fullest of those over their targets, or else the one with the
    ///    coldest table;
    /// 3. the levels above f.
    ///
    /// A table that readers hold gives no room until they let go: it goes only if there is no
    /// other.
    pub(crate) fn start_crossing(&self) -> bool {
        self.start_crossing_among(true, &[])
    }

    /// As [`Engine::start_crossing`], to have `wanted` bytes free there while the tables `kept`
    /// stay. Nothing goes if so many bytes cannot be free. If all the missing room is in obsolete
    /// files that readers have held for long (I8), no table that such readers hold goes: it would
    /// give no room, and what stays of it would take some.
    pub(crate) fn start_crossing_for(&self, wanted: u64, kept: &[Arc<TableHandle>]) -> bool {
        self.could_be_free(wanted, kept)
            && self.start_crossing_among(!self.is_room_held(wanted), kept)
    }

    /// Whether `wanted` bytes would be free on the fast tier if all levels down to f were gone,
    /// except `kept`, and if all that jobs and readers hold were gone, too.
    pub(super) fn could_be_free(&self, wanted: u64, kept: &[Arc<TableHandle>]) -> bool {
        let fast = self.fast();
        let trees = self.all_trees();
        let levels = trees.iter().map(|tree| tree.bytes_down_to_f()).sum::<u64>();
        let held = fast.in_flight() + self.graveyard.pinned(fast.index).0;
        let kept = kept.iter().filter(|table| table.meta.tier == fast.index);
        let kept = kept.map(|table| table.meta.len).sum();
        let could_go = levels.saturating_sub(kept) + held;
        wanted <= fast.free_for_jobs().saturating_add(could_go)
    }

    /// As [`Engine::start_crossing`], but none of `kept` goes. A table that readers hold goes only
    /// with `may_be_held`.
    fn start_crossing_among(&self, may_be_held: bool, kept: &[Arc<TableHandle>]) -> bool {
        if self.level_tiers()[0] != self.fast().index {
            // There is no table that could go.
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
        if let Some(plans) = self.placement.gives_way(self, &may)
            && plans.iter().any(started)
        {
            return true;
        }
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

    /// Brings a table that was spilled to the last tier to where placement wants it. Returns
    /// whether there was one.
    pub(super) fn start_of_spilled(&self) -> bool {
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

    /// Numbers of the tables on the fast tier that readers have held for long through a past
    /// version. A reader that holds obsolete files of one keyspace need not hold anything of
    /// another, and holds nothing that was written since it began. A reader of the present version
    /// is noticed only when that has become a past one.
    pub(super) fn long_held_tables(&self) -> BTreeSet<FileId> {
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

    /// Whether all the room that is missing for `wanted` bytes on the fast tier is in obsolete
    /// files that readers have held for long (I8).
    pub(super) fn is_room_held(&self, wanted: u64) -> bool {
        let fast = self.fast();
        let wanting = wanted.saturating_sub(fast.free_for_jobs());
        wanting > 0 && self.graveyard.long_held(fast.index) >= wanting
    }

    /// Whether `plan` may start once a table of a last fast level has gone down. It may if it wants
    /// room on the fast tier. It may also if it is a crossing, which is due to make room there:
    /// another table may do so in its place. A plan that lacks room on the slow tier would lack
    /// even more.
    pub(super) fn is_helped_by_crossing(&self, plan: &Plan) -> bool {
        let first = plan.outputs.first();
        plan.is_crossing || first.is_some_and(|output| output.tier == self.fast().index)
    }

    /// What has to be free on the fast tier for `plan` to start, in bytes.
    pub(super) fn wanted_on_fast(&self, plan: &Plan) -> u64 {
        let fast = self.fast();
        match (plan.outputs.first(), &plan.bypass) {
            (Some(first), _) if first.tier == fast.index => {
                expected_len(plan.inputs(), fast).saturating_add(self.compaction_margin())
            }
            (_, Some(_)) => expected_len(plan.upper.tables().iter(), fast),
            // If no room is free there, nothing of the output stays there.
            _ => 0,
        }
    }

    /// Does what can be done for a compaction that has no room. Returns whether something was
    /// started.
    pub(super) fn start_without_room(&self, tree: &Arc<Tree>, mut plan: Plan) -> bool {
        // Files that nobody holds any more may be all that is in the way.
        if self.sweep() && self.start(tree, plan.clone()).is_ok() {
            return true;
        }
        // What was to be dropped from the table stays in it until it is next written.
        if let Some(moved) = plan.as_move() {
            return self.start(tree, moved).is_ok();
        }
        // No table changes its tier only so that another can get shorter where it lies.
        if plan.can_wait() {
            return false;
        }
        // The tables that the plan brings down stay until it has ended. Those that it meets may go,
        // and then the plan is smaller.
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
                // No job ends that would wake those who wait. They may have looked when another
                // thread had just forgotten the last failure.
                self.executor.notify();
                false
            }
        }
    }

    /// Sends all output of `plan` to the last tier, whatever its level.
    pub(super) fn spill(&self, plan: &mut Plan) {
        for output in &mut plan.outputs {
            output.tier = self.tiers.len() as u8 - 1;
        }
    }

    /// Whether a compaction makes room, or has made some since the counts were `seen`. If so, a
    /// reservation that was refused meanwhile may be tried again.
    pub(crate) fn makes_room(&self, seen: Seen) -> bool {
        seen.running() > 0 || seen.has_begun_by(self.background.compactions.look())
    }

    /// As [`Engine::makes_room`], but compactions that fail make none.
    pub(crate) fn may_make_room(&self, seen: Seen) -> bool {
        self.background.failure(Work::Compaction).is_none() && self.makes_room(seen)
    }

    /// Whether nothing that could make room runs, waits or wants to run.
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
        // A compaction that began between these looks is no longer wanted, and none of them may
        // have seen it run.
        is_idle && self.background.compactions.look() == seen
    }
}
