//! The answers of placement by hotness.

use std::time::Duration;

use super::HotRap;
use super::promotion::{Joining, Taken};
use crate::engine::{Engine, Tree};
use crate::error::Result;
use crate::ids::KeyspaceId;
use crate::levels::{BypassWorth, Hotness, Plan};
use crate::metrics::{Activity, CostReport, HeatReport, HotRapMetrics, IoMetrics};
use crate::options::Target;
use crate::placement::{Choice, Moved, PlacementPolicy, Read, Shares, Spilled};
use crate::points::point;
use crate::storage::Medium;
use crate::sync::atomic::Ordering;
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

    fn would_stay(&self, tree: &Tree, key: &[u8]) -> bool {
        self.switches.retention && self.ralt.is_hot(tree.id, key)
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
        self.is_promoting(engine)
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
    }

    #[inline]
    fn tick(&self, engine: &Engine, now: Duration) {
        self.tick_governor(engine, now);
    }

    fn target_set(&self, engine: &Engine) {
        self.govern(engine, true);
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

    #[cfg(test)]
    fn as_hotrap(&self) -> Option<&HotRap> {
        Some(self)
    }
}
