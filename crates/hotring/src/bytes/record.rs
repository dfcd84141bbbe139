//! The node of a byte string and its value.

use std::alloc::{self, Layout};
use std::ptr::NonNull;

use crate::draft::Draft;
use crate::error::StoreError;
use crate::link::{Entry, Node, Owned};

/// The header of a record; the key's bytes and then the value's follow in the same allocation.
#[repr(C)]
pub(crate) struct Record {
    node: Node,
    key: u32,
    value: u32,
}

impl Record {
    fn layout(key: usize, value: usize) -> Option<Layout> {
        let bytes = size_of::<Self>().checked_add(key)?.checked_add(value)?;
        Layout::from_size_align(bytes, align_of::<Self>()).ok()
    }

    /// A node of its own.
    fn owned(order: u64, key: &[u8], value: &[u8]) -> Result<Owned<Self>, StoreError> {
        let too_large = StoreError::TooLarge {
            key: key.len(),
            value: value.len(),
        };
        let header = Self {
            node: Node::new(order),
            key: u32::try_from(key.len()).map_err(|_| too_large)?,
            value: u32::try_from(value.len()).map_err(|_| too_large)?,
        };
        let layout = Self::layout(key.len(), value.len()).ok_or(too_large)?;
        // SAFETY: at least the header's size, which is not zero.
        let memory =
            NonNull::new(unsafe { alloc::alloc(layout) }).ok_or(StoreError::OutOfMemory {
                bytes: layout.size(),
            })?;
        // SAFETY: the allocation has room for the header, at its alignment, and both strings behind
        // it, and nobody else knows it.
        unsafe {
            memory.cast::<Self>().write(header);
            let bytes = memory.add(size_of::<Self>());
            bytes.copy_from_nonoverlapping(NonNull::from(key).cast(), key.len());
            let bytes = bytes.add(key.len());
            bytes.copy_from_nonoverlapping(NonNull::from(value).cast(), value.len());
            Ok(Owned::new(memory.cast()))
        }
    }

    /// # Safety
    ///
    /// `node` was made by `owned`, its pointer is the one to all of the allocation, and it is not
    /// freed during `'g`.
    #[inline(always)]
    pub(crate) unsafe fn key<'g>(node: NonNull<Node>) -> &'g [u8] {
        // SAFETY: by the caller's promise, the key's bytes follow the header.
        unsafe {
            let len = (*node.cast::<Self>().as_ptr()).key as usize;
            let bytes = node.cast::<u8>().add(size_of::<Self>());
            NonNull::slice_from_raw_parts(bytes, len).as_ref()
        }
    }

    /// # Safety
    ///
    /// As for [`Record::key`].
    #[inline(always)]
    pub(crate) unsafe fn value<'g>(node: NonNull<Node>) -> &'g [u8] {
        // SAFETY: by the caller's promise, the value's bytes follow the key's.
        unsafe {
            let record = node.cast::<Self>().as_ptr();
            let (key, len) = ((*record).key as usize, (*record).value as usize);
            let bytes = node.cast::<u8>().add(size_of::<Self>()).add(key);
            NonNull::slice_from_raw_parts(bytes, len).as_ref()
        }
    }
}

/// A byte string and its value, which have no node yet.
#[derive(Debug)]
pub(crate) struct Apart<'b> {
    pub(crate) order: u64,
    pub(crate) key: &'b [u8],
    pub(crate) value: &'b [u8],
}

impl Draft<Record> for Apart<'_> {
    type Error = StoreError;

    fn make(self) -> Result<Owned<Record>, StoreError> {
        Record::owned(self.order, self.key, self.value)
    }
}

// SAFETY: `free` undoes `owned`, and a record is nothing but bytes.
unsafe impl Entry for Record {
    unsafe fn free(node: NonNull<Node>) {
        // SAFETY: made by `owned` with this layout; the caller is the last to use it. The header's
        // atomics need no dropping.
        unsafe {
            let layout = Layout::from_size_align_unchecked(Self::bytes(node), align_of::<Self>());
            alloc::dealloc(node.cast().as_ptr(), layout);
        }
    }

    unsafe fn bytes(node: NonNull<Node>) -> usize {
        // SAFETY: made by `owned`, and not freed. The sum was checked then.
        unsafe {
            let record = node.cast::<Self>().as_ptr();
            size_of::<Self>() + (*record).key as usize + (*record).value as usize
        }
    }
}
