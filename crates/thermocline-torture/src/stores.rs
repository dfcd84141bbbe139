//! Small stores in memory that a few thousand records fill to the last level.

use std::sync::Arc;

use thermocline::storage::{Medium, Memory};
use thermocline::{Compression, Db, FilterPolicy, Options, TierOptions};

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
    sets
}
