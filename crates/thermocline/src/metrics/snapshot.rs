//! The counters of a store at one moment. All totals are since the store was opened.

use std::path::PathBuf;
use std::time::Duration;

use super::{CostReport, CpuMetrics, HotRapMetrics, KeyspaceMetrics, Purpose};

/// Operations and bytes of one purpose on one tier.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IoMetrics {
    /// Why the bytes moved.
    pub purpose: Purpose,
    /// Read operations.
    pub read_ops: u64,
    /// Bytes read from the device.
    pub read_bytes: u64,
    /// Write operations, of 512 KiB at most, as they are handed to the system.
    pub write_ops: u64,
    /// Bytes written to the device.
    pub write_bytes: u64,
}

impl IoMetrics {
    /// Nothing read or written for `purpose`.
    pub(crate) fn none(purpose: Purpose) -> Self {
        Self {
            purpose,
            read_ops: 0,
            read_bytes: 0,
            write_ops: 0,
            write_bytes: 0,
        }
    }

    /// Adds what was counted elsewhere, for whatever purpose.
    pub(crate) fn add(&mut self, other: &IoMetrics) {
        self.read_ops += other.read_ops;
        self.read_bytes += other.read_bytes;
        self.write_ops += other.write_ops;
        self.write_bytes += other.write_bytes;
    }
}

/// One tier.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TierMetrics {
    /// Its directory.
    pub path: PathBuf,
    /// Capacity in bytes; `u64::MAX` when unlimited.
    pub capacity: u64,
    /// Price in $/GB/month, if it is known.
    pub price_per_gb_month: Option<f64>,
    /// Bytes of all files: tables, log, manifest, copies, and files that only a reader still holds.
    pub file_bytes: u64,
    /// Bytes reserved for output in flight.
    pub reserved_bytes: u64,
    /// Bytes of tables that are part of the store.
    pub table_bytes: u64,
    /// Bytes of files that are obsolete but pinned by an iterator or snapshot reader.
    pub pinned_obsolete_bytes: u64,
    /// Bytes of copies of a slower tier's tables, in room that nothing else uses.
    pub copied_bytes: u64,
    /// I/O by purpose, one entry for each purpose.
    pub io: Vec<IoMetrics>,
}

impl TierMetrics {
    /// Bytes read from the device for all purposes.
    pub fn read_bytes(&self) -> u64 {
        self.io.iter().map(|io| io.read_bytes).sum()
    }

    /// Read operations for all purposes.
    pub fn read_ops(&self) -> u64 {
        self.io.iter().map(|io| io.read_ops).sum()
    }

    /// Bytes written to the device for all purposes.
    pub fn write_bytes(&self) -> u64 {
        self.io.iter().map(|io| io.write_bytes).sum()
    }
}

/// One level, over all keyspaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelMetrics {
    /// Tables in it.
    pub tables: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of the keys and values in them, before compression.
    pub raw_bytes: u64,
    /// The size it is kept at, in bytes; 0 for L0 and for unused levels, `u64::MAX` for the last
    /// level, which takes what comes.
    pub target_bytes: u64,
    /// Bytes of it per tier.
    pub tier_bytes: Vec<u64>,
    /// Point reads that found their record here.
    pub hits: u64,
}

/// Where point reads found their answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HitMetrics {
    /// Point reads, each key of a `multi_get` counted.
    pub gets: u64,
    /// Answered by a memtable.
    pub memtable: u64,
    /// Answered by the record cache.
    pub record_cache: u64,
    /// Answered by the promotion cache.
    pub promotion_cache: u64,
    /// Found in a table of each tier.
    pub tier: Vec<u64>,
    /// Keys that do not exist.
    pub absent: u64,
    /// Answered without reading any device.
    pub without_device: u64,
    /// Answered without reading a device slower than the first tier.
    pub without_slow_device: u64,
    /// Block lookups that the block cache answered.
    pub block_cache_hits: u64,
    /// Block lookups that it did not.
    pub block_cache_misses: u64,
    /// Tables skipped because their filter excluded the key.
    pub filter_skips: u64,
    /// Tables whose filter let a key pass although they do not hold it.
    pub filter_false_positives: u64,
    /// Deletes, and versions hidden by newer ones, that iterators passed on their way.
    pub passed: u64,
}

