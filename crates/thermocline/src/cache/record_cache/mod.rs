//! The record cache: newest versions below the memtables, record by record.
//!
//! A block holds a dozen records, of which often one is hot. The record cache keeps that one, in an
//! allocation of its own that readers share, in an index that finds the hottest first
//! ([`hotring`]). What may be in it, and why, is told in [`crate::api`]'s `record_cache`; this
//! module keeps the entries, their memory, and the accesses that RALT has to hear of.

mod accesses;
mod doorkeeper;
mod entry;
mod gate;
mod hand;
mod ledger;
mod tables;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use hotring::{CompareAndSwap, HotRing};

use self::accesses::Accesses;
use self::doorkeeper::Doorkeeper;
pub(crate) use self::entry::Sought;
use self::entry::{Cached, Carried, Key, Slot, Used};
use self::gate::Gate;
use self::ledger::{Charge, Ledger};
use crate::ids::KeyspaceId;
use crate::key::{Kind, SeqNo};
use crate::metrics::RecordCacheMetrics;
use crate::record::Record;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering, fence};
use crate::value::Value;

/// Bytes of a node of the index: its own header, the key and the slot.
const NODE: u64 = (24 + size_of::<Key>() + size_of::<Slot>()) as u64;

/// What the allocator adds to an allocation, on average.
const ALLOCATION: u64 = 16;

/// What sharing a value costs: its reference count, allocated with the first reader.
const SHARED: u64 = 24 + ALLOCATION;

/// Size by which the numbers of buckets and of places at the door are estimated, in bytes.
const TYPICAL_RECORD: u64 = 1 << 10;

/// Most buckets to begin with: the index grows by itself, and a store may be given all memory there
/// is without taking any of it at once.
const MOST_BUCKETS: u64 = 1 << 16;

/// Places at the door for each record that fits, and at most.
const PLACES: u64 = 4;
const MOST_PLACES: u64 = 1 << 22;

/// The part of the capacity, as a divisor, that is left to entries that were taken out and can
/// still be read: they go when the readers of their moment have.
const DEAD: u64 = 16;

/// The part of the capacity, as a divisor, up to which a thread that fills may keep what it took
/// out in hands of its own: half of what is left to the dead, so that idle threads never take all
/// of that.
const KEPT: u64 = 2 * DEAD;

/// The part of the capacity, as a divisor, that may be free in a full cache: more than is left to
/// the dead.
const SPARE: u64 = 8;

/// Turns of the epochs after which what was handed over is freed, if no reader is in the way.
const EPOCHS: usize = 3;

/// How often it is looked whether the index is to grow.
const FILLS_BETWEEN: u64 = 256;

/// The part of the capacity, as a divisor, that one record may take.
const LARGEST: u64 = 16;

/// What is done with an entry that leaves, or whose accesses are taken: its keyspace and key, its
/// value's length, and the accesses that were not logged yet.
pub(crate) type Left<'a> = dyn FnMut(KeyspaceId, &[u8], usize, u32) + 'a;

/// A record found, and how many accesses to it are to be logged now.
#[derive(Debug)]
pub(crate) struct Hit {
    pub(crate) record: Record,
    pub(crate) to_log: u32,
}

/// Records by keyspace and key, within a bound of bytes.
#[derive(Debug)]
pub(crate) struct RecordCache {
    index: HotRing<Key, Slot, Carried>,
    seed: u64,
    capacity: u64,
    door: Doorkeeper,
    gate: Gate,
    ledger: Arc<Ledger>,
    /// What the door and the index's tables take.
    tables: Mutex<Charge>,
    /// Bytes of the entries in the index.
    live: AtomicU64,
    /// Where the hand of eviction stands.
    hand: AtomicU64,
    tokens: AtomicU64,
    fills: AtomicU64,
    refused: AtomicU64,
    evictions: AtomicU64,
    invalidations: AtomicU64,
}

impl RecordCache {
    /// An empty cache of at most `capacity` bytes, everything counted; none where that is too
    /// little to begin with.
    pub(crate) fn new(capacity: u64, seed: u64) -> Option<Self> {
        let buckets = (capacity / TYPICAL_RECORD).clamp(1, MOST_BUCKETS);
        Self::with_buckets(capacity, seed, buckets as usize)
    }

