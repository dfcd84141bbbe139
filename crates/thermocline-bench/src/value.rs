//! Values that prove three things: that they belong to this key, that they are whole, and which
//! write they come from.
//!
//! Layout: checksum (8 bytes), hash of the key (8), stamp (8), filler. The checksum covers
//! everything behind it. The filler is a piece of a fixed random pool, so it only costs a copy to
//! make and does not compress.

use std::fmt;
use std::sync::OnceLock;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of a value that are not filler. No value is shorter.
pub(crate) const HEADER_LEN: usize = 24;

/// Size of the pool that fillers come from. It is larger than any block, so that a block with two
/// values does not shrink because one is found in the other.
const POOL: usize = 4 << 20;

fn pool() -> &'static [u8] {
    static POOL_BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    POOL_BYTES.get_or_init(|| {
        let mut bytes = vec![0; POOL];
        SmallRng::seed_from_u64(0x7468_6572_6d6f).fill(&mut bytes[..]);
        bytes
    })
}

/// Why a value is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// There is no value where there must be one.
    Missing,
    /// The value is not as long as every value of the record.
    Length {
        /// Length in bytes.
        found: usize,
        /// Length that was written.
        expected: usize,
    },
    /// Bytes differ from what was written.
    Checksum,
    /// A whole value, but of another key.
    OtherKey,
    /// The value is of an older write than one that was acknowledged before the read began, or of a
    /// write that nobody has made yet.
    Stale {
        /// Generation in the value.
        found: u64,
        /// Generations that are possible.
        possible: (u64, u64),
    },
    /// A scan returned keys out of order, left one out, or ended early.
    Scan,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Missing => write!(f, "the key is missing"),
            Wrong::Length { found, expected } => {
                write!(f, "the value has {found} bytes instead of {expected}")
            }
            Wrong::Checksum => write!(f, "the value's checksum does not match"),
            Wrong::OtherKey => write!(f, "the value belongs to another key"),
            Wrong::Stale { found, possible } => write!(
                f,
                "the value is of write {found}, only writes {} to {} are possible",
                possible.0, possible.1
            ),
            Wrong::Scan => write!(f, "the scan is out of order, has a gap, or ends early"),
        }
    }
}

/// Fills `value` for `key` with `stamp`. `value` has at least [`HEADER_LEN`] bytes.
pub(crate) fn fill(value: &mut [u8], key: &[u8], stamp: u64) {
    let hash = xxh3_64(key);
    let pool = pool();
    let (header, mut filler) = value.split_at_mut(HEADER_LEN);
    header[8..16].copy_from_slice(&hash.to_le_bytes());
    header[16..24].copy_from_slice(&stamp.to_le_bytes());
    let mut seed = hash ^ stamp.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    while !filler.is_empty() {
        let len = filler.len().min(POOL / 4);
        let at = (seed % (POOL - len) as u64) as usize;
        let (now, rest) = filler.split_at_mut(len);
        now.copy_from_slice(&pool[at..at + len]);
        filler = rest;
        seed = seed.rotate_left(17).wrapping_add(1);
    }
    let checksum = xxh3_64(&value[8..]);
    value[..8].copy_from_slice(&checksum.to_le_bytes());
}

/// Checks that `value` was written for `key` with `len` bytes, and returns its stamp.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn verify(value: &[u8], key: &[u8], len: usize) -> Result<u64, Wrong> {
    if value.len() != len {
        return Err(Wrong::Length {
            found: value.len(),
            expected: len,
        });
    }
    let (Some(checksum), Some(hash), Some(stamp)) =
        (word(value, 0), word(value, 8), word(value, 16))
    else {
        return Err(Wrong::Checksum);
    };
    if checksum != xxh3_64(&value[8..]) {
        return Err(Wrong::Checksum);
    }
    if hash != xxh3_64(key) {
        return Err(Wrong::OtherKey);
    }
    Ok(stamp)
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(word.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_value_verifies_and_names_its_write() {
        for len in [HEADER_LEN, 25, 1000, 3 << 20] {
            let mut value = vec![0; len];
            fill(&mut value, b"key", 42);
            assert_eq!(verify(&value, b"key", len), Ok(42), "{len} bytes");
        }
    }

    #[test]
    fn another_key_and_another_length_are_refused() {
        let mut value = vec![0; 100];
        fill(&mut value, b"key", 1);
        assert_eq!(verify(&value, b"kez", 100), Err(Wrong::OtherKey));
        assert_eq!(
            verify(&value[..99], b"key", 100),
            Err(Wrong::Length {
                found: 99,
                expected: 100
            })
        );
        assert!(verify(&[], b"key", 0).is_err());
    }

    #[test]
    fn writes_differ_and_do_not_compress_trivially() {
        let (mut a, mut b) = (vec![0; 1000], vec![0; 1000]);
        fill(&mut a, b"key", 1);
        fill(&mut b, b"key", 2);
        assert_ne!(a[HEADER_LEN..], b[HEADER_LEN..]);
        let distinct: std::collections::HashSet<u8> = a.iter().copied().collect();
        assert!(distinct.len() > 200);
    }

    proptest! {
        #[test]
        fn any_changed_byte_is_found(at in 0usize..200, mask in 1u8..) {
            let mut value = vec![0; 200];
            fill(&mut value, b"key", 7);
            value[at] ^= mask;
            prop_assert_eq!(verify(&value, b"key", 200), Err(Wrong::Checksum));
        }
    }
}
