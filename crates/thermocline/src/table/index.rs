//! Index entries: a separator, and where the block before it is.

use super::block::{FLAG_TRAILER, FLAG_WEIGHT};
use super::stored::{BlockHandle, Damage, Decoded};
use crate::coding::{Decoder, put_varint};

/// Keys up to this length take less index space than the other overhead that is counted for their
/// records.
const SHORT_KEY: usize = 256;

/// The long keys of a table to be written, and what they take besides their records.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LongKeys {
    /// Bytes of all long keys together.
    pub(crate) sum: u64,
    pub(crate) longest: u64,
}

impl LongKeys {
    /// Whether a key of `len` bytes counts as long.
    pub(crate) fn counts(len: usize) -> bool {
        len > SHORT_KEY
    }

    /// The long ones among keys of these lengths.
    pub(crate) fn of(lens: impl Iterator<Item = usize>) -> Self {
        let long = lens.filter(|len| Self::counts(*len)).map(|len| len as u64);
        long.fold(Self::default(), |keys, len| Self {
            sum: keys.sum + len,
            longest: keys.longest.max(len),
        })
    }

    /// Most bytes that they take besides the records. A key as long as a block is in both levels of
    /// the index, the first and the last key are in the properties, and neither of these is
    /// compressed.
    pub(crate) fn beside_records(&self) -> u64 {
        2 * self.sum + 2 * self.longest
    }
}

/// Separates a block from the next: it sorts at or after the block's last record and before the
/// next block's first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Separator {
    pub(super) user_key: Vec<u8>,
    /// Present only where two blocks share a user key. Without it, the separator sorts after every
    /// version of its user key.
    pub(super) trailer: Option<u64>,
}

impl Separator {
    /// The shortest separator between a block that ends with `last` and one that begins with
    /// `next`. Without `next`, the block is the table's last.
    pub(super) fn between(last: &[u8], trailer: u64, next: Option<&[u8]>) -> Self {
        let Some(next) = next else {
            return Self::after(last);
        };
        if last == next {
            return Self {
                user_key: last.to_vec(),
                trailer: Some(trailer),
            };
        }
        // The shortest key in [last, next): `last` up to the first byte that differs, with that
        // byte one higher, if `next` is still larger. Each 0xff after that byte takes one byte
        // more.
        let common = super::block_builder::common_prefix(last, next);
        for end in common..last.len() {
            let byte = last[end];
            if byte == u8::MAX {
                continue;
            }
            let mut user_key = last[..=end].to_vec();
            user_key[end] = byte + 1;
            if user_key[..] < *next {
                return Self {
                    user_key,
                    trailer: None,
                };
            }
        }
        Self::after(last)
    }

    fn after(last: &[u8]) -> Self {
        Self {
            user_key: last.to_vec(),
            trailer: None,
        }
    }

    /// Begins an index entry's value with the flags, and the trailer if there is one. `weighed`
    /// says that the value will end with a [`BlockWeight`].
    pub(super) fn put_value(&self, out: &mut Vec<u8>, weighed: bool) {
        out.clear();
        let weight = if weighed { FLAG_WEIGHT } else { 0 };
        match self.trailer {
            None => out.push(weight),
            Some(trailer) => {
                out.push(FLAG_TRAILER | weight);
                out.extend_from_slice(&trailer.to_le_bytes());
            }
        }
    }
}

/// The weight of a data block's records, and that of all blocks before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BlockWeight {
    pub(super) before: u64,
    pub(super) own: u64,
}

impl BlockWeight {
    pub(super) fn put(self, out: &mut Vec<u8>) {
        put_varint(out, self.before);
        put_varint(out, self.own);
    }

    /// Reads the weight at the end of an index entry's value, in a weighed table.
    pub(super) fn of(value: &[u8]) -> Decoded<Self> {
        let mut decoder = Decoder::new(value);
        let numbers = BlockHandle::take(&mut decoder)
            .and_then(|_| decoder.varint().zip(decoder.varint()))
            .filter(|_| decoder.is_empty());
        let (before, own) = numbers.ok_or(Damage("an index entry lacks its weight"))?;
        Ok(Self { before, own })
    }
}

/// The data block that an index entry names.
#[inline]
pub(super) fn data_handle(value: &[u8]) -> Decoded<BlockHandle> {
    BlockHandle::take(&mut Decoder::new(value)).ok_or(Damage("an index entry is cut short"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn separators_lie_between_and_are_no_longer(
            a in prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(254), Just(255)], 0..5),
            b in prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(254), Just(255)], 0..5),
        ) {
            prop_assume!(a != b);
            let (last, next) = if a < b { (a, b) } else { (b, a) };
            let separator = Separator::between(&last, 9, Some(&next));
            prop_assert!(last <= separator.user_key && separator.user_key < next);
            prop_assert!(separator.user_key.len() <= last.len());
            prop_assert_eq!(separator.trailer, None);
        }
    }

    #[test]
    fn separators_are_short_and_whole_within_a_user_key() {
        let short = Separator::between(b"user0123/photo", 9, Some(b"user0456"));
        assert_eq!(short.user_key, b"user02");
        let whole = Separator::between(b"k", 9, Some(b"k"));
        assert_eq!(whole.trailer, Some(9));
    }
}
