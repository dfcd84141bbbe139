//! Where an anchor stands, out of the pointer to it.
//!
//! The order of a bucket's anchor is the bucket's number, at the upper end of the word. The number
//! is the distance of the bucket from the beginning of its table. So the pointers to a table's
//! anchors have in their upper bits the logarithm of the table's length, and the beginning, modulo
//! the length:
//!
//! ```text
//!  63          54 53     48 47                              3  2   1   0
//! ┌──────────────┬─────────┬─────────────────────────────────┬───┬───┬───┐
//! │  beginning   │ length  │             address             │   │ 1 │ m │
//! └──────────────┴─────────┴─────────────────────────────────┴───┴───┴───┘
//! ```
//!
//! There are ten bits for the beginning. They suffice if a table is aligned to the 1024th part of
//! its size, which costs next to nothing.

use std::ptr::NonNull;

use crate::link::{ADDRESS, Link, NO_NODE};
use crate::table::Bucket;

const LENGTH: u32 = 48;

const BEGINNING: u32 = 54;

/// A bucket's size, which is a power of two: so its place in memory has a number.
const SIZE: usize = size_of::<Bucket>();

/// The alignment of a table of so many bytes.
pub(crate) fn alignment(bytes: usize) -> usize {
    SIZE.max(bytes >> (usize::BITS - BEGINNING))
}

/// The pointers to the anchors of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pointers(usize);

impl Pointers {
    /// Of a table that begins at `first` and has two to the power of `bits` buckets.
    pub(crate) fn of(first: NonNull<Bucket>, bits: u32) -> Self {
        let beginning = shifted(first.addr().get(), bits);
        debug_assert_eq!(beginning << (u64::BITS - BEGINNING), 0, "the alignment");
        Self(beginning as usize | (bits as usize) << LENGTH | NO_NODE)
    }

    /// To the anchor at `link`, whose address has nothing where the rest comes, see
    /// [`crate::buckets`].
    #[inline(always)]
    pub(crate) fn to(self, link: NonNull<Link>) -> NonNull<Link> {
        link.map_addr(|address| address | self.0)
    }
}

/// The order of the anchor that this pointer leads to.
#[inline(always)]
pub(crate) fn order(link: *mut Link) -> u64 {
    let word = link.addr();
    let bits = word >> LENGTH & ((1 << (BEGINNING - LENGTH)) - 1);
    let beginning = (word >> BEGINNING << BEGINNING) as u64;
    shifted(word & ADDRESS, bits as u32).wrapping_sub(beginning)
}

/// The number of a bucket's place, of which only the lowest `bits` are kept, at the upper end.
#[inline(always)]
fn shifted(address: usize, bits: u32) -> u64 {
    ((address / SIZE) as u64) << (63 - bits) << 1
}

#[cfg(all(test, not(any(hotring_loom, hotring_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn orders_come_out_of_pointers_wherever_a_table_begins() {
        for bits in [0, 1, 5, 9, 10, 11, 20, 30] {
            let bytes = SIZE << bits;
            for multiple in [1, 2, 3, 1023, 1024, 77_777] {
                let first = multiple * alignment(bytes);
                let pointers = Pointers::of(at(first), bits);
                let last = (1usize << bits) - 1;
                for index in [0, 1, last / 3, last - last / 7, last] {
                    let index = index.min(last);
                    let pointer = pointers.to(at(first + index * SIZE).cast());
                    let expected = (index as u64) << (63 - bits) << 1;
                    assert_eq!(
                        order(pointer.as_ptr()),
                        expected,
                        "{bits} {multiple} {index}"
                    );
                }
            }
        }
    }

    fn at(address: usize) -> NonNull<Bucket> {
        NonNull::without_provenance(address.try_into().expect("not null"))
    }
}
