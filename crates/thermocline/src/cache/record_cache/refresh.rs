//! Refreshing: when a flush is about to publish a newer version of a record in the cache, that
//! version takes the record's place.
//!
//! Taking the record out instead would be right, too. But what is written often is often read: of
//! the records that came in, most would leave with the next flush, and each would have to be missed
//! twice again.

use hotring::{Exchanged, NewRecord};

use super::entry::Entry;
use super::ledger::Charge;
use super::{LARGEST, RecordCache, Sought, size};
use crate::key::SeqNo;
use crate::sync::atomic::{Ordering, fence};

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
        let bytes = size(sought.key.len(), value.len());
        {
            let ring = self.index.pin();
            let Some(found) = ring.get(sought.hash, sought.is_key()) else {
                return Refreshed::Done(None);
            };
            let entry = found.header();
            if !entry.is_complete() || bytes > self.capacity / LARGEST {
                return Refreshed::MustGo;
            }
            // A flush that had failed, and is tried again.
            if entry.seq == seq {
                return Refreshed::Done(None);
            }
        }
        // Without a handle, which would keep from being freed what makes room.
        let Some(charge) = self.charge(bytes) else {
            return Refreshed::MustGo;
        };
        before_exchange();
        let refreshed = self.exchange(sought, seq, value, charge);
        self.hand_over_surplus();
        refreshed
    }

    /// Exchanges the record of a key, if it is older than `seq`, for that version.
    fn exchange(&self, sought: &Sought<'_>, seq: SeqNo, value: &[u8], charge: Charge) -> Refreshed {
        let ring = self.index.pin();
        let Some(found) = ring.get(sought.hash, sought.is_key()) else {
            // It was evicted meanwhile, and whoever did that has taken its accesses.
            return Refreshed::Done(None);
        };
        let bytes = charge.bytes();
        let next = found.header().next(seq, charge);
        let Ok(new) = NewRecord::new(sought.hash, next, sought.key, value) else {
            return Refreshed::MustGo;
        };
        // Counted before another thread can take it out.
        self.live.fetch_add(bytes, Ordering::Relaxed);
        let is_older = |now: &Entry| now.is_complete() && now.seq < seq;
        let (gone, refreshed) = match ring.replace_if(new, sought.is_key(), is_older) {
            Exchanged::Replaced(old) => {
                self.refreshes.fetch_add(1, Ordering::Relaxed);
                let entry = old.header();
                let left = (old.value().len(), entry.accesses.take());
                (entry.charge.bytes(), Refreshed::Done(Some(left)))
            }
            Exchanged::Absent => (bytes, Refreshed::Done(None)),
            Exchanged::Differs(_) => (bytes, Refreshed::MustGo),
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
