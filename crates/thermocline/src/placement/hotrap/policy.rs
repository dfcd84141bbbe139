//! The answers of placement by hotness.

use std::time::Duration;

use super::HotRap;
use super::promotion::{Joining, Taken};
use crate::engine::{Engine, Tree};
use crate::error::Result;
use crate::ids::KeyspaceId;
use crate::key::KeyRange;
use crate::levels::{BypassWorth, Hotness, Plan, Spread};
use crate::metrics::{Activity, CostReport, HeatReport, HotRapMetrics, IoMetrics};
use crate::options::Target;
use crate::placement::{Choice, Moved, Output, PlacementPolicy, Read, Shares, Spilled, Stayers};
use crate::points::point;
use crate::storage::Medium;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::table::TableMeta;
use crate::tier::Tier;
use crate::version::Version;
use crate::version::edit::PlacedBy;

impl PlacementPolicy for HotRap {
    fn hotness<'a>(&'a self, tree: &'a Tree, version: &Version) -> Option<Box<dyn Hotness + 'a>> {
        Some(self.hot_tables(tree, version))
    }

    fn bypass_worth(&self, tree: &Tree) -> Option<BypassWorth> {
        self.worth_of_bypass(tree)
    }

    fn stayers(&self, tree: &Tree, range: &KeyRange) -> Option<Stayers> {
        self.switches.retention.then(|| {
            let mut hot = self.ralt.hot_filter(tree.id, range);
            Box::new(move |key: &[u8]| hot.is_hot(key)) as Stayers
        })
    }

    fn spread(&self, engine: &Engine, plan: &Plan, output: Output) -> Option<Spread> {
        self.spread_below_f(engine, plan, output)
    }

    fn unknown_density(&self) -> f64 {
        self.below_f.unknown_density()
    }

    fn migration(&self, engine: &Engine) -> Option<(Arc<Tree>, Plan)> {
        self.below_f.next(engine)
    }

    fn migration_is_overdue(&self) -> bool {
        self.below_f.is_overdue()
    }

    fn job_began(&self, plan: &Plan) {
        self.below_f.note_start(plan);
    }

    fn written(&self, plan: &Plan, tables: &[TableMeta]) {
        // A crossing changes the tier of what it takes down, whatever its heat.
        if !plan.is_crossing {
            self.below_f.note_written(plan, tables);
        }
    }

    fn room_of_last_levels(&self, engine: &Engine, shares: &Shares, planned: u64) -> Option<u64> {
        Some(self.room_of_last_fast_levels(engine, shares, planned))
    }

    /// Up if the fast tier has had room to spare of late. Else down, from where their hot records
    /// come up.
    fn spilled_go(&self) -> Option<Spilled> {
        Some(match self.has_spare_room.load(Ordering::Relaxed) {
            true => Spilled::Up,
            false => Spilled::Down,
        })
    }

    #[inline]
    fn on_read(&self, engine: &Engine, read: &Read<'_>) {
        self.note_slow_reads(engine, read.trace);
        if let Some(record) = read.record {
            self.note_access(engine, read, record);
        }
    }

    fn on_cached_reads(
        &self,
        engine: &Engine,
        keyspace: KeyspaceId,
        key: &[u8],
        value_len: usize,
        times: u32,
    ) {
        self.log_access(engine, keyspace, key, value_len, times);
    }

    fn slice(&self) -> Option<u64> {
        Some(self.ralt.slice())
    }

    fn claim(&self, engine: &Engine, tree: &Tree, plan: &Plan, job: u64) -> Option<Joining> {
        Some(self.claim_crossing(engine, tree, plan, job))
    }

    fn choice(
        &self,
        tree: &Tree,
        plan: &Plan,
        joining: Option<&Joining>,
    ) -> Option<Box<dyn Choice>> {
        self.crossing_choice(tree, plan, joining?)
    }

