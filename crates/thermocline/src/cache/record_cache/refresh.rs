//! Refreshing: when a flush is about to publish a newer version of a record in the cache, that
//! version takes the record's place.
//!
//! Taking the record out instead would be right, too. But what is written often is often read: of
//! the records that came in, most would leave with the next flush, and each would have to be missed
//! twice again.

use bytes::Bytes;

use super::entry::{Cached, Slot};
use super::{LARGEST, RecordCache, Sought, sizes};
use crate::key::SeqNo;
use crate::sync::atomic::{Ordering, fence};
use hotring::CompareAndSwap;

impl RecordCache {
    /// Puts the version `seq` of a key, which is a put of `value`, in the place of the older record
    /// of that key, if there is one. What cannot be replaced goes: a pending place, and a record
    /// whose next version is too large or finds no memory. `before_exchange` is called when a
    /// record was found, before it is replaced.
    ///
    /// Returns the length of the value that was there, and the number of accesses to it that were
    /// not logged yet. After the last of its keys, the caller must
    /// [hand over](Self::hand_over) what it took out.
    pub(crate) fn refresh(
        &self,
        sought: &Sought<'_>,
        seq: SeqNo,
        value: &[u8],
        before_exchange: impl FnOnce(),
    ) -> Option<(usize, u32)> {
        // As in `invalidate`: a place that is not seen here is of a fill that sees the freeze.
        fence(Ordering::SeqCst);
        match self.try_refresh(sought, seq, value, before_exchange) {
            Refreshed::Done(gone) => gone,
            Refreshed::MustGo => self.invalidate(sought),
        }
    }

    fn try_refresh(
        &self,
        sought: &Sought<'_>,
        seq: SeqNo,
        value: &[u8],
        before_exchange: impl FnOnce(),
    ) -> Refreshed {
        let (used, accesses) = {
            let ring = self.index.pin();
            let Some(slot) = ring.get(sought) else {
                return Refreshed::Done(None);
            };
            match &slot.cached {
                None => return Refreshed::MustGo,
                // A flush that had failed, and is tried again.
                Some(cached) if cached.seq == seq => return Refreshed::Done(None),
                Some(cached) => (cached.used.inherited(), cached.accesses.inherited()),
            }
        };
        let (_, whole) = sizes(sought.key.len(), value.len());
        if whole > self.capacity / LARGEST {
            return Refreshed::MustGo;
        }
        // Without a handle, which would keep from being freed what makes room.
        let Some(charge) = self.charge(whole) else {
            return Refreshed::MustGo;
        };
        let slot = Slot {
            // Whoever has seen the older record does not take this one for it.
            token: self.tokens.fetch_add(1, Ordering::Relaxed),
            cached: Some(Cached {
                seq,
                value: Bytes::copy_from_slice(value),
                used,
                accesses,
            }),
            charge,
        };
        before_exchange();
        let refreshed = self.exchange(sought, seq, slot, whole);
        self.hand_over_surplus();
        refreshed
    }

    /// Exchanges a record older than `seq` for that of `slot`, which takes `bytes`.
    fn exchange(&self, sought: &Sought<'_>, seq: SeqNo, slot: Slot, bytes: u64) -> Refreshed {
        let ring = self.index.pin();
        // Counted before another thread can take it out.
        self.live.fetch_add(bytes, Ordering::Relaxed);
        let is_older = |now: &Slot| now.cached.as_ref().is_some_and(|cached| cached.seq < seq);
        let (gone, refreshed) = match ring.update_if(sought.to_key(), slot, is_older) {
            CompareAndSwap::Swapped(old) => {
                self.refreshes.fetch_add(1, Ordering::Relaxed);
                let left = old.cached.as_ref();
                let left = left.map(|cached| (cached.value.len(), cached.accesses.take()));
                (old.charge.bytes(), Refreshed::Done(left))
            }
            // It was evicted meanwhile, and whoever did that has taken its accesses.
            CompareAndSwap::Absent => (bytes, Refreshed::Done(None)),
            CompareAndSwap::Differs(_) => (bytes, Refreshed::MustGo),
        };
        self.live.fetch_sub(gone, Ordering::Relaxed);
        refreshed
    }
}

/// What became of a record that was to be refreshed.
enum Refreshed {
    /// The cache holds no older version. If one was replaced, the length of its value and its
    /// accesses.
    Done(Option<(usize, u32)>),
    /// What there is has to be taken out.
    MustGo,
}
