//! A slower device than the one there is.

mod device;
mod store;

use std::path::Path;

use self::device::Device;
pub use self::device::Limits;
use self::store::{ThrottledLogStore, ThrottledTableStore};
use super::{LogStore, Medium, TableStore};
use crate::clock::Clock;
use crate::error::Result;
use crate::sync::Arc;

/// A medium slowed down to given limits. All stores made from it share the limits.
///
/// Reads and writes have a bucket each. Table and log writes are gathered into operations of 512
/// KiB, as on the disk; a sync writes what is left. The writer of a table goes on while one
/// operation is under way. Listing, renaming, removing and linking are free.
///
/// ```
/// use std::sync::Arc;
/// use thermocline::SystemClock;
/// use thermocline::storage::{Disk, Limits, Throttled};
/// let slow = Throttled::new(
///     Arc::new(Disk::default()),
///     Limits { read_iops: 5_000, read_bandwidth: 300 << 20, ..Limits::default() },
///     Arc::new(SystemClock::default()),
/// );
/// # let _ = slow;
/// ```
#[derive(Debug, Clone)]
pub struct Throttled {
    inner: Arc<dyn Medium>,
    device: Arc<Device>,
}

impl Throttled {
    /// Slows `inner` down to `limits`; `clock` tells the time.
    pub fn new(inner: Arc<dyn Medium>, limits: Limits, clock: Arc<dyn Clock>) -> Self {
        Self {
            inner,
            device: Arc::new(Device::new(limits, clock)),
        }
    }

    /// Applies `limits` from now on, to all stores made from this medium.
    pub fn set_limits(&self, limits: Limits) {
        self.device.set_limits(limits);
    }
}

impl Medium for Throttled {
    fn log_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn LogStore>> {
        let inner = self.inner.log_store(dir, create)?;
        let device = Arc::clone(&self.device);
        Ok(Arc::new(ThrottledLogStore::new(inner, device)))
    }

