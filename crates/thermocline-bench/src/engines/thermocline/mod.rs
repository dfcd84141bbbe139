//! Our engine: over two tiers or more, placed by hotness, by level or by table; over the slow tier
//! with the fast one as a cache of blocks; and over the fast tier alone.

mod counters;

use std::sync::Arc;

use anyhow::Result;
use thermocline::storage::{Disk, Limits, Throttled};
use thermocline::{
    Db, HotRapOptions, Ingestion as Records, Options, Placement, SystemClock, Target, TierOptions,
};

use crate::counters::Counters;
use crate::engine::{Engine, EngineKind, Ingestion};
use crate::prices::Prices;
use crate::settings::{Compression, Dirs, Durability, Settings, SlowTier};

/// A block is closed once it is past its size, by at most a record. The flash cache puts 60 bytes
/// before it and fills up the page. Blocks that are smaller by this amount, with records of up to 1
/// KiB, fit whole pages; otherwise they would leave most of their last page empty.
#[cfg(feature = "flash-cache")]
const PAST_A_BLOCK: u64 = 1280;

/// The smallest block that the engine takes.
#[cfg(feature = "flash-cache")]
const LEAST_BLOCK: u64 = 512;

/// How our engine is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thermocline {
    /// A fast tier and slow ones, records placed by hotness.
    HotRap,
    /// The same, records placed by level: what hotness is measured against.
    Leveled,
    /// The same, tables placed by their heat: without a target the fast tier is filled.
    Tables,
    /// Records placed by hotness, for runs with a target: a name of its own tells their results
    /// from those of `hotrap`, which uses all of the fast tier.
    Cost,
    /// All tables on the slow disk, and the fast one as a cache of their blocks: hotness without
    /// moving records.
    #[cfg(feature = "flash-cache")]
    FlashCache,
    /// Everything on the fast disk, whatever its capacity: what tiering is measured against.
    FastOnly,
}

impl EngineKind for Thermocline {
    fn name(&self) -> &'static str {
        match self {
            Thermocline::HotRap => "hotrap",
            Thermocline::Leveled => "leveled",
            Thermocline::Tables => "tables",
            Thermocline::Cost => "cost",
            #[cfg(feature = "flash-cache")]
            Thermocline::FlashCache => "flash-cache",
            Thermocline::FastOnly => "fast-only",
        }
    }

    fn files(&self) -> &'static str {
        match self {
            // States of more tiers are told apart by their capacities.
            Thermocline::HotRap | Thermocline::Leveled | Thermocline::Cost => "two tiers",
            // The others could open it. They would first take down what lies on the fast tier:
            // levels are sized as if there were one tier, and most is below their level f.
            Thermocline::Tables => "two tiers, by table",
            #[cfg(feature = "flash-cache")]
            Thermocline::FlashCache => "all on the slow tier",
            Thermocline::FastOnly => "one tier",
        }
    }

    fn takes_target(&self) -> bool {
        matches!(self, Thermocline::Tables | Thermocline::Cost)
    }

    fn usual_record_cache(&self, cache: u64) -> u64 {
        Options::default_record_cache(cache)
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        #[cfg(feature = "flash-cache")]
        if self.has_flash_cache() {
            settings.refuse_more_tiers(self.name())?;
        }
        let further = 1..=settings.slower.len();
        let names = Dirs {
            fast: "fast".into(),
            slow: "slow".into(),
            slower: further.map(|n| format!("slower-{n}").into()).collect(),
        };
        Ok(self.options(settings, &names).validate()?)
    }

    fn check_ingestion(&self) -> Result<()> {
        Ok(())
    }

    fn open(&self, settings: &Settings, dirs: &Dirs) -> Result<Box<dyn Engine>> {
        let mut builder = Db::builder(self.options(settings, dirs));
        let mut devices = Vec::new();
        for (tier, device) in self.emulated(settings) {
            builder = builder.medium(tier, Arc::new(device.medium.clone()));
            devices.push(device);
        }
        Ok(Box::new(Store {
            db: builder.open()?,
            devices,
            silent_threads: self.has_flash_cache(),
            has_prices: settings.prices.is_some(),
        }))
    }

    /// Makes a checkpoint, without emulated slow disks, because copying is not what is measured.
    /// It is placed by level, so that the source is the same for whichever engine runs on the copy.
    fn copy(&self, settings: &Settings, from: &Dirs, to: &Dirs) -> Result<()> {
        let mut options = self.options(settings, from);
        if let Placement::HotRap(_) | Placement::ByTable = options.placement {
            options.placement = Placement::ByLevel;
        }
        let db = Db::open(options)?;
        let tiers = 1 + self.slow_tiers(settings).count();
        let targets: Vec<_> = to.each().take(tiers).cloned().collect();
        db.checkpoint(&targets)?;
        db.close()?;
        Ok(())
    }
}

impl Thermocline {
    /// The slow tiers that it uses.
    fn slow_tiers(self, settings: &Settings) -> impl Iterator<Item = SlowTier> {
        let is_tiered = self != Thermocline::FastOnly;
        settings.slow_tiers().filter(move |_| is_tiered)
    }

    /// The tiers whose disks are emulated, with these.
    fn emulated(self, settings: &Settings) -> impl Iterator<Item = (usize, Emulated)> {
        let tiers = (1..).zip(self.slow_tiers(settings));
        let limited = tiers.filter(|(_, tier)| tier.device.is_limited());
        limited.map(|(number, tier)| (number, Emulated::new(tier.device.limits())))
    }

