//! Promotion by flush: a full promotion cache becomes a table of L0 (HotRAP, §3.1 and §3.4).

use bytes::Bytes;

use super::cache::{Promoted, PromotionCache};
use super::frozen::FrozenPromotion;
use crate::engine::{Engine, Tree};
use crate::error::{Error, Result};
use crate::executor::{Job, Lane, Step};
use crate::key::{InternalKey, Kind, MAX_SEQ};
use crate::levels::{Origin, Sink};
use crate::metrics::{Activity, Purpose};
use crate::placement::Installed;
use crate::placement::hotrap::HotRap;
use crate::points::point;
use crate::read::Superversion;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::table::{HashedKey, LongKeys, ReadTrace, TableHeat, TableMeta};
use crate::tier::Reservation;
use crate::version::edit::VersionEdit;

/// What became of a promotion that has not failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promotion {
    /// It is over, whether or not anything came of it.
    Done,
    /// There is no room, and a compaction may make some.
    Waits,
}

/// Looks after one keyspace's full promotion cache.
struct PromotionJob {
    engine: Arc<Engine>,
    hotrap: Arc<HotRap>,
    tree: Arc<Tree>,
    /// Set once the flag may be another job's.
    has_ended: bool,
}

impl Job for PromotionJob {
    fn step(&mut self) -> Step {
        // Hotness is advice (I7): if something goes wrong here, the records stay where they were.
        // Only a failed sync is the store's business (I9).
        let before = self.tree.placed.gate.mutable();
        let promoted = self.hotrap.promote(&self.engine, &self.tree);
        if let Err(error) = &promoted {
            self.engine.background.note_poison(error);
        }
        let waits = matches!(promoted, Ok(Promotion::Waits));
        let has_frozen = !Arc::ptr_eq(&before, &self.tree.placed.gate.mutable());
        self.has_ended = true;
        self.tree.placed.promoting.store(false, Ordering::Release);
        self.engine.after_change();
        // Meanwhile this cache, rid of what is cold, or the next one may have filled, or the
        // compaction that this one waits for may have ended. Whoever filled it, and that
        // compaction, found the flag set. A full cache takes nothing more, so nobody else would
        // come and find the flag unset.
        let has_ended = waits && !self.engine.is_compacting();
        let is_full = matches!(promoted, Ok(Promotion::Done))
            && self.hotrap.is_to_be_flushed(&self.engine, &self.tree);
        if (has_frozen || is_full || has_ended) && self.engine.check_writable().is_ok() {
            self.hotrap.schedule_promotions(&self.engine);
        }
        Step::Done
    }
}

impl Drop for PromotionJob {
    fn drop(&mut self) {
        // A job dropped by a shutdown must not leave the flag set.
        if !self.has_ended {
            self.tree.placed.promoting.store(false, Ordering::Release);
        }
    }
}

impl HotRap {
    /// Queues the promotion of `tree`'s cache, unless that is queued or runs.
    pub(crate) fn schedule_promotion(&self, engine: &Engine, tree: &Arc<Tree>) {
        let (Some(held), Some(hotrap)) = (engine.me(), self.me.upgrade()) else {
            return;
        };
        if tree.placed.promoting.swap(true, Ordering::AcqRel) {
            return;
        }
        let tree = Arc::clone(tree);
        let job = PromotionJob {
            engine: held,
            hotrap,
            tree,
            has_ended: false,
        };
        engine.spawn(Lane::Hotness, Activity::Promotion, job);
    }

    /// Bytes at which the promotion cache of `tree` is full: its part of half a table's. At times
    /// there are two caches, a frozen one and the next, and small tables are good enough for L0.
    pub(crate) fn promotion_capacity(&self, engine: &Engine, tree: &Tree) -> u64 {
        // An empty cache is not full, though the share of a small keyspace among very many comes to
        // nothing.
        tree.placed
            .promotion_share
            .of(engine.sizes.table_size / 2)
            .max(1)
    }

    /// Whether the promotion cache of `tree` is full, and may become a table.
    pub(crate) fn is_to_be_flushed(&self, engine: &Engine, tree: &Tree) -> bool {
        let full = self.promotion_capacity(engine, tree);
        self.switches.promotion_by_flush && tree.placed.gate.mutable().bytes() >= full
    }

