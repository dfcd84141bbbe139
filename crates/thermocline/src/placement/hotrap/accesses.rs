//! Where reads meet placement by hotness: every access is logged, and a record of the slow tier is
//! offered to the promotion cache.

use super::ralt::Ralt;
use crate::db::Engine;
use crate::db::Found;
use crate::db::Tree;
use crate::error::Result;
use crate::executor::{Job, Lane, Step};
use crate::ids::KeyspaceId;
use crate::key::{Kind, SeqNo};
use crate::metrics::{Activity, HotRapMetrics, RaltMetrics, Refusal};
use crate::options::Switches;
use crate::placement::rooms::JOB_TABLES;
use crate::points::point;
use crate::read::Superversion;
use crate::record::Record;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};

/// How much of the room for the last fast level the hot set may take. Nearly all: a record that is hot
/// and does not fit costs a read of the slow tier each time, and the picker finds the tables that
/// have most cold records, however few there are on average.
const HOT_SHARE: f64 = 0.97;

/// Tables by which the levels down to Lf must stay below Lf's target while everything that is read
/// is promoted: an empty fast tier helps nobody.
const SPARE_TABLES: u64 = 2;

/// A size that follows its measurements slowly: room comes and goes with each flush and each
/// compaction, and the hot set cannot.
#[derive(Debug, Default)]
pub(crate) struct Settled(AtomicU64);

impl Settled {
    /// Takes a measurement in; what has settled comes back.
    fn settle(&self, now: u64) -> u64 {
        let before = self.0.load(Ordering::Relaxed);
        let after = match before {
            0 => now,
            _ => before - before / 32 + now / 32,
        };
        self.0.store(after, Ordering::Relaxed);
        after
    }

    /// As [`Settled::settle`], but falls at once: the least of late.
    fn settle_low(&self, now: u64) -> u64 {
        let before = self.0.load(Ordering::Relaxed);
        let after = match before {
            0 => now,
            _ => now.min(before + now.saturating_sub(before) / 64),
        };
        self.0.store(after, Ordering::Relaxed);
        after
    }
}

impl Engine {
    /// Takes note of a point read at `seq` over `seen` that found `record` of `key`.
    #[inline]
    pub(crate) fn note_access(
        &self,
        tree: &Tree,
        seen: &Superversion,
        seq: SeqNo,
        key: &[u8],
        found: Found,
        record: &Record,
    ) {
        if self.ralt.is_none() || !self.counts_accesses || record.kind != Kind::Put {
            return;
        }
        match found {
            // Counted by the caches, and logged by and by.
            Found::PromotionCache | Found::RecordCache | Found::Nowhere => {}
            Found::Table { level, .. } if level > tree.last_fast_level => {
                self.offer(tree, seen, seq, key, record);
            }
            Found::Table { .. } | Found::Memtable => {
                self.log_access(tree.id, key, record.value.len(), 1);
            }
        }
    }

    /// Offers a record that was found below level f to the promotion cache.
    fn offer(&self, tree: &Tree, seen: &Superversion, seq: SeqNo, key: &[u8], record: &Record) {
        self.promotions.attempts.fetch_add(1, Ordering::Relaxed);
        let full = self.promotion_capacity(tree);
        // A point that fails stands for nothing here: a read does not fail for want of promotion.
        let _: Result<()> = point!(self.points, "promotion.before_admission");
        let admitted =
            tree.promotion
                .admit(seen, seq, (key, record), full.saturating_add(full / 4));
        match admitted {
            Ok(bytes) if bytes >= full => {
                if let Some(tree) = self.tree(tree.id) {
                    self.schedule_promotion(&tree);
                }
            }
            Ok(_) => {}
            Err(why) => {
                self.promotions.count_refusal(why);
                self.log_access(tree.id, key, record.value.len(), 1);
                if why == Refusal::Full {
                    self.look_after_full_cache(tree);
                }
            }
        }
    }

    /// Has a promotion cache flushed that takes nothing more. Its share may have fallen since it took in a record last, and nobody else
    /// would come. Where a compaction runs its end does, and who waits for the room that it makes is not to try at each read.
    fn look_after_full_cache(&self, tree: &Tree) {
        let is_left = self.is_to_be_flushed(tree) && !self.is_compacting();
        if is_left
            && self.check_writable().is_ok()
            && let Some(tree) = self.tree(tree.id)
        {
            self.schedule_promotion(&tree);
        }
    }

