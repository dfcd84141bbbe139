//! The engine's metrics as the counters of a benchmark.

use thermocline::Purpose;
use thermocline::metrics::{CompactionMetrics, CostReport, HotRapMetrics, Metrics, TierMetrics};

use crate::accounts::{Activity, ByActivity, ByDisk, Io};
use crate::compactions::LevelCompactions;
use crate::counters::{CostCounters, Counters, HotCounters, RecordCacheCounters, TierCounters};

/// The counters that a benchmark makes of the store's metrics.
pub(super) fn of(metrics: &Metrics) -> Counters {
    let fast = metrics.tiers.first();
    // A store without a slow tier reads nothing from it. That is not the same as unknown.
    let slow_tiers = metrics.tiers.get(1..).unwrap_or_default();
    let slow = |value: fn(&TierMetrics) -> u64| Some(slow_tiers.iter().map(value).sum());
    let compactions = |bytes: fn(&CompactionMetrics) -> &[u64]| {
        let jobs = metrics.compactions.iter();
        Some(jobs.flat_map(bytes).sum())
    };
    Counters {
        gets: Some(metrics.hits.gets),
        gets_without_slow: Some(metrics.hits.without_slow_device),
        gets_without_device: Some(metrics.hits.without_device),
        fd_bytes: fast.map(|tier| tier.file_bytes),
        sd_bytes: slow(|tier| tier.file_bytes),
        fd_read_bytes: fast.map(TierMetrics::read_bytes),
        fd_write_bytes: fast.map(TierMetrics::write_bytes),
        sd_read_bytes: slow(TierMetrics::read_bytes),
        sd_read_ops: slow(TierMetrics::read_ops),
        sd_write_bytes: slow(TierMetrics::write_bytes),
        written_bytes: Some(metrics.tiers.iter().map(TierMetrics::write_bytes).sum()),
        user_write_bytes: Some(metrics.user_write_bytes),
        compaction_read_bytes: compactions(|job| &job.read_bytes),
        compaction_write_bytes: compactions(|job| &job.write_bytes),
        compactions: Some(metrics.compactions.iter().map(level_compactions).collect()),
        cpu: Some(cpu(metrics)),
        silent_threads: false,
        io: Some(ByDisk {
            fast: io(fast),
            slow: io(slow_tiers),
        }),
        tiers: Some(metrics.tiers.iter().map(tier).collect()),
        record_cache: metrics.record_cache.as_ref().map(record_cache),
        hotness: metrics.hotrap.as_ref().map(hotness),
        // Is asked for apart, if there are prices.
        cost: None,
        stall_seconds: Some(metrics.stalls.slowed_seconds + metrics.stalls.stopped_seconds),
        stall_by_reason: Some(metrics.stalls.by_reason.iter().copied().collect()),
    }
}

/// What the store says it costs.
pub(super) fn cost(report: CostReport, by_hotness: bool) -> CostCounters {
    // Placements that have no tables to move know no bounds.
    let known = |dollars: f64| Some(dollars).filter(|dollars| *dollars > 0.0);
    CostCounters {
        dollars: report.dollars_per_month,
        by_tables: report.now,
        floor: known(report.floor),
        ceiling: known(report.ceiling),
        moving_bytes: report.moving_bytes,
        migrations: report.migrations,
        up_bytes: report.migrated_up_bytes,
        down_bytes: report.migrated_down_bytes,
        by_compaction: report.migrations_by_compaction,
        records_bytes: by_hotness.then_some(report.fast_room_records_bytes),
        copies_bytes: by_hotness.then_some(report.fast_room_tables_bytes),
        held_up_by: report.held_up_by,
    }
}

fn record_cache(cache: &thermocline::metrics::RecordCacheMetrics) -> RecordCacheCounters {
    RecordCacheCounters {
        capacity_bytes: cache.capacity_bytes,
        bytes: cache.bytes,
        entries: cache.entries,
        hits: cache.hits,
        misses: cache.misses,
        fills: cache.fills,
        refused_fills: cache.refused_fills,
        evictions: cache.evictions,
        refreshes: cache.refreshes,
        invalidations: cache.invalidations,
    }
}

fn level_compactions(jobs: &CompactionMetrics) -> LevelCompactions {
    LevelCompactions {
        from: jobs.from,
        to: jobs.to,
        jobs: jobs.jobs,
        moves: jobs.moves,
        read_bytes: jobs.read_bytes.iter().sum(),
        write_bytes: jobs.write_bytes.iter().sum(),
        seconds: jobs.seconds,
    }
}

