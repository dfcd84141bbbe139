//! What the index holds: keys, and for each its record or a place for a record that is on its way.

use hotring::RecordRef;
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

    /// Whether a record of the index is of this key.
    #[inline(always)]
    pub(super) fn is_key(self) -> impl Fn(&Entry, &[u8]) -> bool + 'a {
        move |entry, key| key == self.key && entry.keyspace == self.keyspace
    }

    /// The key of a record of the index.
    pub(super) fn of(record: RecordRef<'a, Entry>) -> Self {
        Self {
            hash: record.hash(),
            keyspace: record.header().keyspace,
            key: record.key(),
        }
    }
}

/// What the index keeps of a record beside key and value, in one allocation with them.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) keyspace: KeyspaceId,
    pub(super) used: Used,
    state: AtomicU32,
    pub(super) seq: SeqNo,
    pub(super) accesses: Accesses,
    /// The charge for its memory. It is given back when nothing in the cache can reach it any more;
    /// what a reader keeps beyond that is the reader's.
    pub(super) charge: Charge,
}

/// Bits of an entry's state: its fill has brought it, and it was taken out of the index. Without
/// the first it is *pending*, a place for a record on its way.
const COMPLETE: u32 = 1;
const GONE: u32 = 2;

impl Entry {
    /// A place for the version `seq`.
    pub(super) fn pending(
        keyspace: KeyspaceId,
        seq: SeqNo,
        accesses: Accesses,
        charge: Charge,
    ) -> Self {
        Self {
            keyspace,
            used: Used::new(),
            state: AtomicU32::new(0),
            seq,
            accesses,
            charge,
        }
    }

    /// The next version of this one's record, complete from the beginning.
    pub(super) fn next(&self, seq: SeqNo, charge: Charge) -> Self {
        Self {
            keyspace: self.keyspace,
            used: self.used.inherited(),
            state: AtomicU32::new(COMPLETE),
            seq,
            accesses: self.accesses.inherited(),
            charge,
        }
    }

    /// Whether it is a record that may be found. One that was taken out stays as it was for those
    /// who have reached it before.
    #[inline]
    pub(super) fn is_complete(&self) -> bool {
        self.state.load(Ordering::Acquire) & COMPLETE != 0
    }

    /// Makes a record of a place, unless it was taken out.
    pub(super) fn complete(&self) -> bool {
        self.state
            .compare_exchange(0, COMPLETE, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Notes that it was taken out of the index.
    pub(super) fn has_gone(&self) {
        self.state.fetch_or(GONE, Ordering::AcqRel);
    }
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
