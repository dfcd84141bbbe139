//! What the index holds: keys, and for each its record or a place for a record that is on its way.

use std::hash::{BuildHasher, Hash, Hasher};

use bytes::Bytes;
use equivalent::Equivalent;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::accesses::Accesses;
use super::ledger::Charge;
use crate::ids::KeyspaceId;
use crate::key::SeqNo;
use crate::sync::atomic::{AtomicU32, Ordering};

/// A key to look for. Its hash is computed once, and serves every step of a read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sought<'a> {
    pub(super) hash: u64,
    pub(crate) keyspace: KeyspaceId,
    pub(crate) key: &'a [u8],
}

impl<'a> Sought<'a> {
    pub(super) fn new(seed: u64, keyspace: KeyspaceId, key: &'a [u8]) -> Self {
        Self {
            hash: xxh3_64_with_seed(key, seed ^ u64::from(keyspace)),
            keyspace,
            key,
        }
    }

    pub(super) fn to_key(self) -> Key {
        Key {
            hash: self.hash,
            keyspace: self.keyspace,
            key: self.key.into(),
        }
    }
}

/// A key of the index.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Key {
    hash: u64,
    pub(super) keyspace: KeyspaceId,
    pub(super) key: Box<[u8]>,
}

impl Key {
    pub(super) fn sought(&self) -> Sought<'_> {
        Sought {
            hash: self.hash,
            keyspace: self.keyspace,
            key: &self.key,
        }
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Hash for Sought<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Equivalent<Key> for Sought<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.key == &*key.key && self.keyspace == key.keyspace
    }
}

/// Returns the hash that a key brings along.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Carried(u64);

impl Hasher for Carried {
    fn write(&mut self, bytes: &[u8]) {
        // Keys write one number. Anything else must still get a hash.
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl BuildHasher for Carried {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        *self
    }
}

/// The place of a key: *pending* until the fill that made it brings its record.
#[derive(Debug)]
pub(super) struct Slot {
    /// The number of the fill that made the place: no other fill can complete it.
    pub(super) token: u64,
    pub(super) cached: Option<Cached>,
    /// The charge for its memory. It is given back when nothing can reach the slot any more.
    pub(super) charge: Charge,
}

impl Slot {
    /// Whether it still waits for the record of fill `token`.
    pub(super) fn awaits(&self, token: u64) -> bool {
        self.cached.is_none() && self.token == token
    }
}

/// A record in the cache.
#[derive(Debug)]
pub(super) struct Cached {
    pub(super) seq: SeqNo,
    /// An allocation of its own, which readers share.
    pub(super) value: Bytes,
    pub(super) used: Used,
    pub(super) accesses: Accesses,
}

/// How much a record was used recently; the hand of eviction goes by this.
#[derive(Debug)]
pub(super) struct Used(AtomicU32);

impl Used {
    /// Most passes of the hand that a record can earn, so that what was hot once is not kept for
    /// ever.
    const MOST: u32 = 7;

    /// Set by the first access and never cleared. The bits below count.
    const FOUND: u32 = 1 << 31;

    /// A new record has one pass, because it may come in just before the hand arrives.
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(1))
    }

    /// For the next version of a record, which was used as much.
    pub(super) fn inherited(&self) -> Self {
        Self(AtomicU32::new(self.0.load(Ordering::Relaxed)))
    }

    /// Counts an access. A record that is read all the time is no longer written to, so that its
    /// cache line does not travel between its readers. Of several accesses at the same time,
    /// possibly only one counts.
    #[inline]
    pub(super) fn touch(&self) {
        let used = self.0.load(Ordering::Relaxed);
        if used & !Self::FOUND < Self::MOST {
            self.0.store((used + 1) | Self::FOUND, Ordering::Relaxed);
        }
    }

    /// The hand passes: halves the count; returns whether it was above 0.
    pub(super) fn halve(&self) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        let (found, used) = (word & Self::FOUND, word & !Self::FOUND);
        self.0.store(found | (used / 2), Ordering::Relaxed);
        used > 0
    }

    /// Whether there was any access.
    pub(super) fn was_found(&self) -> bool {
        self.0.load(Ordering::Relaxed) & Self::FOUND != 0
    }
}