    fn with_buckets(capacity: u64, seed: u64, buckets: usize) -> Option<Self> {
        let options = hotring::Options::default()
            .buckets(buckets)
            // Not by itself: see `tables`.
            .grow_above(f64::INFINITY);
        let index = HotRing::with_options_and_hasher(options, Carried::default()).ok()?;
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
            tokens: AtomicU64::new(0),
            fills: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            invalidations: AtomicU64::new(0),
        };
        (cache.room_for_entries() > 0).then_some(cache)
    }

    /// The least capacity with which a record comes in whose key and value have these lengths.
    #[cfg(test)]
    pub(crate) fn least_capacity(key: usize, value: usize) -> u64 {
        LARGEST * sizes(key, value).1
    }

    /// What is looked for under `key` of `keyspace`.
    #[inline]
    pub(crate) fn sought<'a>(&self, keyspace: KeyspaceId, key: &'a [u8]) -> Sought<'a> {
        Sought::new(self.seed, keyspace, key)
    }

    /// The record of a key for a reader at `seq`: never one that is newer. `slice` tells RALT's
    /// time, if it is to hear of accesses.
    #[inline]
    pub(crate) fn get(
        &self,
        sought: &Sought<'_>,
        seq: SeqNo,
        slice: impl FnOnce() -> Option<u64>,
    ) -> Option<Hit> {
        let ring = self.index.pin();
        let cached = ring.get(sought)?.cached.as_ref()?;
        if cached.seq > seq {
            return None;
        }
        cached.used.touch();
        Some(Hit {
            record: Record {
                seq: cached.seq,
                kind: Kind::Put,
                value: Value::new(cached.value.clone()),
            },
            to_log: slice().map_or(0, |slice| cached.accesses.count(slice)),
        })
    }

    /// Whether a key that was missed is to be taken in: it has been missed before, not long ago,
    /// and there is room, or what was taken in of late was of use.
    #[inline]
    pub(crate) fn is_wanted(&self, sought: &Sought<'_>) -> bool {
        self.door.knows(sought.hash) && (self.has_room() || self.gate.lets_in())
    }

    /// Whether a fill evicts nobody. What is dead and not freed yet takes room too.
    fn has_room(&self) -> bool {
        self.used_bytes() < self.capacity - self.capacity / SPARE
    }

    /// Copies `record` in, if `is_current` says, once a place is reserved, that nothing newer can
    /// be below the memtables but what will be invalidated from then on. `slice` is RALT's time;
    /// `left` hears of what has to go.
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
        // It may be long before this thread fills again. The last one to end sees what all have
        // taken out.
        if self.dead_bytes() > self.capacity / KEPT {
            self.hand_over();
        }
    }

    fn try_fill(
        &self,
        sought: &Sought<'_>,
        record: &Record,
        slice: Option<u64>,
        is_current: impl FnOnce() -> bool,
        left: &mut Left<'_>,
    ) -> Option<()> {
        let (place, whole) = sizes(sought.key.len(), record.value.len());
        if whole > self.capacity / LARGEST {
            return None;
        }
        self.make_room(place + whole, left);
        let charge_both = || Some((self.charge(place)?, self.charge(whole)?));
        let Some((reserved, charge)) = charge_both() else {
            self.gate.found_no_memory();
            return None;
        };
        let token = self.reserve(sought, reserved)?;
        // The place is seen by every invalidation that follows a superversion that `is_current`
        // does not.
        fence(Ordering::SeqCst);
        if !is_current() {
            self.give_up(sought, token);
            return None;
        }
        let slot = Slot {
            token,
            cached: Some(Cached {
                seq: record.seq,
                value: Bytes::copy_from_slice(&record.value),
                used: Used::new(),
                accesses: Accesses::logged_in(slice.unwrap_or(0)),
            }),
            charge,
        };
        self.complete(sought, token, slot)
    }

    /// Puts a pending place into the index; none when the key has an entry.
    fn reserve(&self, sought: &Sought<'_>, charge: Charge) -> Option<u64> {
        let token = self.tokens.fetch_add(1, Ordering::Relaxed);
        let bytes = charge.bytes();
        let slot = Slot {
            token,
            cached: None,
            charge,
        };
        let ring = self.index.pin();
        // Counted before it can be taken out by others.
        self.live.fetch_add(bytes, Ordering::Relaxed);
        if ring.try_insert(sought.to_key(), slot).is_err() {
            self.live.fetch_sub(bytes, Ordering::Relaxed);
            return None;
        }
        Some(token)
    }

    /// Puts the record of fill `token` where its place is; none when that was invalidated, even if
    /// another fill has a place there by now.
    fn complete(&self, sought: &Sought<'_>, token: u64, slot: Slot) -> Option<()> {
        let bytes = slot.charge.bytes();
        self.live.fetch_add(bytes, Ordering::Relaxed);
        let ring = self.index.pin();
        let found = ring.update_if(sought.to_key(), slot, |place| place.awaits(token));
        let (gone, done) = match found {
            CompareAndSwap::Swapped(place) => (place.charge.bytes(), Some(())),
            CompareAndSwap::Differs(_) | CompareAndSwap::Absent => (bytes, None),
        };
        self.live.fetch_sub(gone, Ordering::Relaxed);
        done
    }

    /// Takes the pending place of fill `token` back.
    fn give_up(&self, sought: &Sought<'_>, token: u64) {
        let ring = self.index.pin();
        if let Some(slot) = ring.remove_if(sought, |place| place.awaits(token)) {
            self.live.fetch_sub(slot.charge.bytes(), Ordering::Relaxed);
        }
    }

    /// Takes out what there is of a key, a pending place too. Of a record that leaves, its value's
    /// length and the accesses that were not logged yet. After the last of its keys a caller
    /// [hands over](Self::hand_over) what it took out.
    pub(crate) fn invalidate(&self, sought: &Sought<'_>) -> Option<(usize, u32)> {
        // Whoever reserves a place that is not seen here sees the superversions published before.
        fence(Ordering::SeqCst);
        let ring = self.index.pin();
        let slot = ring.remove(sought)?;
        self.live.fetch_sub(slot.charge.bytes(), Ordering::Relaxed);
        self.invalidations.fetch_add(1, Ordering::Relaxed);
        let cached = slot.cached.as_ref()?;
        Some((cached.value.len(), cached.accesses.take()))
    }

    /// Takes out everything of `keyspace`, which was dropped.
    pub(crate) fn forget(&self, keyspace: KeyspaceId) {
        self.take_out(keyspace);
        self.hand_over();
    }

    fn take_out(&self, keyspace: KeyspaceId) {
        let ring = self.index.pin();
        for entry in ring.entries() {
            if entry.key().keyspace != keyspace {
                continue;
            }
            if let Some(slot) = ring.remove(&entry.key().sought()) {
                self.live.fetch_sub(slot.charge.bytes(), Ordering::Relaxed);
                self.invalidations.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Tells `left` of all accesses that were not logged yet. The entries stay.
    pub(crate) fn take_accesses(&self, left: &mut Left<'_>) {
        let ring = self.index.pin();
        for entry in ring.entries() {
            if let Some(cached) = &entry.value().cached {
                let (key, accesses) = (entry.key(), cached.accesses.take());
                left(key.keyspace, &key.key, cached.value.len(), accesses);
            }
        }
    }

    /// Hands what this thread took out to all threads, any of which can then free it. By themselves
    /// the epochs leave it to the thread until it has taken some dozens out: one that takes nothing
    /// out any more would keep it from being freed for ever. Not under a handle, which would keep
    /// it too.
    pub(crate) fn hand_over(&self) {
        self.index.pin().flush();
    }

    /// What the entries in the index may take, beside tables and what is dead.
    fn room_for_entries(&self) -> u64 {
        self.capacity
            .saturating_sub(self.fixed_bytes())
            .saturating_sub(self.capacity / DEAD)
    }

    /// Memory for an entry, if there is some left.
    fn charge(&self, bytes: u64) -> Option<Charge> {
        for _ in 0..EPOCHS {
            if let Some(charge) = self.ledger.charge(bytes, self.capacity) {
                return Some(charge);
            }
            // The dead take the room, and some of them may be in this thread's hands.
            self.hand_over();
        }
        self.ledger.charge(bytes, self.capacity)
    }

    /// Bytes of what was taken out and is not freed yet.
    fn dead_bytes(&self) -> u64 {
        self.used_bytes()
            .saturating_sub(self.fixed_bytes())
            .saturating_sub(self.live.load(Ordering::Relaxed))
    }

    /// Bytes of everything: entries, those that are dead and not yet freed, and tables.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.ledger.held()
    }

    /// What it counts, but the hits and misses, which the reads count.
    pub(crate) fn metrics(&self) -> RecordCacheMetrics {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RecordCacheMetrics {
            capacity_bytes: self.capacity,
            bytes: self.used_bytes(),
            entries: self.index.len() as u64,
            fills: get(&self.fills),
            refused_fills: get(&self.refused),
            evictions: get(&self.evictions),
            invalidations: get(&self.invalidations),
            hits: 0,
            misses: 0,
        }
    }
}

/// Bytes of a pending place, and of an entry, by the lengths of key and value.
fn sizes(key: usize, value: usize) -> (u64, u64) {
    let place = NODE + key as u64 + 2 * ALLOCATION;
    (place, place + value as u64 + ALLOCATION + SHARED)
}
