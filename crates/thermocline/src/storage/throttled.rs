//! A slower device than the one there is.

use std::path::Path;
use std::time::Duration;

use super::readers::read_overlapped;
use super::{
    FileInfo, IoBuf, LogFile, LogStore, Medium, ReadRequest, StoreLock, TableFile, TableStore,
    TableWriter,
};
use crate::clock::Clock;
use crate::error::Result;
use crate::sync::{Arc, Mutex};

/// A device moves at most this much in one operation; the writers gather as much.
const MAX_OPERATION: u64 = 1 << 20;

/// Work that an idle device may do at once afterwards. A sleeping thread wakes up some 50 µs
/// late; without this the lost time would hold the device below its rate.
const BURST: Duration = Duration::from_millis(10);

/// What a device can do. Zero means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Read operations per second; one operation moves up to 1 MiB.
    pub read_iops: u64,
    /// Write operations per second; one operation moves up to 1 MiB.
    pub write_iops: u64,
    /// Bytes read per second.
    pub read_bandwidth: u64,
    /// Bytes written per second.
    pub write_bandwidth: u64,
    /// Added to every operation; operations of several threads overlap in it.
    pub latency: Duration,
}

/// A medium slowed down to given limits, which all stores made from it share.
///
/// Reads and writes have a bucket each. Table and log writes are gathered to operations of
/// 1 MiB as the disk does; a sync writes what is left. Listing, renaming, removing and
/// linking are free.
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

/// The device's two queues.
#[derive(Debug)]
struct Device {
    reads: Bucket,
    writes: Bucket,
    latency: Duration,
    clock: Arc<dyn Clock>,
}

/// A token bucket, kept as the time until which the device is busy.
#[derive(Debug)]
struct Bucket {
    iops: u64,
    bandwidth: u64,
    busy_until: Mutex<Duration>,
}

impl Throttled {
    /// Slows `inner` down to `limits`, by the time of `clock`.
    pub fn new(inner: Arc<dyn Medium>, limits: Limits, clock: Arc<dyn Clock>) -> Self {
        let bucket = |iops, bandwidth| Bucket {
            iops,
            bandwidth,
            busy_until: Mutex::new(clock.now()),
        };
        let device = Device {
            reads: bucket(limits.read_iops, limits.read_bandwidth),
            writes: bucket(limits.write_iops, limits.write_bandwidth),
            latency: limits.latency,
            clock: Arc::clone(&clock),
        };
        Self {
            inner,
            device: Arc::new(device),
        }
    }
}

impl Medium for Throttled {
    fn log_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn LogStore>> {
        Ok(Arc::new(ThrottledLogStore {
            inner: self.inner.log_store(dir, create)?,
            device: Arc::clone(&self.device),
        }))
    }

    fn table_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn TableStore>> {
        Ok(Arc::new(ThrottledTableStore {
            inner: self.inner.table_store(dir, create)?,
            device: Arc::clone(&self.device),
        }))
    }
}

impl Bucket {
    /// Device time that `operations` moving `bytes` take: what is scarcer decides.
    fn cost(&self, operations: u64, bytes: u64) -> Duration {
        let share = |amount: u64, per_second: u64| match per_second {
            0 => 0,
            _ => u128::from(amount) * 1_000_000_000 / u128::from(per_second),
        };
        let nanos = share(operations, self.iops).max(share(bytes, self.bandwidth));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Takes the next free time of the device; returns when it will be through.
    fn reserve(&self, now: Duration, cost: Duration) -> Duration {
        let mut busy_until = self.busy_until.lock();
        let start = (*busy_until).max(now.saturating_sub(BURST));
        *busy_until = start.saturating_add(cost);
        *busy_until
    }
}

impl Device {
    fn read(&self, bytes: u64) {
        self.wait(&self.reads, bytes);
    }

    fn write(&self, bytes: u64) {
        self.wait(&self.writes, bytes);
    }

    /// Waits until the device would have moved `bytes`. The sleep is outside of the lock, so
    /// that operations of other threads queue behind this one and overlap in the latency.
    fn wait(&self, bucket: &Bucket, bytes: u64) {
        let operations = bytes.div_ceil(MAX_OPERATION).max(1);
        let now = self.clock.now();
        let through = bucket.reserve(now, bucket.cost(operations, bytes));
        let answered = through.max(now).saturating_add(self.latency);
        if answered > now {
            self.clock.sleep(answered - now);
        }
    }
}

/// Bytes written that the device has not been charged for.
#[derive(Debug, Default)]
struct Gathered(u64);

impl Gathered {
    /// Adds `bytes` and takes what makes whole operations.
    fn add(&mut self, bytes: usize) -> u64 {
        self.0 += bytes as u64;
        let whole = self.0 - self.0 % MAX_OPERATION;
        self.0 -= whole;
        whole
    }

