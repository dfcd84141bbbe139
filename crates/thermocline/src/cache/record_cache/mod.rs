//! The record cache: newest versions below the memtables, record by record.
//!
//! A block holds a dozen records, and often only one of them is hot. The record cache keeps that
//! one, key, value and all, in one allocation that readers share. Its index finds the hottest first
//! ([`hotring`]). [`crate::api`]'s `record_cache` says what may be in the cache, and why. This
//! module keeps the entries, their memory, and the accesses that RALT has to be told of.

mod accesses;
mod doorkeeper;
mod entry;
mod gate;
mod hand;
mod ledger;
mod refresh;
mod tables;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use hotring::{NewRecord, PinnedRecords, RecordRef, RecordRing};

use self::accesses::Accesses;
use self::doorkeeper::Doorkeeper;
use self::entry::Entry;
pub(crate) use self::entry::Sought;
use self::gate::Gate;
use self::ledger::{Charge, Ledger};
use crate::ids::KeyspaceId;
use crate::key::{Kind, SeqNo};
use crate::metrics::RecordCacheMetrics;
use crate::record::Record;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering, fence};
use crate::value::Value;

/// What the allocator adds to an allocation, on average.
const ALLOCATION: u64 = 16;

/// The record size in bytes by which the numbers of buckets and of places at the door are
/// estimated.
const TYPICAL_RECORD: u64 = 1 << 10;

/// Most buckets to begin with. The index grows when that is worth it, and a store may be given all
/// memory there is without taking any of it at once.
const MOST_BUCKETS: u64 = 1 << 16;

/// Places at the door per record that fits, and the most places.
const PLACES: u64 = 4;
const MOST_PLACES: u64 = 1 << 22;

/// The part of the capacity, as a divisor, that is left to dead entries: those that were taken out
/// and can still be read. They are freed when the readers of their time have left.
const DEAD: u64 = 16;

/// The part of the capacity, as a divisor, up to which a thread that fills may keep to itself what
/// it took out. It is half of what is left to the dead, so that idle threads never take all of
/// that.
const KEPT: u64 = 2 * DEAD;

/// The part of the capacity, as a divisor, that may be free in a full cache. It is more than what
/// is left to the dead.
const SPARE: u64 = 8;

/// Turns of the epochs after which what was handed over is freed, unless a reader is in the way.
const EPOCHS: usize = 3;

/// Number of fills between two checks whether the index should grow.
const FILLS_BETWEEN: u64 = 256;

/// The part of the capacity, as a divisor, that one record may take at most.
const LARGEST: u64 = 16;

/// Called for an entry that leaves, or whose accesses are taken, with its keyspace and key, its
/// value's length, and the number of accesses that were not logged yet.
pub(crate) type Left<'a> = dyn FnMut(KeyspaceId, &[u8], usize, u32) + 'a;

/// A record that was found, and how many accesses to it are to be logged now.
#[derive(Debug)]
pub(crate) struct Hit {
    pub(crate) record: Record,
    pub(crate) to_log: u32,
}

/// Records by keyspace and key, within a byte budget.
#[derive(Debug)]
pub(crate) struct RecordCache {
    index: RecordRing<Entry>,
    seed: u64,
    capacity: u64,
    door: Doorkeeper,
    gate: Gate,
    ledger: Arc<Ledger>,
    /// Charge for the memory of the door and of the index's tables.
    tables: Mutex<Charge>,
    /// Bytes of the entries in the index.
    live: AtomicU64,
    /// Where the hand of eviction stands.
    hand: AtomicU64,
    fills: AtomicU64,
    refused: AtomicU64,
    evictions: AtomicU64,
    refreshes: AtomicU64,
    invalidations: AtomicU64,
}

impl RecordCache {
    /// An empty cache of at most `capacity` bytes, everything counted. `None` if that is too little
    /// to begin with.
    pub(crate) fn new(capacity: u64, seed: u64) -> Option<Self> {
        let buckets = (capacity / TYPICAL_RECORD).clamp(1, MOST_BUCKETS);
        Self::with_buckets(capacity, seed, buckets as usize)
    }

    fn with_buckets(capacity: u64, seed: u64, buckets: usize) -> Option<Self> {
        let options = hotring::Options::default()
            .buckets(buckets)
            // It does not grow by itself: see `tables`.
            .grow_above(f64::INFINITY);
        let index = RecordRing::with_options(options).ok()?;
        let door = Doorkeeper::new((capacity / TYPICAL_RECORD * PLACES).min(MOST_PLACES));
        let ledger = Arc::new(Ledger::default());
        let tables = ledger.charge(door.bytes() + index.table_memory() as u64, capacity)?;
        let cache = Self {
            index,
            seed,
            capacity,
            door,
            gate: Gate::default(),
            ledger,
            tables: Mutex::new(tables),
            live: AtomicU64::new(0),
            hand: AtomicU64::new(0),
            fills: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            refreshes: AtomicU64::new(0),
            invalidations: AtomicU64::new(0),
        };
        (cache.room_for_entries() > 0).then_some(cache)
    }

