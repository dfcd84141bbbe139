//! Settings of a store: plain data, validated in one place ([`Options::validate`]).

mod by_table;
mod directories;
mod hotrap;
mod target;
mod tier;
mod validate;

use std::path::PathBuf;

pub(crate) use directories::{dir_conflict, ralt_dir};
pub use hotrap::{HotRapOptions, Placement};
pub use target::Target;
pub use tier::{Compression, FilterPolicy, TierOptions};
pub(crate) use validate::{MAX_TIERS, MEMTABLES, Resolved};
#[cfg(not(feature = "experiments"))]
pub(crate) use {by_table::TableSwitches, hotrap::Scoring, hotrap::Switches};
#[cfg(feature = "experiments")]
pub use {by_table::TableSwitches, hotrap::Scoring, hotrap::Switches};

/// When an acknowledged write survives what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// Kept in the process until the log's buffer fills: survives nothing but a clean close.
    None,
    /// Handed to the operating system: survives the end of the process, not of the machine.
    #[default]
    Buffered,
    /// Synced to the device: survives a loss of power.
    Sync,
}

/// What recovery does with a damaged write-ahead log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RecoveryMode {
    /// A torn tail is cut; damage before it is an error.
    #[default]
    Strict,
    /// Damage ends the replay there; what was skipped is reported by [`crate::Db::recovery`].
    Tolerant,
}

/// How to open a store. Fields may be set directly; [`crate::Db::open`] validates them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The media, fastest first, at most 8. One makes an untiered store; two are the usual case.
    /// New tables go to the first, and from there to the last. Tiers between hold tables that are
    /// worth their price by how often they are read. Give the first a capacity: without one nothing
    /// has to leave it.
    pub tiers: Vec<TierOptions>,
    /// Create the store when the directories hold none; the default. Once there is a store, open it
    /// without this: a device that is not mounted looks like an empty directory. If a slower tier
    /// still has its files, opening reports that. If there is no slower tier, or all of them are on
    /// that device, nothing else keeps an empty store from taking the place of the missing one.
    pub create_if_missing: bool,
    /// The memory of the store in bytes: memtables, caches of blocks and records, pinned index and
    /// filter blocks, and buffers. Placement by hotness takes memory on top: some three bytes for
    /// each record that is hot or would be with one more read, and at most five quarters of
    /// `table_size` for records that wait for promotion. Both are in the metrics
    /// ([`RaltMetrics::memory_bytes`](crate::metrics::RaltMetrics::memory_bytes),
    /// [`HotRapMetrics::promotion_cache_bytes`](
    /// crate::metrics::HotRapMetrics::promotion_cache_bytes)).
    pub memory: u64,
    /// Bytes of `memory` for the block cache; by default what the other parts leave. If it is
    /// smaller than that, index and filter blocks get what it leaves.
    pub block_cache: Option<u64>,
    /// Bytes that a cache of single records takes from those of the block cache, everything
    /// counted: 0 for none, else at least 64 KiB. By default half of them, if that is enough. Scans
    /// do not use it: a store that is mostly scanned is better off without.
    ///
    /// ```
    /// let mut options = thermocline::Options::one_tier("/db");
    /// options.block_cache = Some(16 << 20);
    /// // 4 MiB for blocks and 12 MiB for records.
    /// options.record_cache = Some(12 << 20);
    /// assert!(options.validate().is_ok());
    /// ```
    pub record_cache: Option<u64>,
    /// Size in bytes at which a memtable is frozen; by default derived from `memory` and
    /// the fast tier's capacity, at most 64 MiB. A quarter of `memory` and 1 TiB are the most.
    pub memtable_size: Option<u64>,
    /// Size in bytes at which a table is closed and the next one begun, at most 1 TiB. The default
    /// is the memtable's size, or a 128th of the first tier's capacity if that is less, and 16 KiB
    /// at least. With the default, tables below the first tier are the longer the more lies there,
    /// up to 64 MiB.
    pub table_size: Option<u64>,
    /// L0 tables at which they are compacted into the next level. With placement by hotness L0
    /// takes a 24th of the first tier's capacity at most: if this many memtables are more than
    /// that, fewer tables suffice, but two at least. With default sizes that is five on a first
    /// tier of 2 MiB to less than 6 GiB.
    pub l0_trigger: usize,
    /// L0 tables at which writers begin to be slowed.
    pub l0_slowdown: usize,
    /// L0 tables at which writers stop; at most 65,536.
    pub l0_stop: usize,
    /// Size ratio of neighbouring levels, about the largest. A smaller one writes less per level
    /// and keeps more data outside the last: with 8 it is an eighth to a third.
    pub level_ratio: u64,
    /// Threads that compact, 1 to 64. A store has two more, one for flushes and one for hotness. Up
    /// to 16 others help with reads and writes of tables: all stores of the process share them,
    /// from the first use to its end.
    pub compaction_threads: usize,
    /// Who decides where a record lives: by default its hotness.
    pub placement: Placement,
    /// Durability of writes that do not say their own.
    pub durability: Durability,
    /// What to do with a damaged log.
    pub recovery: RecoveryMode,
    /// Bytes of flushed log kept for [`crate::Db::log_since`] at most, beyond what recovery needs.
    /// The log is kept in whole segments, each about as long as a memtable is large: with less than
    /// that nothing may be kept. So ask for as much as a follower may be behind, and a segment
    /// more. A segment counts for 1 MiB at least, or for a 256th of this setting if that is less.
    /// So fewer bytes are kept if segments are short because keyspaces come and go. What is kept
    /// counts for the first tier's capacity like everything on it.
    pub log_retention: u64,
    /// Seed of everything random; by default drawn from the operating system. The number that a
    /// store on disks is told from others by comes from the operating system in any case. It
    /// follows from the seed only if all media are [the caller's own](crate::DbBuilder::medium).
    pub seed: Option<u64>,
    /// What placement by table does: for measuring what each choice is worth.
    #[cfg(feature = "experiments")]
    pub table_switches: TableSwitches,
}

