//! Where reads meet placement by hotness: every access is logged, and a record of the slow tier is
//! offered to the promotion cache.

use super::HotRap;
use crate::engine::{Engine, Found, Tree};
use crate::error::Result;
use crate::executor::{Job, Lane, Step};
use crate::ids::KeyspaceId;
use crate::key::{Kind, SeqNo};
use crate::metrics::{Activity, Refusal};
use crate::placement::Read;
use crate::points::point;
use crate::read::Superversion;
use crate::record::Record;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;

impl HotRap {
    /// Takes note of a point read that found `record`.
    #[inline]
    pub(super) fn note_access(&self, engine: &Engine, read: &Read<'_>, record: &Record) {
        if !self.counts_accesses || record.kind != Kind::Put {
            return;
        }
        let tree = read.tree;
        match read.found {
            // The caches count these, and they are logged later.
            Found::PromotionCache | Found::RecordCache | Found::Nowhere => {}
            Found::Table { level, .. } if level > tree.last_fast_level => {
                self.offer(engine, tree, read.seen, read.seq, read.key, record);
            }
            Found::Table { .. } | Found::Memtable => {
                self.log_access(engine, tree.id, read.key, record.value.len(), 1);
            }
        }
    }

    /// Offers a record that was found below level f to the promotion cache.
    fn offer(
        &self,
        engine: &Engine,
        tree: &Tree,
        seen: &Superversion,
        seq: SeqNo,
        key: &[u8],
        record: &Record,
    ) {
        self.promotions.attempts.fetch_add(1, Ordering::Relaxed);
        let full = self.promotion_capacity(engine, tree);
        // If this point fails, nothing happens: a read does not fail for want of promotion.
        let _: Result<()> = point!(engine.points, "promotion.before_admission");
        let most = full.saturating_add(full / 4);
        match tree.placed.gate.admit(seen, seq, (key, record), most) {
            Ok(bytes) if bytes >= full => {
                if let Some(tree) = engine.tree(tree.id) {
                    self.schedule_promotion(engine, &tree);
                }
            }
            Ok(_) => {}
            Err(why) => {
                self.promotions.count_refusal(why);
                self.log_access(engine, tree.id, key, record.value.len(), 1);
                if why == Refusal::Full {
                    self.look_after_full_cache(engine, tree);
                }
            }
        }
    }

    /// Has a promotion cache flushed that takes nothing more. Its share may have fallen since it
    /// last took in a record, and then nobody else would have it flushed. While a compaction runs,
    /// its end does so, and a promotion that waits for the room it makes is not to try again at
    /// each read.
    fn look_after_full_cache(&self, engine: &Engine, tree: &Tree) {
        let is_left = self.is_to_be_flushed(engine, tree) && !engine.is_compacting();
        if is_left
            && engine.check_writable().is_ok()
            && let Some(tree) = engine.tree(tree.id)
        {
            self.schedule_promotion(engine, &tree);
        }
    }

    /// Logs `times` accesses to a record.
    pub(crate) fn log_access(
        &self,
        engine: &Engine,
        keyspace: KeyspaceId,
        key: &[u8],
        value_len: usize,
        times: u32,
    ) {
        if times > 0 && self.counts_accesses && self.ralt.log(keyspace, key, value_len, times) {
            self.schedule_tracking(engine);
        }
    }

    /// Logs the reads that caches have answered and would have reported later. This is for closing:
    /// it empties the promotion caches, and nobody else works for RALT any more.
    pub(super) fn log_waiting_accesses(&self, engine: &Engine) {
        if !self.counts_accesses {
            return;
        }
        let ralt = &self.ralt;
        let mut log = |keyspace: KeyspaceId, key: &[u8], value_len: usize, times: u32| {
            if times > 0 && ralt.log(keyspace, key, value_len, times) {
                // This is a flush, or else what makes room for one, or a slice of the merges that
                // take turns with flushes. Merges that are due after the last flush are left to the
                // next opening, since whoever closes the store is waiting.
                let _: bool = engine.cpu.measured(Activity::Ralt, || ralt.work());
            }
        };
        for tree in engine.all_trees() {
            for cache in tree.placed.view().caches {
                cache.take_all(|key, value_len, reads| log(tree.id, key, value_len, reads));
            }
        }
        if let Some(records) = &engine.caches.records {
            records.take_accesses(&mut log);
        }
    }

    /// Queues RALT's background work, unless it is queued or runs.
    pub(crate) fn schedule_tracking(&self, engine: &Engine) {
        let (Some(held), Some(hotrap)) = (engine.me(), self.me.upgrade()) else {
            return;
        };
        if engine.background.writes_nothing() || self.tracking.swap(true, Ordering::AcqRel) {
            return;
        }
        let job = TrackingJob {
            engine: held,
            hotrap,
            has_ended: false,
        };
        engine.spawn(Lane::Hotness, Activity::Ralt, job);
    }

    /// Whether RALT's work or a promotion is queued or runs.
    pub(crate) fn is_promoting(&self, engine: &Engine) -> bool {
        let is_promoting = |tree: &Arc<Tree>| tree.placed.promoting.load(Ordering::Acquire);
        self.tracking.load(Ordering::Acquire) || engine.all_trees().iter().any(is_promoting)
    }
}

/// RALT's background work, one part a step.
struct TrackingJob {
    engine: Arc<Engine>,
    hotrap: Arc<HotRap>,
    /// Set once the flag may be another job's.
    has_ended: bool,
}

impl Job for TrackingJob {
    fn step(&mut self) -> Step {
        if self.engine.check_open().is_ok() && self.hotrap.ralt.work() {
            return Step::Again;
        }
        // If a flush is due all the same, there is no room for it. The next full buffer, or the end
        // of a compaction, tries again.
        let has_no_room = self.hotrap.ralt.is_flush_due();
        self.has_ended = true;
        self.hotrap.tracking.store(false, Ordering::Release);
        // If work came due between the look and the clearing of the flag, whoever came with it has
        // found the flag set.
        if !has_no_room && self.hotrap.ralt.has_work() && self.engine.check_open().is_ok() {
            self.hotrap.schedule_tracking(&self.engine);
        }
        // RALT may have grown, which takes room from the last fast levels, and another keyspace's
        // data may be hot now. So a crossing may be due that no compaction's end will find. Without
        // this, whoever waits for the store to come to rest would wait on.
        if self.engine.check_open().is_ok() {
            self.hotrap.update_hot_bytes(&self.engine);
            // Writers may have been slowed for room that RALT has reserved or given back.
            self.engine.update_pressure();
            self.engine.schedule();
        }
        self.engine.executor.notify();
        Step::Done
    }
}

impl Drop for TrackingJob {
    fn drop(&mut self) {
        // A job dropped by a shutdown must not leave the flag set.
        if !self.has_ended {
            self.hotrap.tracking.store(false, Ordering::Release);
        }
    }
}
