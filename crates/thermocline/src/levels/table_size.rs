//! How long the tables of a level get.
//!
//! On the fast tier, what is written lies beside what it replaces. So tables are a small part of
//! its capacity: the smaller the tier, the shorter they are. On the slow tier, tables of that
//! length would come to a million in a large store, each a file to open, an entry of the manifest
//! and a top-level index in memory. So there they grow with what lies there.
//!
//! They grow as its square root. A compaction takes a table of one level and all that it meets on
//! the next, which is larger by a ratio of r at most. So it meets r tables' worth of bytes, and
//! what sticks out at both ends. Tables of the next level are longer by √r, and one covers a part
//! of √r/r of the keys of a table above it. For r = 8 that is a third. What sticks out is at most a
//! sixth more than is met, and mostly nothing, as tables above end where those below do (`cut.rs`).
//! That needs ends that are not further apart than half a table. Tables that grow in proportion
//! would stick out by as much as they meet.

use crate::options::{Options, Resolved};
use crate::placement::SpacePlan;

/// Tables do not grow beyond this. From here on their number costs nothing any more, and a
/// compaction merges, keeps and reads no more at once than it has to.
const MOST: u64 = 64 << 20;

/// How long the tables of a keyspace get.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableSizes {
    /// On the levels down to f, and on all levels if the size is set. With one tier all levels are
    /// levels down to f.
    pub(crate) least: u64,
    last_fast_level: usize,
    /// What the levels down to f are to hold together, if tables below grow.
    above: Option<u64>,
}

impl TableSizes {
    /// For a fast tier of this `capacity`: tables are not to change their length with what is
    /// planned for the tier.
    pub(crate) fn new(
        options: &Options,
        sizes: &Resolved,
        capacity: u64,
        last_fast_level: u8,
    ) -> Self {
        let grows = options.table_size.is_none();
        Self {
            least: sizes.table_size,
            last_fast_level: usize::from(last_fast_level),
            above: grows.then(|| SpacePlan::new(options, sizes, capacity).levels.max(1)),
        }
    }

    /// About how long a full table of `level` is, in bytes, if that level is to hold `bytes`.
    pub(crate) fn of(&self, level: usize, bytes: u64) -> u64 {
        let above = self.above.filter(|_| level > self.last_fast_level);
        let Some(above) = above else {
            return self.least;
        };
        let times = (bytes as f64 / above as f64).sqrt().max(1.0);
        let most = MOST.max(self.least);
        ((self.least as f64 * times) as u64).clamp(self.least, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F: usize = 2;

    fn size_of(options: &Options, level: usize, bytes: u64) -> u64 {
        let sizes = options.resolve().unwrap();
        TableSizes::new(options, &sizes, options.tiers[0].capacity, F as u8).of(level, bytes)
    }

    /// With a fast tier of 16 MiB each table had at most 128 KiB, wherever it was: a terabyte made
    /// eight million tables.
    #[test]
    fn a_large_store_with_a_small_fast_tier_has_no_million_of_tables() {
        let options = Options::two_tiers("/fast", 16 << 20, "/slow");
        for (bytes, most_tables) in [(100 << 20, 600), (10 << 30, 5_000), (1 << 40, 50_000)] {
            let size = size_of(&options, 6, bytes);
            assert!(bytes / size <= most_tables, "{bytes}: tables of {size}");
        }
        assert_eq!(size_of(&options, 6, 1 << 60), 64 << 20);
        assert_eq!(size_of(&options, F, 1 << 40), 128 << 10, "on the fast tier");
    }

    /// A compaction rewrites its own table and what that meets, and no more because tables are
    /// longer.
    #[test]
    fn tables_below_are_a_small_part_of_what_a_table_above_meets() {
        let options = Options::two_tiers("/fast", 16 << 20, "/slow");
        let ratio = options.level_ratio;
        let mut above = (options.resolve().unwrap().table_size, 12 << 20);
        for _ in 0..4 {
            let bytes = above.1 * ratio;
            let size = size_of(&options, 3, bytes);
            let met = above.0 * ratio;
            assert!(size * 2 <= met, "{size} sticks out of {met}");
            above = (size, bytes);
        }
    }

    #[test]
    fn a_size_that_is_set_holds_on_every_level() {
        let mut options = Options::two_tiers("/fast", 16 << 20, "/slow");
        options.table_size = Some(32 << 10);
        assert_eq!(size_of(&options, 6, 1 << 40), 32 << 10);
        options.table_size = None;
        assert_eq!(size_of(&options, 6, 1 << 10), 128 << 10, "of little");
        let mut options = Options::two_tiers("/fast", 8 << 30, "/slow");
        options.table_size = Some(128 << 20);
        assert_eq!(size_of(&options, 6, 1 << 40), 128 << 20);
    }
}
