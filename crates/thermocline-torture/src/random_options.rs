//! Option sets nobody would think of.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use thermocline::{
    Compression, Db, FilterPolicy, HotRapOptions, Options, Placement, Target, TierOptions,
};

/// Valid options drawn from `seed`, small enough for a script to fill several levels.
pub fn random_options(seed: u64) -> Options {
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
    options.placement = random_placement(&mut rng);
    set_prices(&mut options);
    options.record_cache = match rng.random_range(0..10) {
        // So small that records come and go.
        0..=5 if options.block_cache.is_none() => Some(rng.random_range(64..=256u64) << 10),
        6..=7 => Some(0),
        _ => None,
    };
    options
}

/// A store with placement by hotness and a fast tier of `capacity` bytes, so small that a few
/// thousand operations take every way through it.
pub(crate) fn crowded_options(seed: u64, capacity: u64) -> Options {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut options = Options::with_tiers(vec![
        TierOptions::fast("/fast")
            .capacity(capacity)
            .block_size(1024),
        TierOptions::slow("/slow").block_size(2048),
    ]);
    options.memory = 2 << 20;
    options.memtable_size = Some(16 << 10);
    options.table_size = Some(16 << 10);
    options.l0_trigger = rng.random_range(1..=4);
    options.level_ratio = rng.random_range(2..=8);
    options.block_cache = rng.random_bool(0.5).then_some(0);
    if options.block_cache.is_none() {
        options.record_cache = Some(64 << 10);
    }
    options.seed = Some(seed);
    options.placement = Placement::HotRap(random_hotrap(&mut rng));
    options
}

/// Any placement that needs nothing of the build.
pub(crate) fn random_placement(rng: &mut SmallRng) -> Placement {
    match rng.random_range(0..8) {
        0 => Placement::ByLevel,
        1..=3 => Placement::ByTable,
        _ => Placement::HotRap(random_hotrap(rng)),
    }
}

/// Gives each tier a price, so that the store can have a target.
pub(crate) fn set_prices(options: &mut Options) {
    let mut price = 0.5;
    for tier in &mut options.tiers {
        tier.price_per_gb_month = Some(price);
        price /= 4.0;
    }
}

/// Sets another target for an open store, or none. A store that can have none stays as it is, and
/// so does one whose disk fails.
pub(crate) fn set_some_target(db: &Db, rng: &mut SmallRng) {
    let prices: Vec<f64> = db
        .options()
        .tiers
        .iter()
        .filter_map(|t| t.price_per_gb_month)
        .collect();
    let (Some(most), Some(least)) = (prices.first(), prices.last()) else {
        return;
    };
    let target = match rng.random_range(0..4) {
        0 => Target::None,
        _ => Target::Cost(least + (most - least) * rng.random_range(0.0..1.0)),
    };
    let _ = db.set_target(target);
}

/// Settings of hotness with which much is promoted, forgotten and learnt anew within one script.
/// Any of its techniques may be on or off.
pub fn random_hotrap(rng: &mut SmallRng) -> HotRapOptions {
    let hot_set_max = rng.random_range(0.02..0.95);
    HotRapOptions {
        decay: rng.random_range(0.5..1.0),
        slice: rng.random_range(0.001..0.2),
        eviction: rng.random_range(0.05..0.9),
        hot_set_min: hot_set_max * rng.random_range(0.0..0.9),
        hot_set_max,
        hot_set_initial: (hot_set_max * rng.random_range(0.1..1.0)).max(0.01),
        ralt_initial: rng.random_range(0.01..0.3),
        switches: random_switches(rng),
        ..HotRapOptions::default()
    }
}

fn random_switches(rng: &mut SmallRng) -> thermocline::Switches {
    use thermocline::Scoring::{Clock, Lru, Smoothing};
    let mut on = || rng.random_bool(0.7);
    thermocline::Switches {
        retention: on(),
        hotness_check: on(),
        promotion_by_compaction: on(),
        promotion_by_flush: on(),
        bypass: on(),
        copies: on(),
        auto_tuning: on(),
        scoring: [Smoothing, Clock, Lru][rng.random_range(0..3)],
    }
}

/// The techniques of placement by hotness that `options` switch off, by the names under which they
/// are counted.
pub(crate) fn techniques_off(options: &Options) -> Vec<&'static str> {
    let Placement::HotRap(hotrap) = &options.placement else {
        return Vec::new();
    };
    let on = &hotrap.switches;
    let techniques = [
        ("stores without retention", on.retention),
        ("stores without the hotness check", on.hotness_check),
        (
            "stores without promotion by compaction",
            on.promotion_by_compaction,
        ),
        ("stores without promotion by flush", on.promotion_by_flush),
        ("stores without bypasses", on.bypass),
        ("stores without copies", on.copies),
        ("stores without auto-tuning", on.auto_tuning),
    ];
    let off = techniques.into_iter().filter(|(_, is_on)| !is_on);
    off.map(|(without, _)| without).collect()
}
