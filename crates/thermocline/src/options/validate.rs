//! Checks settings against each other and fills in what is derived.

use super::{Options, Placement, TierOptions, dir_conflict};
use crate::error::{Error, Result};

/// Memtables that may exist at once: the active one and those waiting for their flush.
pub(crate) const MEMTABLES: u64 = 3;

/// Smallest memtable: below it, fixed costs per table dominate.
const MIN_MEMTABLE: u64 = 16 << 10;
const MAX_DEFAULT_MEMTABLE: u64 = 64 << 20;

/// Largest memtable and table: several of them, and L0 full of them, are counted in 64 bits.
const MAX_TABLE: u64 = 1 << 40;
const MAX_L0_TABLES: usize = 1 << 16;

/// Smallest record cache: below it, the bytes of an empty index matter.
const MIN_RECORD_CACHE: u64 = 64 << 10;

/// The fast tier must hold this many memtables: log, L0 and one job's output in flight
/// besides the levels themselves.
const MIN_FAST_MEMTABLES: u64 = 24;

/// *f* is at least this.
const LEAST_FAST_LEVELS: u64 = 2;

/// Memtables and tables that the fast tier holds by default: so many that the output in flight of
/// one job is a small part of it.
const DEFAULT_FAST_TABLES: u64 = 128;

/// What the flash cache's index takes for one block, in bytes.
const FLASH_INDEX_ENTRY: u64 = 64;
/// A page. Three of them and the index fit into what the smallest memtable leaves at least.
const MIN_FLASH_BUFFER: u64 = 4 << 10;
const MAX_FLASH_BUFFER: u64 = 4 << 20;

/// Most tiers a store can have.
pub(crate) const MAX_TIERS: usize = 8;

/// Sizes in bytes with every default filled in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resolved {
    pub(crate) memtable_size: u64,
    pub(crate) table_size: u64,
    pub(crate) block_cache: u64,
    pub(crate) record_cache: u64,
    /// L0 tables at which they are compacted.
    pub(crate) l0_trigger: usize,
    /// Index and filter blocks that stay in memory outside the block cache.
    pub(crate) pinned: u64,
    /// One write buffer of the flash cache.
    pub(crate) flash_buffer: u64,
}

impl Resolved {
    /// What of `memory` is left for buffers.
    pub(crate) fn buffers(&self, memory: u64) -> u64 {
        let caches = self.block_cache + self.record_cache + self.pinned;
        memory.saturating_sub(MEMTABLES * self.memtable_size + caches)
    }
}

/// Memory that a flash cache takes, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct FlashMemory {
    index: u64,
    buffer: u64,
}

impl FlashMemory {
    /// One buffer is filled, one is written, and as much waits for its turn.
    fn total(self) -> u64 {
        self.index + 3 * self.buffer
    }
}

fn invalid(option: &'static str, reason: impl Into<String>) -> Error {
    Error::InvalidOption {
        option,
        reason: reason.into(),
    }
}

impl Options {
    /// Checks every setting, alone and against the others.
    ///
    /// # Errors
    /// [`Error::InvalidOption`] naming the first setting that cannot be used, and why.
    pub fn validate(&self) -> Result<()> {
        self.resolve().map(|_| ())
    }

    pub(crate) fn resolve(&self) -> Result<Resolved> {
        self.check_tiers()?;
        self.check_levels()?;
        match &self.placement {
            Placement::HotRap(hotrap) => hotrap.check()?,
            Placement::FlashCache => self.check_flash_cache()?,
            Placement::ByLevel | Placement::ByTable => {}
        }
        let memtable_size = self.resolve_memtable()?;
        let table_size = self.table_size.unwrap_or_else(|| {
            let share = self.tiers[0].capacity / DEFAULT_FAST_TABLES;
            memtable_size.min(share).max(MIN_MEMTABLE)
        });
        check_table("table_size", table_size)?;
        self.check_fast_capacity(memtable_size, table_size)?;
        let flash = self.flash_memory(memtable_size);
        let rest = self.memory - memtable_size * MEMTABLES - flash.total();
        // Of what memtables leave, an eighth is for compaction and read buffers, and a quarter for
        // index and filter blocks, together with whatever a small block cache leaves. A table whose
        // index and filter blocks find no room costs a lookup up to two more reads of its tier. A
        // large block cache takes from the buffers first.
        let (buffers, pinned) = (rest / 8, rest / 4);
        let block_cache = self.block_cache.unwrap_or(rest - pinned - buffers);
        if block_cache > rest {
            return Err(invalid(
                "block_cache",
                format!(
                    "{block_cache} bytes do not fit: `memory` of {} leaves {rest} beside {MEMTABLES} memtables of {memtable_size}{}",
                    self.memory,
                    match flash.total() {
                        0 => String::new(),
                        bytes => format!(" and {bytes} bytes for the flash cache"),
                    }
                ),
            ));
        }
        let left = rest - block_cache;
        let record_cache = self.check_record_cache(block_cache)?;
        Ok(Resolved {
            memtable_size,
            table_size,
            block_cache: block_cache - record_cache,
            record_cache,
            l0_trigger: self.resolve_l0_trigger(memtable_size),
            pinned: left.saturating_sub(buffers).max(left.min(pinned)),
            flash_buffer: flash.buffer,
        })
    }

