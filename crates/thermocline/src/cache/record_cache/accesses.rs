//! Accesses that the cache answered, gathered for RALT.
//!
//! RALT scores a key once for each time slice in which it was accessed, however often that was, and
//! counts all accesses (`placement/hotrap`). So the first hit in a slice is logged, together with
//! the hits since the last log. RALT's scores are then the same as if every hit had been logged.
//! Within a slice, every [`MOST_WAITING`]th hit is logged: bytes accessed are RALT's clock, which
//! has to go on.

use crate::sync::atomic::{AtomicU64, Ordering};

/// The number of hits that wait at most before they are logged.
const MOST_WAITING: u64 = 64;

/// Bits of the word that count hits; the others hold the slice.
const COUNT_BITS: u32 = 16;
const COUNT: u64 = (1 << COUNT_BITS) - 1;

/// The slice in which accesses to a record were last logged, and the number of accesses that wait
/// since then.
#[derive(Debug)]
pub(super) struct Accesses(AtomicU64);

impl Accesses {
    /// For a record that comes in during `slice`, and whose reader logs its own access.
    pub(super) fn logged_in(slice: u64) -> Self {
        Self(AtomicU64::new(slice << COUNT_BITS))
    }

    /// For the next version of a record. Accesses that wait stay with this one, to be
    /// [taken](Self::take).
    pub(super) fn inherited(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Ordering::Relaxed) & !COUNT))
    }

    /// Counts an access in `slice`; returns how many are to be logged now, which may be none.
    #[inline]
    pub(super) fn count(&self, slice: u64) -> u32 {
        let fresh = slice << COUNT_BITS;
        let before = self.0.load(Ordering::Relaxed);
        let waiting = before & COUNT;
        if before & !COUNT == fresh && waiting + 1 < MOST_WAITING {
            self.0.fetch_add(1, Ordering::Relaxed);
            return 0;
        }
        let taken = self
            .0
            .compare_exchange(before, fresh, Ordering::Relaxed, Ordering::Relaxed);
        match taken {
            Ok(_) => waiting as u32 + 1,
            // Another reader has logged or counted meanwhile, so this access waits for the next
            // log.
            Err(_) => {
                self.0.fetch_add(1, Ordering::Relaxed);
                0
            }
        }
    }

    /// Takes the accesses that still wait, when the record leaves or its next version comes.
    pub(super) fn take(&self) -> u32 {
        (self.0.fetch_and(!COUNT, Ordering::Relaxed) & COUNT) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_access_of_each_slice_is_logged_with_those_before_it() {
        let accesses = Accesses::logged_in(7);
        assert_eq!([accesses.count(7), accesses.count(7)], [0, 0]);
        assert_eq!(accesses.count(8), 3);
        assert_eq!(accesses.count(8), 0);
        assert_eq!(accesses.count(12), 2);
        assert_eq!(accesses.take(), 0);
    }

    /// Otherwise, a slice whose accesses are all answered here would never end.
    #[test]
    fn no_access_waits_for_ever_and_none_is_lost() {
        let accesses = Accesses::logged_in(0);
        let mut logged = 0;
        for _ in 0..1000 {
            logged += u64::from(accesses.count(0));
        }
        assert!(logged > 1000 - MOST_WAITING);
        assert_eq!(logged + u64::from(accesses.take()), 1000);
    }
}
