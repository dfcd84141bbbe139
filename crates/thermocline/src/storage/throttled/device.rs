//! How long a device takes: two token buckets and a latency.

use std::time::Duration;

use crate::clock::Clock;
use crate::storage::operation::operations;
use crate::sync::{Arc, Mutex};

/// Work that a device may do at once after it was idle. A sleeping thread wakes up some 50 µs late;
/// without this, the lost time would hold the device below its rate.
pub(super) const BURST: Duration = Duration::from_millis(10);

/// What a device can do. Zero means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Read operations per second; one operation moves up to 512 KiB.
    pub read_iops: u64,
    /// Write operations per second; one operation moves up to 512 KiB.
    pub write_iops: u64,
    /// Bytes read per second.
    pub read_bandwidth: u64,
    /// Bytes written per second.
    pub write_bandwidth: u64,
    /// Added to every operation; operations of several threads overlap in it.
    pub latency: Duration,
}

/// The device's two queues.
#[derive(Debug)]
pub(super) struct Device {
    reads: Mutex<Bucket>,
    writes: Mutex<Bucket>,
    latency: Mutex<Duration>,
    clock: Arc<dyn Clock>,
}

/// A token bucket, stored as the time until which the device is busy.
#[derive(Debug, Default)]
struct Bucket {
    iops: u64,
    bandwidth: u64,
    busy_until: Duration,
}

impl Device {
    pub(super) fn new(limits: Limits, clock: Arc<dyn Clock>) -> Self {
        let device = Self {
            reads: Mutex::default(),
            writes: Mutex::default(),
            latency: Mutex::default(),
            clock,
        };
        device.set_limits(limits);
        device
    }

    /// Forgets what is queued, and applies `limits` from now on.
    pub(super) fn set_limits(&self, limits: Limits) {
        let now = self.clock.now();
        let bucket = |iops, bandwidth| Bucket {
            iops,
            bandwidth,
            busy_until: now,
        };
        *self.reads.lock() = bucket(limits.read_iops, limits.read_bandwidth);
        *self.writes.lock() = bucket(limits.write_iops, limits.write_bandwidth);
        *self.latency.lock() = limits.latency;
    }

    /// Waits for as long as it takes to read `bytes`.
    pub(super) fn read(&self, bytes: u64) {
        self.wait(&self.reads, bytes);
    }

    /// Waits for as long as it takes to write `bytes`.
    pub(super) fn write(&self, bytes: u64) {
        self.wait(&self.writes, bytes);
    }

    /// Begins to write `bytes`; returns the time at which the device will have written them.
    pub(super) fn begin_write(&self, bytes: u64) -> Duration {
        self.begin(&self.writes, bytes)
    }

    /// Waits until `answered`, when the device will be done. The sleep is outside the lock, so that
    /// operations of other threads queue behind this one and overlap in the latency.
    pub(super) fn wait_until(&self, answered: Duration) {
        let now = self.clock.now();
        if answered > now {
            self.clock.sleep(answered - now);
        }
    }

    /// Waits until the device would have moved `bytes`.
    fn wait(&self, bucket: &Mutex<Bucket>, bytes: u64) {
        self.wait_until(self.begin(bucket, bytes));
    }

    /// The time at which the device will have moved `bytes`.
    fn begin(&self, bucket: &Mutex<Bucket>, bytes: u64) -> Duration {
        let operations = operations(bytes);
        let now = self.clock.now();
        let through = bucket.lock().reserve(now, operations, bytes);
        through.max(now).saturating_add(*self.latency.lock())
    }
}

impl Bucket {
    /// Device time for `operations` that move `bytes`: the scarcer of the two decides.
    fn cost(&self, operations: u64, bytes: u64) -> Duration {
        let share = |amount: u64, per_second: u64| match per_second {
            0 => 0,
            _ => u128::from(amount) * 1_000_000_000 / u128::from(per_second),
        };
        let nanos = share(operations, self.iops).max(share(bytes, self.bandwidth));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Takes the next free time of the device; returns the time at which the device will be done.
    fn reserve(&mut self, now: Duration, operations: u64, bytes: u64) -> Duration {
        let start = self.busy_until.max(now.saturating_sub(BURST));
        self.busy_until = start.saturating_add(self.cost(operations, bytes));
        self.busy_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_reserved_at_once_lie_a_cost_apart_whatever_the_latency() {
        let now = Duration::from_secs(1);
        let mut bucket = Bucket {
            iops: 1000,
            bandwidth: 0,
            busy_until: now,
        };
        let first = bucket.reserve(now, 1, 512);
        assert_eq!(first, now + Duration::from_millis(1));
        let second = bucket.reserve(now, 1, 512);
        assert_eq!(second - first, Duration::from_millis(1));
    }

    #[test]
    fn the_scarcer_of_operations_and_bytes_decides() {
        let bucket = Bucket {
            iops: 100,
            bandwidth: 1 << 20,
            busy_until: Duration::ZERO,
        };
        assert_eq!(bucket.cost(1, 512), Duration::from_millis(10));
        assert_eq!(bucket.cost(1, 1 << 20), Duration::from_secs(1));
        assert_eq!(
            bucket.cost(u64::MAX, u64::MAX),
            Duration::from_nanos(u64::MAX)
        );
    }
}