/// Compactions from one level into another.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct CompactionMetrics {
    /// Input level.
    pub from: u8,
    /// Output level.
    pub to: u8,
    /// Jobs finished.
    pub jobs: u64,
    /// Tables moved without rewriting.
    pub moves: u64,
    /// Those of the jobs that were begun because records are hidden: to bring deletes and newer
    /// records down to what they hide, or to be rid of deletes.
    pub for_hidden: u64,
    /// Those of the jobs that merged small tables of one level.
    pub for_small_tables: u64,
    /// Bytes read per tier.
    pub read_bytes: Vec<u64>,
    /// Bytes written per tier.
    pub write_bytes: Vec<u64>,
    /// Time spent, in seconds of all threads.
    pub seconds: f64,
}

/// How long writers were held back, and why.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct StallMetrics {
    /// Time writers were slowed, in seconds of all threads.
    pub slowed_seconds: f64,
    /// Time writers were stopped, in seconds of all threads.
    pub stopped_seconds: f64,
    /// Longest single wait in seconds.
    pub longest_seconds: f64,
    /// Seconds by reason ("memtables", "l0 tables", "compaction debt", "hot set's room", "fast tier
    /// full").
    pub by_reason: Vec<(&'static str, f64)>,
    /// The reason that holds now, if any.
    pub current: Option<&'static str>,
    /// Writers' present speed limit in bytes per second, if any.
    pub rate_limit: Option<u64>,
}

/// Latencies of one kind of operation. Reads are sampled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LatencyMetrics {
    /// "get", "multi_get", "write", "seek".
    pub operation: &'static str,
    /// Operations measured.
    pub count: u64,
    /// Median.
    pub p50: Duration,
    /// 99th percentile.
    pub p99: Duration,
    /// 99.9th percentile.
    pub p999: Duration,
    /// Longest.
    pub max: Duration,
}

/// Memory in use, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryMetrics {
    /// The budget that was set.
    pub budget: u64,
    /// Active and immutable memtables.
    pub memtables: u64,
    /// Memtables that were flushed and that iterators still hold. They come on top of the budget.
    pub pinned_memtables: u64,
    /// Block cache.
    pub block_cache: u64,
    /// Record cache, with its index and the records that it let go of and that readers may still
    /// see.
    pub record_cache: u64,
    /// Large values, and blocks of them, that compactions, flushes and cursors have in memory. If
    /// they take more than the budget's part for buffers, the block cache does without the
    /// difference meanwhile.
    pub large_buffers: u64,
    /// Index and filter blocks held outside the cache, top-level indexes of all open tables among
    /// them.
    pub pinned: u64,
    /// Index and filter blocks of open tables that found no room outside the cache when they were
    /// last wanted, and all of a table's if one of them cannot be read. A lookup that misses them
    /// in the cache reads them first: more memory, or a smaller block cache, saves these reads.
    pub unpinned: u64,
}

/// The record cache.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordCacheMetrics {
    /// What it may take, in bytes.
    pub capacity_bytes: u64,
    /// What it takes, in bytes, everything counted.
    pub bytes: u64,
    /// Records in it.
    pub entries: u64,
    /// Point reads that it answered.
    pub hits: u64,
    /// Point reads that neither a memtable nor the record cache answered.
    pub misses: u64,
    /// Records taken in.
    pub fills: u64,
    /// Records that were to be taken in and were not: for want of room, because they may have been
    /// out of date, or because another read brought them at the same time.
    pub refused_fills: u64,
    /// Records taken out to make room for others.
    pub evictions: u64,
    /// Records that a flush replaced by their newest version.
    pub refreshes: u64,
    /// Records taken out because a delete, or a newer version that could not replace them, left the
    /// memtables, or with their keyspace.
    pub invalidations: u64,
}

