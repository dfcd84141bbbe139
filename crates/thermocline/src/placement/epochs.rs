//! When temperatures are worked out anew.

use std::time::Duration;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};

/// How long an epoch lasts at least (Mutant, §4.2). No thread waits for its end: whoever looks at
/// the clock after it ends it, and while nobody reads or writes it goes on.
const EPOCH: Duration = Duration::from_secs(1);

/// The epochs of a store that is open.
#[derive(Debug)]
pub(crate) struct Epochs {
    /// When the present one may end, in nanoseconds of the store's clock.
    due: AtomicU64,
    began: Mutex<Option<Duration>>,
}

impl Default for Epochs {
    fn default() -> Self {
        Self {
            due: AtomicU64::new(0),
            began: Mutex::new(None),
        }
    }
}

impl Epochs {
    /// Whether the epoch may end at `now`. If so, it is the caller's to end: nobody else is told
    /// for as long as an epoch lasts.
    #[inline]
    pub(crate) fn is_due(&self, now: Duration) -> bool {
        let due = self.due.load(Ordering::Relaxed);
        let now = now.as_nanos() as u64;
        now >= due && self.next(due, now)
    }

    #[cold]
    fn next(&self, due: u64, now: u64) -> bool {
        let next = now + EPOCH.as_nanos() as u64;
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.due.compare_exchange(due, next, set, fetch).is_ok()
    }

    /// Ends the epoch at `now`, and begins the next. Returns how long it was; none for the first,
    /// before which nobody counted, and for one that has not lasted long enough.
    pub(crate) fn end(&self, now: Duration) -> Option<Duration> {
        let mut began = self.began.lock();
        let length = began.map(|began| now.saturating_sub(began));
        if length.is_some_and(|length| length < EPOCH) {
            return None;
        }
        *began = Some(now);
        length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_ends_once_when_somebody_looks_after_its_time() {
        let epochs = Epochs::default();
        let at = Duration::from_millis;
        assert!(epochs.is_due(at(0)));
        assert_eq!(epochs.end(at(0)), None, "nobody knows when it began");
        assert!(!epochs.is_due(at(999)) && epochs.end(at(999)).is_none());
        assert!(epochs.is_due(at(5000)) && !epochs.is_due(at(5001)));
        assert_eq!(epochs.end(at(5100)), Some(at(5100)));
        assert_eq!(epochs.end(at(6099)), None);
        assert_eq!(epochs.end(at(6100)), Some(at(1000)));
    }
}
