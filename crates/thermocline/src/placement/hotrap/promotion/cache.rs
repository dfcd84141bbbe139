//! The promotion cache: records of the slow tier in memory, in key order.

use std::ops::Bound;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use crossbeam_skiplist::SkipMap;

use super::gate::Taken;
use crate::key::{KeyRange, Kind, SeqNo};
use crate::record::Record;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::value::Value;

/// What a record costs beside its bytes: the skiplist node and the allocator.
const RECORD_OVERHEAD: u64 = 128;

/// A record on its way up.
#[derive(Debug)]
pub(crate) struct Promoted {
    pub(crate) seq: SeqNo,
    pub(crate) value: Bytes,
    /// Reads that it answered from here, including the one that brought it. RALT hears of them when
    /// the record leaves, at the latest when the store is closed.
    reads: AtomicU64,
}

impl Promoted {
    /// Reads that were answered by it.
    pub(crate) fn reads(&self) -> u32 {
        u32::try_from(self.reads.load(Ordering::Relaxed)).unwrap_or(u32::MAX)
    }
}

/// A copy of a record that is about to enter: the bytes of a read share a whole block. It is made
/// while no lock is held.
pub(super) struct Entering {
    key: Bytes,
    record: ArcSwapOption<Promoted>,
    size: u64,
}

impl Entering {
    pub(super) fn copy_of(key: &[u8], seq: SeqNo, value: &[u8]) -> Self {
        let promoted = Promoted {
            seq,
            value: Bytes::copy_from_slice(value),
            reads: AtomicU64::new(1),
        };
        Self {
            key: Bytes::copy_from_slice(key),
            record: ArcSwapOption::from_pointee(promoted),
            size: size(key, value),
        }
    }
}

/// Records read from below level f. Each equals the newest version there (I6).
///
/// A lock-free ordered map: reads never wait, and taking a range of keys out stalls nobody. The
/// gate decides what may enter, and when.
#[derive(Debug, Default)]
pub(crate) struct PromotionCache {
    /// A record that is taken out leaves its place at once. The map frees the place itself later,
    /// after some dozens of others. If the record stayed there until then, large values would take
    /// more memory than everything else (I8).
    records: SkipMap<Bytes, ArcSwapOption<Promoted>>,
    bytes: AtomicU64,
}

impl PromotionCache {
    /// The record of `key`, for a reader at `seq`: never one that is newer.
    pub(crate) fn get(&self, key: &[u8], seq: SeqNo) -> Option<Record> {
        self.find(key, seq, 1)
    }

    /// As [`PromotionCache::get`], for a look that does not count as a read: RALT does not hear of
    /// it.
    pub(crate) fn peek(&self, key: &[u8], seq: SeqNo) -> Option<Record> {
        self.find(key, seq, 0)
    }

    fn find(&self, key: &[u8], seq: SeqNo, reads: u64) -> Option<Record> {
        if self.bytes() == 0 {
            return None;
        }
        let entry = self.records.get(key)?;
        let promoted = entry.value().load();
        let promoted = promoted.as_ref()?;
        if promoted.seq > seq {
            return None;
        }
        promoted.reads.fetch_add(reads, Ordering::Relaxed);
        Some(Record {
            seq: promoted.seq,
            kind: Kind::Put,
            value: Value::new(promoted.value.clone()),
        })
    }

    /// Counts a read of the record of `key` that went below level f all the same. Returns whether
    /// the record is there.
    pub(super) fn count_read(&self, key: &[u8]) -> bool {
        let Some(entry) = self.records.get(key) else {
            return false;
        };
        let present = entry.value().load();
        let reads = present.as_ref().map(|present| &present.reads);
        reads.is_some_and(|reads| {
            reads.fetch_add(1, Ordering::Relaxed);
            true
        })
    }

    /// Takes in a record. Only the gate calls this, under its lock.
    pub(super) fn insert(&self, entering: Entering) {
        // Another reader may have brought the same version meanwhile: I6 leaves no other.
        if !self.count_read(&entering.key) {
            self.bytes.fetch_add(entering.size, Ordering::Relaxed);
            self.records.insert(entering.key, entering.record);
        }
    }

    /// Removes the record of `key`, if it is still there. If several remove it, only one of them
    /// gets it.
    pub(crate) fn remove(&self, key: &[u8]) -> Option<Arc<Promoted>> {
        // Not by the map's `remove`: that (crossbeam-skiplist 0.1.3) gives the entry to each of
        // several callers.
        let entry = self.records.get(key)?;
        if !entry.remove() {
            return None;
        }
        let promoted = entry.value().swap(None)?;
        self.bytes
            .fetch_sub(size(key, &promoted.value), Ordering::Relaxed);
        Some(promoted)
    }

    /// Removes and returns every record with a `wanted` key in `range`, in key order.
    pub(super) fn take(&self, range: &KeyRange, wanted: impl Fn(&[u8]) -> bool) -> Taken {
        let mut taken = Taken::new();
        // Entry by entry, not by the map's `range`: that (crossbeam-skiplist 0.1.3) keeps a
        // reference to each entry that it passes, and none of them is ever freed.
        let mut next = self.records.lower_bound(Bound::Included(&range.first));
        while let Some(entry) = next.filter(|entry| *entry.key() <= range.last) {
            next = entry.next();
            let key = entry.key().clone();
            drop(entry);
            if wanted(&key)
                && let Some(promoted) = self.remove(&key)
            {
                taken.push((key, promoted));
            }
        }
        taken
    }