fn cpu(metrics: &Metrics) -> ByActivity<f64> {
    let mut cpu = ByActivity::default();
    for spent in &metrics.cpu {
        let activity = match spent.activity {
            thermocline::metrics::Activity::Flush => Activity::Flush,
            thermocline::metrics::Activity::Compaction => Activity::Compaction,
            thermocline::metrics::Activity::Promotion => Activity::Promotion,
            thermocline::metrics::Activity::Ralt => Activity::Ralt,
            thermocline::metrics::Activity::Placement => Activity::Placement,
            _ => Activity::Other,
        };
        cpu.add(activity, spent.seconds);
    }
    cpu
}

fn tier(tier: &TierMetrics) -> TierCounters {
    TierCounters {
        bytes: tier.file_bytes,
        io: io([tier]),
    }
}

/// The I/O of some tiers together.
fn io<'a>(tiers: impl IntoIterator<Item = &'a TierMetrics>) -> ByActivity<Io> {
    let mut by_activity = ByActivity::default();
    for io in tiers.into_iter().flat_map(|tier| &tier.io) {
        let activity = match io.purpose {
            Purpose::Wal => Activity::Write,
            // The cache exists for reads, and reads fill it.
            Purpose::UserRead | Purpose::FlashCache => Activity::Read,
            Purpose::Flush | Purpose::Ingest => Activity::Flush,
            Purpose::Compaction => Activity::Compaction,
            Purpose::Promotion | Purpose::Copy => Activity::Promotion,
            Purpose::Hotness => Activity::Ralt,
            Purpose::Migration => Activity::Placement,
            // The manifest, opening, maintenance.
            _ => Activity::Other,
        };
        let io = Io {
            read_ops: io.read_ops,
            read_bytes: io.read_bytes,
            write_ops: io.write_ops,
            write_bytes: io.write_bytes,
        };
        by_activity.add(activity, io);
    }
    by_activity
}

fn hotness(hotrap: &HotRapMetrics) -> HotCounters {
    let ralt = &hotrap.ralt;
    HotCounters {
        hot_set_bytes: ralt.hot_set_bytes,
        hot_set_limit_bytes: ralt.hot_set_limit_bytes,
        ralt_bytes: ralt.physical_bytes,
        ralt_limit_bytes: ralt.physical_limit_bytes,
        ralt_memory_bytes: ralt.memory_bytes,
        ralt_cpu_seconds: ralt.cpu_seconds,
        ralt_read_bytes: ralt.read_bytes,
        ralt_write_bytes: ralt.write_bytes,
        promoted_flush_bytes: hotrap.promoted_flush_bytes,
        promoted_compaction_bytes: hotrap.promoted_compaction_bytes,
        retained_bytes: hotrap.retained_bytes,
        admission_attempts: hotrap.admission_attempts,
        admission_refused: hotrap.refused(),
    }
}

#[cfg(test)]
mod tests {
    use thermocline::metrics::{RecordCacheMetrics, Refusal};

    use super::*;

    /// The default, but for what `fill` fills in: from outside their crate, metrics cannot be
    /// written down whole.
    fn made<T: Default>(fill: impl FnOnce(&mut T)) -> T {
        let mut made = T::default();
        fill(&mut made);
        made
    }

    /// No test noticed when two numbers of one kind were swapped, and tables compare what is
    /// promoted by flush with what is promoted by compaction.
    #[test]
    fn each_number_of_placement_by_hotness_is_its_own() {
        let hotrap = made(|hotrap: &mut HotRapMetrics| {
            let ralt = &mut hotrap.ralt;
            (ralt.hot_set_bytes, ralt.hot_set_limit_bytes) = (1, 2);
            (ralt.physical_bytes, ralt.physical_limit_bytes) = (3, 4);
            (ralt.memory_bytes, ralt.cpu_seconds) = (5, 6.5);
            (ralt.read_bytes, ralt.write_bytes) = (7, 8);
            (
                hotrap.promoted_flush_bytes,
                hotrap.promoted_compaction_bytes,
            ) = (9, 10);
            (hotrap.retained_bytes, hotrap.admission_attempts) = (11, 12);
            hotrap.admission_refused = vec![(Refusal::Full, 13), (Refusal::Claimed, 100)];
        });
        let wanted = HotCounters {
            hot_set_bytes: 1,
            hot_set_limit_bytes: 2,
            ralt_bytes: 3,
            ralt_limit_bytes: 4,
            ralt_memory_bytes: 5,
            ralt_cpu_seconds: 6.5,
            ralt_read_bytes: 7,
            ralt_write_bytes: 8,
            promoted_flush_bytes: 9,
            promoted_compaction_bytes: 10,
            retained_bytes: 11,
            admission_attempts: 12,
            admission_refused: 113,
        };
        assert_eq!(hotness(&hotrap), wanted);
    }