    /// Queues the promotion of every full cache: one that found no room may find some now.
    pub(crate) fn schedule_promotions(&self, engine: &Engine) {
        for tree in engine.all_trees() {
            if tree.placed.gate.mutable().bytes() >= self.promotion_capacity(engine, &tree) {
                self.schedule_promotion(engine, &tree);
            }
        }
    }

    /// Drops the cold records of a full cache, and flushes what is left if that is worth a table.
    pub(crate) fn promote(&self, engine: &Engine, tree: &Arc<Tree>) -> Result<Promotion> {
        engine.check_writable()?;
        point!(engine.points, "promotion.start")?;
        self.purge_cold(engine, tree, &tree.placed.gate.mutable());
        let worth_a_table =
            tree.placed.gate.mutable().bytes() >= self.promotion_capacity(engine, tree) / 2;
        point!(engine.points, "promotion.weighed")?;
        if !worth_a_table || !self.switches.promotion_by_flush {
            return Ok(Promotion::Done);
        }
        let expected = expected_len(&tree.placed.gate.mutable());
        let margin = engine.compaction_margin();
        let Ok(space) = engine.fast().reserve_leaving(expected, margin) else {
            // The end of a compaction, which may have made room, tries again. If none will come,
            // the records stay on the slow tier: promotion never waits for space.
            let wanted = expected.saturating_add(margin);
            if !engine.is_compacting() && !engine.start_crossing_for(wanted, &[]) {
                self.empty_promotion_cache(engine, tree, &tree.placed.gate.mutable());
                return Ok(Promotion::Done);
            }
            point!(engine.points, "promotion.waits")?;
            return Ok(Promotion::Waits);
        };
        point!(engine.points, "promotion.purged")?;
        let frozen = FrozenPromotion::freeze(tree);
        // Look at what readers put in since the first look, too. If they are quick, that is most of
        // it.
        self.purge_cold(engine, tree, &frozen.cache);
        let records = frozen.cache.all();
        let flushed = self.flush_promotion(engine, tree, &frozen, &records, space);
        if !matches!(flushed, Ok(true)) {
            frozen.abandon(tree);
        }
        for (key, _) in &records {
            // If a crossing took the record out meanwhile, it has logged the reads. Whoever still
            // reads by an earlier superversion finds the record on the slow tier that it pins (I6).
            if let Some(promoted) = frozen.cache.remove(key) {
                self.log_access(engine, tree.id, key, promoted.value.len(), promoted.reads());
            }
        }
        flushed.map(|_| Promotion::Done)
    }

    /// Takes the cold records out of `cache`, and logs their reads.
    fn purge_cold(&self, engine: &Engine, tree: &Tree, cache: &PromotionCache) {
        for (key, _) in cache.all() {
            if self.is_hot(tree, &key) {
                continue;
            }
            // An access is counted when its record leaves: a record is not hot merely because it
            // was only just read.
            if let Some(promoted) = cache.remove(&key) {
                self.promotions.dropped_cold.fetch_add(1, Ordering::Relaxed);
                self.log_access(
                    engine,
                    tree.id,
                    &key,
                    promoted.value.len(),
                    promoted.reads(),
                );
            }
        }
    }

    /// Empties every full cache for which no promotion is under way. The room that such a cache
    /// waits for was not made, nobody else will come, and as long as it is full it takes nothing.
    pub(crate) fn give_up_promotions(&self, engine: &Engine) {
        for tree in engine.all_trees() {
            let is_full =
                tree.placed.gate.mutable().bytes() >= self.promotion_capacity(engine, &tree);
            if is_full && !tree.placed.promoting.load(Ordering::Acquire) {
                self.empty_promotion_cache(engine, &tree, &tree.placed.gate.mutable());
            }
        }
    }

    /// Takes everything out of `cache`, one of `tree`'s, and logs the reads.
    fn empty_promotion_cache(&self, engine: &Engine, tree: &Tree, cache: &PromotionCache) {
        cache.take_all(|key, value_len, reads| {
            self.log_access(engine, tree.id, key, value_len, reads)
        });
    }

