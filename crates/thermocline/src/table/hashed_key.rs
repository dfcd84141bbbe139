//! A user key that is looked for, hashed once for the filters of all tables.

use std::cell::Cell;

use super::filter;

/// See the module. The hash is made when a filter is first asked: a key that is found in a memtable
/// or in the record cache never needs it.
///
/// The record cache has a hash of its own. Its seed is drawn for each store, so that nobody can
/// choose keys that collide there; the hash of the filters is part of the format and has no seed.
#[derive(Debug)]
pub(crate) struct HashedKey<'a> {
    bytes: &'a [u8],
    hash: Cell<Option<u64>>,
}

impl<'a> HashedKey<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let hash = Cell::new(None);
        Self { bytes, hash }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The hash by which filters know the key.
    #[inline]
    pub(super) fn hash(&self) -> u64 {
        self.hash.get().unwrap_or_else(|| {
            let hash = filter::hash(self.bytes);
            self.hash.set(Some(hash));
            hash
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_hashed_when_a_filter_asks_and_then_no_more() {
        let key = HashedKey::new(b"user7");
        assert_eq!(key.hash.get(), None);
        assert_eq!(key.hash(), filter::hash(b"user7"));
        key.hash.set(Some(7));
        assert_eq!((key.hash(), key.bytes()), (7, &b"user7"[..]));
    }
}
