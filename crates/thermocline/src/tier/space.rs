//! The room of a tier: what it may hold, what is on it or set aside, and what is free (I8).
//!
//! There are two bounds. The capacity is a promise that holds at any time: what is written or
//! reserved keeps to it, writers wait for it, and whatever the tier can never hold is refused by
//! it. What is planned is at most as much: the sizes that levels and caches are to come to follow
//! from it. More than is planned may be there for a while, and nobody waits for it to go.
//!
//! Copies are in none of these numbers: they lie in room that is free, and give way to whoever
//! takes it.

use super::Tier;
use crate::error::{Error, Result};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};

/// What is on a tier and may be, in bytes.
#[derive(Debug)]
pub(super) struct Space {
    /// Bytes that may be there at most.
    capacity: u64,
    /// Bytes that are meant to be there at most.
    planned: AtomicU64,
    /// Bytes of all files there, obsolete ones included.
    used: AtomicU64,
    /// Bytes set aside that are no file's yet.
    reserved: AtomicU64,
    /// What the reservations that are held were granted, used or not.
    in_flight: AtomicU64,
    /// Bytes that no job's output may take: the log and the manifest grow without a reservation.
    kept_free: u64,
    /// The least that was free for jobs: in this span of time so far, and in the one before.
    least_free: [AtomicU64; 2],
}

impl Space {
    pub(super) fn new(capacity: u64) -> Self {
        Self {
            capacity,
            planned: AtomicU64::new(capacity),
            used: AtomicU64::new(0),
            reserved: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            kept_free: 0,
            // Nothing is known to be of no use yet.
            least_free: [AtomicU64::new(0), AtomicU64::new(0)],
        }
    }
}

impl Tier {
    /// Leaves `bytes` free of job output (I8).
    #[must_use]
    pub(crate) fn keeping_free(mut self, bytes: u64) -> Self {
        self.space.kept_free = bytes;
        self
    }

    /// Bytes that may be on the tier at most, whatever is planned (I8). `u64::MAX` where nobody has
    /// set a bound.
    pub(crate) fn capacity(&self) -> u64 {
        self.space.capacity
    }