    fn moved(&self, engine: &Engine, moved: Moved) {
        let counted = &self.promotions;
        for (total, bytes) in [
            (&counted.retained, moved.retained),
            (&counted.by_compaction, moved.brought),
            (&counted.bypassed, moved.bypassed),
        ] {
            total.fetch_add(bytes, Ordering::Relaxed);
        }
        if moved.brought > 0 {
            let _: Result<()> = point!(engine.points, "promotion.by_compaction");
        }
    }

    fn taken(&self, engine: &Engine, tree: &Tree, taken: &Taken) {
        self.count_reads_of(engine, tree, taken);
    }

    fn after_change(&self, engine: &Engine) {
        self.update_hot_room(engine);
        if engine.target.get() != Target::None {
            self.tick_governor(engine, engine.clock.now());
        }
    }

    /// If another keyspace has grown, a promotion cache may now hold more than its share. And one
    /// that found no room may find some now.
    fn room_was_made(&self, engine: &Engine) {
        self.schedule_promotions(engine);
    }

    fn room_was_not_made(&self, engine: &Engine) {
        self.give_up_promotions(engine);
    }

    fn pressure(&self, engine: &Engine) -> f64 {
        self.hot_set_pressure(engine)
    }

    fn is_moving(&self, engine: &Engine) -> bool {
        self.is_promoting(engine) || self.below_f.is_due(engine)
    }

    fn is_copying(&self) -> bool {
        self.copier.is_copying() || self.is_governing()
    }

    fn track(&self, keyspace: KeyspaceId) {
        self.ralt.track(keyspace);
    }

    fn forget(&self, keyspace: KeyspaceId) {
        self.ralt.forget(keyspace);
    }

    /// By hotness only if RALT has a state on disk: the next opening takes a missing state for
    /// lost.
    fn placed_by(&self) -> Option<PlacedBy> {
        self.ralt.has_state().then_some(PlacedBy::Hotness)
    }

    fn begun(&self, _medium: &dyn Medium, _fast: &Tier) -> Option<String> {
        self.trouble()
    }

    fn trouble(&self) -> Option<String> {
        self.ralt.trouble()
    }

    fn opened(&self, engine: &Engine) {
        self.update_hot_bytes(engine);
        self.govern(engine, true);
        self.organize_below_f(engine);
    }

    #[inline]
    fn tick(&self, engine: &Engine, now: Duration) {
        self.tick_governor(engine, now);
    }

    fn target_set(&self, engine: &Engine) {
        let next = engine.files.next.load(Ordering::Relaxed);
        self.below_f.target_set(next);
        self.govern(engine, true);
        self.organize_below_f(engine);
    }

    fn copy_to(&self, engine: &Engine, target: &Tier) -> Option<PlacedBy> {
        self.copy_hotness(engine, target)
    }

    fn close(&self, engine: &Engine) {
        self.log_waiting_accesses(engine);
        engine.cpu.measured(Activity::Ralt, || self.ralt.close());
    }

    fn add_outlook(&self, engine: &Engine, report: &mut CostReport, with_curve: bool) {
        self.add_cost(engine, report, with_curve);
    }

    fn keeps_heat(&self, engine: &Engine) -> bool {
        engine.target.get() != Target::None || Self::has_slow_tiers(engine)
    }

    fn file_bytes(&self) -> u64 {
        self.ralt.file_bytes()
    }

    fn io(&self) -> Option<IoMetrics> {
        Some(self.ralt.io())
    }

    fn hot_bytes(&self, keyspace: KeyspaceId) -> Option<u64> {
        Some(self.ralt.hot_set_of(keyspace))
    }

    fn metrics(&self, engine: &Engine) -> Option<HotRapMetrics> {
        Some(self.counted(engine))
    }

    fn heat(&self, engine: &Engine, most: usize) -> Result<HeatReport> {
        self.heat_report(engine, most)
    }

    fn hot_bytes_on_fast(&self, engine: &Engine) -> Result<Option<u64>> {
        self.count_hot_on_fast(engine).map(Some)
    }

    #[cfg(test)]
    fn as_hotrap(&self) -> Option<&HotRap> {
        Some(self)
    }
}
