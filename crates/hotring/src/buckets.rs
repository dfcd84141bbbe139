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

/// An array of this many bytes or more, a few huge pages' worth, is a mapping.
pub(crate) const LARGE: usize = 8 << 20;

/// Memory for an array of buckets, not initialised.
#[derive(Debug)]
pub(crate) enum Memory {
    /// The allocator's.
    Heap(NonNull<u8>, Layout),
    /// The system's. It is raw because buckets are written through pointers, so nobody may take it
    /// for a slice of bytes.
    Mapping(MmapRaw),
}

impl Memory {
    /// Memory of this layout. Its size must not be zero, and its alignment must be a page's at
    /// most.
    pub(crate) fn allocate(layout: Layout) -> Result<Self, TableError> {
        let bytes = layout.size();
        // Miri does not know advice about memory. If no mapping can be had, the allocator may still
        // have memory.
        if bytes >= LARGE
            && !cfg!(miri)
            && let Ok(mapping) = MmapMut::map_anon(bytes)
        {
            // This is only advice: if the system does not take it, the array is just as good,
            // except for its speed.
            #[cfg(target_os = "linux")]
            let _ = mapping.advise(memmap2::Advice::HugePage);
            return Ok(Self::Mapping(mapping.into()));
        }
        // SAFETY: the size is not zero, as the caller promises.
        let memory = unsafe { alloc::alloc(layout) };
        let memory = NonNull::new(memory).ok_or(TableError::OutOfMemory { bytes })?;
        Ok(Self::Heap(memory, layout))
    }

    /// Where it begins.
    pub(crate) fn start(&self) -> NonNull<u8> {
        match self {
            Self::Heap(memory, _) => *memory,
            // SAFETY: the system maps nothing at null.
            Self::Mapping(mapping) => unsafe { NonNull::new_unchecked(mapping.as_mut_ptr()) },
        }
    }

    /// How much it is, in bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Heap(_, layout) => layout.size(),
            Self::Mapping(mapping) => mapping.len(),
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Self::Heap(memory, layout) = *self {
            // SAFETY: `allocate` got it with this layout.
            unsafe { alloc::dealloc(memory.as_ptr(), layout) }
        }
    }
}
