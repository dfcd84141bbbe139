//! The memory of a table's buckets.
//!
//! A lookup reads one bucket, anywhere in the array. With pages of 4 KiB the processor remembers
//! where a few megabytes of a large array are, and has to look up the rest in the page table, which
//! does not fit its nearest caches either. So a large array is a mapping of its own, for which the
//! system is asked for huge pages.

use std::alloc::{self, Layout};
use std::ptr::NonNull;

use memmap2::{MmapMut, MmapRaw};

use crate::error::TableError;
use crate::link::ADDRESS;

/// An array of this many bytes or more, a few huge pages' worth, is a mapping.
pub(crate) const LARGE: usize = 8 << 20;

/// Memory for an array of buckets, not initialised.
#[derive(Debug)]
pub(crate) struct Memory {
    start: NonNull<u8>,
    layout: Layout,
    /// None if it is the allocator's. It is raw because buckets are written through pointers, so
    /// nobody may take it for a slice of bytes.
    mapping: Option<MmapRaw>,
}

impl Memory {
    /// Memory of this layout, at an address that leaves the upper 16 bits of pointers to others.
    /// The size must not be zero.
    pub(crate) fn allocate(layout: Layout) -> Result<Self, TableError> {
        let bytes = layout.size();
        // If no mapping can be had, the allocator may still have memory.
        if bytes >= LARGE
            && let Some(mapped) = Self::map(layout)
        {
            return Ok(mapped);
        }
        // SAFETY: the size is not zero, as the caller promises.
        let start = NonNull::new(unsafe { alloc::alloc(layout) });
        let heap = Self {
            start: start.ok_or(TableError::OutOfMemory { bytes })?,
            layout,
            mapping: None,
        };
        // Some allocators tag the addresses that they give out. The system does not.
        if heap.start.addr().get() & !ADDRESS != 0 {
            return Self::map(layout).ok_or(TableError::OutOfMemory { bytes });
        }
        Ok(heap)
    }

    /// A mapping of its own.
    fn map(layout: Layout) -> Option<Self> {
        // Miri does not know advice about memory.
        if cfg!(miri) {
            return None;
        }
        let (bytes, align) = (layout.size(), layout.align());
        // A mapping begins at a page, and the layout may ask for more.
        let mapping = MmapMut::map_anon(bytes.checked_add(align)?).ok()?;
        let offset = mapping.as_ptr().align_offset(align);
        // This is only advice: if the system does not take it, the array is just as good, except
        // for its speed.
        #[cfg(target_os = "linux")]
        let _ = mapping.advise_range(memmap2::Advice::HugePage, offset, bytes);
        let mapping = MmapRaw::from(mapping);
        // SAFETY: within the mapping, which is longer by the alignment. The system maps nothing at
        // null.
        let start = unsafe { NonNull::new_unchecked(mapping.as_mut_ptr().add(offset)) };
        Some(Self {
            start,
            layout,
            mapping: Some(mapping),
        })
    }

    /// Where it begins.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// How much it is, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.mapping.is_none() {
            // SAFETY: `allocate` got it with this layout.
            unsafe { alloc::dealloc(self.start.as_ptr(), self.layout) }
        }
    }
}
