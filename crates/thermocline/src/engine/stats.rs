//! Counters of reads, writes and compactions, spread so that threads do not share them.

use std::collections::BTreeMap;
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::metrics::{CompactionMetrics, HitMetrics, LatencyRecorder};
use crate::options::MAX_TIERS;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::table::ReadTrace;
use crate::version::MAX_LEVELS;

const SHARDS: usize = 16;

/// One read in this many has its latency measured.
const SAMPLE: u32 = 16;

/// Where a point read found its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Memtable,
    RecordCache,
    PromotionCache,
    Table { level: u8, tier: u8 },
    Nowhere,
}

#[derive(Debug, Default)]
struct ReadShard {
    /// Reads that asked whether to be measured.
    begun: AtomicU32,
    memtable: AtomicU64,
    record_cache: AtomicU64,
    promotion_cache: AtomicU64,
    nowhere: AtomicU64,
    passed: AtomicU64,
    levels: [AtomicU64; MAX_LEVELS],
    tiers: [AtomicU64; MAX_TIERS],
    without_device: AtomicU64,
    without_slow_device: AtomicU64,
    cache_hits: AtomicU64,
    cache_misses: AtomicU64,
    filter_skips: AtomicU64,
    filter_false_positives: AtomicU64,
}

/// What a store counts beside its tiers' I/O.
#[derive(Debug)]
pub(crate) struct Stats {
    reads: [CachePadded<ReadShard>; SHARDS],
    writes: AtomicU64,
    write_bytes: AtomicU64,
    flushes: AtomicU64,
    compactions: Mutex<BTreeMap<(u8, u8), CompactionMetrics>>,
    /// Of measured point reads, by the slowest tier whose device they needed.
    get_times: [GetTime; MAX_TIERS],
    pub(crate) get_latency: LatencyRecorder,
    pub(crate) multi_get_latency: LatencyRecorder,
    pub(crate) write_latency: LatencyRecorder,
    pub(crate) seek_latency: LatencyRecorder,
}

impl Default for Stats {
    fn default() -> Self {
        Self {
            reads: Default::default(),
            writes: AtomicU64::new(0),
            write_bytes: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            compactions: Mutex::default(),
            get_times: Default::default(),
            get_latency: LatencyRecorder::new("get"),
            multi_get_latency: LatencyRecorder::new("multi_get"),
            write_latency: LatencyRecorder::new("write"),
            seek_latency: LatencyRecorder::new("seek"),
        }
    }
}

#[derive(Debug, Default)]
struct GetTime {
    reads: AtomicU64,
    nanos: AtomicU64,
}

fn shard() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    thread_local! {
        static MINE: usize = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % SHARDS;
    }
    MINE.with(|mine| *mine)
}

impl Stats {
    /// Whether this read's latency is to be measured. Each store counts by itself, so that what
    /// follows from it does not depend on other stores.
    pub(crate) fn sampled(&self) -> bool {
        let begun = &self.reads[shard()].begun;
        let next = begun.load(Ordering::Relaxed).wrapping_add(1);
        // Threads that share it may lose a count: it only spreads the samples.
        begun.store(next, Ordering::Relaxed);
        next.is_multiple_of(SAMPLE)
    }