    /// Writes the table of L0 and installs it; `false` when a compaction has overtaken it.
    fn flush_promotion(
        &self,
        engine: &Engine,
        tree: &Arc<Tree>,
        frozen: &FrozenPromotion,
        records: &[(Bytes, Arc<Promoted>)],
        space: Reservation,
    ) -> Result<bool> {
        point!(engine.points, "promotion.frozen")?;
        let (written, _space) = write_promoted(engine, tree, frozen, records, space)?;
        let Some(meta) = written else {
            return Ok(false);
        };
        match install_promotion(engine, tree, frozen, &meta) {
            Ok(true) => {
                let by_flush = &self.promotions.by_flush;
                by_flush.fetch_add(meta.len, Ordering::Relaxed);
                point!(engine.points, "promotion.installed")?;
                Ok(true)
            }
            Ok(false) => {
                self.promotions.voided.fetch_add(1, Ordering::Relaxed);
                engine.discard_outputs(&[meta], &Error::Closed);
                Ok(false)
            }
            Err(error) => {
                engine.discard_outputs(&[meta], &error);
                Err(error)
            }
        }
    }
}

/// Writes a table of those records whose keys have no version in what was pinned at the freeze,
/// from the immutable memtables down to level f; none if nothing is left.
fn write_promoted(
    engine: &Engine,
    tree: &Tree,
    frozen: &FrozenPromotion,
    records: &[(Bytes, Arc<Promoted>)],
    space: Reservation,
) -> Result<(Option<TableMeta>, Vec<Reservation>)> {
    let origin = Origin {
        purpose: Purpose::Promotion,
        epoch: frozen.epoch,
        replaces: Vec::new(),
    };
    let size = space.left();
    let mut sink = Sink::of_one(0, origin, space, size);
    for (key, promoted) in records {
        if !is_above(&frozen.pinned, key)? {
            let key = InternalKey::new(key, promoted.seq, Kind::Put);
            sink.add(engine, tree, key, &promoted.value)?;
        }
    }
    point!(engine.points, "promotion.written")?;
    let table = sink.finish()?;
    Ok((table, sink.into_space()))
}

fn install_promotion(
    engine: &Engine,
    tree: &Arc<Tree>,
    frozen: &FrozenPromotion,
    meta: &TableMeta,
) -> Result<bool> {
    let edit = VersionEdit {
        added: vec![meta.clone()],
        next_file: Some(engine.files.next.load(Ordering::Relaxed)),
        ..VersionEdit::default()
    };
    let heat = TableHeat::flushed(engine.clock.now());
    let table = engine.open_table(meta.clone(), heat)?;
    point!(engine.points, "promotion.before_edit")?;
    let mut manifest = engine.files.manifest.lock();
    engine.check_not_dropped(tree)?;
    if !tree.state.lock().l0_places.begin_install(frozen.epoch) {
        return Ok(false);
    }
    manifest.append(&edit)?;
    let mut state = tree.state.lock();
    tree.install(
        engine,
        &mut state,
        &edit,
        vec![table],
        Installed::Promotion(frozen),
    );
    Ok(true)
}

/// How long a table of the records of `cache` may get.
fn expected_len(cache: &PromotionCache) -> u64 {
    let keys = cache.all().into_iter().map(|(key, _)| key.len());
    cache.bytes() + LongKeys::of(keys).beside_records()
}

/// Whether any version of `key` lies above the promotion caches in `pinned`, the active memtable
/// apart. Not only a newer one: an older one cannot be, and one that is equal need not come twice.
fn is_above(pinned: &Superversion, key: &[u8]) -> Result<bool> {
    let mut frozen = pinned.immutables.iter();
    if frozen.any(|memtable| memtable.get(key, MAX_SEQ).is_some()) {
        return Ok(true);
    }
    let mut trace = ReadTrace::new(Purpose::Promotion);
    let hashed = HashedKey::new(key);
    for table in pinned.down_to_f().filter_map(|run| run.find(key)) {
        if table.table()?.get(&hashed, MAX_SEQ, &mut trace)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
