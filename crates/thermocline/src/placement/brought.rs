//! Which records a crossing brought up.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64;

/// The keys of records that a crossing brought up to level f. It keeps their hashes: the keys may
/// be many, and it is enough to know which keys were certainly not among them.
#[derive(Debug, Default)]
pub(crate) struct Brought(HashSet<u64>);

impl Brought {
    pub(super) fn insert(&mut self, key: &[u8]) {
        self.0.insert(xxh3_64(key));
    }

    /// Whether `key` may be one of them. Now and then this is true although it is not.
    pub(crate) fn may_contain(&self, key: &[u8]) -> bool {
        self.0.contains(&xxh3_64(key))
    }

    /// Adds those that another pass brought up.
    pub(crate) fn add(&mut self, other: Brought) {
        self.0.extend(other.0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
