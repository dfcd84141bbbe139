//! How much of the fast tier each keyspace's levels have.

use super::engine::Engine;
use super::tree::Tree;
use crate::compaction::{FastRoom, LevelTargets};
use crate::placement::SpacePlan;
use crate::version::MAX_LEVELS;

/// Tables that a compaction from one fast level to the next writes at most, but for that of L0: its
/// input, and the tables it meets.
pub(super) const JOB_TABLES: u64 = 6;

impl Engine {
    /// The room of `tree`'s levels on the fast tier.
    pub(crate) fn fast_room(&self, tree: &Tree) -> FastRoom {
        let share = self.fast_share(tree);
        let of_share = |bytes: u64| (bytes as f64 * share) as u64;
        let planned = of_share(SpacePlan::new(&self.options, &self.sizes).levels);
        if self.ralt.is_none() {
            return FastRoom {
                planned,
                last: planned / self.options.level_ratio * (self.options.level_ratio - 1),
                cold: 1.0,
            };
        }
        FastRoom {
            planned,
            last: of_share(self.room_of_last_levels()).max(planned / 4),
            cold: tree.cold_fraction(),
        }
    }

    /// What the last fast levels of all keyspaces may take: the capacity less everything else on
    /// the tier, and less what the next compactions need while their inputs are still there.
    pub(super) fn room_of_last_levels(&self) -> u64 {
        let tier = self.fast();
        let (mut last, mut job) = (0, 0);
        for tree in self.all_trees() {
            let bytes = tree.bytes_on(tier.index);
            last += bytes[usize::from(tree.last_fast_level)];
            job = job.max(self.next_job(&tree, &bytes));
        }
        let headroom = self.compaction_margin() + job;
        // What jobs have written, and inputs that are about to go, are headroom in use.
        let in_use = tier.in_flight() + self.graveyard.pinned(tier.index).0;
        (last + tier.free_for_jobs() + in_use.min(headroom)).saturating_sub(headroom)
    }

    /// What the largest compaction between fast levels writes that `tree` is close to, when its
    /// levels hold `bytes` there; a crossing's part at least. Close to, and not only due: what is due must find room,
    /// which crossings take a while to make.
    fn next_job(&self, tree: &Tree, bytes: &[u64; MAX_LEVELS]) -> u64 {
        let f = usize::from(tree.last_fast_level);
        let table = self.sizes.table_size;
        let l0 = if bytes[0] > 0 { bytes[0] + bytes[1] } else { 0 };
        let planned = SpacePlan::new(&self.options, &self.sizes).levels;
        let planned = LevelTargets::planned(&self.options, &self.sizes, planned, f);
        let is_near = |level: usize| bytes[level] > planned[level] / 4 * 3;
        let between = if (1..f).any(is_near) {
            JOB_TABLES * table
        } else {
            0
        };
        l0.max(between).max(2 * table)
    }

    /// The part of the fast tier that is `tree`'s, 0 to 1: in proportion to its data.
    pub(crate) fn fast_share(&self, tree: &Tree) -> f64 {
        let bytes = |tree: &Tree| {
            tree.peek()
                .version
                .levels
                .iter()
                .map(|l| l.bytes)
                .sum::<u64>() as f64
        };
        let trees = self.trees.load();
        if trees.len() < 2 {
            return 1.0;
        }
        let all: f64 = trees.values().map(|tree| bytes(tree)).sum();
        // A small keyspace keeps a little room to grow into.
        let least = 0.05 / trees.len() as f64;
        if all == 0.0 {
            1.0
        } else {
            (bytes(tree) / all).max(least)
        }
    }
}

#[cfg(test)]
mod tests {

    use crate::storage::Memory;
    use crate::sync::Arc;
    use crate::{Db, Options, Placement};

    const CAPACITY: u64 = 8 << 20;

    fn open(placement: Placement) -> Db {
        let mut options = Options::two_tiers("/fast", CAPACITY, "/slow");
        options.placement = placement;
        let memory = Arc::new(Memory::new());
        let builder = Db::builder(options).medium(0, Arc::clone(&memory) as Arc<_>);
        builder.medium(1, memory).open().unwrap()
    }

    fn room(db: &Db) -> u64 {
        db.engine().fast_room(db.tree()).last
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
        assert!(after + l0 <= before, "{before}, {after} with {l0} in L0");
        let job = db.engine().sizes.table_size * 2;
        assert!(
            after + 2 * l0 + job >= before,
            "{before}, {after} with {l0} in L0"
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

    #[test]
    fn by_level_the_room_is_what_was_planned() {
        let db = open(Placement::ByLevel);
        let before = room(&db);
        db.put("key", vec![7; 30 << 10]).unwrap();
        db.flush().unwrap();
        assert_eq!(room(&db), before);
    }
}
