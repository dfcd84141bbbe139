//! How keyspaces share the fast tier: they compete for it by hotness.

use crate::engine::{Engine, Tree};
use crate::sync::atomic::{AtomicU64, Ordering};

/// The least share of a keyspace, even of an empty one, as a part of an even share: a little room
/// to grow into.
const LEAST: f64 = 0.05;

/// How the fast tier is divided between keyspaces: each has room for its hot data, and what is left
/// is divided in proportion to their data. If all of it were divided by data, a small keyspace that
/// gets all reads would have next to nothing beside a large one that nobody reads, and its hot
/// records would go down and come up without end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shares {
    /// Bytes of all keyspaces' tables; 0 if there is nothing to divide.
    data: u64,
    /// Bytes that the hot records of all keyspaces take.
    hot: u64,
    /// Bytes that are divided.
    room: u64,
    /// The share of a keyspace that has neither data nor hot records.
    least: f64,
}

impl Shares {
    /// The shares of `room` bytes instead. In less room hot data takes as many bytes as before, and
    /// what is left to divide is less.
    pub(crate) fn in_room(&self, room: u64) -> Self {
        Self { room, ..*self }
    }

    /// The part of the fast tier that is `tree`'s, 0 to 1.
    pub(crate) fn of(&self, tree: &Tree) -> f64 {
        match self.data {
            0 => 1.0,
            // Compactions, and merges of access records, may have come between the two counts.
            _ => self.of_one(Wants::of(tree)).max(self.least).min(1.0),
        }
    }

    fn of_one(&self, wants: Wants) -> f64 {
        let left = self.room.saturating_sub(self.hot) as f64;
        let by_data = wants.data as f64 / self.data.max(1) as f64;
        (wants.hot as f64 + left * by_data) / self.room.max(self.hot).max(1) as f64
    }
}

/// What a keyspace is given room for, in bytes.
#[derive(Debug, Clone, Copy)]
struct Wants {
    data: u64,
    hot: u64,
}

impl Wants {
    fn of(tree: &Tree) -> Self {
        let levels = &tree.peek().version.levels;
        let data = levels.iter().map(|level| level.bytes).sum();
        // Records that were deleted since count as hot for a while.
        let hot = tree.placed.hot_bytes.load(Ordering::Relaxed).min(data);
        Self { data, hot }
    }
}

/// A share that others read while it is worked out anew. It is the whole until it is first set.
#[derive(Debug)]
pub(crate) struct Share(AtomicU64);

impl Default for Share {
    fn default() -> Self {
        Self(AtomicU64::new(1.0_f64.to_bits()))
    }
}

impl Share {
    pub(crate) fn set(&self, share: f64) {
        self.0.store(share.to_bits(), Ordering::Relaxed);
    }

    /// That part of `bytes`.
    pub(crate) fn of(&self, bytes: u64) -> u64 {
        (bytes as f64 * f64::from_bits(self.0.load(Ordering::Relaxed))) as u64
    }
}