    /// Whether all may be on the tier that its device holds.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.capacity() == u64::MAX
    }

    /// Bytes that are meant to be on the tier at most: no more than its capacity, and as many from
    /// the opening on.
    pub(crate) fn planned_bytes(&self) -> u64 {
        self.space.planned.load(Ordering::Relaxed)
    }

    /// Bytes of the capacity that are to stay empty.
    pub(crate) fn unplanned_bytes(&self) -> u64 {
        self.capacity().saturating_sub(self.planned_bytes())
    }

    /// Plans for `bytes` from now on.
    #[cfg(test)]
    pub(crate) fn plan_for(&self, bytes: u64) {
        let planned = bytes.min(self.capacity());
        self.space.planned.store(planned, Ordering::Relaxed);
    }

    /// Bytes of files, but for copies; reservations not counted.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.space.used.load(Ordering::Relaxed)
    }

    /// Bytes reserved for output that is not written yet.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        // Who finds bytes gone from here finds them in the files: see `taken_bytes`.
        self.space.reserved.load(Ordering::Acquire)
    }

    /// Bytes of files, and those reserved. Bytes that a job turns into a file's meanwhile may count
    /// twice, but never not at all (I8): they come to the files before they leave what is reserved,
    /// and so that is looked at first.
    fn taken_bytes(&self) -> u64 {
        let reserved = self.reserved_bytes();
        reserved.saturating_add(self.file_bytes())
    }

    /// Bytes granted to jobs that have not ended: written already, or reserved.
    pub(crate) fn in_flight(&self) -> u64 {
        self.space.in_flight.load(Ordering::Relaxed)
    }

    /// Bytes that job output may still take.
    pub(crate) fn free_for_jobs(&self) -> u64 {
        self.free_bytes().saturating_sub(self.space.kept_free)
    }

    /// Bytes that may still be written within the capacity.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.capacity().saturating_sub(self.taken_bytes())
    }

    /// Bytes, of those that are planned, that nobody has claimed of late, nor a copy has. None on a
    /// tier without a capacity: what its device holds is not known.
    pub(crate) fn free_for_copies(&self) -> u64 {
        if self.is_unlimited() {
            return 0;
        }
        let least = self.space.least_free.iter();
        let unused = least.map(|least| least.load(Ordering::Relaxed)).min();
        let unused = unused.unwrap_or(0).min(self.free_for_jobs());
        unused
            .saturating_sub(self.unplanned_bytes())
            .saturating_sub(self.copied_bytes())
    }

    /// Begins a span of time: what was free all through the last one, and still is, is free for
    /// copies.
    pub(crate) fn begin_span(&self) {
        let [now, before] = &self.space.least_free;
        before.store(now.load(Ordering::Relaxed), Ordering::Relaxed);
        now.store(self.free_for_jobs(), Ordering::Relaxed);
    }

    /// Has nothing copied in this span of time and the next.
    pub(crate) fn refuse_copies(&self) {
        self.space.least_free[0].store(0, Ordering::Relaxed);
    }

    /// What is free for jobs, noted as the least of this span of time if it is.
    pub(super) fn note_free(&self) -> u64 {
        let free = self.free_for_jobs();
        let least = &self.space.least_free[0];
        if free < least.load(Ordering::Relaxed) {
            least.fetch_min(free, Ordering::Relaxed);
        }
        free
    }

    /// Counts a file that came to be, or grew, by `bytes`.
    pub(crate) fn add_file_bytes(&self, bytes: u64) {
        self.space.used.fetch_add(bytes, Ordering::Relaxed);
        self.take_back_room();
    }

    /// Counts a file that went away, or shrank, by `bytes`.
    pub(crate) fn remove_file_bytes(&self, bytes: u64) {
        let before = self.space.used.fetch_sub(bytes, Ordering::Relaxed);
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
        // In one step, so that of two jobs that reserve at once neither is let through for want of
        // the other's, and neither refused for what the other is refused.
        let space = &self.space;
        let claim = |reserved: u64| {
            let taken = space.used.load(Ordering::Relaxed).saturating_add(reserved);
            let beside = space.kept_free.saturating_add(margin);
            let wanted = taken.saturating_add(bytes).saturating_add(beside);
            // Who needs nothing is never refused: a table that moves may be what makes room.
            (bytes == 0 || wanted <= self.capacity()).then(|| reserved.saturating_add(bytes))
        };
        // What is reserved is looked at first: see `taken_bytes`.
        let (set, fetch) = (Ordering::Relaxed, Ordering::Acquire);
        if space.reserved.fetch_update(set, fetch, claim).is_err() {
            return Err(Error::NoSpace {
                operation: "reserve space within the capacity of",
                path: self.options.path.clone(),
            });
        }
        space.in_flight.fetch_add(bytes, Ordering::Relaxed);
        self.take_back_room();
        Ok(Reservation {
            tier: Arc::clone(self),
            granted: bytes,
            left: bytes,
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
        self.tier.space.used.fetch_add(bytes, Ordering::Relaxed);
        self.tier
            .space
            .reserved
            .fetch_sub(from_reserve, Ordering::Release);
        // Only now: what counts twice takes no copy's room.
        self.tier.take_back_room();
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.tier
            .space
            .reserved
            .fetch_sub(self.left, Ordering::Relaxed);
        self.tier
            .space
            .in_flight
            .fetch_sub(self.granted, Ordering::Relaxed);
    }
}

/// Every order of a look and what it looks at. Needs the checker's own atomics:
/// `cargo test -p thermocline --features shuttle --lib model`
#[cfg(all(test, feature = "shuttle"))]
mod model {
    use std::path::Path;

    use super::*;
    use crate::options::TierOptions;
    use crate::storage::{Medium, Memory};

    /// Regression: the bytes of files were read before what is reserved, and a job that ended a
    /// file in between had its bytes in neither: a second job was granted the space that the file
    /// had taken, and the fast tier grew beyond its capacity (I8).
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
mod tests;
