//! The memtable: recent writes in memory, in order, until a flush writes them to a table.

mod cursor;
mod key;

use std::ops::Bound;
use std::sync::OnceLock;

use bytes::Bytes;
use crossbeam_skiplist::SkipMap;
use crossbeam_skiplist::map::Entry;
pub(crate) use cursor::MemtableIter;
use key::{MemKey, Probe};

use crate::key::{InternalKey, Kind, SeqNo};
use crate::record::Record;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::table::LongKeys;
use crate::value::Value;

/// What a record costs besides its bytes: the skiplist node, the reference counts of the memory
/// that holds them, and the allocator's overhead.
const RECORD_OVERHEAD: u64 = 192;

/// Records in memory. Each shares the bytes of its batch, or has bytes of its own.
///
/// Inserts come from one group leader at a time (I10), reads from any thread.
#[derive(Default)]
pub(crate) struct Memtable {
    records: SkipMap<MemKey, Bytes>,
    bytes: AtomicU64,
    /// Bytes of all long keys, and of the longest one.
    long_keys: AtomicU64,
    longest_key: AtomicU64,
    /// Sequence numbers of the oldest and the newest record; 0 while empty.
    first_seq: AtomicU64,
    last_seq: AtomicU64,
    /// Order among the tables of L0; set when the memtable freezes (I2).
    epoch: AtomicU64,
    /// Its share of a total; set once it takes no more records.
    counted: OnceLock<Counted>,
}

/// Bytes that count in a total for as long as this lives.
#[derive(Debug)]
struct Counted {
    total: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Memtable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memtable")
            .field("bytes", &self.bytes())
            .field("last_seq", &self.last_seq())
            .finish_non_exhaustive()
    }
}

