//! A tier: storage, capacity, price and table settings, with its use and its I/O counted.

mod copies;

use crate::metrics::Purpose;
use bytes::Bytes;

use self::copies::Copies;
use crate::cache::LargeBuffers;
use crate::error::{Error, Result};
use crate::metrics::IoMetrics;
use crate::options::TierOptions;
use crate::storage::operation::{Gathered, operations};
use crate::storage::{IoBuf, LogStore, TableFile, TableStore, TableWriter};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};

pub(crate) use self::copies::{CopySlot, CopyWriter, TableCopy, copy_number};

/// Operations and bytes of one purpose on one tier.
#[derive(Debug, Default)]
struct IoCounter {
    read_ops: AtomicU64,
    read_bytes: AtomicU64,
    write_ops: AtomicU64,
    write_bytes: AtomicU64,
}

/// A medium in use by a store.
#[derive(Debug)]
pub(crate) struct Tier {
    pub(crate) index: u8,
    pub(crate) options: TierOptions,
    pub(crate) tables: Arc<dyn TableStore>,
    /// Present on the first tier only: logs are local and fast.
    pub(crate) log: Option<Arc<dyn LogStore>>,
    io: [IoCounter; Purpose::ALL.len()],
    /// Bytes of all files there, obsolete ones included, plus what jobs have reserved.
    used: AtomicU64,
    reserved: AtomicU64,
    /// What the reservations that are held were granted, used or not.
    in_flight: AtomicU64,
    /// Bytes that no job's output may take: the log and the manifest grow without a reservation.
    kept_free: u64,
    copies: Copies,
    /// What large values take that are written to the store's tiers or read from them, in memory.
    pub(crate) large: Arc<LargeBuffers>,
    /// Whether the store is closed: the directory may be another's.
    has_ended: AtomicBool,
    /// Why names in the directory may have been lost; locked while names are synced.
    names_lost: Mutex<Option<Arc<str>>>,
}

impl Tier {
    pub(crate) fn new(
        index: u8,
        options: TierOptions,
        tables: Arc<dyn TableStore>,
        log: Option<Arc<dyn LogStore>>,
    ) -> Self {
        Self {
            index,
            options,
            tables,
            log,
            io: Default::default(),
            used: AtomicU64::new(0),
            reserved: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            kept_free: 0,
            copies: Copies::default(),
            large: Arc::default(),
            has_ended: AtomicBool::new(false),
            names_lost: Mutex::default(),
        }
    }

    /// Leaves `bytes` free of job output (I8).
    #[must_use]
    pub(crate) fn keeping_free(mut self, bytes: u64) -> Self {
        self.kept_free = bytes;
        self
    }

    /// Counts its large buffers with those of the store's other tiers.
    #[must_use]
    pub(crate) fn counting_in(mut self, large: &Arc<LargeBuffers>) -> Self {
        self.large = Arc::clone(large);
        self
    }

    /// Runs `sync`, which makes names in the tier's directory durable, and nobody else's meanwhile. The
    /// system forgets the names that a failed sync has lost, whoever's they were, and the next sync would
    /// report success: so there is none (I9).
    ///
    /// # Errors
    /// [`Error::Poisoned`] once a sync has failed; those of `sync`.
    pub(crate) fn sync_names(&self, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut lost = self.names_lost.lock();
        if let Some(cause) = &*lost {
            let cause = Arc::clone(cause);
            return Err(Error::Poisoned { cause });
        }
        sync().inspect_err(|error| {
            if let Error::Poisoned { cause } = error {
                *lost = Some(Arc::clone(cause));
            }
        })
    }

    fn counter(&self, purpose: Purpose) -> &IoCounter {
        &self.io[purpose as usize]
    }

    pub(crate) fn count_read(&self, purpose: Purpose, bytes: u64) {
        let counter = self.counter(purpose);
        counter
            .read_ops
            .fetch_add(operations(bytes), Ordering::Relaxed);
        counter.read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn count_write(&self, purpose: Purpose, bytes: u64) {
        let counter = self.counter(purpose);
        counter
            .write_ops
            .fetch_add(operations(bytes), Ordering::Relaxed);
        counter.write_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What was counted for `purpose`.
    pub(crate) fn io(&self, purpose: Purpose) -> IoMetrics {
        let counter = self.counter(purpose);
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        IoMetrics {
            purpose,
            read_ops: get(&counter.read_ops),
            read_bytes: get(&counter.read_bytes),
            write_ops: get(&counter.write_ops),
            write_bytes: get(&counter.write_bytes),
        }
    }

    /// Bytes of files, but for copies; reservations not counted.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes reserved for output that is not written yet.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        // Who finds bytes gone from here finds them in the files: see `taken_bytes`.
        self.reserved.load(Ordering::Acquire)
    }

    /// Bytes of files, and those reserved. Bytes that a job turns into a file's meanwhile may count
    /// twice, but never not at all (I8): they come to the files before they leave what is reserved, and
    /// so that is looked at first.
    fn taken_bytes(&self) -> u64 {
        let reserved = self.reserved_bytes();
        reserved.saturating_add(self.file_bytes())
    }

    /// Bytes granted to jobs that have not ended: written already, or reserved.
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Bytes that job output may still take.
    pub(crate) fn free_for_jobs(&self) -> u64 {
        self.free_bytes().saturating_sub(self.kept_free)
    }

    /// Bytes that may still be written within the capacity.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.options.capacity.saturating_sub(self.taken_bytes())
    }

