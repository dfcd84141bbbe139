//! `thermocline stats`.

use serde_json::{Value as Json, json};
use thermocline::metrics::{
    CompactionMetrics, HotRapMetrics, LatencyMetrics, LevelMetrics, Metrics, RecordCacheMetrics,
    TierMetrics,
};

use super::cost;
use crate::failure::Failure;
use crate::output::{self, Out};
use crate::store::StoreArgs;

/// Print sizes, levels and counters of a store
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline stats --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB
  thermocline stats --one-tier --fast /nvme/db --json | jq '.tiers[].file_bytes'
  thermocline stats --one-tier --fast /nvme/db --prometheus

The store is opened for this, so counters of reads, writes and waits start at zero: what
a running program counts, it gets from `Db::metrics`.")]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,

    /// Print the Prometheus exposition format
    #[arg(long, conflicts_with = "json")]
    prometheus: bool,

    /// Print JSON; sizes in bytes, times in seconds
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let db = args.store.open_to_read()?;
    let metrics = db.metrics();
    let mut out = Out::new();
    if args.json {
        out.pretty_json(&to_json(&metrics))?;
    } else if args.prometheus {
        out.raw(metrics.to_prometheus().as_bytes())?;
    } else {
        out.raw(metrics.to_text().as_bytes())?;
    }
    out.finish()?;
    Ok(db.close()?)
}

fn to_json(m: &Metrics) -> Json {
    json!({
        "uptime_seconds": m.uptime.as_secs_f64(),
        "last_seq": m.last_seq,
        "user_writes": m.user_writes,
        "user_write_bytes": m.user_write_bytes,
        "write_amplification": m.write_amplification(),
        "space_amplification": m.space_amplification(),
        "compression_ratio": m.compression_ratio(),
        "live_raw_bytes": m.live_raw_bytes,
        "snapshots": m.snapshots,
        "oldest_snapshot": m.oldest_snapshot,
        "oldest_pin_seconds": m.oldest_pin.map(|age| age.as_secs_f64()),
        "background_error": m.background_error,
        "tiers": m.tiers.iter().map(tier).collect::<Vec<_>>(),
        "levels": m.levels.iter().map(level).collect::<Vec<_>>(),
        "reads": {
            "all": m.hits.gets,
            "memtable": m.hits.memtable,
            "record_cache": m.hits.record_cache,
            "promotion_cache": m.hits.promotion_cache,
            "tier": m.hits.tier,
            "absent": m.hits.absent,
            "without_device": m.hits.without_device,
            "without_slow_device": m.hits.without_slow_device,
            "block_cache_hits": m.hits.block_cache_hits,
            "block_cache_misses": m.hits.block_cache_misses,
            "filter_skips": m.hits.filter_skips,
            "filter_false_positives": m.hits.filter_false_positives,
            "iterator_passed": m.hits.passed,
        },
        "record_cache": m.record_cache.as_ref().map(record_cache),
        "hotrap": m.hotrap.as_ref().map(hotrap),
        "cost": m.cost.as_ref().map(cost::figures),
        "background_cpu_seconds": m.cpu.iter()
            .map(|cpu| (cpu.activity.name().to_owned(), json!(cpu.seconds)))
            .collect::<serde_json::Map<_, _>>(),
        "flushes": m.flushes,
        "compaction_debt_bytes": m.compaction_debt_bytes,
        "compactions": m.compactions.iter().map(compaction).collect::<Vec<_>>(),
        "stalls": {
            "slowed_seconds": m.stalls.slowed_seconds,
            "stopped_seconds": m.stalls.stopped_seconds,
            "longest_seconds": m.stalls.longest_seconds,
            "by_reason": m.stalls.by_reason.iter()
                .map(|(reason, seconds)| ((*reason).to_owned(), json!(seconds)))
                .collect::<serde_json::Map<_, _>>(),
            "current": m.stalls.current,
            "rate_limit_bytes_per_second": m.stalls.rate_limit,
        },
        "latencies": m.latencies.iter().map(latency).collect::<Vec<_>>(),
        "memory": {
            "budget_bytes": m.memory.budget,
            "memtable_bytes": m.memory.memtables,
            "pinned_memtable_bytes": m.memory.pinned_memtables,
            "block_cache_bytes": m.memory.block_cache,
            "record_cache_bytes": m.memory.record_cache,
            "large_buffer_bytes": m.memory.large_buffers,
            "pinned_bytes": m.memory.pinned,
            "unpinned_bytes": m.memory.unpinned,
        },
    })
}

