//! The table of buckets.
//!
//! A bucket holds the hashes that begin with its number. So the buckets of a table of any size
//! stand in the list in the order of their numbers, and a table twice as large splits bucket `i`
//! into `2i` and `2i + 1`.

use std::alloc::Layout;
use std::ptr::NonNull;

use crate::anchor::{self, Pointers};
use crate::buckets::Memory;
use crate::error::TableError;
use crate::head::Word;
use crate::link::{At, Link};
use crate::reclaim::Guard;
use crate::sync::atomic::AtomicPtr;

/// 16 bytes, so that a bucket's anchor and its head are in one cache line. The model checkers'
/// atomics are larger.
#[cfg_attr(not(any(hotring_loom, hotring_shuttle)), repr(C, align(16)))]
#[cfg_attr(any(hotring_loom, hotring_shuttle), repr(C, align(1024)))]
#[derive(Debug)]
pub(crate) struct Bucket {
    pub(crate) anchor: Link,
    /// A [`Word`]: none, or a node of this bucket, counted in the node's state.
    pub(crate) head: AtomicPtr<Link>,
}

// So it is a power of two.
const _: () = assert!(size_of::<Bucket>() == align_of::<Bucket>());

/// An array of two to some power of buckets, each valid once it was initialised.
#[derive(Debug)]
pub(crate) struct Table {
    bits: u32,
    /// The number of buckets less one.
    mask: usize,
    buckets: NonNull<Bucket>,
    pointers: Pointers,
    memory: Memory,
}

/// Where an order belongs in a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) index: usize,
    /// Where in the bucket, in the order of the hashes. Only its upper bits say so, see
    /// [`crate::head::part_of`].
    pub(crate) place: usize,
}

// SAFETY: the pointer is to memory that the table owns, and all that is done with a shared bucket
// is done by atomics.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Table {
    /// Room for at least `buckets` buckets, none of them initialised.
    pub(crate) fn allocate(buckets: usize) -> Result<Box<Self>, TableError> {
        let too_large = TableError::TooLarge { buckets };
        let len = buckets
            .max(1)
            .checked_next_power_of_two()
            .ok_or(too_large)?;
        let bytes = len.checked_mul(size_of::<Bucket>()).ok_or(too_large)?;
        let layout = Layout::from_size_align(bytes, anchor::alignment(bytes));
        // A bucket is not of size zero, and there is at least one.
        let memory = Memory::allocate(layout.map_err(|_| too_large)?)?;
        let (bits, buckets) = (len.trailing_zeros(), memory.start().cast());
        Ok(Box::new(Self {
            bits,
            mask: len - 1,
            buckets,
            pointers: Pointers::of(buckets, bits),
            memory,
        }))
    }

    /// The number of buckets.
    pub(crate) fn len(&self) -> usize {
        self.mask + 1
    }

    pub(crate) fn bytes(&self) -> usize {
        self.memory.len()
    }

    /// Where this order belongs, whether of a node or of an anchor.
    #[inline(always)]
    pub(crate) fn slot_of(&self, order: u64) -> Slot {
        // Turned like this, the number of the bucket is at the low end, and what follows it at the
        // high one.
        let turned = order.rotate_left(self.bits);
        Slot {
            index: turned as usize & self.mask,
            place: (turned >> (u64::BITS - usize::BITS)) as usize,
        }
    }

    /// The bucket of this order.
    pub(crate) fn index_of(&self, order: u64) -> usize {
        self.slot_of(order).index
    }

    /// The order of bucket `index`'s anchor.
    pub(crate) fn first(&self, index: usize) -> u64 {
        (index as u64) << (63 - self.bits) << 1
    }

    /// The highest order in bucket `index`.
    pub(crate) fn last(&self, index: usize) -> u64 {
        self.first(index) | (u64::MAX >> self.bits)
    }

    /// Where bucket `index` is.
    #[inline(always)]
    fn place(&self, index: usize) -> NonNull<Bucket> {
        debug_assert!(index < self.len());
        // SAFETY: within the array; `slot_of` yields no other number.
        unsafe { self.buckets.add(index) }
    }

    /// Writes an empty bucket.
    ///
    /// # Safety
    ///
    /// Nobody else uses the bucket, and `index` is less than the length.
    pub(crate) unsafe fn initialise(&self, index: usize) {
        let bucket = Bucket {
            anchor: Link::new(),
            head: AtomicPtr::new(Word::NONE.stored()),
        };
        // SAFETY: in bounds, aligned, and ours alone.
        unsafe { self.place(index).write(bucket) }
    }

    /// Bucket `index`.
    ///
    /// # Safety
    ///
    /// The bucket was initialised, and `index` is less than the length.
    #[inline(always)]
    pub(crate) unsafe fn bucket(&self, index: usize) -> &Bucket {
        // SAFETY: by the caller's promise; buckets are only shared from then on.
        unsafe { self.place(index).as_ref() }
    }

    /// The pointer to bucket `index`'s anchor.
    #[inline(always)]
    pub(crate) fn anchor_ptr(&self, index: usize) -> NonNull<Link> {
        // The anchor is the first field.
        self.pointers.to(self.place(index).cast())
    }

    /// The anchor of bucket `index`.
    ///
    /// # Safety
    ///
    /// The anchor was linked at some moment since `guard` was taken.
    #[inline(always)]
    pub(crate) unsafe fn anchor<'g>(&self, index: usize, guard: &'g Guard) -> At<'g> {
        // SAFETY: by the caller's promise.
        unsafe { At::new(self.anchor_ptr(index), guard) }
    }

    /// The addresses by which its memory is reached: those of its anchors.
    pub(crate) fn parts(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, len) = (self.buckets.addr().get(), self.len());
        (0..len).map(move |index| first + index * size_of::<Bucket>())
    }
}