impl Options {
    /// A store over two directories: `fast` holding at most `fast_capacity` bytes, `slow`
    /// the rest.
    ///
    /// ```
    /// let options = thermocline::Options::two_tiers("/fast/db", 1 << 30, "/slow/db");
    /// assert_eq!(options.tiers.len(), 2);
    /// ```
    pub fn two_tiers(
        fast: impl Into<PathBuf>,
        fast_capacity: u64,
        slow: impl Into<PathBuf>,
    ) -> Self {
        Self::with_tiers(vec![
            TierOptions::fast(fast).capacity(fast_capacity),
            TierOptions::slow(slow),
        ])
    }

    /// How hotness is tracked: none when records live by level, or there is one tier only.
    pub(crate) fn hotrap(&self) -> Option<&HotRapOptions> {
        match &self.placement {
            Placement::HotRap(hotrap) if self.tiers.len() > 1 => Some(hotrap),
            _ => None,
        }
    }

    /// Whether the first tier is a cache of the last one's blocks.
    pub(crate) fn has_flash_cache(&self) -> bool {
        self.placement == Placement::FlashCache
    }

    /// A store on one medium.
    pub fn one_tier(path: impl Into<PathBuf>) -> Self {
        Self::with_tiers(vec![TierOptions::fast(path)])
    }

    /// A store over `tiers`, fastest first, with everything else at its default.
    pub fn with_tiers(tiers: Vec<TierOptions>) -> Self {
        Self {
            tiers,
            create_if_missing: true,
            memory: 256 << 20,
            block_cache: None,
            record_cache: None,
            memtable_size: None,
            table_size: None,
            l0_trigger: 6,
            l0_slowdown: 20,
            l0_stop: 36,
            level_ratio: 8,
            compaction_threads: 2,
            placement: Placement::default(),
            durability: Durability::default(),
            recovery: RecoveryMode::default(),
            log_retention: 0,
            seed: None,
            #[cfg(feature = "experiments")]
            table_switches: TableSwitches::default(),
        }
    }

    /// What placement by table does; the usual without the feature `experiments`.
    pub(crate) fn table_switches(&self) -> TableSwitches {
        #[cfg(feature = "experiments")]
        return self.table_switches;
        #[cfg(not(feature = "experiments"))]
        TableSwitches::default()
    }
}
