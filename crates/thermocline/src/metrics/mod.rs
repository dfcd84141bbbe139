//! Everything the store counts, readable as a struct ([`Metrics`]), as text
//! ([`Metrics::to_text`]) and, with the feature `prometheus`, which is on by default, as its
//! exposition ([`Metrics::to_prometheus`]).

mod cost;
mod cpu;
#[cfg(feature = "prometheus")]
mod exposition;
mod hotrap;
mod human;
mod keyspace;
mod latency;
#[cfg(feature = "prometheus")]
mod prometheus;
mod purpose;
mod section;
mod snapshot;
mod text;

pub use cost::{CostReport, CurvePoint};
pub use cpu::{Activity, CpuMetrics};
pub(crate) use cpu::{Counted, CpuTimes};
pub use hotrap::{HeatPoint, HeatReport, HotKey, HotRapMetrics, RaltMetrics, Refusal};
pub use keyspace::KeyspaceMetrics;
pub(crate) use latency::LatencyRecorder;
pub use purpose::Purpose;
pub use snapshot::{
    CompactionMetrics, HitMetrics, IoMetrics, LatencyMetrics, LevelMetrics, MemoryMetrics, Metrics,
    RecordCacheMetrics, StallMetrics, TierMetrics,
};

#[cfg(test)]
mod fixture;
