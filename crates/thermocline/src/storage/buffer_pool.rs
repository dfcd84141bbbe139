//! Aligned memory, kept for reuse.
//!
//! Direct I/O wants memory that starts at a multiple of the device's block size, and a random read
//! must not pay for clearing a fresh page. Each process has one pool, and it is bounded. The pool
//! uses a channel per size class instead of the locks of [`crate::sync`], because it outlives every
//! run of a model checker and holds nothing that a model is about.
//!
//! Large buffers are mappings of their own. Compactions use many of them for a short time, from
//! many threads, and an allocator would keep the freed ones in each thread's heap.

use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use crossbeam_channel::{Receiver, Sender, bounded};
use memmap2::MmapMut;

/// Every buffer starts at a multiple of this: the page size, and at least the logical block
/// size of every device that direct I/O is done on.
pub(super) const ALIGNMENT: usize = 4 << 10;

const SMALLEST: usize = 4 << 10;
const LARGEST: usize = 1 << 20;
const CLASSES: usize = (LARGEST / SMALLEST).ilog2() as usize + 1;
/// Bytes kept per size class; all classes together keep less than 8 MiB.
const SPARE_BYTES: usize = 512 << 10;
/// Spares kept of each large class, where a single buffer exceeds [`SPARE_BYTES`].
const MIN_SPARES: usize = 2;
/// Buffers from this size on are mappings.
const MAPPED: usize = 128 << 10;

/// Memory at a multiple of [`ALIGNMENT`] that goes back to the pool when dropped. Its content
/// is whatever its last user left.
pub(super) struct AlignedBuf {
    memory: Memory,
    capacity: usize,
}

/// Where a buffer's bytes are.
enum Memory {
    /// Aligned from `start` on.
    Heap { bytes: Vec<u8>, start: usize },
    /// Aligned to the system's pages.
    Mapped(MmapMut),
}

impl Default for Memory {
    /// No memory.
    fn default() -> Self {
        Self::Heap {
            bytes: Vec::new(),
            start: 0,
        }
    }
}

impl Memory {
    /// At least `len` bytes.
    fn new(len: usize) -> Self {
        // If the system maps no more, the heap may still have room.
        match (len >= MAPPED).then(|| MmapMut::map_anon(len)) {
            Some(Ok(mapped)) => Self::Mapped(mapped),
            Some(Err(_)) | None => Self::heap(len),
        }
    }

    fn heap(len: usize) -> Self {
        // Safe code cannot ask for an alignment, so a page more is allocated.
        let bytes = vec![0; len + ALIGNMENT];
        let address = bytes.as_ptr().addr();
        let start = address.next_multiple_of(ALIGNMENT) - address;
        Self::Heap { bytes, start }
    }
}

/// The spare memory of one size class.
struct Class {
    give: Sender<Memory>,
    take: Receiver<Memory>,
}

static SPARES: LazyLock<[Class; CLASSES]> = LazyLock::new(|| {
    std::array::from_fn(|class| {
        let spares = (SPARE_BYTES / (SMALLEST << class)).max(MIN_SPARES);
        let (give, take) = bounded(spares);
        Class { give, take }
    })
});

/// The class whose buffers hold `len` bytes, if buffers of that size are pooled.
fn class_of(len: usize) -> Option<usize> {
    let size = len.max(SMALLEST).checked_next_power_of_two()?;
    (size <= LARGEST).then(|| (size / SMALLEST).ilog2() as usize)
}

impl AlignedBuf {
    /// A buffer of at least `len` bytes.
    pub(super) fn take(len: usize) -> Self {
        let class = class_of(len);
        let capacity = class.map_or(len, |class| SMALLEST << class);
        let memory = class
            .and_then(|class| SPARES.get(class)?.take.try_recv().ok())
            .unwrap_or_else(|| Memory::new(capacity));
        Self { memory, capacity }
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        let class = class_of(self.capacity).and_then(|class| SPARES.get(class));
        if let Some(class) = class {
            // A full class means enough spares: the memory is freed.
            let _ = class.give.try_send(std::mem::take(&mut self.memory));
        }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.memory {
            Memory::Heap { bytes, start } => &bytes[*start..*start + self.capacity],
            Memory::Mapped(mapped) => &mapped[..self.capacity],
        }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Heap { bytes, start } => &mut bytes[*start..*start + self.capacity],
            Memory::Mapped(mapped) => &mut mapped[..self.capacity],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_large_enough() {
        for len in [
            0,
            1,
            4096,
            4097,
            5 << 10,
            LARGEST,
            LARGEST + 1,
            3 * LARGEST + 17,
        ] {
            let buffer = AlignedBuf::take(len);
            assert!(buffer.len() >= len, "{len}");
            assert_eq!(buffer.as_ptr().addr() % ALIGNMENT, 0, "{len}");
        }
    }

    #[test]
    fn dropped_memory_is_used_again() {
        // No other test of this process takes more than a few buffers of this class.
        let len = 200 << 10;
        let seen: Vec<usize> = (0..64)
            .map(|_| AlignedBuf::take(len).as_ptr().addr())
            .collect();
        let mut distinct = seen.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() < seen.len(), "nothing was reused");
    }

    /// Regression: buffers that compactions had read into stayed in the heaps of their threads when
    /// they were freed.
    #[test]
    fn large_buffers_are_the_systems_and_not_the_allocators() {
        let is_mapped = |len| matches!(AlignedBuf::take(len).memory, Memory::Mapped(_));
        assert!(![1, 4096, 16 << 10, 64 << 10].into_iter().any(is_mapped));
        assert!([65 << 10, 1 << 20, 3 << 20].into_iter().all(is_mapped));
    }

    #[test]
    fn the_pool_is_bounded() {
        let class = class_of(300 << 10).unwrap();
        let held: Vec<_> = (0..10).map(|_| AlignedBuf::take(300 << 10)).collect();
        drop(held);
        assert!(SPARES[class].take.len() <= MIN_SPARES);
        let kept: usize = (0..CLASSES)
            .map(|c| SPARES[c].give.capacity().unwrap() * ((SMALLEST << c) + ALIGNMENT))
            .sum();
        assert!(kept < 8 << 20, "{kept}");
    }

    #[test]
    fn sizes_past_the_largest_class_are_not_pooled() {
        assert_eq!(class_of(LARGEST), Some(CLASSES - 1));
        assert_eq!(class_of(LARGEST + 1), None);
        assert_eq!(class_of(usize::MAX), None);
    }
}
