//! How much of the fast tier each keyspace's levels have.

use super::Shares;
use crate::engine::{Engine, Tree};
use crate::levels::{FastRoom, LevelTargets};
use crate::placement::SpacePlan;
use crate::version::MAX_LEVELS;

/// The room of all keyspaces' levels on the fast tier at one moment. To work it out takes a look at
/// all keyspaces.
pub(crate) struct FastRooms {
    pub(crate) shares: Shares,
    /// For L1 to Lf in the long run, in bytes.
    planned: u64,
    /// For all levels above f in the long run, in bytes.
    above_f: u64,
    /// For the last fast levels now, in bytes, if records are placed by hotness.
    hot: Option<u64>,
    /// The same, if they are placed by level.
    by_level: u64,
    /// What the last fast levels hold there, in bytes.
    held: u64,
}

impl FastRooms {
    /// For the last fast levels, in bytes.
    pub(crate) fn last_levels(&self) -> u64 {
        self.hot.unwrap_or(self.by_level)
    }

    /// The most that the last fast levels' targets may come to together, in bytes.
    pub(crate) fn most(&self) -> u64 {
        self.hot.unwrap_or(u64::MAX)
    }

    /// What `tree`'s levels above f are to take in the long run, in bytes.
    pub(crate) fn above_f(&self, tree: &Tree) -> u64 {
        (self.above_f as f64 * self.shares.of(tree)) as u64
    }

    /// The part that is `tree`'s. If records are placed by hotness, its level f may also have what
    /// the other keyspaces leave empty. If such room were nobody's, it would be filled with
    /// whatever is read, which would go down again because its keyspace is over its share, without
    /// end. While there is such room, no keyspace is over its target. When there is none, those
    /// over their share give way to the others.
    pub(crate) fn of(&self, tree: &Tree) -> FastRoom {
        let share = |room: u64| (room as f64 * self.shares.in_room(room).of(tree)) as u64;
        // Compactions may have come between the two counts.
        let others = self.held.saturating_sub(tree.bytes_of_f());
        let left = self.hot.map_or(0, |room| room.saturating_sub(others));
        FastRoom {
            planned: share(self.planned),
            last: share(self.last_levels()).max(left),
            cold: match self.hot {
                Some(_) => tree.averages.cold(),
                None => 1.0,
            },
        }
    }
}

impl Engine {
    /// What the levels down to Lf of all keyspaces are to hold in the long run, in bytes.
    pub(crate) fn planned_room(&self) -> u64 {
        SpacePlan::new(&self.options, &self.sizes, self.fast().planned_bytes()).levels
    }

    /// What each of `tree`'s levels down to Lf is to hold in the long run, in bytes.
    pub(crate) fn planned_levels(&self, tree: &Tree, shares: &Shares) -> [u64; MAX_LEVELS] {
        self.planned_levels_of(self.planned_room(), tree, shares)
    }

    /// The same, if all are to hold `room` together.
    pub(crate) fn planned_levels_of(
        &self,
        room: u64,
        tree: &Tree,
        shares: &Shares,
    ) -> [u64; MAX_LEVELS] {
        let planned = (room as f64 * shares.of(tree)) as u64;
        let f = usize::from(tree.last_fast_level);
        LevelTargets::planned(&self.options, &self.sizes, planned, f, tree.averages.cold())
    }

    /// What the last fast levels of all keyspaces hold there, in bytes.
    pub(crate) fn bytes_of_last_levels(&self) -> u64 {
        let trees = self.keyspaces.trees.load();
        trees.values().map(|tree| tree.bytes_of_f()).sum()
    }

    /// The room of the levels on the fast tier, to be divided between keyspaces.
    pub(crate) fn fast_rooms(&self) -> FastRooms {
        self.fast_rooms_of(self.fast().planned_bytes())
    }