    /// The least capacity with which a record of these lengths of key and value comes in.
    #[cfg(test)]
    pub(crate) fn least_capacity(key: usize, value: usize) -> u64 {
        LARGEST * size(key, value)
    }

    /// What to look for to find `key` of `keyspace`.
    #[inline]
    pub(crate) fn sought<'a>(&self, keyspace: KeyspaceId, key: &'a [u8]) -> Sought<'a> {
        Sought::new(self.seed, keyspace, key)
    }

    /// The record of a key for a reader at `seq`; never a newer one. `slice` gives RALT's time, if
    /// RALT is to be told of accesses.
    #[inline]
    pub(crate) fn get(
        &self,
        sought: &Sought<'_>,
        seq: SeqNo,
        slice: impl FnOnce() -> Option<u64>,
    ) -> Option<Hit> {
        let ring = self.index.pin();
        let found = ring.get(sought.hash, sought.is_key())?;
        let entry = found.header();
        if entry.seq > seq || !entry.is_complete() {
            return None;
        }
        entry.used.touch();
        Some(Hit {
            record: Record {
                seq: entry.seq,
                kind: Kind::Put,
                value: Value::cached(found.hold()),
            },
            to_log: slice().map_or(0, |slice| entry.accesses.count(slice)),
        })
    }

    /// Whether to take in a key that was missed: it was also missed not long ago, and there is
    /// room, or the records taken in recently were of use.
    #[inline]
    pub(crate) fn is_wanted(&self, sought: &Sought<'_>) -> bool {
        self.door.knows(sought.hash) && (self.has_room() || self.gate.lets_in())
    }

    /// Whether a fill evicts nothing. Dead entries that are not freed yet take room, too.
    fn has_room(&self) -> bool {
        self.used_bytes() < self.capacity - self.capacity / SPARE
    }

    /// Copies `record` in, if `is_current` allows it. `is_current` is called once a place is
    /// reserved. It says whether there can be nothing newer below the memtables, apart from what
    /// will be invalidated from then on. `slice` is RALT's time; `left` is told of what has to
    /// leave.
    pub(crate) fn fill(
        &self,
        sought: &Sought<'_>,
        record: &Record,
        slice: Option<u64>,
        is_current: impl FnOnce() -> bool,
        left: &mut Left<'_>,
    ) {
        let filled = self.try_fill(sought, record, slice, is_current, left);
        let counter = match filled {
            Some(()) => &self.fills,
            None => &self.refused,
        };
        if counter.fetch_add(1, Ordering::Relaxed) % FILLS_BETWEEN == 0 {
            self.tend_tables(left);
        }
        self.hand_over_surplus();
    }

    fn try_fill(
        &self,
        sought: &Sought<'_>,
        record: &Record,
        slice: Option<u64>,
        is_current: impl FnOnce() -> bool,
        left: &mut Left<'_>,
    ) -> Option<()> {
        let bytes = size(sought.key.len(), record.value.len());
        if bytes > self.capacity / LARGEST {
            return None;
        }
        self.make_room(bytes, left);
        let Some(charge) = self.charge(bytes) else {
            self.gate.found_no_memory();
            return None;
        };
        let accesses = Accesses::logged_in(slice.unwrap_or(0));
        let entry = Entry::pending(sought.keyspace, record.seq, accesses, charge);
        let new = NewRecord::new(sought.hash, entry, sought.key, &record.value).ok()?;
        let ring = self.index.pin();
        // Counted before another thread can take it out.
        self.live.fetch_add(bytes, Ordering::Relaxed);
        let Ok(place) = ring.insert_if_absent(new, sought.is_key()) else {
            self.live.fetch_sub(bytes, Ordering::Relaxed);
            return None;
        };
        let entry = place.header();
        // If an invalidation follows a superversion that `is_current` does not see, it sees the
        // place.
        fence(Ordering::SeqCst);
        if !is_current() {
            self.remove(&ring, sought, |now| std::ptr::eq(now, entry));
            return None;
        }
        // Not if it was taken out, even if another fill has a place there by now.
        entry.complete().then_some(())
    }

    /// Takes out the record or the pending place of a key, if `agrees`.
    fn remove<'p>(
        &self,
        ring: &'p PinnedRecords<'_, Entry>,
        sought: &Sought<'_>,
        agrees: impl FnMut(&Entry) -> bool,
    ) -> Option<RecordRef<'p, Entry>> {
        let gone = ring.remove_if(sought.hash, sought.is_key(), agrees)?;
        let entry = gone.header();
        entry.has_gone();
        self.live.fetch_sub(entry.charge.bytes(), Ordering::Relaxed);
        Some(gone)
    }

    /// Takes out what there is of a key, including a pending place. For a record, returns the
    /// length of its value and the number of accesses that were not logged yet. After the last of
    /// its keys, the caller must [hand over](Self::hand_over) what it took out.
    pub(crate) fn invalidate(&self, sought: &Sought<'_>) -> Option<(usize, u32)> {
        // Whoever reserves a place that is not seen here sees the superversions that were published
        // before.
        fence(Ordering::SeqCst);
        let ring = self.index.pin();
        let gone = self.remove(&ring, sought, |_| true)?;
        self.invalidations.fetch_add(1, Ordering::Relaxed);
        let entry = gone.header();
        let was_record = entry.is_complete();
        was_record.then(|| (gone.value().len(), entry.accesses.take()))
    }

    /// Takes out everything of `keyspace`, which has been dropped.
    pub(crate) fn forget(&self, keyspace: KeyspaceId) {
        self.take_out(keyspace);
        self.hand_over();
    }

    fn take_out(&self, keyspace: KeyspaceId) {
        let ring = self.index.pin();
        for entry in ring.entries() {
            let is_of_it = entry.header().keyspace == keyspace;
            if is_of_it && self.remove(&ring, &Sought::of(entry), |_| true).is_some() {
                self.invalidations.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Tells `left` of all accesses that have not been logged yet. The entries stay.
    pub(crate) fn take_accesses(&self, left: &mut Left<'_>) {
        let ring = self.index.pin();
        for entry in ring.entries() {
            let accesses = entry.header().accesses.take();
            let keyspace = entry.header().keyspace;
            left(keyspace, entry.key(), entry.value().len(), accesses);
        }
    }

    /// Hands what this thread took out to all threads, any of which can then free it. On their own,
    /// the epochs leave these entries to the thread until it has taken out some dozens: a thread
    /// that takes out nothing more would keep them from being freed for ever. Must not be called
    /// under a handle, which would keep them, too.
    pub(crate) fn hand_over(&self) {
        self.index.pin().flush();
    }

    /// Hands over if the dead take much. It may be long before this thread fills again. The last
    /// thread that finishes a fill sees what all have taken out.
    fn hand_over_surplus(&self) {
        if self.dead_bytes() > self.capacity / KEPT {
            self.hand_over();
        }
    }

    /// Bytes that the entries in the index may take, besides tables and dead entries.
    fn room_for_entries(&self) -> u64 {
        self.capacity
            .saturating_sub(self.fixed_bytes())
            .saturating_sub(self.capacity / DEAD)
    }

    /// Charges memory for an entry, if there is enough left.
    fn charge(&self, bytes: u64) -> Option<Charge> {
        for _ in 0..EPOCHS {
            if let Some(charge) = self.ledger.charge(bytes, self.capacity) {
                return Some(charge);
            }
            // Dead entries take the room, and this thread may hold some of them.
            self.hand_over();
        }
        self.ledger.charge(bytes, self.capacity)
    }

    /// Bytes of entries that were taken out and are not freed yet.
    fn dead_bytes(&self) -> u64 {
        self.used_bytes()
            .saturating_sub(self.fixed_bytes())
            .saturating_sub(self.live.load(Ordering::Relaxed))
    }

    /// Bytes of everything: entries, dead entries that are not freed yet, and tables.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.ledger.held()
    }

    /// Its counts, except for hits and misses, which the reads count.
    pub(crate) fn metrics(&self) -> RecordCacheMetrics {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RecordCacheMetrics {
            capacity_bytes: self.capacity,
            bytes: self.used_bytes(),
            entries: self.index.len() as u64,
            fills: get(&self.fills),
            refused_fills: get(&self.refused),
            evictions: get(&self.evictions),
            refreshes: get(&self.refreshes),
            invalidations: get(&self.invalidations),
            hits: 0,
            misses: 0,
        }
    }
}

/// Bytes of an entry with a key and a value of these lengths.
fn size(key: usize, value: usize) -> u64 {
    NewRecord::<Entry>::OVERHEAD as u64 + key as u64 + value as u64 + ALLOCATION
}
