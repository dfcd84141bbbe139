//! The node of a record, and who keeps its memory.
//!
//! The map is one *holder* of a record's memory, each [`Held`] is another. The last one to go gives
//! it back. The map goes when no guard can reach the node any more, and drops the header then. So
//! whoever has a guard under which the node was reached finds the header, and may become a holder.
//! A holder without a guard reads the front, and the bytes behind the header: not the header, of
//! which it does not even know the type.

use std::alloc::{self, Layout};
use std::ops::Deref;
use std::ptr::NonNull;

use crate::error::StoreError;
use crate::link::{Entry, Node, Owned, order_of};
use crate::sync::atomic::{AtomicU32, Ordering};

/// What every record begins with.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Front {
    node: Node,
    holders: AtomicU32,
    /// Bytes of this and the header: there the key begins, and behind the key the value.
    key_at: u32,
    key: u32,
    value: u32,
}

/// A front and a header; the key's bytes and then the value's follow in the same allocation.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Record<H> {
    front: Front,
    header: H,
}

/// More holders than memory has room for.
const MOST_HOLDERS: u32 = u32::MAX / 2;

/// The alignment of every record.
const ALIGN: usize = align_of::<Front>();

impl Front {
    /// # Safety
    ///
    /// `node` is the front of a record, its pointer is the one to all of the allocation, and it is
    /// not freed during `'g`.
    #[inline(always)]
    unsafe fn of<'g>(node: NonNull<Node>) -> &'g Self {
        // SAFETY: by the caller's promise; only its atomics change.
        unsafe { node.cast::<Self>().as_ref() }
    }

    fn bytes(&self) -> usize {
        self.key_at as usize + self.key as usize + self.value as usize
    }

    /// # Safety
    ///
    /// As for [`Front::of`].
    #[inline(always)]
    unsafe fn slice<'g>(node: NonNull<Node>, at: usize, len: usize) -> &'g [u8] {
        // SAFETY: by the caller's promise, and the callers below stay within the allocation, in a
        // part that nobody writes.
        unsafe { NonNull::slice_from_raw_parts(node.cast::<u8>().add(at), len).as_ref() }
    }

    /// # Safety
    ///
    /// As for [`Front::of`].
    #[inline(always)]
    pub(super) unsafe fn key<'g>(node: NonNull<Node>) -> &'g [u8] {
        // SAFETY: by the caller's promise, the key is there.
        unsafe {
            let front = Self::of(node);
            Self::slice(node, front.key_at as usize, front.key as usize)
        }
    }

    /// # Safety
    ///
    /// As for [`Front::of`].
    #[inline(always)]
    pub(super) unsafe fn value<'g>(node: NonNull<Node>) -> &'g [u8] {
        // SAFETY: by the caller's promise, the value is there.
        unsafe {
            let front = Self::of(node);
            let at = front.key_at as usize + front.key as usize;
            Self::slice(node, at, front.value as usize)
        }
    }

    /// Lets go of the memory, and gives it back if nobody else holds it.
    ///
    /// # Safety
    ///
    /// As for [`Front::of`]; the caller is a holder, and uses the node no more. If it is the last
    /// one, the header has been dropped.
    unsafe fn release(node: NonNull<Node>) {
        // SAFETY: by the caller's promise. `front` is not used after the count.
        let bytes = unsafe {
            let front = Self::of(node);
            let bytes = front.bytes();
            if front.holders.fetch_sub(1, Ordering::AcqRel) > 1 {
                return;
            }
            bytes
        };
        // SAFETY: made with this layout, which was checked then, and nobody else leads here. The
        // front's atomics need no dropping.
        unsafe {
            let layout = Layout::from_size_align_unchecked(bytes, ALIGN);
            alloc::dealloc(node.cast().as_ptr(), layout);
        }
    }
}

impl<H> Record<H> {
    /// Records of all types are allocated, and freed, alike.
    const IS_ALIGNED: () = assert!(align_of::<Self>() == ALIGN, "the header's alignment");

    /// # Safety
    ///
    /// `node` was made by [`NewRecord::new`] for this type of header, its pointer is the one to all
    /// of the allocation, and the map does not let go of it during `'g`.
    #[inline(always)]
    pub(super) unsafe fn header<'g>(node: NonNull<Node>) -> &'g H {
        // SAFETY: by the caller's promise; nobody has it alone as long as the map holds it.
        unsafe { &(*node.cast::<Self>().as_ptr()).header }
    }
}

