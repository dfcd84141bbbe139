//! A value that a read returns.

use std::ops::Deref;

use bytes::Bytes;

/// A value, sharing the memory of the block, memtable or cached record it was found in: getting it
/// copies nothing, and holding it keeps that memory alive.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Value(Bytes);

impl Value {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// The bytes, still shared.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq<[u8]> for Value {
    fn eq(&self, other: &[u8]) -> bool {
        self.0[..] == *other
    }
}

impl PartialEq<&[u8]> for Value {
    fn eq(&self, other: &&[u8]) -> bool {
        self.0[..] == **other
    }
}
