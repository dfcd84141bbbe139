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
    /// Sends a table down to make room on the fast tier, however full its level is; whether there
    /// was one. Levels above f give one first of a keyspace whose part of the tier they exceed;
    /// else a last fast level does, the fullest of those over their targets, or the one with the
    /// coldest; and where none of these has any, the levels above. One that readers hold gives no
    /// room until they let go: it goes only where there is no other.
    pub(crate) fn start_crossing(&self) -> bool {
        self.start_crossing_among(true, &[])
    }

    /// As [`Engine::start_crossing`], to have `wanted` bytes free there while the tables `kept`
    /// stay; nothing goes where these cannot be. Where obsolete files that readers have held for
    /// long are all that is wanting (I8), no table goes that such readers hold: it would give no
    /// room, and what stays of it takes some.
    pub(crate) fn start_crossing_for(&self, wanted: u64, kept: &[Arc<TableHandle>]) -> bool {
        self.could_be_free(wanted, kept)
            && self.start_crossing_among(!self.is_room_held(wanted), kept)
    }

    /// Whether `wanted` bytes could be free on the fast tier, were all levels down to f gone but
    /// for `kept`, and all that jobs and readers hold.
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

    /// As [`Engine::start_crossing`], of none of `kept`; a table that readers hold goes only if
    /// they `may_be_held`.
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

    /// Brings a table that was spilled to the last tier to where placement wants it. Whether there
    /// was one.
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

    /// Numbers of the tables on the fast tier that readers have held for long by a past version.
    /// Who holds obsolete files of one keyspace need not hold anything of another, and holds
    /// nothing that was written since. A reader of the present version comes to light when that has
    /// become a past one.
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

    /// Whether all that is wanting of `wanted` bytes on the fast tier is in obsolete files that
    /// readers have held for long (I8).
    pub(super) fn is_room_held(&self, wanted: u64) -> bool {
        let fast = self.fast();
        let wanting = wanted.saturating_sub(fast.free_for_jobs());
        wanting > 0 && self.graveyard.long_held(fast.index) >= wanting
    }

    /// Whether `plan` may start once a table of a last fast level has gone down: it wants room on
    /// the fast tier, or is due to make some there, as another table may in its place. What lacks
    /// room on the slow tier would lack more.
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
            // Where none is free, nothing of it stays there.
            _ => 0,
        }
    }

    /// What to do about a compaction that has no room; whether something was started.
    pub(super) fn start_without_room(&self, tree: &Arc<Tree>, mut plan: Plan) -> bool {
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
        // What it brings down stays until it has ended; what it meets may go, and it is smaller
        // then.
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
                // No job ends that would tell it: who waits may have looked when another had
                // forgotten the last failure.
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

    /// Whether a compaction makes room, or has made some since the counts were `seen`: a
    /// reservation that was refused meanwhile may be tried again.
    pub(crate) fn makes_room(&self, seen: Seen) -> bool {
        seen.running() > 0 || seen.has_begun_by(self.background.compactions.look())
    }

    /// As [`Engine::makes_room`], but compactions that fail make none.
    pub(crate) fn may_make_room(&self, seen: Seen) -> bool {
        self.background.failure(Work::Compaction).is_none() && self.makes_room(seen)
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
