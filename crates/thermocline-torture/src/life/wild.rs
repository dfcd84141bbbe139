//! Lives and options that nobody would think of.

use rand::RngExt;
use rand::rngs::SmallRng;
use thermocline::metrics::Metrics;
use thermocline::storage::CrashStyle;
use thermocline::{Compression, HotRapOptions, Options, Placement};

use super::{LIFE, SIDE, Step, WARMING};
use crate::random_options::{random_hotrap, random_options, set_prices};
use crate::verdict::Tally;

/// What all option sets of one store have in common.
#[derive(Debug, Clone)]
pub struct Wild {
    tiers: usize,
    /// This stays the same, because a table of recent accesses that was scored by other settings
    /// begins anew.
    hotrap: HotRapOptions,
}

impl Wild {
    /// Mostly two tiers. Every other store has the default hotness.
    pub fn new(rng: &mut SmallRng) -> Self {
        let tiers = match rng.random_range(0..20) {
            0 => 1,
            1 | 2 => 3,
            _ => 2,
        };
        let hotrap = match rng.random() {
            true => HotRapOptions::default(),
            false => random_hotrap(rng),
        };
        Self { tiers, hotrap }
    }

    /// Options with memtables, tables and a fast tier so small that most lives reach the last tier.
    pub fn options(&self, rng: &mut SmallRng) -> Options {
        loop {
            let mut options = random_options(rng.random());
            if options.tiers.len() != self.tiers {
                continue;
            }
            let (memtable, table) = (rng.random_range(16..=20), rng.random_range(16..=20));
            options.memtable_size = Some(memtable << 10);
            options.table_size = Some(table << 10);
            options.level_ratio = rng.random_range(2..=4);
            options.l0_trigger = rng.random_range(1..=2);
            if self.tiers > 1 {
                let fast = &mut options.tiers[0];
                fast.capacity = (memtable.max(table) << 10) * rng.random_range(24..=28);
                // Otherwise the records of a life would be compressed to next to nothing.
                if rng.random_bool(0.8) {
                    fast.compression = Compression::None;
                }
            }
            options.placement = match rng.random_range(0..8) {
                0 => Placement::ByLevel,
                1 | 2 => Placement::ByTable,
                _ => Placement::HotRap(self.hotrap.clone()),
            };
            set_prices(&mut options);
            return options;
        }
    }
}

/// What a loss of power leaves: any share of the unsynced pieces, or tears and garbage.
pub fn wild_cut(rng: &mut SmallRng) -> CrashStyle {
    let styles = [
        CrashStyle::LoseAll,
        CrashStyle::Keep(25),
        CrashStyle::Keep(50),
        CrashStyle::Keep(75),
        CrashStyle::KeepAll,
        CrashStyle::Random,
    ];
    styles[rng.random_range(0..styles.len())]
}

/// One of the fixed lives, or steps in an order of their own.
pub fn wild_life(rng: &mut SmallRng) -> Vec<Step> {
    match rng.random_range(0..5) {
        0 => LIFE.to_vec(),
        1 | 2 => WARMING.to_vec(),
        _ => {
            let steps = rng.random_range(8..=24);
            let mut life = vec![Step::CreateKeyspace(SIDE)];
            life.extend((0..steps).map(|_| wild_step(rng)));
            life
        }
    }
}

fn wild_step(rng: &mut SmallRng) -> Step {
    match rng.random_range(0..20) {
        0..8 => Step::Write(rng.random_range(1..150)),
        8..12 => Step::Read,
        12 => Step::Flush,
        13 => Step::Sync,
        14 => Step::Compact,
        15 => Step::Ingest(rng.random_range(1..80)),
        16 => Step::Idle,
        17 => Step::Checkpoint,
        18 => Step::CreateKeyspace("later"),
        _ => Step::Reopen,
    }
}

/// What placement by hotness did in the lives of one store.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hotness {
    wrote: bool,
    evicted: bool,
    promoted: bool,
    crossed: bool,
}

impl Hotness {
    /// Takes note of what a store did since it was opened.
    pub fn note(&mut self, metrics: &Metrics) {
        let Some(hotrap) = &metrics.hotrap else {
            return;
        };
        self.wrote |= hotrap.ralt.write_bytes > 0;
        self.evicted |= hotrap.ralt.evictions > 0;
        self.promoted |= hotrap.promoted_flush_bytes > 0;
        self.crossed |= hotrap.promoted_compaction_bytes + hotrap.retained_bytes > 0;
    }

    /// Counts the store for everything that it did.
    pub fn count(self, tally: &mut Tally) {
        let moved = self.promoted || self.crossed;
        let [wrote, evicted, promoted, crossed, at_work] = Self::COUNTED;
        tally.add(wrote, self.wrote.into());
        tally.add(evicted, self.evicted.into());
        tally.add(promoted, self.promoted.into());
        tally.add(crossed, self.crossed.into());
        tally.add(at_work, (self.wrote && moved).into());
    }

    /// What [`Hotness::count`] counts.
    pub const COUNTED: [&str; 5] = [
        "stores whose RALT wrote",
        "stores whose RALT evicted",
        "stores that promoted by flush",
        "stores that promoted or retained in a crossing",
        "stores with RALT and promotion at work",
    ];
}
