//! The space of a tier: what it may hold, what is used or reserved, and what is free (I8).
//!
//! There are two bounds. The capacity is a promise that holds at any time: writes and reservations
//! stay within it, writers wait for it, and what the tier can never hold is refused because of it.
//! The planned bytes are at most the capacity; the target sizes of levels and caches follow from
//! them. For a while, more than the planned bytes may be on the tier, and nobody waits until it is
//! less.
//!
//! Copies are in none of these numbers: they use free space, and give way to whoever takes it.

use super::Tier;
use crate::error::{Error, Result};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};

/// What is on a tier and what may be, in bytes.
#[derive(Debug)]
pub(super) struct Space {
    /// Most bytes that may be on the tier.
    capacity: u64,
    /// Most bytes that are meant to be on the tier.
    planned: AtomicU64,
    /// Bytes of all files on the tier, obsolete ones included.
    used: AtomicU64,
    /// Bytes reserved by jobs and not yet written to a file.
    reserved: AtomicU64,
    /// Bytes granted to all reservations that are held, used or not.
    in_flight: AtomicU64,
    /// Bytes that no job's output may take: the log and the manifest grow without a reservation.
    kept_free: u64,
    /// The least that was free for jobs: in the current span of time, and in the one before it.
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
            // At the start, no space is known to be unused.
            least_free: [AtomicU64::new(0), AtomicU64::new(0)],
        }
    }
}

impl Tier {
    /// Keeps `bytes` free that no job's output may take (I8).
    #[must_use]
    pub(crate) fn keeping_free(mut self, bytes: u64) -> Self {
        self.space.kept_free = bytes;
        self
    }

    /// Most bytes that may be on the tier, whatever is planned (I8). `u64::MAX` if nobody has set a
    /// bound.
    pub(crate) fn capacity(&self) -> u64 {
        self.space.capacity
    }

