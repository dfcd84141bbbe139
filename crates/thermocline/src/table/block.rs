//! A decoded block, and the search within it.

use bytes::{Buf, Bytes};

use super::block_builder::common_prefix;
use super::stored::{Damage, Decoded};

/// The entry's separator has a trailer. Without one, the separator sorts after every version of its
/// user key.
pub(super) const FLAG_TRAILER: u8 = 0x1;

/// The entry's value ends with the weights of the block and of the blocks before it.
pub(super) const FLAG_WEIGHT: u8 = 0x2;

const CUT_SHORT: Damage = Damage("a block's entry is cut short");

/// A block of records, or of index entries when `INDEX`. A matching checksum does not make the
/// payload trusted: every offset in it is checked when it is used.
#[derive(Debug, Clone)]
pub(super) struct Block<const INDEX: bool> {
    payload: Bytes,
    /// Where the entries end; the restart offsets begin there.
    entries_end: usize,
    restarts: usize,
}

/// One entry, as offsets into the payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Bytes that its key shares with the key before it.
    pub(super) shared: usize,
    suffix: usize,
    suffix_end: usize,
    /// The trailer of the record or separator; 0, which sorts last, if the separator has none.
    pub(super) trailer: u64,
    value: usize,
    /// Where its value ends and the next entry begins.
    pub(super) end: usize,
}

impl Entry {
    pub(super) fn value_len(&self) -> usize {
        self.end.saturating_sub(self.value)
    }
}

impl<const INDEX: bool> Block<INDEX> {
    #[inline]
    pub(super) fn new(payload: Bytes) -> Decoded<Self> {
        const WRONG: Damage = Damage("a block's restart points do not add up");
        let (front, count) = payload.split_last_chunk::<4>().ok_or(WRONG)?;
        let restarts = u32::from_le_bytes(*count) as usize;
        let table = restarts.checked_mul(4).ok_or(WRONG)?;
        let entries_end = front.len().checked_sub(table).ok_or(WRONG)?;
        if restarts == 0 || entries_end == 0 {
            return Err(Damage("a block holds no entry"));
        }
        Ok(Self {
            payload,
            entries_end,
            restarts,
        })
    }

    /// Bytes of the block in memory.
    pub(super) fn len(&self) -> usize {
        self.payload.len()
    }

    /// Frees the block's memory. Any later use of its entries counts as damage.
    pub(super) fn let_go(&mut self) {
        self.payload = Bytes::new();
    }

    pub(super) fn entries_end(&self) -> usize {
        self.entries_end
    }

    pub(super) fn restarts(&self) -> usize {
        self.restarts
    }

    /// Where the entry of restart point `number` begins.
    #[inline]
    pub(super) fn restart(&self, number: usize) -> Decoded<usize> {
        self.payload
            .get(self.entries_end + 4 * number..)
            .and_then(|rest| rest.first_chunk::<4>())
            .map(|bytes| u32::from_le_bytes(*bytes) as usize)
            .filter(|offset| *offset < self.entries_end)
            .ok_or(Damage("a block's restart point lies outside of it"))
    }

    /// The entry at `at`.
    #[inline]
    pub(super) fn entry(&self, at: usize) -> Decoded<Entry> {
        let entries = self.payload.get(..self.entries_end).ok_or(CUT_SHORT)?;
        let mut at = at;
        let shared = length(entries, &mut at)?;
        let suffix_len = length(entries, &mut at)?;
        let value_len = length(entries, &mut at)?;
        let suffix_end = at + suffix_len;
        let (trailer, value, end);
        if INDEX {
            end = suffix_end + value_len;
            let stored = entries.get(suffix_end..end).ok_or(CUT_SHORT)?;
            match stored.split_first() {
                Some((0 | &FLAG_WEIGHT, _)) => (trailer, value) = (0, suffix_end + 1),
                Some((flags, rest)) if flags & !FLAG_WEIGHT == FLAG_TRAILER => {
                    let bytes = rest.first_chunk::<8>().ok_or(CUT_SHORT)?;
                    (trailer, value) = (u64::from_le_bytes(*bytes), suffix_end + 9);
                }
                Some(_) => return Err(Damage("an index entry has flags that are not known")),
                None => return Err(CUT_SHORT),
            }
        } else {
            let bytes = entries.get(suffix_end..).and_then(|b| b.first_chunk::<8>());
            trailer = u64::from_le_bytes(*bytes.ok_or(CUT_SHORT)?);
            value = suffix_end + 8;
            end = value + value_len;
            if end > self.entries_end {
                return Err(CUT_SHORT);
            }
        }
        Ok(Entry {
            shared,
            suffix: at,
            suffix_end,
            trailer,
            value,
            end,
        })
    }

    /// The part of the key that is not shared.
    #[inline]
    pub(super) fn suffix(&self, entry: &Entry) -> &[u8] {
        self.payload
            .get(entry.suffix..entry.suffix_end)
            .unwrap_or_default()
    }

    #[inline]
    pub(super) fn value(&self, entry: &Entry) -> &[u8] {
        self.payload.get(entry.value..entry.end).unwrap_or_default()
    }

    /// The value, sharing the block's memory.
    pub(super) fn value_bytes(&self, entry: &Entry) -> Bytes {
        self.payload.slice(entry.value..entry.end)
    }