    /// Takes note that a point read took so long, and `trace`.
    pub(crate) fn time_get(&self, took: Duration, trace: &ReadTrace) {
        self.get_latency.record(took);
        let slowest = trace.device_reads.iter().rposition(|reads| *reads > 0);
        let time = &self.get_times[slowest.unwrap_or(0)];
        time.reads.fetch_add(1, Ordering::Relaxed);
        let nanos = took.as_nanos() as u64;
        time.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// How many point reads were measured, and the nanoseconds that they took, by the slowest tier
    /// whose device they needed. Those that needed none count for the first.
    pub(crate) fn get_times(&self) -> [(u64, u64); MAX_TIERS] {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        std::array::from_fn(|tier| {
            let time = &self.get_times[tier];
            (get(&time.reads), get(&time.nanos))
        })
    }

    /// Counts a point read that took `trace` to find `found`.
    pub(crate) fn count_read(&self, found: Found, trace: &ReadTrace) {
        let shard = &self.reads[shard()];
        let add = |counter: &AtomicU64, n: u32| {
            if n > 0 {
                counter.fetch_add(u64::from(n), Ordering::Relaxed);
            }
        };
        match found {
            Found::Memtable => add(&shard.memtable, 1),
            Found::RecordCache => add(&shard.record_cache, 1),
            Found::PromotionCache => add(&shard.promotion_cache, 1),
            Found::Nowhere => add(&shard.nowhere, 1),
            Found::Table { level, tier } => {
                add(&shard.levels[usize::from(level)], 1);
                add(&shard.tiers[usize::from(tier)], 1);
            }
        }
        let slow: u32 = trace.device_reads[1..].iter().sum();
        add(&shard.without_slow_device, u32::from(slow == 0));
        add(
            &shard.without_device,
            u32::from(slow + trace.device_reads[0] == 0),
        );
        add(&shard.cache_hits, trace.cache_hits);
        add(&shard.cache_misses, trace.cache_misses);
        add(&shard.filter_skips, trace.filter_skips);
        add(&shard.filter_false_positives, trace.filter_false_positives);
    }

    /// Counts committed records, and the bytes of their keys and values.
    pub(crate) fn count_write(&self, records: u64, bytes: u64) {
        self.writes.fetch_add(records, Ordering::Relaxed);
        self.write_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn count_flush(&self) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts entries that an iterator passed without returning them.
    pub(crate) fn count_passed(&self, entries: u64) {
        let passed = &self.reads[shard()].passed;
        passed.fetch_add(entries, Ordering::Relaxed);
    }

    /// Adds a finished job to the totals of its pair of levels.
    pub(crate) fn count_compaction(&self, job: &CompactionMetrics) {
        let mut compactions = self.compactions.lock();
        let total = compactions.entry((job.from, job.to)).or_default();
        (total.from, total.to) = (job.from, job.to);
        total.jobs += job.jobs;
        total.moves += job.moves;
        total.for_hidden += job.for_hidden;
        total.for_small_tables += job.for_small_tables;
        total.seconds += job.seconds;
        add_each(&mut total.read_bytes, &job.read_bytes);
        add_each(&mut total.write_bytes, &job.write_bytes);
    }

    pub(crate) fn compactions(&self) -> Vec<CompactionMetrics> {
        self.compactions.lock().values().cloned().collect()
    }

    /// Records written, their bytes, and flushes.
    pub(crate) fn totals(&self) -> (u64, u64, u64) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (
            get(&self.writes),
            get(&self.write_bytes),
            get(&self.flushes),
        )
    }

    /// Sum over threads, and hits by level.
    pub(crate) fn hits(&self, tiers: usize) -> (HitMetrics, [u64; MAX_LEVELS]) {
        let mut hits = HitMetrics {
            tier: vec![0; tiers],
            ..HitMetrics::default()
        };
        let mut levels = [0; MAX_LEVELS];
        for shard in &self.reads {
            let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            hits.memtable += get(&shard.memtable);
            hits.record_cache += get(&shard.record_cache);
            hits.promotion_cache += get(&shard.promotion_cache);
            hits.absent += get(&shard.nowhere);
            hits.passed += get(&shard.passed);
            hits.without_device += get(&shard.without_device);
            hits.without_slow_device += get(&shard.without_slow_device);
            hits.block_cache_hits += get(&shard.cache_hits);
            hits.block_cache_misses += get(&shard.cache_misses);
            hits.filter_skips += get(&shard.filter_skips);
            hits.filter_false_positives += get(&shard.filter_false_positives);
            for (total, tier) in hits.tier.iter_mut().zip(&shard.tiers) {
                *total += get(tier);
            }
            for (total, level) in levels.iter_mut().zip(&shard.levels) {
                *total += get(level);
            }
        }
        let below = hits.promotion_cache + hits.absent + hits.tier.iter().sum::<u64>();
        hits.gets = hits.memtable + hits.record_cache + below;
        (hits, levels)
    }
}

fn add_each(total: &mut Vec<u64>, more: &[u64]) {
    if total.len() < more.len() {
        total.resize(more.len(), 0);
    }
    for (total, more) in total.iter_mut().zip(more) {
        *total += more;
    }
}
