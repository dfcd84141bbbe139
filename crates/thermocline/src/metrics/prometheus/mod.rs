//! Prometheus exposition of the metrics.

mod cost;
mod health;
mod hotrap;
mod keyspaces;
mod reads;
mod tiers;
mod writes;

#[cfg(test)]
mod tests;

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::registry::Registry;

use super::Metrics;
use super::exposition::Writer;

impl Metrics {
    /// The metrics in the text format that Prometheus scrapes: names start with
    /// `thermocline_`, sizes are in bytes and times in seconds.
    ///
    /// Its content type is `application/openmetrics-text; version=1.0.0; charset=utf-8`. It may be
    /// served, or be put into a file, as the older `text/plain; version=0.0.4` too.
    ///
    /// ```
    /// let text = thermocline::metrics::Metrics::default().to_prometheus();
    /// assert!(text.contains("# TYPE thermocline_reads counter"));
    /// ```
    pub fn to_prometheus(&self) -> String {
        let mut registry = Registry::with_prefix("thermocline");
        registry.register_collector(Box::new(Exposition(self.clone())));
        let mut out = String::new();
        text::encode(&mut out, &registry).expect("writing into a string does not fail");
        out
    }
}

#[derive(Debug)]
struct Exposition(Metrics);

impl Collector for Exposition {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Writer(encoder);
        let metrics = &self.0;
        out.tiers(metrics)?;
        out.levels(metrics)?;
        if !metrics.keyspaces.is_empty() {
            out.keyspaces(&metrics.keyspaces)?;
        }
        out.hits(metrics)?;
        if let Some(hotrap) = &metrics.hotrap {
            out.hotrap(hotrap)?;
        }
        if let Some(cost) = &metrics.cost {
            out.cost(cost)?;
        }
        out.cpu(metrics)?;
        out.compactions(metrics)?;
        out.stalls(metrics)?;
        out.latencies(metrics)?;
        out.writes(metrics)?;
        if let Some(cache) = &metrics.record_cache {
            out.record_cache(cache)?;
        }
        out.health(metrics)
    }
}
