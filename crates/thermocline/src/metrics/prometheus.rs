//! Prometheus exposition of the metrics.
