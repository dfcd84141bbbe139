//! How memtable keys are ordered, and looked up without copying the key that is looked for.

use std::borrow::Borrow;
use std::cmp::Ordering;

use bytes::Bytes;

use crate::key::{InternalKey, Kind, SeqNo};

/// An internal key; its user key may be a slice of its batch.
#[derive(Debug, Clone)]
pub(crate) struct MemKey {
    user_key: Bytes,
    seq: SeqNo,
    kind: Kind,
}

impl MemKey {
    pub(crate) fn new(user_key: Bytes, seq: SeqNo, kind: Kind) -> Self {
        Self {
            user_key,
            seq,
            kind,
        }
    }
}

/// Anything that stands for an internal key. It lets a borrowed key search the skiplist of owned
/// keys.
pub(crate) trait Probe {
    fn internal(&self) -> InternalKey<'_>;
}

impl Probe for MemKey {
    fn internal(&self) -> InternalKey<'_> {
        InternalKey::new(&self.user_key, self.seq, self.kind)
    }
}

impl Probe for InternalKey<'_> {
    fn internal(&self) -> InternalKey<'_> {
        *self
    }
}

impl<'a> Borrow<dyn Probe + 'a> for MemKey {
    fn borrow(&self) -> &(dyn Probe + 'a) {
        self
    }
}

impl Ord for dyn Probe + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.internal().cmp(&other.internal())
    }
}

impl PartialOrd for dyn Probe + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn Probe + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for dyn Probe + '_ {}

impl Ord for MemKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.internal().cmp(&other.internal())
    }
}

impl PartialOrd for MemKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for MemKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for MemKey {}