    /// All records at this moment, in key order.
    pub(crate) fn all(&self) -> Vec<(Bytes, Arc<Promoted>)> {
        let records = self.records.iter();
        records
            .filter_map(|entry| Some((entry.key().clone(), entry.value().load_full()?)))
            .collect()
    }

    /// Takes every record out, and calls `left` with the key of each, the length of its value, and
    /// the reads that it answered.
    pub(crate) fn take_all(&self, mut left: impl FnMut(&[u8], usize, u32)) {
        for (key, _) in self.all() {
            if let Some(promoted) = self.remove(&key) {
                left(&key, promoted.value.len(), promoted.reads());
            }
        }
    }

    /// Memory in use, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

fn size(key: &[u8], value: &[u8]) -> u64 {
    (key.len() + value.len()) as u64 + RECORD_OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: &'static str, last: &'static str) -> KeyRange {
        KeyRange {
            first: Bytes::from_static(first.as_bytes()),
            last: Bytes::from_static(last.as_bytes()),
        }
    }

    /// If a promotion and a crossing took a record out at the same moment, both got it, and its
    /// bytes were subtracted twice. If the cache was nearly empty then, it counted as full from
    /// there on: nothing was promoted any more, and the last fast level was sent down table by
    /// table.
    #[test]
    fn of_two_who_remove_a_record_one_gets_it() {
        const RECORDS: u32 = 100_000;
        let cache = PromotionCache::default();
        for key in 0..RECORDS {
            cache.insert(Entering::copy_of(&key.to_be_bytes(), 1, b"v"));
        }
        let begin = std::sync::Barrier::new(2);
        let remove_all = || {
            begin.wait();
            let removed = (0..RECORDS).filter(|key| cache.remove(&key.to_be_bytes()).is_some());
            removed.count()
        };
        let removed: usize = std::thread::scope(|scope| {
            let threads = [scope.spawn(remove_all), scope.spawn(remove_all)];
            let counts = threads.map(|thread| thread.join().unwrap());
            counts.iter().sum()
        });
        assert_eq!((removed, cache.bytes()), (RECORDS as usize, 0));
    }

    /// If several readers found a record below level f at the same time, only the first was
    /// counted.
    #[test]
    fn every_reader_who_brings_a_record_counts() {
        let cache = PromotionCache::default();
        (0..3).for_each(|_| cache.insert(Entering::copy_of(b"k", 1, b"v")));
        assert_eq!(cache.remove(b"k").unwrap().reads(), 3);
        assert_eq!(cache.bytes(), 0);
    }

    #[test]
    fn a_reader_never_gets_a_record_newer_than_its_moment() {
        let cache = PromotionCache::default();
        cache.insert(Entering::copy_of(b"k", 5, b"v"));
        assert_eq!(cache.get(b"k", 4), None);
        assert_eq!(&*cache.get(b"k", 5).unwrap().value, b"v");
        assert_eq!(cache.get(b"j", 9), None);
    }

    #[test]
    fn reads_are_counted_with_the_one_that_brought_the_record() {
        let cache = PromotionCache::default();
        cache.insert(Entering::copy_of(b"k", 5, b"v"));
        cache.get(b"k", 9);
        cache.get(b"k", 1);
        assert_eq!(cache.remove(b"k").unwrap().reads(), 2);
        assert!(cache.remove(b"k").is_none());
    }

    #[test]
    fn a_range_is_taken_out_whole_and_nothing_beside_it() {
        let cache = PromotionCache::default();
        for key in ["a", "b", "c", "cc", "d"] {
            cache.insert(Entering::copy_of(key.as_bytes(), 1, b"value"));
        }
        let taken = cache.take(&range("b", "c"), |_| true);
        let keys: Vec<_> = taken.iter().map(|(key, _)| &key[..]).collect();
        assert_eq!(keys, [b"b", b"c"]);
        let left: Vec<_> = cache.all().into_iter().map(|(key, _)| key).collect();
        assert_eq!(left, ["a", "cc", "d"]);
        cache.take(&range("", "z"), |_| true);
        assert_eq!(cache.bytes(), 0, "what comes in is what goes out");
    }

    /// Regression: records that a crossing took along stayed in memory for good; a soak grew by 13
    /// MiB a minute. Later they stayed until some dozens of others had come and gone, which took
    /// hours with values of 20 MiB.
    #[test]
    fn records_that_are_taken_out_are_freed_at_once() {
        let cache = PromotionCache::default();
        for key in ["a", "b", "c"] {
            cache.insert(Entering::copy_of(key.as_bytes(), 1, b"value"));
        }
        let taken = cache.take(&range("a", "b"), |_| true).into_iter();
        let mut left: Vec<_> = taken
            .map(|(_, promoted)| Arc::downgrade(&promoted))
            .collect();
        left.push(Arc::downgrade(&cache.remove(b"c").unwrap()));
        assert!(left.iter().all(|record| record.strong_count() == 0));
        assert_eq!((left.len(), cache.bytes()), (3, 0));
    }
}
