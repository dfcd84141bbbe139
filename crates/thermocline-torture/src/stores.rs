//! Small stores in memory that a few thousand records fill to the last level.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thermocline::storage::{Medium, Memory};
use thermocline::{Compression, Db, FilterPolicy, Options, Points, TierOptions};

/// A small two-tier store, so that a few thousand records fill several levels.
pub fn small_options() -> Options {
    let mut options = Options::with_tiers(vec![
        TierOptions::fast("/fast")
            .capacity(4 << 20)
            .block_size(1024),
        TierOptions::slow("/slow").block_size(2048),
    ]);
    options.memory = 8 << 20;
    options.memtable_size = Some(32 << 10);
    options.table_size = Some(32 << 10);
    options.seed = Some(1);
    options
}

/// Opens a store on `medium` for all tiers.
pub fn open_on(options: &Options, medium: &Arc<dyn Medium>) -> thermocline::Result<Db> {
    let mut builder = Db::builder(options.clone());
    for tier in 0..options.tiers.len() {
        builder = builder.medium(tier, Arc::clone(medium));
    }
    builder.open()
}

/// Points at which a thread that stops leaves the others a window: something is half done, or what
/// was looked at may be overtaken.
const WINDOWS: [&str; 16] = [
    "commit.inserting",
    "commit.published",
    "compaction.before_edit",
    "compaction.claimed",
    "compaction.installed",
    "flush.before_edit",
    "flush.refreshed",
    "freeze.before_publish",
    "move.before_edit",
    "promotion.before_admission",
    "promotion.before_edit",
    "promotion.frozen",
    "record_cache.checked",
    "record_cache.found",
    "record_cache.reserved",
    "wal.after_sync",
];

/// As [`open_on`], with threads that now and then let the others run in the middle of their work,
/// so that windows of microseconds are met in seconds. A build without debug assertions has no such
/// windows.
///
/// # Errors
/// As [`Db::open`].
pub fn open_with_pauses(options: &Options, medium: &Arc<dyn Medium>) -> thermocline::Result<Db> {
    let points = Points::default();
    for name in WINDOWS {
        let arrivals = AtomicU64::new(0);
        points.set(name, move || {
            let arrival = arrivals.fetch_add(1, Ordering::Relaxed);
            if arrival.is_multiple_of(5) {
                (0..arrival % 8).for_each(|_| std::thread::yield_now());
            }
            Ok(())
        });
    }
    let mut builder = Db::builder(options.clone()).points(points);
    for tier in 0..options.tiers.len() {
        builder = builder.medium(tier, Arc::clone(medium));
    }
    builder.open()
}

/// A fresh medium in memory.
pub fn memory() -> Arc<dyn Medium> {
    Arc::new(Memory::new())
}

/// Option sets that take different ways through the engine.
pub fn option_sets() -> Vec<(&'static str, Options)> {
    let base = small_options();
    let mut sets = vec![("two tiers", base.clone())];
    let mut add = |name, change: &dyn Fn(&mut Options)| {
        let mut options = base.clone();
        change(&mut options);
        sets.push((name, options));
    };
    add("one tier", &|o| {
        o.tiers.truncate(1);
        o.tiers[0].capacity = u64::MAX;
    });
    add("no filters", &|o| {
        o.tiers
            .iter_mut()
            .for_each(|t| t.filter = FilterPolicy::None)
    });
    add("lz4 above, zstd below", &|o| {
        o.tiers[0].compression = Compression::Lz4;
        o.tiers[1].compression = Compression::Zstd(3);
    });
    add("no cache, nothing pinned", &|o| {
        o.block_cache = Some(0);
        o.memory = 4 * (32 << 10);
        o.memtable_size = Some(32 << 10);
    });
    add("ratio 2, eager L0", &|o| {
        o.level_ratio = 2;
        o.l0_trigger = 1;
    });
    add("three tiers", &|o| {
        o.tiers.insert(1, TierOptions::fast("/middle"))
    });
    add("tiny fast tier", &|o| {
        o.tiers[0].capacity = 24 * (32 << 10);
    });
    add("record cache", &|o| o.record_cache = Some(64 << 10));
    sets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::kill;

    /// At a point that the engine does not have, no thread would ever let the others run.
    #[test]
    fn every_window_is_a_point_of_the_engine() {
        for point in WINDOWS {
            assert!(kill::is_point(point), "{point}");
        }
    }
}