    fn table_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn TableStore>> {
        let inner = self.inner.table_store(dir, create)?;
        let device = Arc::clone(&self.device);
        Ok(Arc::new(ThrottledTableStore::new(inner, device)))
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        self.inner.remove_dir(dir)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::device::BURST;
    use super::*;
    use crate::clock::ManualClock;
    use crate::storage::operation::MAX_OPERATION;
    use crate::storage::{Memory, ReadRequest, TableFile};

    struct Bench {
        clock: Arc<ManualClock>,
        medium: Throttled,
    }

    impl Bench {
        fn new(limits: Limits) -> Self {
            let clock = Arc::new(ManualClock::default());
            let medium = Throttled::new(
                Arc::new(Memory::new()),
                limits,
                Arc::clone(&clock) as Arc<_>,
            );
            Self { clock, medium }
        }

        fn tables(&self, dir: &str) -> Arc<dyn TableStore> {
            self.medium.table_store(Path::new(dir), true).unwrap()
        }

        fn write(&self, dir: &str, len: usize, chunk: usize) -> Arc<dyn TableFile> {
            let store = self.tables(dir);
            let mut writer = store.create("1.sst", len as u64).unwrap();
            for piece in vec![1; len].chunks(chunk) {
                writer.append(piece).unwrap();
            }
            writer.finish().unwrap();
            store.open("1.sst").unwrap()
        }

        fn time(&self, work: impl FnOnce()) -> Duration {
            let before = self.clock.now();
            work();
            self.clock.now() - before
        }
    }

    #[test]
    fn reads_take_their_share_of_the_operations() {
        let bench = Bench::new(Limits {
            read_iops: 1000,
            ..Limits::default()
        });
        let file = bench.write("/slow", 1 << 20, 4096);
        let elapsed = bench.time(|| {
            for block in 0..250 {
                file.read(block * 4096, 4096).unwrap();
            }
        });
        assert_eq!(elapsed, Duration::from_millis(250));
    }

    #[test]
    fn stores_of_one_device_share_it() {
        let bench = Bench::new(Limits {
            read_iops: 100,
            ..Limits::default()
        });
        let files = [bench.write("/a", 4096, 4096), bench.write("/b", 4096, 4096)];
        let elapsed = bench.time(|| {
            for turn in 0..100 {
                files[turn % 2].read(0, 512).unwrap();
            }
        });
        assert_eq!(elapsed, Duration::from_secs(1));
    }

    #[test]
    fn bandwidth_decides_for_large_reads() {
        let bench = Bench::new(Limits {
            read_iops: 1000,
            read_bandwidth: 1 << 20,
            ..Limits::default()
        });
        let file = bench.write("/slow", 1 << 20, 1 << 20);
        let elapsed = bench.time(|| drop(file.read(0, 1 << 19).unwrap()));
        assert_eq!(elapsed, Duration::from_millis(500));
    }

    #[test]
    fn small_appends_are_gathered_and_large_ones_split() {
        let operations = 5 * MAX_OPERATION as usize;
        for chunk in [4096, operations] {
            let bench = Bench::new(Limits {
                write_iops: 10,
                ..Limits::default()
            });
            // Five whole operations, and one for the sync at the end.
            let elapsed = bench.time(|| drop(bench.write("/slow", operations, chunk)));
            assert_eq!(elapsed, Duration::from_millis(600), "chunks of {chunk}");
        }
    }

    /// A merge slept through each operation of its output, although a disk writes while the merge
    /// goes on. On an emulated disk, a compaction took the time of its merging and that of its
    /// writes, one after the other.
    #[test]
    fn a_table_is_written_behind_whoever_appends() {
        let bench = Bench::new(Limits {
            write_iops: 10,
            ..Limits::default()
        });
        let each = Duration::from_millis(100);
        let operation = vec![1; MAX_OPERATION as usize];
        let mut writer = bench.tables("/slow").create("1.sst", 0).unwrap();
        let mut append = || bench.time(|| writer.append(&operation).unwrap());
        assert_eq!(append(), Duration::ZERO);
        bench.clock.advance(each);
        assert_eq!(append(), Duration::ZERO);
        assert_eq!(append(), each, "one at a time");
        // The operation under way, and that of the sync.
        assert_eq!(bench.time(|| writer.finish().unwrap()), 2 * each);
    }

    #[test]
    fn log_syncs_and_bytes_are_charged() {
        let bench = Bench::new(Limits {
            write_iops: 100,
            write_bandwidth: 1 << 20,
            ..Limits::default()
        });
        let store = bench.medium.log_store(Path::new("/slow"), true).unwrap();
        let log = store.create("1.wal").unwrap();
        assert_eq!(bench.time(|| log.append(b"small").unwrap()), Duration::ZERO);
        assert_eq!(
            bench.time(|| log.sync().unwrap()),
            Duration::from_millis(10)
        );
        let large = vec![0; 2 << 20];
        assert_eq!(
            bench.time(|| log.append(&large).unwrap()),
            Duration::from_secs(2)
        );
        assert_eq!(store.read("1.wal").unwrap().len(), (2 << 20) + 5);
    }

    #[test]
    fn limits_change_for_open_files() {
        let bench = Bench::new(Limits::default());
        let file = bench.write("/slow", 4096, 4096);
        let read = || drop(file.read(0, 512).unwrap());
        let limit = |read_iops| {
            bench.medium.set_limits(Limits {
                read_iops,
                ..Limits::default()
            });
        };
        assert_eq!(bench.time(read), Duration::ZERO);
        limit(1);
        assert_eq!(bench.time(read), Duration::from_secs(1));
        limit(0);
        assert_eq!(bench.time(read), Duration::ZERO);
    }

    #[test]
    fn idle_time_is_saved_only_for_a_short_burst() {
        let bench = Bench::new(Limits {
            read_iops: 1000,
            ..Limits::default()
        });
        let file = bench.write("/slow", 4096, 4096);
        bench.clock.advance(Duration::from_secs(60));
        let elapsed = bench.time(|| {
            for _ in 0..100 {
                file.read(0, 512).unwrap();
            }
        });
        assert_eq!(elapsed, Duration::from_millis(100) - BURST);
    }

    #[test]
    fn late_wakeups_do_not_lower_the_rate() {
        let bench = Bench::new(Limits {
            read_iops: 10_000,
            ..Limits::default()
        });
        let file = bench.write("/slow", 4096, 4096);
        let elapsed = bench.time(|| {
            for _ in 0..1000 {
                file.read(0, 512).unwrap();
                bench.clock.advance(Duration::from_micros(50));
            }
        });
        // The last wake-up is late, and no later read makes up for it.
        let at_most = Duration::from_millis(100) + Duration::from_micros(50);
        assert!(elapsed <= at_most, "{elapsed:?}");
    }

    #[test]
    fn latency_holds_up_a_lone_reader() {
        let latency = Duration::from_millis(5);
        let bench = Bench::new(Limits {
            read_iops: 1000,
            latency,
            ..Limits::default()
        });
        let file = bench.write("/slow", 4096, 4096);
        bench.clock.advance(Duration::from_secs(1));
        let alone = bench.time(|| {
            for _ in 0..10 {
                file.read(0, 512).unwrap();
            }
        });
        assert_eq!(alone, 10 * latency);
    }

    #[test]
    fn without_limits_nothing_waits() {
        let bench = Bench::new(Limits::default());
        let elapsed = bench.time(|| {
            let file = bench.write("/slow", 3 << 20, 1000);
            file.read(0, 3 << 20).unwrap();
        });
        assert_eq!(elapsed, Duration::ZERO);
    }

    #[test]
    fn many_ranges_pay_for_each() {
        let bench = Bench::new(Limits {
            read_iops: 1000,
            ..Limits::default()
        });
        let file = bench.write("/slow", 64 << 10, 4096);
        let requests: Vec<_> = (0..16)
            .map(|block| ReadRequest {
                file: Arc::clone(&file),
                offset: block * 4096,
                len: 4096,
            })
            .collect();
        let elapsed = bench.time(|| {
            let results = bench.tables("/slow").read_many(&requests);
            assert!(results.iter().all(|r| r.is_ok()));
        });
        assert!(elapsed >= Duration::from_millis(16), "{elapsed:?}");
    }
}
