//! A value that a read returns.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use bytes::Bytes;
use hotring::Held;

/// A value, sharing the memory of the block, memtable or cached record it was found in: getting it
/// copies nothing, and holding it keeps that memory alive.
#[derive(Clone)]
pub struct Value(Memory);

/// Whose memory it is.
#[derive(Clone)]
enum Memory {
    /// A block's or a memtable's.
    Shared(Bytes),
    /// A cached record's.
    Cached(Held),
}

impl Value {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self(Memory::Shared(bytes))
    }

    /// The value of a cached record.
    pub(crate) fn cached(held: Held) -> Self {
        Self(Memory::Cached(held))
    }

    /// The bytes, still shared.
    pub fn into_bytes(self) -> Bytes {
        match self.0 {
            Memory::Shared(bytes) => bytes,
            Memory::Cached(held) => Bytes::from_owner(held),
        }
    }
}

impl Default for Value {
    fn default() -> Self {
        Self::new(Bytes::new())
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Memory::Shared(bytes) => bytes.fmt(f),
            Memory::Cached(held) => Bytes::copy_from_slice(held).fmt(f),
        }
    }
}

impl Deref for Value {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Memory::Shared(bytes) => bytes,
            Memory::Cached(held) => held,
        }
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl PartialEq<[u8]> for Value {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl PartialEq<&[u8]> for Value {
    fn eq(&self, other: &&[u8]) -> bool {
        **self == **other
    }
}