    /// Logs `times` accesses to a record.
    pub(crate) fn log_access(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
        value_len: usize,
        times: u32,
    ) {
        if times > 0
            && self.counts_accesses
            && let Some(ralt) = &self.ralt
            && ralt.log(keyspace, key, value_len, times)
        {
            self.schedule_tracking();
        }
    }

    /// Logs the reads that caches have answered and would have told of later. For closing: it empties the promotion caches, and
    /// nobody else works for RALT any more.
    pub(crate) fn log_waiting_accesses(&self) {
        let Some(ralt) = self.ralt.as_ref().filter(|_| self.counts_accesses) else {
            return;
        };
        let mut log = |keyspace: KeyspaceId, key: &[u8], value_len: usize, times: u32| {
            if times > 0 && ralt.log(keyspace, key, value_len, times) {
                // A flush, or else what makes room for one, or a slice of the merges that take turns with flushes. Those that are due
                // after the last one are left to the next opening: whoever closes waits.
                let _: bool = self.cpu.measured(Activity::Ralt, || ralt.work());
            }
        };
        for tree in self.all_trees() {
            for cache in tree.promotion.view().caches {
                cache.take_all(|key, value_len, reads| log(tree.id, key, value_len, reads));
            }
        }
        if let Some(records) = &self.records {
            records.take_accesses(&mut log);
        }
    }

    /// Queues RALT's background work, unless it is queued or runs.
    pub(crate) fn schedule_tracking(&self) {
        let (Some(engine), Some(ralt)) = (self.me(), &self.ralt) else {
            return;
        };
        if self.background.writes_nothing() || self.tracking.swap(true, Ordering::AcqRel) {
            return;
        }
        let ralt = Arc::clone(ralt);
        let job = TrackingJob {
            engine,
            ralt,
            has_ended: false,
        };
        self.spawn(Lane::Hotness, Activity::Ralt, job);
    }

    /// Takes stock of the last fast levels: how large the hot set may be, which RALT is told, and
    /// whether there is room that nothing is due to fill.
    pub(crate) fn update_hot_room(&self) {
        let Some(ralt) = &self.ralt else { return };
        let mut used = 0;
        let mut data = 0u64;
        let rooms = self.fast_rooms();
        // Of the tier as a whole: each keyspace is given room for a table at least, and of very many that is more than
        // there is.
        let room = rooms.last_levels();
        for tree in self.all_trees() {
            tree.promotion_share.set(rooms.shares.of(&tree));
            let pinned = tree.pin();
            used += tree.bytes_down_to_f();
            // Each tier has a compression of its own. A look at every table, as a new version takes, too.
            let tables = pinned.version.tables().map(|table| table.raw_bytes());
            data = tables.fold(data, u64::saturating_add);
        }
        // The hot set is counted as keys and values before compression.
        let expansion = self.expansion();
        let room_now = (room as f64 * HOT_SHARE * expansion) as u64;
        ralt.set_room(self.hot_room.settle(room_now));
        ralt.set_data(data);
        // Of late: right after a compaction there is always some, and it does not last. All that lies
        // above Lf will be part of it.
        let spare = self.least_room.settle_low(room).saturating_sub(used);
        let was = self.has_spare_room.load(Ordering::Relaxed);
        let spare = is_spare(spare / self.sizes.table_size, was);
        self.has_spare_room.store(spare, Ordering::Relaxed);
        if ralt.has_work() {
            self.schedule_tracking();
        }
    }

    /// Bytes of keys and values for each byte of the last fast levels' tables.
    pub(crate) fn expansion(&self) -> f64 {
        let (mut stored, mut raw) = (0u64, 0u64);
        for tree in self.all_trees() {
            let pinned = tree.pin();
            let f = usize::from(tree.last_fast_level);
            for table in pinned.version.levels[f].tables.iter() {
                stored += table.meta.len;
                raw = raw.saturating_add(table.raw_bytes());
            }
        }
        if stored == 0 {
            1.0
        } else {
            raw as f64 / stored as f64
        }
    }

    /// Which techniques of placement by hotness are in use.
    pub(crate) fn switches(&self) -> Switches {
        let hotrap = self.options.hotrap();
        hotrap.map(|hotrap| hotrap.switches()).unwrap_or_default()
    }

    /// Whether RALT's work or a promotion is queued or runs.
    pub(crate) fn is_promoting(&self) -> bool {
        self.tracking.load(Ordering::Acquire)
            || self
                .all_trees()
                .iter()
                .any(|tree| tree.promoting.load(Ordering::Acquire))
    }

