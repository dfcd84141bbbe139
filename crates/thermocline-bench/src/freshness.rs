//! Which write of a record a read may return.
//!
//! A stale answer has a good checksum, so it is found only by knowing what was written last.
//! One record in [`TRACKED`] is followed: its writes are numbered, and never overlap, so
//! that the order of the numbers is the order of the writes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One record in so many is followed: two bytes of memory per record.
const TRACKED: u64 = 16;

/// Writes of the followed records.
#[derive(Debug)]
pub(crate) struct Freshness(Vec<Slot>);

#[derive(Debug, Default)]
struct Slot {
    /// Number of the last write that was begun.
    begun: AtomicU64,
    /// Number of the last write that was acknowledged.
    done: AtomicU64,
    /// Number of the last deletion that was begun, 0 before the first.
    deleted: AtomicU64,
    /// Whether a write is under way.
    busy: AtomicBool,
}

impl Freshness {
    /// Follows `records` records whose present values have number 0.
    pub(crate) fn new(records: u64) -> Self {
        let mut slots = Vec::new();
        slots.resize_with(records.div_ceil(TRACKED) as usize, Slot::default);
        Self(slots)
    }

    fn slot(&self, record: u64) -> Option<&Slot> {
        if record.is_multiple_of(TRACKED) {
            self.0.get((record / TRACKED) as usize)
        } else {
            None
        }
    }

    /// Begins a write. `None` while another write of a followed record is under way: the
    /// caller writes another record instead.
    pub(crate) fn write(&self, record: u64) -> Option<Write<'_>> {
        let Some(slot) = self.slot(record) else {
            return Some(Write {
                slot: None,
                number: 0,
            });
        };
        if slot.busy.swap(true, Ordering::Acquire) {
            return None;
        }
        let number = slot.begun.fetch_add(1, Ordering::SeqCst) + 1;
        Some(Write {
            slot: Some(slot),
            number,
        })
    }

    /// Number of the oldest write that a read beginning now may return; `None` for a record
    /// that is not followed.
    pub(crate) fn oldest(&self, record: u64) -> Option<u64> {
        Some(self.slot(record)?.done.load(Ordering::SeqCst))
    }

    /// Whether a read that ends now may find nothing, because one of the possible writes is
    /// a deletion; `oldest` is of its begin.
    pub(crate) fn may_be_deleted(&self, record: u64, oldest: u64) -> bool {
        // An older deletion among the possible ones does not matter beside the last.
        self.slot(record).is_some_and(|slot| {
            let deleted = slot.deleted.load(Ordering::SeqCst);
            deleted > 0 && deleted >= oldest
        })
    }

    /// Number of the newest write that a read ending now may return.
    pub(crate) fn newest(&self, record: u64) -> Option<u64> {
        Some(self.slot(record)?.begun.load(Ordering::SeqCst))
    }
}

/// A write under way, or a deletion. Dropping it without [`Write::done`] leaves the record to nobody: the
/// run is failing.
#[derive(Debug)]
pub(crate) struct Write<'a> {
    slot: Option<&'a Slot>,
    number: u64,
}

impl Write<'_> {
    /// The number for the value's stamp.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Whether the number means anything.
    pub(crate) fn is_followed(&self) -> bool {
        self.slot.is_some()
    }

    /// Says that this is a deletion, before it begins.
    pub(crate) fn deletes(&self) {
        if let Some(slot) = self.slot {
            slot.deleted.store(self.number, Ordering::SeqCst);
        }
    }

    /// The write was acknowledged.
    pub(crate) fn done(self) {
        if let Some(slot) = self.slot {
            slot.done.store(self.number, Ordering::SeqCst);
            slot.busy.store(false, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn followed_records_know_what_is_possible() {
        let freshness = Freshness::new(100);
        assert_eq!(freshness.oldest(16), Some(0));
        let write = freshness.write(16).unwrap();
        assert_eq!(write.number(), 1);
        // Neither acknowledged nor impossible.
        assert_eq!(
            (freshness.oldest(16), freshness.newest(16)),
            (Some(0), Some(1))
        );
        assert!(freshness.write(16).is_none());
        assert!(freshness.write(32).is_some());
        write.done();
        assert_eq!(
            (freshness.oldest(16), freshness.newest(16)),
            (Some(1), Some(1))
        );
        assert_eq!(freshness.write(16).unwrap().number(), 2);
    }

    #[test]
    fn a_record_may_be_missing_from_its_deletion_to_its_next_write() {
        let freshness = Freshness::new(100);
        assert!(!freshness.may_be_deleted(16, 0));
        let delete = freshness.write(16).unwrap();
        delete.deletes();
        let before = freshness.oldest(16).unwrap();
        assert!(freshness.may_be_deleted(16, before));
        delete.done();
        let after = freshness.oldest(16).unwrap();
        assert!(freshness.may_be_deleted(16, after));
        freshness.write(16).unwrap().done();
        let again = freshness.oldest(16).unwrap();
        assert!(!freshness.may_be_deleted(16, again));
        assert!(
            freshness.may_be_deleted(16, after),
            "a read that began then"
        );
    }

    #[test]
    fn other_records_are_always_free() {
        let freshness = Freshness::new(100);
        assert!(!freshness.write(17).unwrap().is_followed());
        assert!(freshness.write(17).is_some());
        assert_eq!(freshness.oldest(17), None);
        assert_eq!(freshness.oldest(1600), None);
    }
}