fn record_cache(cache: &RecordCacheMetrics) -> Json {
    json!({
        "capacity_bytes": cache.capacity_bytes,
        "bytes": cache.bytes,
        "entries": cache.entries,
        "hits": cache.hits,
        "misses": cache.misses,
        "fills": cache.fills,
        "refused_fills": cache.refused_fills,
        "evictions": cache.evictions,
        "refreshes": cache.refreshes,
        "invalidations": cache.invalidations,
    })
}

fn hotrap(hotrap: &HotRapMetrics) -> Json {
    let ralt = &hotrap.ralt;
    json!({
        "hot_set_bytes": ralt.hot_set_bytes,
        "hot_set_limit_bytes": ralt.hot_set_limit_bytes,
        "hot_threshold": ralt.hot_threshold,
        "evicted_threshold": ralt.evicted_threshold,
        "ralt": {
            "bytes": ralt.physical_bytes,
            "limit_bytes": ralt.physical_limit_bytes,
            "memory_bytes": ralt.memory_bytes,
            "records": ralt.records,
            "young": ralt.is_young,
            "generous": ralt.is_generous,
            "slice": ralt.tick,
            "accesses": ralt.accesses,
            "dropped_accesses": ralt.dropped_accesses,
            "evictions": ralt.evictions,
            "cpu_seconds": ralt.cpu_seconds,
            "read_bytes": ralt.read_bytes,
            "write_bytes": ralt.write_bytes,
            "trouble": ralt.trouble,
            "has_stopped": ralt.has_stopped,
        },
        "promotion_cache_bytes": hotrap.promotion_cache_bytes,
        "promoted_flush_bytes": hotrap.promoted_flush_bytes,
        "promoted_compaction_bytes": hotrap.promoted_compaction_bytes,
        "retained_bytes": hotrap.retained_bytes,
        "bypassed_bytes": hotrap.bypassed_bytes,
        "admission_attempts": hotrap.admission_attempts,
        "admission_refused": hotrap.admission_refused.iter()
            .map(|(reason, count)| (reason.name().to_owned(), json!(count)))
            .collect::<serde_json::Map<_, _>>(),
        "dropped_cold": hotrap.dropped_cold,
        "voided_flushes": hotrap.voided_flushes,
        "crossings": hotrap.crossings,
    })
}

fn tier(tier: &TierMetrics) -> Json {
    let io = tier.io.iter().map(|io| {
        let counts = json!({
            "read_ops": io.read_ops,
            "read_bytes": io.read_bytes,
            "write_ops": io.write_ops,
            "write_bytes": io.write_bytes,
        });
        (io.purpose.name().to_owned(), counts)
    });
    json!({
        "path": output::path(&tier.path),
        "capacity": (tier.capacity != u64::MAX).then_some(tier.capacity),
        "price_per_gb_month": tier.price_per_gb_month,
        "file_bytes": tier.file_bytes,
        "reserved_bytes": tier.reserved_bytes,
        "table_bytes": tier.table_bytes,
        "pinned_obsolete_bytes": tier.pinned_obsolete_bytes,
        "copied_bytes": tier.copied_bytes,
        "io": io.collect::<serde_json::Map<_, _>>(),
    })
}

fn level(level: &LevelMetrics) -> Json {
    json!({
        "tables": level.tables,
        "bytes": level.bytes,
        "raw_bytes": level.raw_bytes,
        "target_bytes": (level.target_bytes != u64::MAX).then_some(level.target_bytes),
        "tier_bytes": level.tier_bytes,
        "hits": level.hits,
    })
}

fn compaction(job: &CompactionMetrics) -> Json {
    json!({
        "from": job.from,
        "to": job.to,
        "jobs": job.jobs,
        "moves": job.moves,
        "for_hidden": job.for_hidden,
        "for_small_tables": job.for_small_tables,
        "read_bytes": job.read_bytes,
        "write_bytes": job.write_bytes,
        "seconds": job.seconds,
    })
}

fn latency(latency: &LatencyMetrics) -> Json {
    json!({
        "operation": latency.operation,
        "count": latency.count,
        "p50_seconds": latency.p50.as_secs_f64(),
        "p99_seconds": latency.p99.as_secs_f64(),
        "p999_seconds": latency.p999.as_secs_f64(),
        "max_seconds": latency.max.as_secs_f64(),
    })
}