    pub(crate) fn hotrap_metrics(&self) -> Option<HotRapMetrics> {
        let ralt = self.ralt.as_ref()?;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counted = &self.promotions;
        let trees = self.all_trees();
        Some(HotRapMetrics {
            ralt: RaltMetrics {
                cpu_seconds: self.cpu.seconds(Activity::Ralt),
                ..ralt.metrics()
            },
            promotion_cache_bytes: trees.iter().map(|tree| tree.promotion.bytes()).sum(),
            promoted_flush_bytes: get(&counted.by_flush),
            promoted_compaction_bytes: get(&counted.by_compaction),
            retained_bytes: get(&counted.retained),
            bypassed_bytes: get(&counted.bypassed),
            admission_attempts: get(&counted.attempts),
            admission_refused: Refusal::ALL
                .iter()
                .map(|why| (*why, get(&counted.refused[*why as usize])))
                .collect(),
            dropped_cold: get(&counted.dropped_cold),
            voided_flushes: get(&counted.voided),
            crossings: trees
                .iter()
                .map(|tree| tree.promotion.claims() as u64)
                .sum(),
        })
    }
}

/// Whether room for so many whole `tables` is to be filled with whatever is read; `was` says whether
/// it was being filled. What fills it comes down through the levels above Lf, and room for their next
/// compaction is set aside and given back with that: begun for so little, filling would never end,
/// and each turn of it rewrites the levels.
fn is_spare(tables: u64, was: bool) -> bool {
    tables > SPARE_TABLES + if was { 0 } else { JOB_TABLES }
}

/// RALT's background work, a part a step.
struct TrackingJob {
    engine: Arc<Engine>,
    ralt: Arc<Ralt>,
    /// Set once the flag is another job's.
    has_ended: bool,
}