/// All metrics of a store.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Metrics {
    /// Per tier, fastest first.
    pub tiers: Vec<TierMetrics>,
    /// Per level, L0 first.
    pub levels: Vec<LevelMetrics>,
    /// Per keyspace. [`crate::Db::metrics`] leaves it empty, as there may be thousands. To have the
    /// keyspaces in the exposition, put [`crate::Db::keyspace_metrics`], or a part of it, here.
    pub keyspaces: Vec<KeyspaceMetrics>,
    /// Where reads were answered.
    pub hits: HitMetrics,
    /// Per pair of levels that compacted.
    pub compactions: Vec<CompactionMetrics>,
    /// How many of the levels' [`raw_bytes`](LevelMetrics::raw_bytes) are live: those of the newest
    /// version of each key, unless it is a delete. Estimated from a sample of keys in each table,
    /// to some percent. Tables of builds that took no sample count in full. Memtables do not count.
    pub live_raw_bytes: u64,
    /// Bytes that compaction must still move to bring every level to its target.
    pub compaction_debt_bytes: u64,
    /// Processor time of background work, one entry for each activity.
    pub cpu: Vec<CpuMetrics>,
    /// Flushes finished.
    pub flushes: u64,
    /// Waits of writers.
    pub stalls: StallMetrics,
    /// Latencies by operation.
    pub latencies: Vec<LatencyMetrics>,
    /// Memory in use.
    pub memory: MemoryMetrics,
    /// Keys and values that writers handed in and that were committed, in bytes.
    pub user_write_bytes: u64,
    /// Records committed.
    pub user_writes: u64,
    /// The record cache; none if the store has none.
    pub record_cache: Option<RecordCacheMetrics>,
    /// Placement by hotness; none when records live by level.
    pub hotrap: Option<HotRapMetrics>,
    /// What the store costs, as [`crate::Db::cost`] has it but for the curve, which takes long
    /// where there are many tables. None if a tier has no price.
    pub cost: Option<CostReport>,
    /// Sequence numbers that readers hold: one for each snapshot and each range that is open, and
    /// each `multi_get` under way.
    pub snapshots: u64,
    /// The lowest of them.
    pub oldest_snapshot: Option<u64>,
    /// Last committed sequence number.
    pub last_seq: u64,
    /// Time since the oldest obsolete file that is still held became obsolete: its reader has held
    /// it for longer.
    pub oldest_pin: Option<Duration>,
    /// Why writes are refused or background work is held up, if so. None again once writes are
    /// accepted.
    pub background_error: Option<String>,
    /// Time since the store was opened.
    pub uptime: Duration,
}

impl Metrics {
    /// Bytes written to all devices, for whatever purpose, per byte that writers handed in.
    pub fn write_amplification(&self) -> f64 {
        let written: u64 = self.tiers.iter().map(TierMetrics::write_bytes).sum();
        ratio(written, self.user_write_bytes)
    }

    /// Bytes of all tables per byte of the live records in them, both before compression: what
    /// superseded records and deletes cost. About 1 for data that was only loaded, and infinite if
    /// nothing in the tables is live. Compression does not change it: that is in
    /// [`Metrics::compression_ratio`].
    pub fn space_amplification(&self) -> f64 {
        match (self.raw_bytes(), self.live_raw_bytes) {
            (0, _) => 1.0,
            (_, 0) => f64::INFINITY,
            (raw, live) => ratio(raw, live),
        }
    }

    /// Bytes of keys and values in all tables per byte of the tables. Indexes and filters count as
    /// bytes of the tables, so it may be below 1 without compression.
    pub fn compression_ratio(&self) -> f64 {
        match self.levels.iter().map(|level| level.bytes).sum() {
            0 => 1.0,
            bytes => ratio(self.raw_bytes(), bytes),
        }
    }

    pub(super) fn raw_bytes(&self) -> u64 {
        let levels = self.levels.iter().map(|level| level.raw_bytes);
        levels.fold(0, u64::saturating_add)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}