// SAFETY: `free` drops the header that `NewRecord::new` was given, and gives back the memory, or
// leaves that to those who still hold it. `RecordRing` asks that any thread may drop headers.
unsafe impl<H: 'static> Entry for Record<H> {
    unsafe fn free(node: NonNull<Node>) {
        // SAFETY: only the map frees, once. No guard is left under which the header was reached,
        // and holders without one do not read it.
        unsafe {
            (&raw mut (*node.cast::<Self>().as_ptr()).header).drop_in_place();
            Front::release(node);
        }
    }

    unsafe fn bytes(node: NonNull<Node>) -> usize {
        // SAFETY: as the caller promises.
        unsafe { Front::of(node) }.bytes()
    }
}

/// A record that is not in a map yet.
#[derive(Debug)]
pub struct NewRecord<H: 'static> {
    pub(super) node: Owned<Record<H>>,
}

impl<H: 'static> NewRecord<H> {
    /// The bytes that a record takes besides its key and its value, as asked of the allocator.
    pub const OVERHEAD: usize = size_of::<Record<H>>();

    /// A record, for a map that is told `hash` for its key. Copies key and value. A header that is
    /// aligned to more than 8 bytes does not compile.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if it is too large or there is no memory.
    pub fn new(hash: u64, header: H, key: &[u8], value: &[u8]) -> Result<Self, StoreError> {
        let () = Record::<H>::IS_ALIGNED;
        let too_large = StoreError::TooLarge {
            key: key.len(),
            value: value.len(),
        };
        let len = |len: usize| u32::try_from(len).map_err(|_| too_large);
        let record = Record {
            front: Front {
                node: Node::new(order_of(hash)),
                holders: AtomicU32::new(1),
                key_at: len(Self::OVERHEAD)?,
                key: len(key.len())?,
                value: len(value.len())?,
            },
            header,
        };
        let bytes = Self::OVERHEAD
            .checked_add(key.len())
            .and_then(|bytes| bytes.checked_add(value.len()))
            .ok_or(too_large)?;
        let layout = Layout::from_size_align(bytes, ALIGN).map_err(|_| too_large)?;
        // SAFETY: at least the front's size, which is not zero.
        let memory = NonNull::new(unsafe { alloc::alloc(layout) })
            .ok_or(StoreError::OutOfMemory { bytes })?;
        // SAFETY: the allocation has room for front and header, at their alignment, and both
        // strings behind them, and nobody else knows it.
        unsafe {
            memory.cast::<Record<H>>().write(record);
            let at = memory.add(Self::OVERHEAD);
            at.copy_from_nonoverlapping(NonNull::from(key).cast(), key.len());
            let at = at.add(key.len());
            at.copy_from_nonoverlapping(NonNull::from(value).cast(), value.len());
            Ok(Self {
                node: Owned::new(memory.cast()),
            })
        }
    }
}

/// The value of a record, whose memory stays for as long as this lives, whatever becomes of the
/// record and its map. Clones share it.
pub struct Held {
    node: NonNull<Node>,
}

// SAFETY: what a holder reads nobody writes, but for the count, which is an atomic.
unsafe impl Send for Held {}
// SAFETY: as above.
unsafe impl Sync for Held {}

impl Held {
    /// # Safety
    ///
    /// As for [`Front::of`], and there is a holder until this returns.
    #[inline]
    pub(super) unsafe fn new(node: NonNull<Node>) -> Self {
        // SAFETY: by the caller's promise.
        let before = unsafe { Front::of(node) }
            .holders
            .fetch_add(1, Ordering::Relaxed);
        // Only by leaking them. Before the count runs over, as with `Arc`.
        if before > MOST_HOLDERS {
            std::process::abort();
        }
        Self { node }
    }
}

impl Deref for Held {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: this is a holder.
        unsafe { Front::value(self.node) }
    }
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Clone for Held {
    fn clone(&self) -> Self {
        // SAFETY: this is a holder.
        unsafe { Self::new(self.node) }
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it was a holder. The map has dropped the header when it lets go.
        unsafe { Front::release(self.node) }
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}