    /// Whether the tier has no bound but the size of its device.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.capacity() == u64::MAX
    }

    /// Most bytes that are meant to be on the tier. At most its capacity; equal to it when the
    /// store is opened.
    pub(crate) fn planned_bytes(&self) -> u64 {
        self.space.planned.load(Ordering::Relaxed)
    }

    /// Bytes of the capacity that are meant to stay empty.
    pub(crate) fn unplanned_bytes(&self) -> u64 {
        self.capacity().saturating_sub(self.planned_bytes())
    }

    /// Plans for `bytes` from now on.
    pub(crate) fn plan_for(&self, bytes: u64) {
        let planned = bytes.min(self.capacity());
        self.space.planned.store(planned, Ordering::Relaxed);
    }

    /// Bytes of files without copies; reservations are not counted.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.space.used.load(Ordering::Relaxed)
    }

    /// Bytes reserved for output that is not written yet.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        // Whoever sees that bytes have left the reservations also sees them in the files: see
        // `taken_bytes`.
        self.space.reserved.load(Ordering::Acquire)
    }

    /// Bytes of files and of reservations. While a job turns reserved bytes into a file, they may
    /// count twice, but they always count (I8): they are added to the files before they leave the
    /// reservations, and therefore the reservations are read first.
    fn taken_bytes(&self) -> u64 {
        let reserved = self.reserved_bytes();
        reserved.saturating_add(self.file_bytes())
    }

    /// Bytes granted to jobs that have not ended, whether written already or only reserved.
    pub(crate) fn in_flight(&self) -> u64 {
        self.space.in_flight.load(Ordering::Relaxed)
    }

    /// Bytes of files that jobs have written and not yet installed.
    pub(crate) fn unfinished_bytes(&self) -> u64 {
        self.in_flight().saturating_sub(self.reserved_bytes())
    }

    /// Bytes that job output may still take.
    pub(crate) fn free_for_jobs(&self) -> u64 {
        self.free_bytes().saturating_sub(self.space.kept_free)
    }

    /// Bytes that may still be written within the capacity.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.capacity().saturating_sub(self.taken_bytes())
    }

    /// Planned bytes that neither a job has claimed recently nor a copy uses. Where copies are paid
    /// for, what is paid and not used. None on a tier
    /// without a capacity, because it is unknown what its device holds.
    pub(crate) fn free_for_copies(&self) -> u64 {
        if self.is_unlimited() {
            return 0;
        }
        if let Some(paid) = self.paid_for_copies() {
            // They give way to whoever claims the room, and until then it is paid for.
            return paid
                .min(self.free_for_jobs())
                .saturating_sub(self.copied_bytes());
        }
        let least = self.space.least_free.iter();
        let unused = least.map(|least| least.load(Ordering::Relaxed)).min();
        let unused = unused.unwrap_or(0).min(self.free_for_jobs());
        unused
            .saturating_sub(self.unplanned_bytes())
            .saturating_sub(self.copied_bytes())
    }

    /// Begins a new span of time. What was free during all of the last one, and still is, is free
    /// for copies.
    pub(crate) fn begin_span(&self) {
        let [now, before] = &self.space.least_free;
        before.store(now.load(Ordering::Relaxed), Ordering::Relaxed);
        now.store(self.free_for_jobs(), Ordering::Relaxed);
    }

    /// Allows no copies in this span of time and the next.
    pub(crate) fn refuse_copies(&self) {
        self.space.least_free[0].store(0, Ordering::Relaxed);
    }

    /// Bytes that are free for jobs. Updates the least of this span of time.
    pub(super) fn note_free(&self) -> u64 {
        let free = self.free_for_jobs();
        let least = &self.space.least_free[0];
        if free < least.load(Ordering::Relaxed) {
            least.fetch_min(free, Ordering::Relaxed);
        }
        free
    }

    /// Counts a file that was created or grew by `bytes`.
    pub(crate) fn add_file_bytes(&self, bytes: u64) {
        self.space.used.fetch_add(bytes, Ordering::Relaxed);
        self.take_back_room();
    }

    /// Counts a file that was removed or shrank by `bytes`.
    pub(crate) fn remove_file_bytes(&self, bytes: u64) {
        let before = self.space.used.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "a file is removed that was never counted");
    }

    /// Reserves `bytes` for a job's output (I8).
    ///
    /// # Errors
    /// [`Error::NoSpace`] when the capacity does not allow it.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: u64) -> Result<Reservation> {
        self.reserve_leaving(bytes, 0)
    }

    /// As [`Tier::reserve`], but only if another `margin` bytes stay free.
    ///
    /// # Errors
    /// As [`Tier::reserve`].
    pub(crate) fn reserve_leaving(
        self: &Arc<Self>,
        bytes: u64,
        margin: u64,
    ) -> Result<Reservation> {
        // Checks and adds in one step. So of two jobs that reserve at the same time, neither is
        // granted the space of the other, and neither is refused because of bytes that the other is
        // refused.
        let space = &self.space;
        let claim = |reserved: u64| {
            let taken = space.used.load(Ordering::Relaxed).saturating_add(reserved);
            let beside = space.kept_free.saturating_add(margin);
            let wanted = taken.saturating_add(bytes).saturating_add(beside);
            // A job that needs nothing is never refused: it may move a table, and that may make
            // room.
            (bytes == 0 || wanted <= self.capacity()).then(|| reserved.saturating_add(bytes))
        };
        // The reservations are read first: see `taken_bytes`.
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

/// Reserved space on a tier. What is not used is given back on drop.
#[derive(Debug)]
pub(crate) struct Reservation {
    tier: Arc<Tier>,
    granted: u64,
    left: u64,
}

impl Reservation {
    /// Where it is.
    pub(crate) fn tier(&self) -> &Arc<Tier> {
        &self.tier
    }

    /// Reserved bytes that are not yet part of a file.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Takes `bytes` of what is left into a reservation of its own; at most what is left.
    pub(crate) fn split(&mut self, bytes: u64) -> Reservation {
        let bytes = bytes.min(self.left);
        self.left -= bytes;
        self.granted -= bytes;
        Reservation {
            tier: Arc::clone(&self.tier),
            granted: bytes,
            left: bytes,
        }
    }

    /// Turns `bytes` of the reservation into bytes of a file. A file that is larger than what is
    /// left counts in full.
    pub(crate) fn use_for_file(&mut self, bytes: u64) {
        let from_reserve = bytes.min(self.left);
        self.left -= from_reserve;
        // The order matters: see `Tier::taken_bytes`.
        self.tier.space.used.fetch_add(bytes, Ordering::Relaxed);
        self.tier
            .space
            .reserved
            .fetch_sub(from_reserve, Ordering::Release);
        // Only now, so that bytes that count twice for a moment do not take space from copies.
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

/// Tries all orders in which one thread reads what another changes. Needs the checker's own
/// atomics: `RUSTFLAGS="--cfg thermocline_shuttle" cargo test -p thermocline --lib model`
#[cfg(all(test, thermocline_shuttle))]
mod model {
    use std::path::Path;

    use super::*;
    use crate::options::TierOptions;
    use crate::storage::{Medium, Memory};

    /// Regression: the bytes of files were read before the reservations. If a job finished a file
    /// in between, its bytes were in neither number. A second job was then granted the space that
    /// the file had taken, and the fast tier grew beyond its capacity (I8).
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