    /// How many bytes of a block cache of `block_cache` bytes go to the record cache if
    /// [`Options::record_cache`] does not say.
    ///
    /// ```
    /// assert_eq!(thermocline::Options::default_record_cache(16 << 20), 8 << 20);
    /// assert_eq!(thermocline::Options::default_record_cache(1 << 10), 0);
    /// ```
    pub fn default_record_cache(block_cache: u64) -> u64 {
        let half = block_cache / 2;
        if half < MIN_RECORD_CACHE { 0 } else { half }
    }

    /// The bytes of the record cache. It takes them from those of the block cache, which are
    /// `available`.
    fn check_record_cache(&self, available: u64) -> Result<u64> {
        let Some(bytes) = self.record_cache else {
            return Ok(Self::default_record_cache(available));
        };
        let reason = if bytes > available {
            format!("{bytes} bytes are more than the {available} of the block cache")
        } else if bytes > 0 && bytes < MIN_RECORD_CACHE {
            format!("{bytes} bytes is below the minimum of {MIN_RECORD_CACHE}")
        } else {
            return Ok(bytes);
        };
        Err(invalid("record_cache", reason))
    }

    /// Where hot records want the fast tier's room, L0 and as much output of its compaction take a
    /// twelfth of it at most: the rest of the room is worth more in L1.
    fn resolve_l0_trigger(&self, memtable_size: u64) -> usize {
        if self.hotrap().is_none() {
            return self.l0_trigger;
        }
        let share = self.tiers[0].capacity as f64 / (24.0 * memtable_size as f64);
        self.l0_trigger.min((share as usize).max(2))
    }

    fn resolve_memtable(&self) -> Result<u64> {
        let fast = self.tiers[0].capacity;
        let most = self.memory / (MEMTABLES + 1);
        if most < MIN_MEMTABLE {
            return Err(invalid(
                "memory",
                format!(
                    "{} bytes do not hold {} memtables of at least {MIN_MEMTABLE}",
                    self.memory,
                    MEMTABLES + 1
                ),
            ));
        }
        let size = self.memtable_size.unwrap_or_else(|| {
            let share = fast / DEFAULT_FAST_TABLES;
            let size = (self.memory / 6)
                .min(share)
                .clamp(MIN_MEMTABLE, MAX_DEFAULT_MEMTABLE)
                .min(most);
            // A default must not make a tier too small.
            let tables = self.table_size.unwrap_or(size);
            if fast < self.least_capacity(size, tables) {
                MIN_MEMTABLE
            } else {
                size
            }
        });
        check_table("memtable_size", size)?;
        if size > most {
            return Err(invalid(
                "memtable_size",
                format!(
                    "{size} bytes is more than {most}: `memory` must hold {} memtables",
                    MEMTABLES + 1
                ),
            ));
        }
        Ok(size)
    }

    /// What the fast tier must hold at once: log, L0, a table for each of the least levels and one
    /// in flight, and the table of recent accesses with them (I8).
    fn least_capacity(&self, memtable_size: u64, table_size: u64) -> u64 {
        let tables = (MEMTABLES + 2)
            .saturating_mul(memtable_size)
            .saturating_add(table_size.saturating_mul(LEAST_FAST_LEVELS + 1));
        let rest = 1.0 - self.hotrap().map_or(0.0, |hotrap| hotrap.ralt_initial);
        let tables = (tables as f64 / rest).ceil() as u64;
        tables.max(MIN_FAST_MEMTABLES.saturating_mul(memtable_size))
    }