    /// As [`Block::value_bytes`], without touching the reference count.
    pub(super) fn into_value(self, entry: &Entry) -> Bytes {
        let mut payload = self.payload;
        payload.truncate(entry.end);
        payload.advance(entry.value);
        payload
    }

    /// The last restart point whose key sorts before the target, or the first of all. The entry
    /// sought does not lie before it.
    #[inline]
    pub(super) fn restart_before(&self, key: &[u8], trailer: u64) -> Decoded<usize> {
        let (mut low, mut high) = (0, self.restarts);
        while low < high {
            let middle = low.midpoint(high);
            let entry = self.entry(self.restart(middle)?)?;
            if entry.shared != 0 {
                return Err(Damage("a restart point's key is not whole"));
            }
            let before = match self.suffix(&entry).cmp(key) {
                std::cmp::Ordering::Less => true,
                std::cmp::Ordering::Equal => entry.trailer > trailer,
                std::cmp::Ordering::Greater => false,
            };
            if before {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low.saturating_sub(1))
    }

    /// The first entry at or after the target, and whether it has the same user key.
    ///
    /// Keys are compared piece by piece and never assembled. `matched` is the length of the prefix
    /// that the target shares with the previous key, and the previous key sorts before the target.
    #[inline]
    pub(super) fn find(&self, key: &[u8], trailer: u64) -> Decoded<Option<(Entry, bool)>> {
        let mut at = self.restart(self.restart_before(key, trailer)?)?;
        let mut matched = 0;
        while at < self.entries_end {
            let entry = self.entry(at)?;
            // An entry that shares more than `matched` bytes with its predecessor also has the byte
            // that made the predecessor sort before the target. So it sorts before the target, too.
            if entry.shared <= matched {
                let suffix = self.suffix(&entry);
                let wanted = key.get(entry.shared..).unwrap_or_default();
                let common = common_prefix(suffix, wanted);
                match (suffix.get(common), wanted.get(common)) {
                    (None, None) if entry.trailer <= trailer => return Ok(Some((entry, true))),
                    (Some(_), None) => return Ok(Some((entry, false))),
                    (Some(has), Some(wants)) if has > wants => return Ok(Some((entry, false))),
                    _ => matched = entry.shared + common,
                }
            }
            at = entry.end;
        }
        Ok(None)
    }
}

/// A varint length. A length within a block takes at most five bytes, so sums of lengths cannot
/// overflow.
#[inline(always)]
fn length(bytes: &[u8], at: &mut usize) -> Decoded<usize> {
    let first = *bytes.get(*at).ok_or(CUT_SHORT)?;
    *at += 1;
    let mut value = u64::from(first & 0x7f);
    if first < 0x80 {
        return Ok(value as usize);
    }
    for shift in [7, 14, 21, 28] {
        let byte = *bytes.get(*at).ok_or(CUT_SHORT)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            // No payload is that long; the bound keeps sums small on every platform.
            return match usize::try_from(value) {
                Ok(value) if value <= super::stored::MAX_PAYLOAD_LEN => Ok(value),
                _ => Err(Damage("a block's entry claims an impossible length")),
            };
        }
    }
    Err(Damage("a block's entry claims an impossible length"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::block_builder::{BlockBuilder, DATA_INTERVAL};
    use super::*;

    fn block(keys: &BTreeSet<(Vec<u8>, u64)>) -> Block<false> {
        let mut builder = BlockBuilder::new(DATA_INTERVAL);
        for (key, age) in keys {
            builder.add(key, Some(u64::MAX - age), &age.to_le_bytes());
        }
        Block::new(Bytes::copy_from_slice(builder.finish())).unwrap()
    }

    proptest! {
        #[test]
        fn finds_the_first_entry_at_or_after_any_target(
            keys in prop::collection::btree_set(("[ab]{0,6}".prop_map(String::into_bytes), 0u64..4), 1..80),
            target in "[abc]{0,7}", age in 0u64..5,
        ) {
            let block = block(&keys);
            let target = target.into_bytes();
            let expected = keys.range((target.clone(), age)..).next();
            let found = block.find(&target, u64::MAX - age).unwrap();
            prop_assert_eq!(
                found.map(|(entry, same)| (u64::MAX - entry.trailer, same)),
                expected.map(|(key, age)| (*age, *key == target))
            );
            if let (Some((entry, _)), Some((_, age))) = (found, expected) {
                prop_assert_eq!(block.value(&entry), &age.to_le_bytes()[..]);
                prop_assert_eq!(block.into_value(&entry), &age.to_le_bytes()[..]);
            }
        }
    }

    #[test]
    fn unknown_index_flags_are_refused() {
        let mut builder = BlockBuilder::new(1);
        builder.add(b"k", None, &[0x4, 1, 1]);
        let block = Block::<true>::new(Bytes::copy_from_slice(builder.finish())).unwrap();
        let refused = block.find(b"k", 0).unwrap_err();
        assert_eq!(
            refused,
            Damage("an index entry has flags that are not known")
        );
    }

    #[test]
    fn payloads_without_entries_are_refused() {
        for payload in [
            &b""[..],
            b"\0\0\0",
            b"\0\0\0\0",
            b"\xff\xff\xff\xff",
            b"\x01\0\0\0",
        ] {
            assert!(Block::<false>::new(Bytes::copy_from_slice(payload)).is_err());
        }
    }
}