    fn take(&mut self) -> u64 {
        std::mem::take(&mut self.0)
    }
}

#[derive(Debug)]
struct ThrottledLogStore {
    inner: Arc<dyn LogStore>,
    device: Arc<Device>,
}

#[derive(Debug)]
struct ThrottledLog {
    inner: Arc<dyn LogFile>,
    device: Arc<Device>,
    gathered: Mutex<Gathered>,
}

#[derive(Debug)]
struct ThrottledTableStore {
    inner: Arc<dyn TableStore>,
    device: Arc<Device>,
}

#[derive(Debug)]
struct ThrottledWriter {
    inner: Box<dyn TableWriter>,
    device: Arc<Device>,
    gathered: Gathered,
}

#[derive(Debug)]
struct ThrottledTable {
    inner: Arc<dyn TableFile>,
    device: Arc<Device>,
}

impl LogStore for ThrottledLogStore {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        self.inner.lock()
    }

    fn create(&self, name: &str) -> Result<Arc<dyn LogFile>> {
        Ok(Arc::new(ThrottledLog {
            inner: self.inner.create(name)?,
            device: Arc::clone(&self.device),
            gathered: Mutex::default(),
        }))
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        let bytes = self.inner.read(name)?;
        self.device.read(bytes.len() as u64);
        Ok(bytes)
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        self.inner.list()
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.inner.remove(name)
    }

    fn sync_dir(&self) -> Result<()> {
        self.device.write(0);
        self.inner.sync_dir()
    }
}

impl LogFile for ThrottledLog {
    fn append(&self, bytes: &[u8]) -> Result<()> {
        let whole = self.gathered.lock().add(bytes.len());
        if whole > 0 {
            self.device.write(whole);
        }
        self.inner.append(bytes)
    }

    fn sync(&self) -> Result<()> {
        let rest = self.gathered.lock().take();
        self.device.write(rest);
        self.inner.sync()
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.inner.truncate(len)
    }
}

impl TableStore for ThrottledTableStore {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        self.inner.lock()
    }

    fn create(&self, name: &str, expected_len: u64) -> Result<Box<dyn TableWriter>> {
        Ok(Box::new(ThrottledWriter {
            inner: self.inner.create(name, expected_len)?,
            device: Arc::clone(&self.device),
            gathered: Gathered::default(),
        }))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn TableFile>> {
        Ok(Arc::new(ThrottledTable {
            inner: self.inner.open(name)?,
            device: Arc::clone(&self.device),
        }))
    }

    fn read_many(&self, requests: &[ReadRequest]) -> Vec<Result<IoBuf>> {
        read_overlapped(requests)
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        self.inner.list()
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.inner.remove(name)
    }

    fn link(&self, name: &str, target: &Path) -> Result<()> {
        self.inner.link(name, target)
    }

    fn sync_dir(&self) -> Result<()> {
        self.device.write(0);
        self.inner.sync_dir()
    }
}

impl TableWriter for ThrottledWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let whole = self.gathered.add(bytes.len());
        if whole > 0 {
            self.device.write(whole);
        }
        self.inner.append(bytes)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let rest = self.gathered.take();
        self.device.write(rest);
        self.inner.finish()
    }
}

impl TableFile for ThrottledTable {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read(&self, offset: u64, len: usize) -> Result<IoBuf> {
        // A refused range costs nothing; what was read is charged as the device moved it.
        let bytes = self.inner.read(offset, len)?;
        self.device.read(bytes.device_bytes());
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::storage::Memory;

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
        for chunk in [4096, 5 << 20] {
            let bench = Bench::new(Limits {
                write_iops: 10,
                ..Limits::default()
            });
            // Five whole operations, and one for the sync at the end.
            let elapsed = bench.time(|| drop(bench.write("/slow", 5 << 20, chunk)));
            assert_eq!(elapsed, Duration::from_millis(600), "chunks of {chunk}");
        }
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
        // The last wake-up is nobody's to make up for.
        let at_most = Duration::from_millis(100) + Duration::from_micros(50);
        assert!(elapsed <= at_most, "{elapsed:?}");
    }

    #[test]
    fn latency_holds_up_one_reader_but_not_the_device() {
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
        // What overlapping readers reserve lies a millisecond apart, not five.
        let bucket = Bucket {
            iops: 1000,
            bandwidth: 0,
            busy_until: Mutex::new(Duration::from_secs(1)),
        };
        let cost = bucket.cost(1, 512);
        let first = bucket.reserve(Duration::from_secs(1), cost);
        let second = bucket.reserve(Duration::from_secs(1), cost);
        assert_eq!(second - first, Duration::from_millis(1));
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