    /// Counts a file that came to be, or grew, by `bytes`.
    pub(crate) fn add_file_bytes(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.take_back_room();
    }

    /// Counts a file that went away, or shrank, by `bytes`.
    pub(crate) fn remove_file_bytes(&self, bytes: u64) {
        let before = self.used.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "a file is removed that was never counted");
    }

    /// Sets `bytes` aside for a job's output (I8).
    ///
    /// # Errors
    /// [`Error::NoSpace`] when the capacity does not allow it.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: u64) -> Result<Reservation> {
        self.reserve_leaving(bytes, 0)
    }

    /// As [`Tier::reserve`], if `margin` bytes stay free beside.
    ///
    /// # Errors
    /// As [`Tier::reserve`].
    pub(crate) fn reserve_leaving(
        self: &Arc<Self>,
        bytes: u64,
        margin: u64,
    ) -> Result<Reservation> {
        // In one step, so that of two jobs that reserve at once neither is let through for want of the other's, and
        // neither refused for what the other is refused.
        let claim = |reserved: u64| {
            let taken = self.used.load(Ordering::Relaxed).saturating_add(reserved);
            let beside = self.kept_free.saturating_add(margin);
            let wanted = taken.saturating_add(bytes).saturating_add(beside);
            // Who needs nothing is never refused: a table that moves may be what makes room.
            (bytes == 0 || wanted <= self.options.capacity).then(|| reserved.saturating_add(bytes))
        };
        // What is reserved is looked at first: see `taken_bytes`.
        let (set, fetch) = (Ordering::Relaxed, Ordering::Acquire);
        if self.reserved.fetch_update(set, fetch, claim).is_err() {
            return Err(Error::NoSpace {
                operation: "reserve space within the capacity of",
                path: self.options.path.clone(),
            });
        }
        self.in_flight.fetch_add(bytes, Ordering::Relaxed);
        self.take_back_room();
        Ok(Reservation {
            tier: Arc::clone(self),
            granted: bytes,
            left: bytes,
        })
    }

    /// Opens an object, its reads counted.
    ///
    /// # Errors
    /// [`Error::Closed`] after [`Tier::end`]; those of the medium.
    pub(crate) fn open(self: &Arc<Self>, name: &str) -> Result<TierFile> {
        let file = self.tables.open(name)?;
        // Afterwards: what was opened before it was the store's.
        if self.has_ended.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        Ok(TierFile {
            file,
            tier: Arc::clone(self),
        })
    }

    /// Has no object opened from now on. Who still reads a store that is closed might be given
    /// another's.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    /// Starts an object, its writes counted.
    pub(crate) fn create(
        self: &Arc<Self>,
        name: &str,
        expected_len: u64,
        purpose: Purpose,
    ) -> Result<CountedWriter> {
        let create = || self.tables.create(name, expected_len);
        let writer = match purpose {
            Purpose::Copy => create()?,
            _ => self.with_room(create)?,
        };
        Ok(CountedWriter {
            writer,
            tier: Arc::clone(self),
            purpose,
            gathered: Gathered::default(),
        })
    }
}

/// Space set aside on a tier; what is not used goes back when it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    tier: Arc<Tier>,
    granted: u64,
    left: u64,
}

impl Reservation {
    /// Bytes that are not a file's yet.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Turns `bytes` of the reservation into a file's; a file larger than the rest counts
    /// in full.
    pub(crate) fn use_for_file(&mut self, bytes: u64) {
        let from_reserve = bytes.min(self.left);
        self.left -= from_reserve;
        // In this order: see `Tier::taken_bytes`.
        self.tier.used.fetch_add(bytes, Ordering::Relaxed);
        self.tier
            .reserved
            .fetch_sub(from_reserve, Ordering::Release);
        // Only now: what counts twice takes no copy's room.
        self.tier.take_back_room();
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.tier.reserved.fetch_sub(self.left, Ordering::Relaxed);
        self.tier
            .in_flight
            .fetch_sub(self.granted, Ordering::Relaxed);
    }
}

