//! Which write of a record a read may return.
//!
//! A stale answer has a good checksum, so it is found only by knowing what was written last. One
//! record in [`TRACKED`] is followed. Its writes are numbered and never overlap, so the order of
//! the numbers is the order of the writes.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One record in this many is followed. That takes two bytes of memory per record.
const TRACKED: u64 = 16;

/// Followed records of a chunk.
const CHUNK: usize = 64;

/// Writes of the followed records.
///
/// The memory of a chunk is taken at its first write, because it is memory of the process that is
/// measured: as long as nothing is written, there is none.
#[derive(Debug)]
pub(crate) struct Freshness {
    /// How many records are followed: the last chunk may have room for more.
    followed: usize,
    chunks: Vec<OnceLock<Box<[Slot; CHUNK]>>>,
}

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
        let mut chunks = Vec::new();
        let followed = records.div_ceil(TRACKED) as usize;
        chunks.resize_with(followed.div_ceil(CHUNK), OnceLock::new);
        Self { followed, chunks }
    }

    /// The chunk of a record that is followed, and its place there.
    fn place(&self, record: u64) -> Option<(&OnceLock<Box<[Slot; CHUNK]>>, usize)> {
        let number = usize::try_from(record / TRACKED).ok()?;
        if !record.is_multiple_of(TRACKED) || number >= self.followed {
            return None;
        }
        Some((self.chunks.get(number / CHUNK)?, number % CHUNK))
    }

    /// A number in the slot of a record. It is 0 before the first write of its chunk, and `None`
    /// for a record that is not followed. Whoever reads what a write wrote sees the write's chunk.
    fn number(&self, record: u64, of: impl Fn(&Slot) -> &AtomicU64) -> Option<u64> {
        let (chunk, at) = self.place(record)?;
        let slot = chunk.get().map(|slots| &slots[at]);
        Some(slot.map_or(0, |slot| of(slot).load(Ordering::SeqCst)))
    }

    /// Begins a write. `None` while another write of a followed record is under way: then the
    /// caller writes another record instead.
    pub(crate) fn write(&self, record: u64) -> Option<Write<'_>> {
        let Some((chunk, at)) = self.place(record) else {
            return Some(Write {
                slot: None,
                number: 0,
            });
        };
        let slots = chunk.get_or_init(|| Box::new(std::array::from_fn(|_| Slot::default())));
        let slot = &slots[at];
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
        self.number(record, |slot| &slot.done)
    }

    /// Whether a read that ends now may find nothing, because one of the possible writes is a
    /// deletion. `oldest` is from the read's beginning.
    pub(crate) fn may_be_deleted(&self, record: u64, oldest: u64) -> bool {
        // Only the last deletion matters, even if there are older ones among the possible writes.
        self.number(record, |slot| &slot.deleted)
            .is_some_and(|deleted| deleted > 0 && deleted >= oldest)
    }

    /// Number of the newest write that a read ending now may return.
    pub(crate) fn newest(&self, record: u64) -> Option<u64> {
        self.number(record, |slot| &slot.begun)
    }
}

/// A write under way, or a deletion. If it is dropped without [`Write::done`], nobody can write the
/// record any more: the run is failing then.
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
        // The write is not acknowledged, but its effect is possible.
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

    /// Regression: in a process that read 11 million records and wrote nothing, these numbers took
    /// 22 MB.
    #[test]
    fn memory_is_taken_where_something_is_written() {
        let freshness = Freshness::new(1 << 20);
        let chunks = || {
            freshness
                .chunks
                .iter()
                .filter(|chunk| chunk.get().is_some())
        };
        (0..1 << 20).for_each(|record| {
            freshness.oldest(record);
            freshness.newest(record);
            assert!(!freshness.may_be_deleted(record, 0));
        });
        assert_eq!(chunks().count(), 0);
        freshness.write(16).unwrap().done();
        freshness.write(32).unwrap().done();
        assert_eq!(chunks().count(), 1);
        assert_eq!(
            (freshness.oldest(16), freshness.oldest(48)),
            (Some(1), Some(0))
        );
    }

    #[test]
    fn other_records_are_always_free() {
        let freshness = Freshness::new(100);
        assert!(!freshness.write(17).unwrap().is_followed());
        assert!(freshness.write(17).is_some());
        assert_eq!(freshness.oldest(17), None);
        // Records that are inserted later are not followed, and have numbers of their own.
        for inserted in [112, 1008, 1024, 1600] {
            assert_eq!(freshness.oldest(inserted), None);
            assert!(!freshness.write(inserted).unwrap().is_followed());
        }
    }
}