impl Memtable {
    /// Adds a record; returns the bytes of memory that it takes. The buffers that `key` and `value`
    /// are slices of stay in memory with them, so they must hold nothing that this memtable does
    /// not count (I8).
    pub(crate) fn insert(&self, key: Bytes, seq: SeqNo, kind: Kind, value: Bytes) -> u64 {
        let key_len = key.len();
        let bytes = key_len as u64 + value.len() as u64 + RECORD_OVERHEAD;
        self.records.insert(MemKey::new(key, seq, kind), value);
        if self.first_seq() == 0 {
            self.first_seq.store(seq, Ordering::Relaxed);
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if LongKeys::counts(key_len) {
            self.long_keys.fetch_add(key_len as u64, Ordering::Relaxed);
            self.longest_key
                .fetch_max(key_len as u64, Ordering::Relaxed);
        }
        self.last_seq.store(seq, Ordering::Relaxed);
        bytes
    }

    /// The newest version of `key` that a reader at `seq` may see.
    pub(crate) fn get(&self, key: &[u8], seq: SeqNo) -> Option<Record> {
        let target = InternalKey::seek_to(key, seq);
        let probe: &dyn Probe = &target;
        let entry = self.records.lower_bound(Bound::Included(probe))?;
        let found = entry.key().internal();
        (found.user_key == key).then(|| Record {
            seq: found.seq,
            kind: found.kind,
            value: Value::new(entry.value().clone()),
        })
    }

    /// Calls `visit` with the newest version of each key, in the order of keys. The memtable must
    /// take no more records. Unlike a cursor, this makes no search for each record.
    pub(crate) fn for_each_newest(&self, mut visit: impl FnMut(InternalKey<'_>, &[u8])) {
        let mut last: Option<Entry<'_, MemKey, Bytes>> = None;
        for entry in self.records.iter() {
            let key = entry.key().internal();
            let is_last = |last: &Entry<'_, MemKey, Bytes>| {
                let last = last.key().internal();
                last.user_key == key.user_key
            };
            if last.as_ref().is_some_and(is_last) {
                continue;
            }
            visit(key, entry.value());
            last = Some(entry);
        }
    }

    /// Memory in use, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// An upper bound of the length of a table of its records.
    pub(crate) fn table_len(&self) -> u64 {
        let long = LongKeys {
            sum: self.long_keys.load(Ordering::Relaxed),
            longest: self.longest_key.load(Ordering::Relaxed),
        };
        self.bytes() + long.beside_records()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// Sequence number of the oldest record; 0 while empty.
    pub(crate) fn first_seq(&self) -> SeqNo {
        self.first_seq.load(Ordering::Relaxed)
    }

    /// Sequence number of the oldest record that this thread sees, if it sees any. It takes a
    /// single load: of an insert that is not published yet, a thread may see the bytes but not the
    /// number. Of the records that the thread knows to be published, it sees the oldest (I10).
    pub(crate) fn oldest(&self) -> Option<SeqNo> {
        Some(self.first_seq()).filter(|seq| *seq > 0)
    }

    /// Sequence number of the newest record; 0 while empty.
    pub(crate) fn last_seq(&self) -> SeqNo {
        self.last_seq.load(Ordering::Relaxed)
    }

    /// The epoch given when the memtable froze (I2).
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Gives the memtable its place among the tables of L0 (I2).
    pub(crate) fn freeze(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::Relaxed);
    }

    /// Adds its bytes to `total` until nobody holds the memtable any more. It must take no more
    /// records (I10).
    pub(crate) fn count_in(&self, total: &Arc<AtomicU64>) {
        self.counted.get_or_init(|| {
            let bytes = self.bytes();
            total.fetch_add(bytes, Ordering::Relaxed);
            Counted {
                total: Arc::clone(total),
                bytes,
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_the_newest_version_at_its_sequence_number() {
        let memtable = Memtable::default();
        let key = || Bytes::from_static(b"k");
        memtable.insert(key(), 1, Kind::Put, Bytes::from_static(b"one"));
        memtable.insert(key(), 3, Kind::Delete, Bytes::new());
        memtable.insert(key(), 5, Kind::Put, Bytes::from_static(b"five"));
        let at = |seq| memtable.get(b"k", seq).map(|r| (r.seq, r.kind));
        assert_eq!(at(0), None);
        assert_eq!(at(2), Some((1, Kind::Put)));
        assert_eq!(at(4), Some((3, Kind::Delete)));
        assert_eq!(at(9), Some((5, Kind::Put)));
        assert!(memtable.get(b"", 9).is_none());
        assert!(memtable.get(b"l", 9).is_none());
        assert_eq!(memtable.last_seq(), 5);
    }

    #[test]
    fn of_each_key_only_the_newest_version_is_visited() {
        let memtable = Memtable::default();
        for (key, seq, kind) in [
            ("b", 1, Kind::Put),
            ("a", 2, Kind::Put),
            ("b", 3, Kind::Delete),
            ("c", 4, Kind::Delete),
            ("c", 5, Kind::Put),
        ] {
            let value = Bytes::from(seq.to_string());
            memtable.insert(Bytes::from(key), seq, kind, value);
        }
        let mut seen = Vec::new();
        memtable.for_each_newest(|key, value| {
            seen.push((key.user_key.to_vec(), key.seq, key.kind, value.to_vec()));
        });
        let wanted = [
            ("a", 2, Kind::Put),
            ("b", 3, Kind::Delete),
            ("c", 5, Kind::Put),
        ];
        let wanted = wanted.map(|(key, seq, kind)| {
            let value = seq.to_string().into_bytes();
            (key.as_bytes().to_vec(), seq, kind, value)
        });
        assert_eq!(seen, wanted);
    }

    /// One load (of the bytes) told whether there are records, and another load gave the number of
    /// the oldest. A processor that reorders loads or stores may show the bytes first. Then the
    /// oldest record had the number 0, and the log that other memtables still needed was removed as
    /// far as anything was published (I5).
    #[test]
    fn a_record_whose_number_is_not_seen_yet_is_not_the_oldest() {
        let memtable = Memtable::default();
        memtable.bytes.store(200, Ordering::Relaxed);
        assert_eq!(memtable.oldest(), None);
        for seq in [5, 6] {
            memtable.insert(Bytes::from_static(b"k"), seq, Kind::Put, Bytes::new());
        }
        assert_eq!(memtable.oldest(), Some(5));
    }
}