    fn check_fast_capacity(&self, memtable_size: u64, table_size: u64) -> Result<()> {
        let capacity = self.tiers[0].capacity;
        let least = self.least_capacity(memtable_size, table_size);
        let path = self.tiers[0].path.display();
        let room_for_kept_log = capacity.saturating_sub(least);
        if capacity >= least && self.log_retention <= room_for_kept_log {
            return Ok(());
        }
        if capacity >= least {
            let kept = self.log_retention;
            return Err(invalid(
                "log_retention",
                format!(
                    "{kept} bytes of log would be kept on {path}, whose capacity of {capacity} bytes leaves \
                     {room_for_kept_log} beside what the store needs there"
                ),
            ));
        }
        Err(invalid(
            "tiers",
            format!(
                "the capacity of {path} is {capacity} bytes: with memtables of {memtable_size} and \
                 tables of {table_size} it must be at least {least}"
            ),
        ))
    }

    fn check_tiers(&self) -> Result<()> {
        if self.tiers.is_empty() || self.tiers.len() > MAX_TIERS {
            return Err(invalid(
                "tiers",
                format!("{} given, 1 to {MAX_TIERS} are possible", self.tiers.len()),
            ));
        }
        for (index, tier) in self.tiers.iter().enumerate() {
            check_tier(tier)?;
            let before = self.tiers[..index].iter().map(|tier| &tier.path);
            if let Some(reason) = dir_conflict(&tier.path, before, |a, b| a == b) {
                return Err(invalid("tiers", reason));
            }
        }
        Ok(())
    }

    fn check_flash_cache(&self) -> Result<()> {
        let reason = if !cfg!(feature = "flash-cache") {
            "this build has no flash cache; build with the feature `flash-cache`"
        } else if self.tiers.len() < 2 {
            "a flash cache needs a second tier for the tables"
        } else if self.tiers[0].capacity == u64::MAX {
            "a flash cache needs a capacity of the first tier"
        } else {
            return Ok(());
        };
        Err(invalid("placement", reason))
    }

    /// The index has an entry for every block that the fast tier may hold, but takes at most a
    /// quarter of the memory beside memtables. A buffer takes a thirty-second of that memory.
    fn flash_memory(&self, memtable_size: u64) -> FlashMemory {
        let Some(last) = self.tiers.last().filter(|_| self.has_flash_cache()) else {
            return FlashMemory::default();
        };
        let rest = self.memory - memtable_size * MEMTABLES;
        let blocks = self.tiers[0].capacity / last.block_size as u64;
        FlashMemory {
            index: blocks.saturating_mul(FLASH_INDEX_ENTRY).min(rest / 4),
            buffer: (rest / 32).clamp(MIN_FLASH_BUFFER, MAX_FLASH_BUFFER),
        }
    }

    fn check_levels(&self) -> Result<()> {
        if self.l0_trigger == 0 || self.l0_trigger > self.l0_slowdown {
            return Err(invalid(
                "l0_trigger",
                format!("must be 1 to `l0_slowdown` ({})", self.l0_slowdown),
            ));
        }
        if self.l0_slowdown >= self.l0_stop {
            return Err(invalid(
                "l0_slowdown",
                format!("must be below `l0_stop` ({})", self.l0_stop),
            ));
        }
        if self.l0_stop > MAX_L0_TABLES {
            return Err(invalid(
                "l0_stop",
                format!(
                    "{} tables are above the maximum of {MAX_L0_TABLES}",
                    self.l0_stop
                ),
            ));
        }
        if !(2..=100).contains(&self.level_ratio) {
            return Err(invalid("level_ratio", "must be 2 to 100"));
        }
        if !(1..=64).contains(&self.compaction_threads) {
            return Err(invalid("compaction_threads", "must be 1 to 64"));
        }
        Ok(())
    }
}

fn check_table(option: &'static str, size: u64) -> Result<()> {
    let reason = match size {
        ..MIN_MEMTABLE => format!("{size} bytes is below the minimum of {MIN_MEMTABLE}"),
        MIN_MEMTABLE..=MAX_TABLE => return Ok(()),
        _ => format!("{size} bytes is above the maximum of {MAX_TABLE}"),
    };
    Err(invalid(option, reason))
}

fn check_tier(tier: &TierOptions) -> Result<()> {
    if tier.path.as_os_str().is_empty() {
        return Err(invalid("tiers", "a tier has an empty path"));
    }
    if !(512..=1 << 20).contains(&tier.block_size) {
        return Err(invalid(
            "block_size",
            format!("{} is not within 512 bytes to 1 MiB", tier.block_size),
        ));
    }
    if let super::Compression::Zstd(level) = tier.compression
        && !(1..=19).contains(&level)
    {
        return Err(invalid(
            "compression",
            format!("zstd level {level} is not 1 to 19"),
        ));
    }
    let price = tier.price_per_gb_month.unwrap_or(0.0);
    if !price.is_finite() || price < 0.0 {
        return Err(invalid(
            "price_per_gb_month",
            "must be a number of at least 0",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
