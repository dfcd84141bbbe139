//! The answers of placement by table.

use std::time::Duration;

use super::ByTable;
use crate::engine::{Engine, Tree};
use crate::levels::{Picker, Plan, Spread};
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
        Some(self.migrations.spread(plan, output))
    }

    fn unknown_density(&self) -> f64 {
        self.migrations.unknown_density()
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
        let next = engine.files.next.load(Ordering::Relaxed);
        self.migrations.target_set(next);
        self.schedule_organizer(engine);
    }

    fn opened(&self, engine: &Engine) {
        self.organize(engine);
    }

    fn migration(&self, engine: &Engine) -> Option<(Arc<Tree>, Plan)> {
        self.migrations.next(engine)
    }

    fn migration_is_overdue(&self) -> bool {
        self.migrations.is_overdue()
    }

    fn job_began(&self, plan: &Plan) {
        self.migrations.note_start(plan);
    }

    fn written(&self, plan: &Plan, tables: &[TableMeta]) {
        self.migrations.note_written(plan, tables);
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
        self.organizes.load(Ordering::Acquire) || self.migrations.is_due(engine)
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
