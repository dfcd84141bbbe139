//! The answers of placement by table.

use std::time::Duration;

use super::ByTable;
use crate::engine::{Engine, Tree};
use crate::levels::{Densities, Picker, Plan, Spread};
use crate::metrics::CostReport;
use crate::placement::{Output, PlacementPolicy};
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::table::TableMeta;
use crate::version::edit::PlacedBy;
use crate::version::{MAX_LEVELS, TableHandle};

impl PlacementPolicy for ByTable {
    /// The levels have the sizes of a store of one tier: nothing crosses from one to the other.
    fn last_fast_level(&self, _founded: u8) -> u8 {
        MAX_LEVELS as u8 - 1
    }

    /// Only L0 is at home on the fast tier. Of other levels, what its heat does not send elsewhere
    /// lies on the last one.
    fn last_fast_home(&self, _last_fast_level: u8) -> u8 {
        0
    }

    fn spread(&self, engine: &Engine, plan: &Plan, output: Output) -> Option<Spread> {
        if output.level == 0 || plan.is_migration() || engine.tiers.len() < 2 {
            return None;
        }
        let tiers = self.queue.lock().tiers.clone();
        let densities = Densities::new(plan, self.unknown_density());
        let faster = tiers.into_iter().filter(|(tier, _, _)| *tier < output.tier);
        let faster = faster.map(|(tier, least, left)| {
            // What comes from there makes room for as much. Not so L0: its room is for the next
            // flushes.
            let comes = plan
                .inputs()
                .filter(|t| t.meta.tier == tier && t.meta.level > 0);
            let comes: u64 = comes.map(|table| table.meta.len).sum();
            (tier, least, left.saturating_add(comes))
        });
        Some(Spread::new(Arc::new(densities), faster.collect()))
    }

    /// About as hot as the coldest table of the fast tier: where that is full it goes to the next
    /// one.
    fn unknown_density(&self) -> f64 {
        let queue = self.queue.lock();
        let least = queue.tiers.first().map_or(0.0, |(_, least, _)| *least);
        match least.is_finite() {
            true => least.next_down().max(0.0),
            false => 0.0,
        }
    }

    fn tick(&self, engine: &Engine, now: Duration) {
        if self.epochs.is_due(now) {
            self.schedule_organizer(engine);
        }
    }

    fn after_change(&self, engine: &Engine) {
        self.schedule_organizer(engine);
    }

    fn target_set(&self, engine: &Engine) {
        // What the last target has moved may move again.
        self.queue.lock().since_target = engine.files.next.load(Ordering::Relaxed);
        self.schedule_organizer(engine);
    }

    fn opened(&self, engine: &Engine) {
        self.organize(engine);
    }

    fn migration(&self, engine: &Engine) -> Option<(Arc<Tree>, Plan)> {
        self.next_migration(engine)
    }

    fn migration_is_overdue(&self) -> bool {
        self.is_overdue()
    }

    fn job_began(&self, plan: &Plan) {
        self.note_start(plan);
    }

    fn written(&self, plan: &Plan, tables: &[TableMeta]) {
        self.counted.note(plan, tables);
    }

    /// The coldest table of the fast tier first.
    fn gives_way(
        &self,
        engine: &Engine,
        may: &dyn Fn(&TableHandle) -> bool,
    ) -> Option<Vec<(Arc<Tree>, Plan)>> {
        let coldest = |picker: &Picker<'_>| picker.pick_coldest(may).into_iter().collect();
        Some(engine.most_urgent_first(coldest))
    }

    fn is_moving(&self, engine: &Engine) -> bool {
        let wants = || {
            let migration = self.next_migration(engine);
            migration.is_some_and(|(_, mut plan)| engine.reserve_for(&mut plan).is_ok())
        };
        self.organizes.load(Ordering::Acquire) || wants()
    }

    fn is_copying(&self) -> bool {
        self.copier.is_copying()
    }

    fn add_outlook(&self, engine: &Engine, report: &mut CostReport, with_curve: bool) {
        ByTable::add_outlook(self, engine, report, with_curve);
    }

    fn placed_by(&self) -> Option<PlacedBy> {
        Some(PlacedBy::Tables)
    }

    fn keeps_heat(&self, _engine: &Engine) -> bool {
        true
    }
}
