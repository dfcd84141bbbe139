//! Everything the store counts, readable as a struct ([`Metrics`]), as text
//! ([`Metrics::to_text`]) and as Prometheus exposition ([`Metrics::to_prometheus`]).

mod prometheus;
mod snapshot;
mod text;

pub use snapshot::{
    CompactionMetrics, HitMetrics, IoMetrics, LatencyMetrics, LevelMetrics, MemoryMetrics, Metrics,
    StallMetrics, TierMetrics,
};
