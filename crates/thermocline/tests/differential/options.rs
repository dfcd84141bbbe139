//! Option sets nobody would think of.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thermocline::{Compression, FilterPolicy, Options, TierOptions};

/// Valid options drawn from `seed`, small enough for a script to fill several levels.
pub(crate) fn random_options(seed: u64) -> Options {
    let mut rng = SmallRng::seed_from_u64(seed);
    let memtable = rng.random_range(16..=48u64) << 10;
    let tiers = rng.random_range(1..=3);
    let tier = |index: usize, rng: &mut SmallRng| {
        let base = TierOptions::fast(format!("/tier{index}"))
            .block_size(rng.random_range(512..=4096))
            .compression(match rng.random_range(0..3) {
                0 => Compression::None,
                1 => Compression::Lz4,
                _ => Compression::Zstd(1),
            })
            .filter(match rng.random_range(0..3) {
                0 => FilterPolicy::None,
                _ => FilterPolicy::Fuse8,
            });
        match index {
            0 if tiers > 1 => base.capacity(memtable * rng.random_range(24..=64)),
            _ => base,
        }
    };
    let mut options = Options::with_tiers((0..tiers).map(|i| tier(i, &mut rng)).collect());
    options.memory = 8 << 20;
    options.block_cache = rng.random_bool(0.3).then_some(0);
    options.memtable_size = Some(memtable);
    options.table_size = Some(rng.random_range(16..=48u64) << 10);
    options.l0_trigger = rng.random_range(1..=4);
    options.l0_slowdown = options.l0_trigger + rng.random_range(1..=8);
    options.l0_stop = options.l0_slowdown + rng.random_range(1..=8);
    options.level_ratio = rng.random_range(2..=10);
    options.compaction_threads = rng.random_range(1..=3);
    options.seed = Some(seed);
    options
}