    #[test]
    fn each_number_of_the_cost_is_its_own() {
        let report = |floor: f64| {
            made(|report: &mut CostReport| {
                (report.now, report.dollars_per_month) = (1.5, 2.5);
                (report.floor, report.ceiling) = (floor, floor * 2.0);
                (report.moving_bytes, report.migrations) = (5, 6);
                (report.migrated_up_bytes, report.migrated_down_bytes) = (7, 8);
                report.fast_room_records_bytes = 9;
                report.fast_room_tables_bytes = 10;
                report.migrations_by_compaction = 11;
                report.held_up_by = Some("it".to_owned());
            })
        };
        let wanted = CostCounters {
            dollars: 2.5,
            by_tables: 1.5,
            floor: Some(3.5),
            ceiling: Some(7.0),
            moving_bytes: 5,
            migrations: 6,
            up_bytes: 7,
            down_bytes: 8,
            by_compaction: 11,
            records_bytes: Some(9),
            copies_bytes: Some(10),
            held_up_by: Some("it".to_owned()),
        };
        assert_eq!(cost(report(3.5), true), wanted);
        let no_bounds = cost(report(0.0), false);
        assert_eq!(
            (no_bounds.records_bytes, no_bounds.copies_bytes),
            (None, None)
        );
        assert_eq!((no_bounds.floor, no_bounds.ceiling), (None, None));
    }

    #[test]
    fn each_number_of_reads_caches_and_compactions_is_its_own() {
        let counters = of(&made(|metrics: &mut Metrics| {
            let hits = &mut metrics.hits;
            (hits.gets, hits.without_slow_device, hits.without_device) = (1, 2, 3);
            metrics.compactions.push(made(|of: &mut CompactionMetrics| {
                (of.from, of.to, of.jobs, of.moves) = (4, 5, 6, 7);
                (of.read_bytes, of.write_bytes) = (vec![8, 100], vec![9, 200]);
                of.seconds = 10.5;
            }));
            metrics.record_cache = Some(made(|cache: &mut RecordCacheMetrics| {
                (cache.capacity_bytes, cache.bytes, cache.entries) = (11, 12, 13);
                (cache.hits, cache.misses, cache.fills) = (14, 15, 16);
                (cache.refused_fills, cache.evictions, cache.invalidations) = (17, 18, 19);
                cache.refreshes = 25;
            }));
            let stalls = &mut metrics.stalls;
            (stalls.slowed_seconds, stalls.stopped_seconds) = (20.0, 21.0);
            stalls.by_reason = vec![("l0 tables", 22.0), ("memtables", 23.0)];
            metrics.user_write_bytes = 24;
        }));
        let gets = [
            counters.gets,
            counters.gets_without_slow,
            counters.gets_without_device,
        ];
        assert_eq!(gets, [Some(1), Some(2), Some(3)]);
        let bytes = [
            counters.compaction_read_bytes,
            counters.compaction_write_bytes,
            counters.user_write_bytes,
        ];
        assert_eq!(bytes, [Some(108), Some(209), Some(24)]);
        let compactions = LevelCompactions {
            from: 4,
            to: 5,
            jobs: 6,
            moves: 7,
            read_bytes: 108,
            write_bytes: 209,
            seconds: 10.5,
        };
        assert_eq!(counters.compactions, Some(vec![compactions]));
        let record_cache = RecordCacheCounters {
            capacity_bytes: 11,
            bytes: 12,
            entries: 13,
            hits: 14,
            misses: 15,
            fills: 16,
            refused_fills: 17,
            evictions: 18,
            refreshes: 25,
            invalidations: 19,
        };
        assert_eq!(counters.record_cache, Some(record_cache));
        assert_eq!(counters.stall_seconds, Some(41.0));
        let by_reason = [("l0 tables", 22.0), ("memtables", 23.0)];
        assert_eq!(counters.stall_by_reason, Some(by_reason.into()));
    }
}
