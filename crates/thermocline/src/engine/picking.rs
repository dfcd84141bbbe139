//! A keyspace as the picker of compactions sees it, and the jobs that run on it.

use super::Engine;
use super::tree::{Tree, TreeState};
use crate::key::SeqNo;
use crate::levels::{LevelTargets, Looked, Picker, Plan, TableSizes};
use crate::placement::FastRooms;
use crate::version::Version;

impl Tree {
    /// Target sizes of the levels now.
    pub(crate) fn targets(&self, engine: &Engine, version: &Version) -> LevelTargets {
        self.targets_in(&engine.fast_rooms(), engine, version)
    }

    /// As [`Tree::targets`], with `rooms` as worked out for all keyspaces.
    pub(crate) fn targets_in(
        &self,
        rooms: &FastRooms,
        engine: &Engine,
        version: &Version,
    ) -> LevelTargets {
        LevelTargets::new(
            &engine.options,
            &engine.sizes,
            version,
            self.last_fast_level,
            rooms.of(self),
        )
    }

    /// Runs `choose` with a picker for the present version. The caller holds `state`. An `urgent`
    /// choice does not wait for older records on their way to L0.
    pub(crate) fn with_picker<T>(
        &self,
        engine: &Engine,
        state: &TreeState,
        urgent: bool,
        choose: impl FnOnce(&Picker<'_>) -> T,
    ) -> T {
        self.with_picker_in(&engine.fast_rooms(), engine, state, urgent, choose)
    }

    /// As [`Tree::with_picker`], with `rooms` as worked out for all keyspaces.
    pub(crate) fn with_picker_in<T>(
        &self,
        rooms: &FastRooms,
        engine: &Engine,
        state: &TreeState,
        urgent: bool,
        choose: impl FnOnce(&Picker<'_>) -> T,
    ) -> T {
        let superversion = self.pin();
        let targets = self.targets_in(rooms, engine, &superversion.version);
        let l0 = superversion.version.levels[0].tables.len();
        let is_urgent = urgent || l0 >= engine.options.l0_slowdown;
        let placement = &engine.placement;
        let hotness = placement.hotness(self, &superversion.version);
        let passed = self.passed.get();
        choose(&Picker {
            version: &superversion.version,
            targets: &targets,
            running: &state.running,
            l0_trigger: engine.sizes.l0_trigger,
            tiers: engine.level_tiers(),
            last_fast_home: usize::from(placement.last_fast_home(self.last_fast_level)),
            l0_limit: state.l0_places.limit(is_urgent),
            oldest_reader: engine.snapshots.oldest().unwrap_or(SeqNo::MAX),
            hotness: hotness.as_deref(),
            bypass: placement.bypass_worth(self),
            part_above_f: rooms.above_f(self),
            table_sizes: TableSizes::new(
                &engine.options,
                &engine.sizes,
                engine.fast().capacity(),
                self.last_fast_level,
            ),
            passed: passed.as_ref(),
            often_looked: self.often_looked.get(),
        })
    }

    /// What [`Picker::tidying`] gives now. Where it gave nothing, it is asked again only once what
    /// it depends on has changed.
    pub(crate) fn tidying(
        &self,
        rooms: &FastRooms,
        engine: &Engine,
        state: &TreeState,
    ) -> Vec<(f64, Plan)> {
        // Counted before the look: a table that is opened meanwhile is for the next one.
        let opened = engine.tiers.iter().map(|tier| tier.opened()).sum();
        self.with_picker_in(rooms, engine, state, false, |picker| {
            let now = Looked::by(picker, opened);
            let mut last = self.looked.lock();
            if last.as_ref().is_some_and(|last| last.is_as(&now)) {
                return Vec::new();
            }
            let found: Vec<_> = picker.tidying().collect();
            *last = found.is_empty().then_some(now);
            found
        })
    }

    /// Whether a compaction that brings records to where they belong could start now.
    pub(crate) fn wants_compaction(&self, rooms: &FastRooms, engine: &Engine) -> bool {
        let state = self.state.lock();
        let is_due = self.with_picker_in(rooms, engine, &state, false, |picker| {
            picker.due().next().is_some()
        });
        let tidying = || self.tidying(rooms, engine, &state);
        is_due || tidying().iter().any(|(_, plan)| !plan.can_wait())
    }

    /// Enters a compaction that begins. Returns the number with which to end it.
    pub(crate) fn start_compaction(state: &mut TreeState, plan: &Plan) -> u64 {
        if let Some(newest) = plan.newest_of_l0() {
            state.l0_places.picked(newest);
        }
        state.running.start(plan)
    }

    /// Ends a job's hold on its inputs and ranges, and on what readers may add beside the levels.
    pub(crate) fn end_compaction(&self, number: u64, plan: &Plan) {
        self.state.lock().running.end(number, plan);
        if plan.is_crossing {
            self.placed.release(number);
        }
    }
}
