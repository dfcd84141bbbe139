//! Decoded blocks of tables, kept by recency and frequency, within a byte budget.

use std::thread;

use bytes::Bytes;
use quick_cache::sync::Cache;
use quick_cache::{OptionsBuilder, Weighter};

use super::flash::{Flash, FlashIo};
use crate::ids::FileId;

/// What an entry costs besides its bytes: slot, key, reference count, allocator.
const ENTRY_OVERHEAD: u64 = 112;

/// The block size by which the number of slots is estimated.
const TYPICAL_BLOCK: u64 = 4 << 10;

/// The estimate is limited to this many slots. Further ones are made when they are needed, so that
/// a store may be given all memory there is without taking any of it at once.
const MOST_SLOTS: u64 = 1 << 22;

/// Shards per core, so that threads seldom meet.
const SHARDS_PER_CORE: usize = 4;

/// A shard's least size in bytes, and for how many blocks of the configured size it has room at
/// least. A block that is longer than its shard does not stay, and a long record is a block of its
/// own.
const LEAST_SHARD: u64 = 2 << 20;
const BLOCKS_PER_SHARD: u64 = 16;

/// A block's place. Table numbers are never reused (I4), so the only way for an entry to be stale
/// is that nobody asks for it any more.
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
    capacity: u64,
    /// A second, larger level.
    flash: Option<Box<dyn Flash>>,
}

impl BlockCache {
    /// A cache of at most `capacity` bytes, overhead included, for blocks of a usual size.
    pub(crate) fn new(capacity: u64) -> Self {
        Self::for_blocks_of(TYPICAL_BLOCK, capacity)
    }

    /// A cache of at most `capacity` bytes, overhead included, for blocks of up to about
    /// `block_size` bytes. Longer blocks stay too, unless they are longer than a shard.
    pub(crate) fn for_blocks_of(block_size: u64, capacity: u64) -> Self {
        let slots = (capacity / TYPICAL_BLOCK).clamp(16, MOST_SLOTS) as usize;
        let options = OptionsBuilder::new()
            .shards(shards(block_size, capacity))
            .estimated_items_capacity(slots)
            .weight_capacity(capacity)
            .build()
            .expect("both capacities are set");
        Self {
            blocks: Cache::with_options(options, ByBytes, Default::default(), Default::default()),
            capacity,
            flash: None,
        }
    }

    /// Puts `flash` below this cache: blocks that are not in memory are looked for there, and
    /// inserted blocks go to both.
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

    /// The block of `table` at `offset`, if it is in flash. If `keep`, the block is also put into
    /// memory.
    #[inline]
    pub(crate) fn get_from_flash(&self, table: FileId, offset: u64, keep: bool) -> Option<Bytes> {
        let block = self.flash.as_ref()?.get((table, offset))?;
        if keep {
            self.blocks.insert((table, offset), block.clone());
        }
        Some(block)
    }

    /// Keeps `block`, at the cost of colder ones.
    pub(crate) fn insert(&self, table: FileId, offset: u64, block: Bytes) {
        if let Some(flash) = &self.flash {
            flash.insert((table, offset), block.clone());
        }
        self.blocks.insert((table, offset), block);
    }

    /// Uses `bytes` less than its full capacity until the next call.
    pub(super) fn do_without(&self, bytes: u64) {
        self.blocks
            .set_capacity(self.capacity.saturating_sub(bytes));
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

/// How many shards a cache of `capacity` bytes has, a power of two: as many as suit the number of
/// cores, but so few that each is large enough for its blocks.
fn shards(block_size: u64, capacity: u64) -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let least = LEAST_SHARD.max(BLOCKS_PER_SHARD * block_size);
    let most = (capacity / least).max(1);
    // The crate rounds up, so this rounds down.
    let most = 1 << most.ilog2().min(usize::BITS - 1);
    (SHARDS_PER_CORE * cores).next_power_of_two().min(most)
}

#[cfg(test)]
pub(crate) mod tests {
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

    /// A flash cache whose flash is memory.
    #[derive(Debug, Default)]
    pub(crate) struct Kept(Mutex<HashMap<Place, Bytes>>);

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
        let before = cache.used_bytes();
        let block = cache.get_from_flash(7, gone, false).unwrap();
        assert_eq!(block[0], gone as u8);
        assert_eq!((cache.get(7, gone), cache.used_bytes()), (None, before));
        assert_eq!(cache.get_from_flash(8, gone, true), None, "another table");
        let above = BlockCache::new(64 << 10).above(Some(Box::new(kept)));
        assert_eq!(above.get_from_flash(7, gone, true), Some(block.clone()));
        assert_eq!(above.get(7, gone), Some(block));
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

    /// The cache was cut into four shards per core, and a block that was longer than a shard did
    /// not stay. The more cores there were, the shorter the shards were. A tier's blocks of 1 MiB,
    /// and records of 200 KB, were read again by each lookup.
    #[test]
    fn a_block_of_the_largest_size_stays_whatever_the_number_of_cores() {
        let cache = BlockCache::new(2 << 20);
        cache.insert(1, 0, Bytes::from(vec![7; 1 << 20]));
        assert!(cache.get(1, 0).is_some());
    }

    #[test]
    fn large_blocks_have_shards_that_many_of_them_fit() {
        let cache = BlockCache::for_blocks_of(1 << 20, 16 << 20);
        for offset in 0..12 {
            cache.insert(7, offset, Bytes::from(vec![0; 1 << 20]));
        }
        assert!((0..12).all(|offset| cache.get(7, offset).is_some()));
    }

    #[test]
    fn a_cache_without_capacity_keeps_nothing() {
        let cache = BlockCache::new(0);
        cache.insert(1, 0, Bytes::from_static(b"block"));
        assert_eq!(cache.get(1, 0), None);
        assert_eq!(cache.used_bytes(), 0);
    }
}
