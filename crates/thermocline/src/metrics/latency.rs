//! Records latencies without making threads wait for each other.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use hdrhistogram::Histogram;

use super::LatencyMetrics;
use crate::sync::Mutex;

/// Shards per recorder; a power of two. A histogram takes about 28 KiB.
const SHARDS: usize = 8;

/// Below this, latencies are not told apart.
const LOWEST_NANOS: u64 = 64;
/// Above this (about 18 minutes), neither.
const HIGHEST_NANOS: u64 = 1 << 40;
/// Quantiles are right within 1 %.
const SIGNIFICANT_DIGITS: u8 = 2;

thread_local! {
    /// A thread keeps to one shard, so that its cache line stays with it.
    static SHARD: usize = {
        let mut hasher = DefaultHasher::new();
        std::thread::current().id().hash(&mut hasher);
        hasher.finish() as usize % SHARDS
    };
}

/// Latencies of one kind of operation.
pub(crate) struct LatencyRecorder {
    operation: &'static str,
    shards: [Mutex<Histogram<u64>>; SHARDS],
}

impl std::fmt::Debug for LatencyRecorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LatencyRecorder")
            .field("operation", &self.operation)
            .finish_non_exhaustive()
    }
}

impl LatencyRecorder {
    /// A recorder that reports under the name `operation`.
    pub(crate) fn new(operation: &'static str) -> Self {
        Self {
            operation,
            shards: std::array::from_fn(|_| Mutex::new(empty())),
        }
    }

    /// Counts one operation.
    pub(crate) fn record(&self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.shards[SHARD.with(|shard| *shard)]
            .lock()
            .saturating_record(nanos);
    }

    /// Quantiles over everything recorded so far.
    pub(crate) fn snapshot(&self) -> LatencyMetrics {
        let mut all = empty();
        for shard in &self.shards {
            // All shards have the same bounds, so adding cannot fail.
            let _ = all.add(&*shard.lock());
        }
        let at = |quantile| Duration::from_nanos(all.value_at_quantile(quantile));
        LatencyMetrics {
            operation: self.operation,
            count: all.len(),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: Duration::from_nanos(all.max()),
        }
    }
}

fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(LOWEST_NANOS, HIGHEST_NANOS, SIGNIFICANT_DIGITS)
        .expect("the bounds are constants that the histogram accepts")
}

#[cfg(all(test, not(thermocline_shuttle)))]
mod tests {
    use super::*;

    fn near(found: Duration, expected: Duration) -> bool {
        let (found, expected) = (found.as_secs_f64(), expected.as_secs_f64());
        (found - expected).abs() <= expected * 0.01
    }

    #[test]
    fn quantiles_are_right_within_a_percent() {
        let recorder = LatencyRecorder::new("get");
        for micros in 1..=1000 {
            recorder.record(Duration::from_micros(micros));
        }
        let snapshot = recorder.snapshot();
        assert_eq!((snapshot.operation, snapshot.count), ("get", 1000));
        assert!(
            near(snapshot.p50, Duration::from_micros(500)),
            "{snapshot:?}"
        );
        assert!(
            near(snapshot.p99, Duration::from_micros(990)),
            "{snapshot:?}"
        );
        assert!(
            near(snapshot.p999, Duration::from_micros(999)),
            "{snapshot:?}"
        );
        assert!(
            near(snapshot.max, Duration::from_micros(1000)),
            "{snapshot:?}"
        );
    }

    #[test]
    fn nothing_recorded_is_all_zero() {
        let snapshot = LatencyRecorder::new("seek").snapshot();
        assert_eq!(snapshot.count, 0);
        assert_eq!(snapshot.max, Duration::ZERO);
    }

    #[test]
    fn a_latency_out_of_bounds_is_counted_at_the_bound() {
        let recorder = LatencyRecorder::new("write");
        recorder.record(Duration::MAX);
        recorder.record(Duration::ZERO);
        let snapshot = recorder.snapshot();
        assert_eq!(snapshot.count, 2);
        assert!(snapshot.max >= Duration::from_nanos(HIGHEST_NANOS));
    }

    #[test]
    fn threads_lose_no_record() {
        let recorder = LatencyRecorder::new("get");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        recorder.record(Duration::from_micros(5));
                    }
                });
            }
        });
        assert_eq!(recorder.snapshot().count, 4000);
    }
}