/// An object of a tier, its reads counted by purpose.
#[derive(Debug, Clone)]
pub(crate) struct TierFile {
    pub(crate) file: Arc<dyn TableFile>,
    pub(crate) tier: Arc<Tier>,
}

impl TierFile {
    pub(crate) fn read(&self, purpose: Purpose, offset: u64, len: usize) -> Result<IoBuf> {
        let buffer = self.file.read(offset, len)?;
        self.tier.count_read(purpose, buffer.device_bytes());
        Ok(buffer)
    }

    /// As [`TierFile::read`], copied out of the I/O buffer.
    pub(crate) fn read_bytes(&self, purpose: Purpose, offset: u64, len: usize) -> Result<Bytes> {
        Ok(Bytes::copy_from_slice(&self.read(purpose, offset, len)?))
    }
}

/// A [`TableWriter`] whose bytes are counted.
#[derive(Debug)]
pub(crate) struct CountedWriter {
    writer: Box<dyn TableWriter>,
    tier: Arc<Tier>,
    purpose: Purpose,
    /// The medium gathers appends into operations, and what is counted does so too.
    gathered: Gathered,
}

impl CountedWriter {
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let appended = self.writer.append(bytes);
        if self.purpose != Purpose::Copy {
            self.tier.note_want_of_room(&appended);
        }
        appended?;
        let whole = self.gathered.add(bytes.len());
        if whole > 0 {
            self.tier.count_write(self.purpose, whole);
        }
        Ok(())
    }

    /// Makes the object and its name durable (I4).
    pub(crate) fn finish(mut self) -> Result<()> {
        self.count_rest();
        let tier = Arc::clone(&self.tier);
        let writer = self.writer;
        let finished = tier.sync_names(|| writer.finish());
        tier.note_want_of_room(&finished);
        finished
    }

    /// Has the object read from now on, until a crash takes it perhaps.
    pub(crate) fn finish_unsynced(mut self) -> Result<()> {
        self.count_rest();
        self.writer.finish_unsynced()
    }

    fn count_rest(&mut self) {
        let rest = self.gathered.take();
        if rest > 0 {
            self.tier.count_write(self.purpose, rest);
        }
    }
}

/// Every order of a look and what it looks at. Needs the checker's own atomics:
/// `cargo test -p thermocline --features shuttle --lib model`
#[cfg(all(test, feature = "shuttle"))]
mod model {
    use std::path::Path;

    use super::*;
    use crate::storage::{Medium, Memory};

    /// Regression: the bytes of files were read before what is reserved, and a job that ended a file in
    /// between had its bytes in neither: a second job was granted the space that the file had
    /// taken, and the fast tier grew beyond its capacity (I8).
    fn one_reserves_while_another_turns_its_reservation_into_a_file() {
        let tables = Memory::new().table_store(Path::new("t"), true).unwrap();
        let options = TierOptions::fast("t").capacity(100);
        let tier = Arc::new(Tier::new(0, options, tables, None));
        let mut space = tier.reserve(60).unwrap();
        let writer = shuttle::thread::spawn(move || {
            space.use_for_file(60);
            space
        });
        assert!(tier.free_bytes() <= 40);
        let refused = tier.reserve(60);
        assert!(matches!(refused, Err(Error::NoSpace { .. })));
        drop(writer.join().unwrap());
        assert_eq!((tier.file_bytes(), tier.reserved_bytes()), (60, 0));
    }

    #[test]
    fn bytes_that_become_a_files_are_never_free_meanwhile() {
        shuttle::check_random(
            one_reserves_while_another_turns_its_reservation_into_a_file,
            1000,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::scene::Scene;

    /// What was refused counted for a moment, as it was added before it was looked at: a large job that found no room made a
    /// flush that had room fail.
    #[test]
    fn a_refused_reservation_takes_no_other_ones_room() {
        let scene = Scene::new();
        let tier = Arc::clone(scene.engine().fast());
        let ended = AtomicBool::new(false);
        let refused = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    assert!(tier.reserve(1 << 40).is_err());
                }
            });
            let refused = (0..20_000).filter(|_| tier.reserve(1024).is_err()).count();
            ended.store(true, Ordering::Relaxed);
            refused
        });
        assert_eq!(refused, 0);
        assert_eq!((tier.reserved_bytes(), tier.in_flight()), (0, 0));
    }
}