impl Engine {
    /// How the fast tier is divided now. Takes a look at all keyspaces.
    pub(crate) fn shares(&self) -> Shares {
        let trees = self.keyspaces.trees.load();
        let (mut data, mut hot) = (0, 0);
        if trees.len() > 1 {
            for wants in trees.values().map(|tree| Wants::of(tree)) {
                data += wants.data;
                hot += wants.hot;
            }
        }
        Shares {
            data,
            hot,
            room: self.planned_room(),
            least: LEAST / trees.len() as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;
    use crate::sync::Arc;
    use crate::testing::scene::{F, Scene};
    use crate::{Db, Keyspace, Options};

    const MIB: u64 = 1 << 20;

    #[test]
    fn what_is_hot_has_room_and_the_rest_goes_by_data() {
        let shares = |hot| Shares {
            data: 1000,
            hot,
            room: 400,
            least: 0.0,
        };
        let part = |all_hot, data, hot| shares(all_hot).of_one(Wants { data, hot });
        let are = |parts: [f64; 2], bytes: [f64; 2]| {
            let near = |(part, bytes): (f64, f64)| (part * 400.0 - bytes).abs() < 1e-9;
            assert!(parts.into_iter().zip(bytes).all(near), "{parts:?}");
        };
        are([part(0, 100, 0), part(0, 900, 0)], [40.0, 360.0]);
        are([part(90, 100, 90), part(90, 900, 0)], [121.0, 279.0]);
        are([part(400, 450, 400), part(400, 550, 0)], [400.0, 0.0]);
        // More than there is room for is divided in proportion.
        are([part(800, 250, 200), part(800, 750, 600)], [100.0, 300.0]);
    }

    fn fill(keyspace: &Keyspace, records: u32) {
        let mut value = [0; 1000];
        for key in 0..records {
            rand::fill(&mut value);
            keyspace.put(key.to_be_bytes(), value).unwrap();
        }
    }

    /// The fast tier was divided by data alone. A small keyspace that got all reads had a twentieth
    /// of it beside one that was twenty times as large and that nobody read: five of six of its
    /// reads went to the slow tier, however often they came.
    #[test]
    fn a_small_hot_keyspace_stays_on_the_fast_tier_beside_a_large_cold_one() {
        const HOT: u32 = 1000;
        let mut options = Options::two_tiers("/fast", 4 * MIB, "/slow");
        options.record_cache = Some(0);
        let memory = Arc::new(Memory::new());
        let builder = Db::builder(options).medium(0, Arc::clone(&memory) as Arc<_>);
        let db = builder.medium(1, memory).open().unwrap();
        let small = db.create_keyspace("small").unwrap();
        fill(&small, HOT);
        fill(&db, 20 * HOT);
        db.flush().unwrap();
        db.wait_idle().unwrap();

        let slow_reads = || db.metrics().hits.tier[1];
        let read_all = || {
            let before = slow_reads();
            for key in 0..HOT {
                assert!(small.get(key.to_be_bytes()).unwrap().is_some());
            }
            db.wait_idle().unwrap();
            slow_reads() - before
        };
        // How many records come up in one round depends on how quick the threads are.
        let mut slow = u64::MAX;
        let mut rounds = 0..200;
        while slow >= u64::from(HOT) / 10 && rounds.next().is_some() {
            slow = read_all();
        }
        assert!(slow < u64::from(HOT) / 10, "{slow} of {HOT} reads");
    }

    /// Shares were worked out from the planned room, and then applied to the room there was. If
    /// something else had taken most of that, hot records had room for only a part of what they
    /// take, while cold ones were given a part although nothing was left.
    #[test]
    fn what_is_hot_has_room_however_little_there_is() {
        let scene = Scene::new();
        fill(&scene.db, 800);
        scene.to_slow();
        let (engine, cold) = (scene.engine(), scene.db.create_keyspace("cold").unwrap());
        fill(&cold, 1500);
        cold.compact_range::<&str>(..).unwrap();
        while cold.tree().bytes_on(0)[F] > 400 << 10 {
            assert!(engine.start_crossing());
            scene.drain();
        }
        let _taken = scene.take_all_space();
        let room = engine.fast_rooms().last_levels();
        assert!(room < engine.planned_room() / 2, "{room}");
        let hot = room / 10 * 8;
        scene.tree().placed.hot_bytes.store(hot, Ordering::Relaxed);
        let has = engine.fast_rooms().of(scene.tree()).last;
        assert!(has >= hot, "{has} for {hot}");
    }

    /// Room that a keyspace left empty was nobody's, and so it was spare. Whatever was read of
    /// another keyspace was promoted into it, went down because that keyspace was over its share,
    /// and was read and promoted again, without end.
    #[test]
    fn what_a_keyspace_leaves_empty_is_anothers_until_it_is_wanted() {
        let scene = Scene::new();
        let (engine, idle) = (scene.engine(), scene.db.create_keyspace("idle").unwrap());
        let busy = scene.tree();
        fill(&idle, 3000);
        idle.compact_range::<&str>(..).unwrap();
        while engine.start_crossing() {
            scene.drain();
        }
        scene.fill_l0(3000);
        scene.to_last_fast();
        let shares = engine.shares();
        let share = (engine.fast_rooms().last_levels() as f64 * shares.of(busy)) as u64;
        let has = busy.bytes_of_f();
        assert!(has > share + (100 << 10), "{has} over a share of {share}");
        assert_eq!(busy.bytes_on(1).iter().sum::<u64>(), 0, "nothing went down");

        // The idle keyspace holds so little that it is within its share; and something else takes
        // all that is free.
        fill(&idle, 100);
        idle.compact_range::<&str>(..).unwrap();
        let taken = engine.fast().free_for_jobs();
        engine.fast().add_file_bytes(taken);
        let rooms = engine.fast_rooms();
        let is_over = |tree: &Tree| tree.bytes_of_f() > rooms.of(tree).last;
        assert!(is_over(busy) && !is_over(idle.tree()));
        assert!(idle.tree().bytes_of_f() > 0);
        engine.fast().remove_file_bytes(taken);
    }

    /// After a store was opened again, RALT knows what is hot before anything is read.
    #[test]
    fn what_is_hot_is_known_at_opening() {
        let memory = Arc::new(Memory::new());
        let open = || {
            let builder = Db::builder(Options::two_tiers("/fast", 4 * MIB, "/slow"));
            let builder = builder.medium(0, Arc::clone(&memory) as Arc<_>);
            builder.medium(1, memory.clone()).open().unwrap()
        };
        let db = open();
        fill(&db, 200);
        db.flush().unwrap();
        for key in 0..200_u32 {
            db.get(key.to_be_bytes()).unwrap();
        }
        db.close().unwrap();
        let db = open();
        let hot = db.tree().placed.hot_bytes.load(Ordering::Relaxed);
        assert!((150_000..250_000).contains(&hot), "{hot} of 200,800");
    }
}
