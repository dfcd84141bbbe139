//! How much of the fast tier the last fast levels have, and with them the hot set.

use super::HotRap;
use crate::engine::{Engine, Tree};
use crate::levels::MOST_MET;
use crate::placement::Shares;
use crate::sync::atomic::Ordering;
use crate::version::MAX_LEVELS;

/// The part of the last fast level's room that the hot set may take. Nearly all: a hot record that
/// does not fit costs a read of the slow tier each time it is read, and the picker finds the tables
/// with most cold records, however few there are on average.
pub(super) const HOT_SHARE: f64 = 0.97;

/// While the levels down to Lf are more than so many tables below Lf's target, everything that is
/// read is promoted: an empty fast tier helps nobody.
const SPARE_TABLES: u64 = 2;

/// Tables that a compaction from one fast level to the next writes, unless it is L0's: its input,
/// the tables it meets, and one more for what these are larger than usual. A few compactions are a
/// little larger still, because the tables below are no longer cut where they were when the input
/// was written.
pub(crate) const JOB_TABLES: u64 = MOST_MET + 2;

impl HotRap {
    /// Takes stock of the last fast levels: tells RALT how large the hot set may be, and notes
    /// whether there is room that nothing is due to fill.
    pub(crate) fn update_hot_room(&self, engine: &Engine) {
        let ralt = &self.ralt;
        let mut used = 0;
        let mut data = 0u64;
        let rooms = engine.fast_rooms();
        // The room of the tier as a whole. Each keyspace is given room for a table at least, and
        // for very many keyspaces that adds up to more than there is.
        let room = rooms.last_levels();
        for tree in engine.all_trees() {
            tree.placed.promotion_share.set(rooms.shares.of(&tree));
            used += tree.bytes_down_to_f();
            // Before compression, since each tier has its own.
            data = data.saturating_add(tree.raw_bytes());
        }
        // The hot set is counted as keys and values before compression.
        let expansion = self.expansion(engine);
        let room_now = (room as f64 * HOT_SHARE * expansion) as u64;
        ralt.set_room(self.hot_room.settle(room_now));
        ralt.set_data(data);
        // The least room of late: right after a compaction there is always some, and it does not
        // last. All that lies above Lf counts as used, since it will be part of Lf.
        let spare = self.least_room.settle_low(room).saturating_sub(used);
        let was = self.has_spare_room.load(Ordering::Relaxed);
        let spare = is_spare(spare / engine.sizes.table_size, was);
        self.has_spare_room.store(spare, Ordering::Relaxed);
        if ralt.has_work() {
            self.schedule_tracking(engine);
        }
    }

    /// Bytes of keys and values for each byte of the last fast levels' tables.
    pub(crate) fn expansion(&self, engine: &Engine) -> f64 {
        let (mut stored, mut raw) = (0u64, 0u64);
        for tree in engine.all_trees() {
            let f = usize::from(tree.last_fast_level);
            let pinned = tree.peek();
            let level = &pinned.version.levels[f];
            stored += level.bytes;
            raw = raw.saturating_add(level.raw_bytes);
        }
        if stored == 0 {
            1.0
        } else {
            raw as f64 / stored as f64
        }
    }

    /// Asks RALT how much of each keyspace is hot: each keyspace is to have room for that.
    pub(crate) fn update_hot_bytes(&self, engine: &Engine) {
        // RALT counts keys and values before compression.
        let expansion = self.expansion(engine);
        for tree in engine.all_trees() {
            let hot = self.ralt.hot_set_of(tree.id) as f64 / expansion;
            tree.placed.hot_bytes.store(hot as u64, Ordering::Relaxed);
        }
    }

    /// What the last fast levels of all keyspaces may take if `planned` bytes are planned for the
    /// tier: that, less everything else on the tier, and less what the next compactions need while
    /// their inputs are still there.
    pub(crate) fn room_of_last_fast_levels(
        &self,
        engine: &Engine,
        shares: &Shares,
        planned: u64,
    ) -> u64 {
        let tier = engine.fast();
        let (mut last, mut job) = (0, 0);
        for tree in engine.all_trees() {
            let bytes = tree.bytes_on(tier.index);
            last += bytes[usize::from(tree.last_fast_level)];
            job = job.max(next_job(engine, &tree, &bytes, shares));
        }
        let headroom = engine.compaction_margin() + job;
        // Headroom in use: what jobs have written, and inputs that are about to go.
        let in_use = tier.in_flight() + engine.graveyard.pinned(tier.index).0;
        // The sum may not overflow: on a tier without a capacity nearly as many bytes are free as a
        // number can say, and output counts twice for a moment.
        let room = last.saturating_add(tier.free_for_jobs());
        let room = room.saturating_add(in_use.min(headroom));
        let unplanned = tier.capacity().saturating_sub(planned);
        room.saturating_sub(headroom.saturating_add(unplanned))
    }
}

