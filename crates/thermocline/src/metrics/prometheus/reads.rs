//! Samples of where reads are answered, and of latencies.

use std::fmt;

use prometheus_client::registry::Unit;

use crate::metrics::exposition::{Label, Writer, per_tier};
use crate::metrics::{Metrics, RecordCacheMetrics};

impl Writer<'_> {
    pub(super) fn hits(&mut self, metrics: &Metrics) -> fmt::Result {
        let hits = &metrics.hits;
        self.one_counter("reads", "Point reads", hits.gets)?;
        self.one_counter(
            "memtable_hits",
            "Point reads answered by a memtable",
            hits.memtable,
        )?;
        self.one_counter(
            "record_cache_hits",
            "Point reads answered by the record cache",
            hits.record_cache,
        )?;
        self.one_counter(
            "promotion_cache_hits",
            "Point reads answered by the promotion cache",
            hits.promotion_cache,
        )?;
        self.counter(
            "tier_hits",
            None,
            "Point reads answered by a table of a tier",
            per_tier(Vec::new(), &hits.tier),
        )?;
        self.one_counter(
            "absent_reads",
            "Point reads of keys that do not exist",
            hits.absent,
        )?;
        self.one_counter(
            "reads_without_device",
            "Point reads answered from memory",
            hits.without_device,
        )?;
        self.one_counter(
            "reads_without_slow_device",
            "Point reads answered without a device slower than the first tier",
            hits.without_slow_device,
        )?;
        self.one_counter(
            "block_cache_hits",
            "Blocks found in the cache",
            hits.block_cache_hits,
        )?;
        self.one_counter(
            "block_cache_misses",
            "Blocks not found in the cache",
            hits.block_cache_misses,
        )?;
        self.one_counter(
            "filter_skips",
            "Tables a filter excluded",
            hits.filter_skips,
        )?;
        self.one_counter(
            "filter_false_positives",
            "Tables a filter let pass in vain",
            hits.filter_false_positives,
        )?;
        self.one_counter(
            "iterator_passed",
            "Deletes and hidden versions that iterators passed",
            hits.passed,
        )
    }

    pub(super) fn record_cache(&mut self, cache: &RecordCacheMetrics) -> fmt::Result {
        for (name, unit, help, value) in [
            (
                "record_cache_limit",
                Some(Unit::Bytes),
                "What the record cache may take",
                cache.capacity_bytes,
            ),
            (
                "record_cache_entries",
                None,
                "Records in the record cache",
                cache.entries,
            ),
        ] {
            self.one_gauge(name, unit, help, value)?;
        }
        for (name, help, value) in [
            (
                "record_cache_misses",
                "Point reads that neither a memtable nor the record cache answered",
                cache.misses,
            ),
            (
                "record_cache_fills",
                "Records that the record cache took in",
                cache.fills,
            ),
            (
                "record_cache_refused_fills",
                "Records that the record cache was to take in and did not",
                cache.refused_fills,
            ),
            (
                "record_cache_evictions",
                "Records that left the record cache for others",
                cache.evictions,
            ),
            (
                "record_cache_refreshes",
                "Records that a flush replaced by their newest version",
                cache.refreshes,
            ),
            (
                "record_cache_invalidations",
                "Records that left the record cache for a newer version",
                cache.invalidations,
            ),
        ] {
            self.one_counter(name, help, value)?;
        }
        Ok(())
    }

    pub(super) fn latencies(&mut self, metrics: &Metrics) -> fmt::Result {
        let operation = |name: &str| -> Label { ("operation", name.to_owned()) };
        self.counter(
            "measured_operations",
            None,
            "Operations whose latency was measured",
            metrics
                .latencies
                .iter()
                .map(|l| (vec![operation(l.operation)], l.count)),
        )?;
        self.gauge(
            "latency",
            Some(Unit::Seconds),
            "Latency since the store was opened; quantile 1 is the longest",
            metrics.latencies.iter().flat_map(|l| {
                [
                    ("0.5", l.p50),
                    ("0.99", l.p99),
                    ("0.999", l.p999),
                    ("1", l.max),
                ]
                .map(|(quantile, time)| {
                    let quantile = ("quantile", quantile.to_owned());
                    (vec![operation(l.operation), quantile], time.as_secs_f64())
                })
            }),
        )
    }
}