    fn has_flash_cache(self) -> bool {
        #[cfg(feature = "flash-cache")]
        return self == Thermocline::FlashCache;
        #[cfg(not(feature = "flash-cache"))]
        return false;
    }

    fn block_size_slow(self, settings: &Settings) -> u64 {
        #[cfg(feature = "flash-cache")]
        if self.has_flash_cache() {
            return settings
                .block_size_slow
                .saturating_sub(PAST_A_BLOCK)
                .max(LEAST_BLOCK);
        }
        settings.block_size_slow
    }

    fn options(self, settings: &Settings, dirs: &Dirs) -> Options {
        let fast = TierOptions::fast(&dirs.fast).block_size(settings.block_size_fast as usize);
        let mut tiers = vec![fast];
        for (dir, tier) in dirs.each_slow().zip(self.slow_tiers(settings)) {
            let slow = TierOptions::slow(dir)
                .block_size(self.block_size_slow(settings) as usize)
                .compression(match settings.compression {
                    Compression::None => thermocline::Compression::None,
                    Compression::Lz4 => thermocline::Compression::Lz4,
                    Compression::Zstd(level) => thermocline::Compression::Zstd(level),
                });
            tiers.push(match tier.capacity {
                Some(bytes) => slow.capacity(bytes),
                None => slow,
            });
        }
        let prices = settings.prices.iter().flat_map(Prices::each);
        for (tier, price) in tiers.iter_mut().zip(prices) {
            tier.price_per_gb_month = Some(price);
        }
        // With nothing below it, the fast tier holds everything.
        if let [fast, _, ..] = tiers.as_mut_slice() {
            fast.capacity = settings.fast_capacity;
        }
        let mut options = Options::with_tiers(tiers);
        options.memory = settings.memory;
        options.block_cache = Some(settings.cache);
        options.record_cache = Some(settings.record_cache);
        options.memtable_size = Some(settings.memtable);
        options.table_size = Some(settings.memtable);
        options.placement = match self {
            Thermocline::HotRap | Thermocline::Cost => Placement::HotRap(hotrap(settings)),
            Thermocline::Tables => Placement::ByTable,
            Thermocline::Leveled | Thermocline::FastOnly => Placement::ByLevel,
            #[cfg(feature = "flash-cache")]
            Thermocline::FlashCache => Placement::FlashCache,
        };
        options.durability = match settings.durability {
            Durability::None => thermocline::Durability::None,
            Durability::Buffered => thermocline::Durability::Buffered,
            Durability::Sync => thermocline::Durability::Sync,
        };
        #[cfg(feature = "experiments")]
        {
            options.table_switches = settings.experiments.of_tables();
        }
        options
    }
}

#[cfg(feature = "experiments")]
fn hotrap(settings: &Settings) -> HotRapOptions {
    let experiments = &settings.experiments;
    let usual = HotRapOptions::default();
    HotRapOptions {
        hot_set_initial: experiments.hot_set.unwrap_or(usual.hot_set_initial),
        switches: experiments.switches(),
        ..usual
    }
}

#[cfg(not(feature = "experiments"))]
fn hotrap(_settings: &Settings) -> HotRapOptions {
    HotRapOptions::default()
}

/// A slow disk that is emulated.
struct Emulated {
    medium: Throttled,
    limits: Limits,
}

impl Emulated {
    fn new(limits: Limits) -> Self {
        let (disk, clock) = (Disk::default(), SystemClock::default());
        Self {
            medium: Throttled::new(Arc::new(disk), limits, Arc::new(clock)),
            limits,
        }
    }
}

struct Store {
    db: Db,
    devices: Vec<Emulated>,
    /// Whether a flash cache has threads of its own, which are not measured.
    silent_threads: bool,
    has_prices: bool,
}

impl Engine for Store {
    fn get(&self, key: &[u8], found: &mut dyn FnMut(Option<&[u8]>)) -> Result<()> {
        let value = self.db.get(key)?;
        found(value.as_deref());
        Ok(())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.put(key, value)?;
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.db.delete(key)?;
        Ok(())
    }

    fn scan(&self, start: &[u8], limit: usize, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        for record in self.db.range(start..).take(limit) {
            let (key, value) = record?;
            each(&key, &value);
        }
        Ok(())
    }

    fn ingestion(&self) -> Result<Box<dyn Ingestion + '_>> {
        Ok(Box::new(self.db.ingestion()?))
    }

    fn settle(&self) -> Result<()> {
        self.db.flush()?;
        Ok(self.db.wait_idle()?)
    }

    fn counters(&self) -> Result<Counters> {
        let counted = counters::of(&self.db.metrics());
        let by_hotness = counted.hotness.is_some();
        let cost = match self.has_prices {
            true => Some(counters::cost(self.db.cost()?, by_hotness)),
            false => None,
        };
        Ok(Counters {
            silent_threads: self.silent_threads,
            cost,
            ..counted
        })
    }

    fn hot_bytes_on_fast(&self) -> Result<Option<u64>> {
        Ok(self.db.hot_bytes_on_fast()?)
    }

    fn set_target(&self, target: Target) -> Result<()> {
        Ok(self.db.set_target(target)?)
    }

    fn throttle(&self, on: bool) {
        for device in &self.devices {
            device
                .medium
                .set_limits(if on { device.limits } else { Limits::default() });
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.db.close()?)
    }
}

impl Ingestion for Records {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(Records::put(self, key, value)?)
    }

    fn commit(self: Box<Self>) -> Result<()> {
        Records::commit(*self)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