/// When its levels hold `bytes` there, `tree` is close to some compactions between fast levels.
/// Returns the bytes that the largest of them writes; at least a crossing's part. Close to, and not
/// only due: a compaction that is due must find room, and crossings take a while to make it.
pub(in crate::placement) fn next_job(
    engine: &Engine,
    tree: &Tree,
    bytes: &[u64; MAX_LEVELS],
    shares: &Shares,
) -> u64 {
    let f = usize::from(tree.last_fast_level);
    let table = engine.sizes.table_size;
    let l0 = if bytes[0] > 0 { bytes[0] + bytes[1] } else { 0 };
    let planned = engine.planned_levels(tree, shares);
    let is_near = |level: usize| bytes[level] > planned[level] / 4 * 3;
    let between = if (1..f).any(is_near) {
        JOB_TABLES * table
    } else {
        0
    };
    l0.max(between).max(2 * table)
}

/// Whether room for so many whole `tables` is to be filled with whatever is read; `was` says
/// whether it was being filled. What fills it comes down through the levels above Lf, and the room
/// for their next compaction is set aside and given back meanwhile. If filling began for as little
/// as that, it would never end, and each turn of it rewrites the levels.
fn is_spare(tables: u64, was: bool) -> bool {
    tables > SPARE_TABLES + if was { 0 } else { JOB_TABLES }
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

    /// Takes so much of the fast tier that Lf has room for `tables` more, then takes stock until
    /// that room has settled.
    fn leave_room_for(scene: &Scene, tables: u64) -> Option<Reservation> {
        let (engine, tree) = (scene.engine(), scene.tree());
        let room = || engine.fast_rooms().of(tree).last;
        let used = tree.bytes_on(0).iter().sum::<u64>();
        let step = engine.sizes.table_size / 4;
        let wanted = used + tables * engine.sizes.table_size + step;
        // The room that is set aside for jobs goes first.
        let mut taken = 0;
        let mut held = None;
        while room() > wanted {
            taken += step;
            drop(held.take());
            held = Some(engine.fast().reserve(taken).unwrap());
        }
        (0..1000).for_each(|_| engine.hotrap().update_hot_room(&engine));
        held
    }

    /// The room for the next compaction comes and goes. Under uniform reads it was filled with
    /// promoted records each time it came: their compactions took it away again, and gave it back.
    #[test]
    fn room_for_the_next_compaction_is_not_filled_when_it_comes() {
        let scene = scene_with_much_in_lf();
        let engine = scene.engine();
        let is_filled = || engine.hotrap().has_spare_room.load(Ordering::Relaxed);
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

    /// Each keyspace, even an empty one, was counted with room for a table. With a dozen of them
    /// there was always spare room: whatever was read was promoted, hot or not, and sent down
    /// again.
    #[test]
    fn keyspaces_that_hold_nothing_leave_no_room_to_be_filled() {
        let scene = scene_with_much_in_lf();
        for number in 0..16 {
            scene.db.create_keyspace(&format!("{number}")).unwrap();
        }
        let _held = leave_room_for(&scene, SPARE_TABLES);
        assert!(
            !scene
                .engine()
                .hotrap()
                .has_spare_room
                .load(Ordering::Relaxed)
        );
    }

    /// Room that was unused when a store was opened stayed empty, if it was no more than a
    /// compaction takes.
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
        let is_filled = || engine.hotrap().has_spare_room.load(Ordering::Relaxed);
        assert!(is_filled(), "room for {spare} tables");
        let _held = leave_room_for(&scene, SPARE_TABLES);
        assert!(!is_filled(), "full");
    }

    /// Data on the slow tier, compressed by default, was counted as if it had the fast tier's
    /// compression, by default none. If values compressed well, RALT was told of a fraction of the
    /// data, took the data that it does not track for that much less, and needed several times too
    /// many reads to tell a hot class from the others.
    ///
    /// The total that `heat` gave for its curve was wrong in the same way: a part of the records
    /// was said to be all, and nothing to be cold.
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
        // The first part goes to the slow tier, and a little more to Lf.
        put(0..80);
        scene.lower(F);
        put(80..100);
        let pinned = scene.tree().pin();
        let bytes = |level: usize| pinned.version.levels[level].bytes;
        assert!(bytes(F) > 20 * VALUE as u64 && bytes(SLOW) > 0);
        assert!(bytes(SLOW) * 4 < 80 * VALUE as u64, "it compresses");

        let engine = scene.engine();
        engine.hotrap().update_hot_room(&engine);
        let data = engine.hotrap().ralt.data();
        assert_eq!(data, 100 * (3 + VALUE as u64));

        let heat = scene.db.heat(1).unwrap();
        assert_eq!(heat.data_bytes, 100 * (3 + VALUE as u64));
    }
}