    /// The same, if `room` bytes were planned for the tier.
    pub(crate) fn fast_rooms_of(&self, room: u64) -> FastRooms {
        let shares = self.shares();
        let plan = SpacePlan::new(&self.options, &self.sizes, room);
        let planned = plan.levels;
        let hot = self.placement.room_of_last_levels(self, &shares, room);
        let hot = hot.map(|room| room.max(planned / 4));
        let ratio = self.options.level_ratio;
        FastRooms {
            shares,
            planned,
            above_f: plan.l0.saturating_add(planned / ratio),
            hot,
            by_level: planned / ratio * (ratio - 1),
            held: self.bytes_of_last_levels(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::hotrap::hot_room::{JOB_TABLES, next_job};
    use crate::storage::Memory;
    use crate::sync::Arc;
    use crate::{Db, Options, Placement, TierOptions};

    const CAPACITY: u64 = 8 << 20;

    fn open(placement: Placement) -> Db {
        let mut options = Options::two_tiers("/fast", CAPACITY, "/slow");
        options.placement = placement;
        let memory = Arc::new(Memory::new());
        let builder = Db::builder(options).medium(0, Arc::clone(&memory) as Arc<_>);
        builder.medium(1, memory).open().unwrap()
    }

    fn open_without_capacity() -> Db {
        let tiers = vec![TierOptions::fast("/fast"), TierOptions::slow("/slow")];
        let memory = Arc::new(Memory::new());
        let builder = Db::builder(Options::with_tiers(tiers));
        let builder = builder.medium(0, Arc::clone(&memory) as Arc<_>);
        builder.medium(1, memory).open().unwrap()
    }

    fn room(db: &Db) -> u64 {
        db.engine().fast_rooms().of(db.tree()).last
    }

    #[test]
    fn what_else_lies_on_the_fast_tier_is_taken_from_the_last_levels_room() {
        let db = open(Placement::default());
        let before = room(&db);
        assert!(
            before > CAPACITY / 4 * 3,
            "{before}: an empty tier is all theirs"
        );
        db.put("key", vec![7; 30 << 10]).unwrap();
        db.flush().unwrap();
        let l0 = db.tree().bytes_on(0)[0];
        // L0 once as it is, and once as the output of its compaction, if that is the largest.
        let after = room(&db);
        // Segments of the log come and go meanwhile.
        let segments = 1 << 10;
        assert!(
            after + l0 <= before + segments,
            "{before}, {after} with {l0} in L0"
        );
        let job = db.engine().sizes.table_size * 2;
        assert!(
            after + 2 * l0 + job >= before,
            "{before}, {after} with {l0} in L0"
        );
    }

    /// A job for which too little is set aside waits until crossings have made room.
    #[test]
    fn a_compaction_between_fast_levels_is_about_as_large_as_what_is_set_aside() {
        let db = open(Placement::default());
        let mut value = [0; 1000];
        for key in 0..12_000_u32 {
            rand::fill(&mut value);
            db.put(key.wrapping_mul(0x9e37_79b1).to_be_bytes(), value)
                .unwrap();
        }
        db.flush().unwrap();
        db.wait_idle().unwrap();
        let levels = db.tree().pin().version.levels.clone();
        let f = usize::from(db.tree().last_fast_level);
        let tables = levels[f - 1].tables.iter();
        let jobs = tables.map(|table| {
            let met = levels[f].overlapping(&table.meta.range).iter();
            table.meta.len + met.map(|met| met.meta.len).sum::<u64>()
        });
        let largest = jobs.max().unwrap();
        let table = db.engine().sizes.table_size;
        assert!(levels[f].tables.len() as u64 > 4 * JOB_TABLES);
        // The ends of tables no longer match where other tables were compacted since.
        assert!(
            largest <= (JOB_TABLES + 1) * table,
            "{largest} bytes in tables of {table}"
        );
    }

    #[test]
    fn output_in_flight_is_headroom_in_use() {
        let db = open(Placement::default());
        let before = room(&db);
        let tier = db.engine().fast();
        let small = tier.reserve(db.engine().sizes.table_size).unwrap();
        assert_eq!(
            room(&db),
            before,
            "what a job writes was set aside for jobs"
        );
        let large = tier.reserve(CAPACITY / 2).unwrap();
        assert!(room(&db) < before, "more than was set aside");
        drop((small, large));
        assert_eq!(room(&db), before);
    }

    /// For a moment a job's output counts twice: where it lies, and with the job. On a tier without
    /// a capacity, adding it to the free space overflowed: whoever asked for a compaction at that
    /// moment panicked, or found no room.
    #[test]
    fn a_tier_without_a_capacity_has_room_whatever_jobs_have_written() {
        let db = open_without_capacity();
        let fast = db.engine().fast();
        let mut output = fast.reserve(4 << 20).unwrap();
        output.use_for_file(4 << 20);
        // As if its files belonged to the last level already.
        fast.remove_file_bytes(4 << 20);
        assert!(room(&db) > 1 << 60, "{}", room(&db));
    }

    /// The levels of each keyspace may hold nearly as many bytes as a number can say. Where
    /// overflows are checked, the sum for two keyspaces panicked: in a flush, or in the commit that
    /// filled a memtable.
    #[test]
    fn two_keyspaces_find_room_on_a_tier_without_a_capacity() {
        let db = open_without_capacity();
        let other = db.create_keyspace("other").unwrap();
        for keyspace in [&db, &other] {
            keyspace.put("key", "value").unwrap();
        }
        db.flush().unwrap();
        assert!(other.get("key").unwrap().is_some());
        assert!(room(&db) > 1 << 60, "{}", room(&db));
    }

    /// Each keyspace had a promotion cache as large as that of an only keyspace. They came on top
    /// of all the memory that was set.
    #[test]
    fn promotion_caches_are_together_as_large_as_the_only_one() {
        let db = open(Placement::default());
        let whole = db.engine().sizes.table_size / 2;
        assert_eq!(
            db.engine()
                .hotrap()
                .promotion_capacity(db.engine(), db.tree()),
            whole
        );
        let others: Vec<_> = (0..9)
            .map(|n| db.create_keyspace(&format!("other{n}")).unwrap())
            .collect();
        for keyspace in others.iter().chain([&*db]) {
            let mut table = [0; 20 << 10];
            rand::fill(&mut table);
            keyspace.put("key", table).unwrap();
        }
        db.flush().unwrap();
        // Shares change with each table that a compaction moves.
        db.wait_idle().unwrap();
        let capacity = |tree: &Tree| db.engine().hotrap().promotion_capacity(db.engine(), tree);
        let all: u64 = db
            .engine()
            .all_trees()
            .iter()
            .map(|tree| capacity(tree))
            .sum();
        assert!(all <= whole && all > whole / 10 * 9, "{all} of {whole}");
    }

    /// Each keyspace's levels were measured against what all keyspaces were planned to hold
    /// together, and so were never seen to be close to it.
    #[test]
    fn a_keyspaces_levels_are_full_at_its_share() {
        let db = open(Placement::default());
        let other = db.create_keyspace("other").unwrap();
        let mut table = [0; 30 << 10];
        for key in 0..20 {
            rand::fill(&mut table);
            db.put([key], table).unwrap();
            other.put([key], table).unwrap();
        }
        db.flush().unwrap();
        let (engine, shares) = (db.engine(), db.engine().shares());
        let f = usize::from(db.tree().last_fast_level);
        let planned = engine.planned_levels(db.tree(), &shares);
        let whole =
            engine.planned_room() / engine.options.level_ratio * (engine.options.level_ratio - 1);
        assert!(planned[f] < whole / 5 * 3, "{} of {whole}", planned[f]);

        let mut bytes = [0; MAX_LEVELS];
        let least = 2 * engine.sizes.table_size;
        assert_eq!(next_job(engine, db.tree(), &bytes, &shares), least);
        bytes[f - 1] = planned[f - 1];
        assert!(next_job(engine, db.tree(), &bytes, &shares) > least);
    }

    #[test]
    fn by_level_the_room_is_what_was_planned() {
        let db = open(Placement::ByLevel);
        let before = room(&db);
        db.put("key", vec![7; 30 << 10]).unwrap();
        db.flush().unwrap();
        assert_eq!(room(&db), before);
    }
}
