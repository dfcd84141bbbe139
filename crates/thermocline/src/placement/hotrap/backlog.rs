//! What waits above the last fast levels, and what it costs them.
//!
//! Lf has the room that is left on the fast tier. A backlog above Lf takes twice its size of that
//! room: once as it is, and once as the output of the compaction that brings it down. If nothing
//! else were done, hot records would go to the slow disk to make room for writes that will follow
//! them anyway, and the compactions behind would have still more to do. So writers are slowed while
//! there is such a backlog and hot records have less room than they are worth.

use super::HotRap;
use crate::engine::Engine;
use crate::placement::SpacePlan;
use crate::version::MAX_LEVELS;

/// Writers are all but stopped once a backlog takes this part of what hot records are worth.
const MOST_LOST: f64 = 0.25;

impl HotRap {
    /// How much a backlog costs the hot records: 0 for nothing, 1 for as much as it may cost.
    pub(crate) fn hot_set_pressure(&self, engine: &Engine) -> f64 {
        let shares = engine.shares();
        // Writers are not to wait for what goes down for a target's sake: the capacity counts.
        let capacity = engine.fast().capacity();
        let room = SpacePlan::new(&engine.options, &engine.sizes, capacity).levels;
        let (mut waits, mut last) = (0, 0);
        for tree in engine.all_trees() {
            let f = usize::from(tree.last_fast_level);
            let planned = engine.planned_levels_of(room, &tree, &shares);
            // L0 when its compaction is due, and as much again for what it brought down last.
            let l0 = 2 * engine.sizes.l0_trigger as u64 * engine.sizes.memtable_size;
            waits += backlog(&tree.bytes_on(0), &planned, f, l0);
            last = planned[f].saturating_add(last);
        }
        if waits == 0 {
            return 0.0;
        }
        // RALT counts keys and values before compression.
        let worth = (self.ralt.worth() as f64 / self.expansion(engine)) as u64;
        pressure(
            waits,
            worth.min(last),
            self.room_of_last_fast_levels(engine, &shares, capacity),
        )
    }
}

/// Bytes above Lf beyond those that always lie there between one compaction and the next, which are
/// what levels are `planned` to hold, and `l0`.
fn backlog(bytes: &[u64; MAX_LEVELS], planned: &[u64; MAX_LEVELS], f: usize, l0: u64) -> u64 {
    let above = |levels: &[u64; MAX_LEVELS]| levels[..f].iter().sum::<u64>();
    above(bytes).saturating_sub(above(planned) + l0)
}

/// The pressure of a `backlog` on hot records that are worth `worth` bytes, and have `room`.
fn pressure(backlog: u64, worth: u64, room: u64) -> f64 {
    let lost = worth.saturating_sub(room).min(2 * backlog);
    match lost {
        0 => 0.0,
        lost => lost as f64 / (MOST_LOST * worth as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Tree;
    use crate::options::Compression;
    use crate::testing::scene::{self, Scene, everything};
    use crate::write::Reason;

    /// Why writers are slowed when 1.5 MB wait in L0 on a fast tier of 4 MiB, and records of `hot`
    /// bytes are hot.
    fn slowed_by_a_backlog(hot: usize, compression: Compression) -> Option<Reason> {
        let mut options = scene::options();
        // What waits is not yet a compaction debt that slows writers by itself.
        options.memtable_size = Some(64 << 10);
        options.l0_trigger = 4;
        options.tiers[0].compression = compression;
        let scene = Scene::with(options);
        // This keyspace has hardly a share, and counts for no more than that.
        let beside = scene.db.create_keyspace("beside").unwrap();
        beside.put("key", "value").unwrap();
        scene.put_all(&scene::KEYS, "old");
        scene.to_last_fast();
        scene.put("first", "new");
        scene.db.flush().unwrap();
        let plan = scene.pick(0, &everything(), false).unwrap();
        // A compaction of L0 that takes forever.
        Tree::start_compaction(&mut scene.tree().state.lock(), &plan);
        let ralt = std::sync::Arc::clone(&scene.engine().hotrap().ralt);
        ralt.log(scene.tree().id, b"hot", hot, 1);
        scene.heat(&["small"]);
        assert!((hot as u64..hot as u64 + 4096).contains(&ralt.worth()));
        scene.fill_l0(3000);
        assert!(scene.tree().bytes_on(0)[0] > 1_400_000);
        scene.engine().stall.reason()
    }

    #[test]
    fn a_backlog_slows_writers_where_hot_records_need_the_room() {
        let slowed = |hot| slowed_by_a_backlog(hot, Compression::None);
        assert_eq!(slowed(1_500_000), Some(Reason::HotSet));
        assert_eq!(slowed(100), None);
    }

    #[test]
    fn what_is_hot_counts_as_long_as_it_is_on_disk() {
        assert_eq!(slowed_by_a_backlog(1_500_000, Compression::Lz4), None);
    }

    #[test]
    fn a_backlog_is_what_lies_above_lf_beyond_what_is_due_there() {
        let planned = [0, 30, 400, 0, 0, 0, 0];
        let of = |l0, l1, l2| backlog(&[l0, l1, l2, 0, 0, 0, 0], &planned, 2, 100);
        assert_eq!(of(50, 80, 1000), 0, "L0 once brought down, half full again");
        assert_eq!(of(120, 40, 0), 30);
        assert_eq!(of(0, 170, 0), 40);
    }

    #[test]
    fn writers_give_way_before_hot_records_do() {
        assert_eq!(
            pressure(0, 600, 100),
            0.0,
            "not for writes that Lf is small"
        );
        assert_eq!(pressure(100, 600, 600), 0.0, "all that is hot has room");
        assert_eq!(pressure(100, 0, 0), 0.0, "nothing is hot");
        assert!((pressure(1000, 600, 570) - 0.2).abs() < 1e-9);
        assert!(
            (pressure(15, 600, 100) - 0.2).abs() < 1e-9,
            "twice the backlog"
        );
        assert!(pressure(75, 600, 450) >= 1.0);
    }
}
