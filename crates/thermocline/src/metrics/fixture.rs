//! Metrics in which every number differs, so that a test sees which field it reads.

use std::time::Duration;

use super::{Purpose, *};
use crate::options::Target;

fn tier(index: u64) -> TierMetrics {
    let base = (index + 1) * 1_000_000;
    TierMetrics {
        path: format!("/tier{index}").into(),
        capacity: if index == 0 { 1 << 30 } else { u64::MAX },
        price_per_gb_month: Some(0.25 / (index + 1) as f64),
        file_bytes: base + 1,
        reserved_bytes: base + 2,
        table_bytes: base + 3,
        pinned_obsolete_bytes: base + 4,
        copied_bytes: base + 5,
        io: Purpose::ALL
            .iter()
            .enumerate()
            .map(|(i, &purpose)| {
                let base = base + 100 + i as u64 * 10;
                IoMetrics {
                    purpose,
                    read_ops: base + 1,
                    read_bytes: base + 2,
                    write_ops: base + 3,
                    write_bytes: base + 4,
                }
            })
            .collect(),
    }
}

fn level(index: u64) -> LevelMetrics {
    let base = (index + 1) * 10_000;
    LevelMetrics {
        tables: base + 1,
        bytes: base + 2,
        raw_bytes: base + 7,
        // The last level has none.
        target_bytes: if index == 0 { base + 3 } else { u64::MAX },
        tier_bytes: vec![base + 4, base + 5],
        hits: base + 6,
    }
}

fn keyspace(name: &str, base: u64) -> KeyspaceMetrics {
    KeyspaceMetrics {
        name: name.to_owned(),
        memtable_bytes: base + 1,
        tables: base + 2,
        table_bytes: vec![base + 3, base + 4],
        records: base + 5,
        deletes: base + 6,
        hot_bytes: Some(base + 7),
    }
}

fn hotrap() -> HotRapMetrics {
    HotRapMetrics {
        ralt: RaltMetrics {
            hot_set_bytes: 1301,
            hot_set_limit_bytes: 1302,
            physical_bytes: 1303,
            physical_limit_bytes: 1304,
            memory_bytes: 1305,
            records: 1306,
            hot_threshold: 1307.5,
            evicted_threshold: 1308.5,
            is_young: true,
            is_generous: true,
            tick: 1309,
            accesses: 1310,
            dropped_accesses: 1311,
            evictions: 1312,
            cpu_seconds: 1313.5,
            read_bytes: 1314,
            write_bytes: 1315,
            trouble: Some("its manifest was damaged".to_owned()),
            has_stopped: true,
        },
        promotion_cache_bytes: 1401,
        promoted_flush_bytes: 1402,
        promoted_compaction_bytes: 1403,
        retained_bytes: 1404,
        bypassed_bytes: 1413,
        admission_attempts: 1405,
        admission_refused: Refusal::ALL.iter().copied().zip(1406..).collect(),
        dropped_cold: 1410,
        voided_flushes: 1411,
        crossings: 1412,
    }
}

fn cost() -> CostReport {
    CostReport {
        target: Target::Cost(0.3125),
        prices: vec![0.5, 0.125],
        budget: Some(0.2),
        hit_rate: Some(0.9),
        mean_latency: Some(std::time::Duration::from_micros(700)),
        now: 0.375,
        dollars_per_month: 18.02,
        data_bytes: 1803,
        floor: 0.125,
        ceiling: 0.5,
        moving_bytes: 1804,
        held_up_by: Some("readers hold it".to_owned()),
        curve: Vec::new(),
        fast_room_records_bytes: 1808,
        fast_room_tables_bytes: 1809,
        migrations: 1805,
        migrated_up_bytes: 1806,
        migrated_down_bytes: 1810,
        migrations_by_compaction: 1811,
        migrated_by_compaction_bytes: 1812,
    }
}

pub(super) fn metrics() -> Metrics {
    Metrics {
        tiers: vec![tier(0), tier(1)],
        levels: vec![level(0), level(1)],
        keyspaces: vec![
            keyspace("default", 1700),
            keyspace("the \"new\" one\nis C:\\new", 1710),
        ],
        hits: HitMetrics {
            gets: 501,
            memtable: 502,
            record_cache: 513,
            promotion_cache: 512,
            tier: vec![503, 504],
            absent: 505,
            without_device: 506,
            without_slow_device: 507,
            block_cache_hits: 508,
            block_cache_misses: 509,
            filter_skips: 510,
            filter_false_positives: 511,
            passed: 514,
        },
        compactions: vec![CompactionMetrics {
            from: 0,
            to: 1,
            jobs: 601,
            moves: 602,
            for_hidden: 608,
            for_small_tables: 609,
            read_bytes: vec![603, 604],
            write_bytes: vec![605, 606],
            seconds: 607.5,
        }],
        cpu: Activity::ALL
            .iter()
            .zip(1501..)
            .map(|(&activity, seconds)| CpuMetrics {
                activity,
                seconds: f64::from(seconds) + 0.5,
            })
            .collect(),
        live_raw_bytes: 15_007,
        compaction_debt_bytes: 701,
        flushes: 702,
        stalls: StallMetrics {
            slowed_seconds: 801.5,
            stopped_seconds: 802.5,
            longest_seconds: 803.5,
            by_reason: vec![("l0 tables", 804.5), ("fast tier full", 805.5)],
            current: Some("l0 tables"),
            rate_limit: Some(806),
        },
        latencies: vec![LatencyMetrics {
            operation: "get",
            count: 901,
            p50: Duration::from_millis(2),
            p99: Duration::from_millis(3),
            p999: Duration::from_millis(4),
            max: Duration::from_millis(5),
        }],
        memory: MemoryMetrics {
            budget: u64::MAX,
            memtables: 1102,
            pinned_memtables: 1107,
            block_cache: 1103,
            record_cache: 1105,
            large_buffers: 1108,
            pinned: 1104,
            unpinned: 1106,
        },
        user_write_bytes: 1201,
        user_writes: 1202,
        record_cache: Some(RecordCacheMetrics {
            capacity_bytes: 1601,
            bytes: 1602,
            entries: 1603,
            hits: 513,
            misses: 1604,
            fills: 1605,
            refused_fills: 1606,
            evictions: 1607,
            refreshes: 1609,
            invalidations: 1608,
        }),
        hotrap: Some(hotrap()),
        cost: Some(cost()),
        snapshots: 1203,
        oldest_snapshot: Some(1204),
        last_seq: 1205,
        oldest_pin: Some(Duration::from_secs(1206)),
        background_error: Some("a sync failed".to_owned()),
        uptime: Duration::from_secs(1207),
    }
}
