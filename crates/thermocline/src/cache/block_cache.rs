//! Decoded blocks of tables, kept by recency and frequency within a byte budget.

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::flash::{Flash, FlashIo};
use crate::version::edit::FileId;

/// What an entry costs beside its bytes: slot, key, reference count, allocator.
const ENTRY_OVERHEAD: u64 = 112;

/// Size that the number of slots is estimated by.
const TYPICAL_BLOCK: u64 = 4 << 10;

/// Most slots that are estimated: those of more are made as they are needed, so that a store may
/// be given all memory there is without taking any of it at once.
const MOST_SLOTS: u64 = 1 << 22;

/// A block's place. Table numbers are never used twice (I4), so an entry can be stale only
/// in the sense that nobody asks for it any more.
pub(crate) type Place = (FileId, u64);

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
    /// A second, larger level.
    flash: Option<Box<dyn Flash>>,
}

impl BlockCache {
    /// A cache of at most `capacity` bytes, overhead included.
    pub(crate) fn new(capacity: u64) -> Self {
        let slots = (capacity / TYPICAL_BLOCK).clamp(16, MOST_SLOTS) as usize;
        Self {
            blocks: Cache::with_weighter(slots, capacity, ByBytes),
            flash: None,
        }
    }

    /// Puts `flash` below: what is not in memory is looked for there, and what is inserted goes to
    /// both.
    #[must_use]
    pub(crate) fn above(mut self, flash: Option<Box<dyn Flash>>) -> Self {
        self.flash = flash;
        self
    }

    /// The block of `table` at `offset`, if it is in memory.
    #[inline]
    pub(crate) fn get(&self, table: FileId, offset: u64) -> Option<Bytes> {
        self.blocks.get(&(table, offset))
    }

    /// The block of `table` at `offset`, if it is in flash; brings it to memory.
    #[inline]
    pub(crate) fn get_from_flash(&self, table: FileId, offset: u64) -> Option<Bytes> {
        let block = self.flash.as_ref()?.get((table, offset))?;
        self.blocks.insert((table, offset), block.clone());
        Some(block)
    }

    /// Keeps `block`, at the cost of colder ones.
    pub(crate) fn insert(&self, table: FileId, offset: u64, block: Bytes) {
        if let Some(flash) = &self.flash {
            flash.insert((table, offset), block.clone());
        }
        self.blocks.insert((table, offset), block);
    }

    /// What the flash cache below has read and written, if there is one.
    pub(crate) fn flash_io(&self) -> Option<FlashIo> {
        Some(self.flash.as_ref()?.io())
    }

    /// Bytes that the cached blocks take, overhead included.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.blocks.weight()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::sync::{Arc, Mutex};

    #[test]
    fn a_block_is_found_under_its_table_and_offset_only() {
        let cache = BlockCache::new(1 << 20);
        cache.insert(1, 4096, Bytes::from_static(b"block"));
        assert_eq!(cache.get(1, 4096).as_deref(), Some(&b"block"[..]));
        assert_eq!(cache.get(2, 4096), None);
        assert_eq!(cache.get(1, 0), None);
    }

    /// Flash that is memory.
    #[derive(Debug, Default)]
    struct Kept(Mutex<HashMap<Place, Bytes>>);

    impl Flash for Arc<Kept> {
        fn get(&self, place: Place) -> Option<Bytes> {
            self.0.lock().get(&place).cloned()
        }

        fn insert(&self, place: Place, block: Bytes) {
            self.0.lock().insert(place, block);
        }

        fn io(&self) -> FlashIo {
            FlashIo::default()
        }
    }

    #[test]
    fn what_memory_gave_up_comes_back_from_flash() {
        let kept = Arc::new(Kept::default());
        let cache = BlockCache::new(64 << 10).above(Some(Box::new(Arc::clone(&kept))));
        for offset in 0..200 {
            cache.insert(7, offset, Bytes::from(vec![offset as u8; 4096]));
        }
        let gone = (0..200).find(|&offset| cache.get(7, offset).is_none());
        let gone = gone.unwrap();
        let block = cache.get_from_flash(7, gone).unwrap();
        assert_eq!(block[0], gone as u8);
        assert_eq!(cache.get_from_flash(8, gone), None, "another table");
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
