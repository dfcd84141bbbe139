//! Decoded blocks of tables, kept by recency and frequency within a byte budget.

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::version::edit::FileId;

/// What an entry costs beside its bytes: slot, key, reference count, allocator.
const ENTRY_OVERHEAD: u64 = 112;

/// Size that the number of slots is estimated by.
const TYPICAL_BLOCK: u64 = 4 << 10;

/// A block's place. Table numbers are never used twice (I4), so an entry can be stale only
/// in the sense that nobody asks for it any more.
type Place = (FileId, u64);

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<Place, Bytes> for ByBytes {
    fn weight(&self, _place: &Place, block: &Bytes) -> u64 {
        block.len() as u64 + ENTRY_OVERHEAD
    }
}

/// A cache of decoded blocks, shared by every table of a store.
#[derive(Debug)]
pub(crate) struct BlockCache {
    blocks: Cache<Place, Bytes, ByBytes>,
}

impl BlockCache {
    /// A cache of at most `capacity` bytes, overhead included.
    pub(crate) fn new(capacity: u64) -> Self {
        let slots = usize::try_from(capacity / TYPICAL_BLOCK).unwrap_or(usize::MAX);
        Self {
            blocks: Cache::with_weighter(slots.max(16), capacity, ByBytes),
        }
    }

    /// The block of `table` at `offset`.
    #[inline]
    pub(crate) fn get(&self, table: FileId, offset: u64) -> Option<Bytes> {
        self.blocks.get(&(table, offset))
    }

    /// Keeps `block`, at the cost of colder ones.
    pub(crate) fn insert(&self, table: FileId, offset: u64, block: Bytes) {
        self.blocks.insert((table, offset), block);
    }

    /// Bytes that the cached blocks take, overhead included.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.blocks.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_found_under_its_table_and_offset_only() {
        let cache = BlockCache::new(1 << 20);
        cache.insert(1, 4096, Bytes::from_static(b"block"));
        assert_eq!(cache.get(1, 4096).as_deref(), Some(&b"block"[..]));
        assert_eq!(cache.get(2, 4096), None);
        assert_eq!(cache.get(1, 0), None);
    }

    #[test]
    fn the_cache_stays_within_its_capacity() {
        let cache = BlockCache::new(64 << 10);
        for offset in 0..200 {
            cache.insert(7, offset, Bytes::from(vec![0; 4096]));
        }
        assert!(cache.used_bytes() > 16 << 10, "it keeps something");
        assert!(cache.used_bytes() <= 64 << 10);
    }

    #[test]
    fn a_cache_without_capacity_keeps_nothing() {
        let cache = BlockCache::new(0);
        cache.insert(1, 0, Bytes::from_static(b"block"));
        assert_eq!(cache.get(1, 0), None);
        assert_eq!(cache.used_bytes(), 0);
    }
}
