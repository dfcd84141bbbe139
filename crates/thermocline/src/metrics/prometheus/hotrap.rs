//! Samples of placement by hotness.

use std::fmt;

use prometheus_client::registry::Unit;

use crate::metrics::exposition::{Label, Writer};
use crate::metrics::{HotRapMetrics, RaltMetrics};

fn label(name: &'static str, value: &str) -> Vec<Label> {
    vec![(name, value.to_owned())]
}

impl Writer<'_> {
    pub(super) fn hotrap(&mut self, hotrap: &HotRapMetrics) -> fmt::Result {
        let bytes = || Some(Unit::Bytes);
        self.ralt(&hotrap.ralt)?;
        self.one_gauge(
            "promotion_cache",
            bytes(),
            "Records in memory that wait for their promotion",
            hotrap.promotion_cache_bytes,
        )?;
        self.counter(
            "promoted",
            bytes(),
            "Bytes of records brought up to the fast tier",
            [
                (label("by", "flush"), hotrap.promoted_flush_bytes),
                (label("by", "compaction"), hotrap.promoted_compaction_bytes),
            ],
        )?;
        self.counter(
            "retained",
            bytes(),
            "Bytes of records that compactions kept on the fast tier",
            [(Vec::new(), hotrap.retained_bytes)],
        )?;
        self.counter(
            "bypassed",
            bytes(),
            "Bytes of records that compactions sent past the last fast level",
            [(Vec::new(), hotrap.bypassed_bytes)],
        )?;
        self.one_counter(
            "admission_attempts",
            "Records offered to the promotion cache",
            hotrap.admission_attempts,
        )?;
        self.counter(
            "admission_refused",
            None,
            "Records that the promotion cache did not take",
            hotrap
                .admission_refused
                .iter()
                .map(|(reason, count)| (label("reason", reason.name()), *count)),
        )?;
        self.one_counter(
            "promotion_dropped_cold",
            "Records that left the promotion cache because they were not hot",
            hotrap.dropped_cold,
        )?;
        self.one_counter(
            "promotion_voided_flushes",
            "Promotions by flush that a compaction had overtaken",
            hotrap.voided_flushes,
        )?;
        self.one_gauge(
            "crossings",
            None,
            "Compactions to the slow tier under way",
            hotrap.crossings,
        )
    }

    fn ralt(&mut self, ralt: &RaltMetrics) -> fmt::Result {
        let bytes = || Some(Unit::Bytes);
        for (name, unit, help, value) in [
            (
                "hot_set",
                bytes(),
                "Keys and values that are hot",
                ralt.hot_set_bytes,
            ),
            (
                "hot_set_limit",
                bytes(),
                "What the hot set is kept below",
                ralt.hot_set_limit_bytes,
            ),
            (
                "ralt_table",
                bytes(),
                "Access records on the fast tier",
                ralt.physical_bytes,
            ),
            (
                "ralt_table_limit",
                bytes(),
                "What the access records are kept below",
                ralt.physical_limit_bytes,
            ),
            (
                "ralt_memory",
                bytes(),
                "Memory for access records",
                ralt.memory_bytes,
            ),
            (
                "ralt_records",
                None,
                "Access records in tables",
                ralt.records,
            ),
            (
                "ralt_young",
                None,
                "1 while nothing was ever evicted",
                u64::from(ralt.is_young),
            ),
            (
                "ralt_generous",
                None,
                "1 while every record that is read counts as hot",
                u64::from(ralt.is_generous),
            ),
            (
                "ralt_trouble",
                None,
                "1 when access records are not written any more",
                u64::from(ralt.has_stopped),
            ),
        ] {
            self.one_gauge(name, unit, help, value)?;
        }
        for (name, help, value) in [
            (
                "ralt_hot_threshold",
                "Score from which on a record is hot",
                ralt.hot_threshold,
            ),
            (
                "ralt_evicted_threshold",
                "Score below which records were forgotten",
                ralt.evicted_threshold,
            ),
        ] {
            self.gauge(name, None, help, [(Vec::new(), value)])?;
        }
        for (name, unit, help, value) in [
            ("ralt_slices", None, "Time slices passed", ralt.tick),
            (
                "ralt_accesses",
                None,
                "Accesses to records, those that were not logged included",
                ralt.accesses,
            ),
            (
                "ralt_dropped_accesses",
                None,
                "Accesses that were not logged",
                ralt.dropped_accesses,
            ),
            (
                "ralt_evictions",
                None,
                "Evictions of access records",
                ralt.evictions,
            ),
            (
                "ralt_read",
                bytes(),
                "Bytes read for access records",
                ralt.read_bytes,
            ),
            (
                "ralt_written",
                bytes(),
                "Bytes written for access records",
                ralt.write_bytes,
            ),
        ] {
            self.counter(name, unit, help, [(Vec::new(), value)])?;
        }
        self.counter(
            "ralt_cpu",
            Some(Unit::Seconds),
            "Processor time of the work on access records",
            [(Vec::new(), ralt.cpu_seconds)],
        )
    }
}
