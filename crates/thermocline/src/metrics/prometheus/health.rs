//! Samples of what holds space, and of trouble.

use std::fmt;

use prometheus_client::registry::Unit;

use crate::metrics::Metrics;
use crate::metrics::exposition::Writer;

impl Writer<'_> {
    pub(super) fn health(&mut self, metrics: &Metrics) -> fmt::Result {
        let seconds = || Some(Unit::Seconds);
        self.one_gauge(
            "snapshots",
            None,
            "Snapshots and ranges open, and multi_gets under way",
            metrics.snapshots,
        )?;
        self.gauge(
            "oldest_snapshot_sequence",
            None,
            "Lowest sequence number that one of them reads at, absent when there is none",
            metrics.oldest_snapshot.map(|seq| (Vec::new(), seq)),
        )?;
        self.gauge(
            "oldest_pin",
            seconds(),
            "Time since the oldest obsolete file became so that is still held, absent when there is none",
            metrics
                .oldest_pin
                .map(|age| (Vec::new(), age.as_secs_f64())),
        )?;
        self.one_gauge(
            "background_error",
            None,
            "1 when writes are refused or background work is held up",
            u64::from(metrics.background_error.is_some()),
        )?;
        self.gauge(
            "background_error_info",
            None,
            "Why, absent when it is 0",
            metrics
                .background_error
                .as_ref()
                .map(|error| (vec![("error", error.clone())], 1u64)),
        )?;
        self.gauge(
            "uptime",
            seconds(),
            "Time since the store was opened",
            [(Vec::new(), metrics.uptime.as_secs_f64())],
        )
    }
}