impl Job for TrackingJob {
    fn step(&mut self) -> Step {
        if self.engine.check_open().is_ok() && self.ralt.work() {
            return Step::Again;
        }
        // Due all the same: there is no room for it. The next full buffer, or the end of a compaction,
        // tries again.
        let has_no_room = self.ralt.is_flush_due();
        self.has_ended = true;
        self.engine.tracking.store(false, Ordering::Release);
        // Work that came due between the look and the flag has found the flag set.
        if !has_no_room && self.ralt.has_work() && self.engine.check_open().is_ok() {
            self.engine.schedule_tracking();
        }
        // RALT may have grown: what it takes is no longer the last fast levels', and what is hot may be another
        // keyspace's. So a crossing may be due that no compaction's end will find. Whoever waited for the store to
        // come to rest waited on.
        if self.engine.check_open().is_ok() {
            self.engine.update_hot_bytes();
            // What it has reserved or removed is room that writers may have been slowed for.
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
            self.engine.tracking.store(false, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::scene::{F, SLOW, Scene, options};
    use crate::tier::Reservation;

    /// A store whose Lf holds more than the least room that it is ever given.
    fn scene_with_much_in_lf() -> Scene {
        let scene = Scene::new();
        scene.fill_l0(3000);
        scene.to_last_fast();
        scene
    }

    /// Takes so much of the fast tier that Lf has room for `tables` more, and looks until that has
    /// settled.
    fn leave_room_for(scene: &Scene, tables: u64) -> Option<Reservation> {
        let (engine, tree) = (scene.engine(), scene.tree());
        let room = || engine.fast_rooms().of(tree).last;
        let used = tree.bytes_on(0).iter().sum::<u64>();
        let step = engine.sizes.table_size / 4;
        let wanted = used + tables * engine.sizes.table_size + step;
        // What is set aside for jobs goes first.
        let mut taken = 0;
        let mut held = None;
        while room() > wanted {
            taken += step;
            drop(held.take());
            held = Some(engine.fast().reserve(taken).unwrap());
        }
        (0..1000).for_each(|_| engine.update_hot_room());
        held
    }

    /// Under uniform reads the room for the next compaction, which comes and goes, was filled with
    /// promoted records each time it came: their compactions took it away again, and gave it back.
    #[test]
    fn room_for_the_next_compaction_is_not_filled_when_it_comes() {
        let scene = scene_with_much_in_lf();
        let engine = scene.engine();
        let is_filled = || engine.has_spare_room.load(Ordering::Relaxed);
        assert!(is_filled(), "half of the fast tier is empty");

        let held = leave_room_for(&scene, SPARE_TABLES + 1);
        assert!(is_filled(), "not yet full");
        drop(held);
        let held = leave_room_for(&scene, SPARE_TABLES);
        assert!(!is_filled(), "full");
        drop(held);
        let held = leave_room_for(&scene, SPARE_TABLES + JOB_TABLES);
        assert!(!is_filled(), "no more than a compaction takes");
        drop(held);
        let _held = leave_room_for(&scene, SPARE_TABLES + JOB_TABLES + 2);
        assert!(is_filled(), "emptied");
    }

    /// Each keyspace was counted with room for a table, were it empty. With a dozen of them there was always spare room: whatever was read
    /// was promoted, hot or not, and sent down again.
    #[test]
    fn keyspaces_that_hold_nothing_leave_no_room_to_be_filled() {
        let scene = scene_with_much_in_lf();
        for number in 0..16 {
            scene.db.create_keyspace(&format!("{number}")).unwrap();
        }
        let _held = leave_room_for(&scene, SPARE_TABLES);
        assert!(!scene.engine().has_spare_room.load(Ordering::Relaxed));
    }

    /// What a store has no use for when it is opened stayed empty, if it was no more than a compaction takes.
    #[test]
    fn little_room_is_filled_once_after_opening() {
        let scene = scene_with_much_in_lf();
        let spare = |scene: &Scene| {
            let used = scene.tree().bytes_on(0).iter().sum::<u64>();
            let room = scene.engine().fast_rooms().of(scene.tree()).last;
            room.saturating_sub(used) / scene.engine().sizes.table_size
        };
        let table = scene.engine().sizes.table_size;
        let wanted = SPARE_TABLES + JOB_TABLES / 2;
        let mut options = options();
        options.tiers[0].capacity -= (spare(&scene) - wanted) * table;
        let scene = scene.reopen(options);
        let (engine, spare) = (scene.engine(), spare(&scene));
        assert!(spare > SPARE_TABLES && spare <= SPARE_TABLES + JOB_TABLES);
        let is_filled = || engine.has_spare_room.load(Ordering::Relaxed);
        assert!(is_filled(), "room for {spare} tables");
        let _held = leave_room_for(&scene, SPARE_TABLES);
        assert!(!is_filled(), "full");
    }

    /// What lay on the slow tier, compressed by default, was taken for as much as it would have been by the fast tier's
    /// compression, by default none. Of values that compress well RALT knew of a fraction of the data, took what
    /// it does not track for less by that much, and told hot classes from others by several times too many reads.
    ///
    /// So was what `heat` gave for the whole of its curve: a part of the records was said to be all, and nothing to be cold.
    #[test]
    fn data_is_counted_before_the_compression_of_the_tier_that_it_lies_on() {
        const VALUE: usize = 700;
        let scene = Scene::new();
        let put = |keys: std::ops::Range<u32>| {
            for key in keys {
                scene.db.put(format!("{key:03}"), [b'.'; VALUE]).unwrap();
            }
            scene.to_last_fast();
        };
        // The slow tier's part below, and a little of the rest on Lf.
        put(0..80);
        scene.lower(F);
        put(80..100);
        let pinned = scene.tree().pin();
        let bytes = |level: usize| pinned.version.levels[level].bytes;
        assert!(bytes(F) > 20 * VALUE as u64 && bytes(SLOW) > 0);
        assert!(bytes(SLOW) * 4 < 80 * VALUE as u64, "it compresses");

        scene.engine().update_hot_room();
        let data = scene.engine().ralt.as_ref().unwrap().data();
        assert_eq!(data, 100 * (3 + VALUE as u64));

        let heat = scene.db.heat(1).unwrap();
        assert_eq!(heat.data_bytes, 100 * (3 + VALUE as u64));
    }

    #[test]
    fn a_settled_size_follows_slowly_and_arrives() {
        let size = Settled::default();
        assert_eq!(
            size.settle(3200),
            3200,
            "the first measurement counts in full"
        );
        assert_eq!(size.settle(0), 3100, "one of 32 counts for one in 32");
        for _ in 0..500 {
            size.settle(6400);
        }
        let arrived = size.settle(6400);
        assert!((6300..=6400).contains(&arrived), "{arrived}");
    }

    #[test]
    fn the_least_of_late_falls_at_once_and_rises_slowly() {
        let size = Settled::default();
        assert_eq!(size.settle_low(6400), 6400);
        assert_eq!(size.settle_low(640), 640);
        assert_eq!(size.settle_low(6400), 640 + (6400 - 640) / 64);
    }
}
