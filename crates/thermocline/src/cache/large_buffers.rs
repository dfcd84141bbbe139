//! Buffers of large values that background work and cursors have in memory. They are counted, and
//! the block cache pays for them (I8).
//!
//! A value is as long as its writer likes. The part of the memory budget that is for buffers covers
//! usual blocks. What large buffers take beyond it is taken from the block cache for as long as
//! they exist.

use std::sync::OnceLock;

use super::block_cache::BlockCache;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};

/// Buffers from this many bytes on are large.
pub(crate) const LARGE_BUFFER: usize = 256 << 10;

/// Bytes that large buffers of a store take.
#[derive(Debug, Default)]
pub(crate) struct LargeBuffers {
    bytes: AtomicU64,
    payer: OnceLock<Payer>,
}

/// Gives up memory for large buffers.
#[derive(Debug)]
struct Payer {
    cache: Arc<BlockCache>,
    /// Bytes that large buffers may take without the cache giving up any.
    share: u64,
    /// Bytes that the cache does without; locked while that changes.
    given: Mutex<u64>,
}

/// Bytes of a large buffer, which count until this is dropped.
#[derive(Debug)]
pub(crate) struct HeldBuffer {
    of: Arc<LargeBuffers>,
    bytes: u64,
}

impl LargeBuffers {
    /// Makes `cache` give up what is held beyond `share` bytes.
    pub(crate) fn take_from(&self, cache: &Arc<BlockCache>, share: u64) {
        self.payer.get_or_init(|| Payer {
            cache: Arc::clone(cache),
            share,
            given: Mutex::new(0),
        });
    }

    /// Counts a buffer of `bytes`, if it is large.
    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> Option<HeldBuffer> {
        (bytes >= LARGE_BUFFER).then(|| {
            let bytes = bytes as u64;
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.settle();
            HeldBuffer {
                of: Arc::clone(self),
                bytes,
            }
        })
    }

    /// Bytes that are held now.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn settle(&self) {
        let Some(payer) = self.payer.get() else {
            return;
        };
        let mut given = payer.given.lock();
        let wanted = self.bytes().saturating_sub(payer.share);
        if wanted != *given {
            *given = wanted;
            payer.cache.do_without(wanted);
        }
    }
}

impl Drop for HeldBuffer {
    fn drop(&mut self) {
        self.of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.of.settle();
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn the_block_cache_pays_for_large_buffers_while_they_are_held() {
        let cache = Arc::new(BlockCache::new(4 << 20));
        let fill = || {
            for offset in 0..2000 {
                cache.insert(7, offset, Bytes::from(vec![0; 4096]));
            }
            cache.used_bytes()
        };
        let full = fill();
        assert!(full > 3 << 20);
        let buffers = Arc::new(LargeBuffers::default());
        buffers.take_from(&cache, 1 << 20);
        assert!(buffers.hold(LARGE_BUFFER - 1).is_none());
        let within = buffers.hold(1 << 20);
        assert_eq!((buffers.bytes(), cache.used_bytes()), (1 << 20, full));
        let beyond = buffers.hold(3 << 20);
        assert!(cache.used_bytes() <= 1 << 20 && fill() <= 1 << 20);
        drop(beyond);
        assert!(fill() > 3 << 20);
        let all = buffers.hold(100 << 20);
        assert_eq!(fill(), 0);
        drop((within, all));
        assert!(buffers.bytes() == 0 && fill() > 3 << 20);
    }
}
