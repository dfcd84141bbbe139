//! Entry points for fuzzing: they must return, whatever the bytes are.

use bytes::Bytes;

use super::block::Block;
use super::block_iter::BlockIter;
use super::filter::Filter;
use super::partitions::TopIndex;
use super::properties::TableProperties;
use super::stored::Decoded;

/// Takes `bytes` for the payload of each kind of block, and reads all of it.
pub(crate) fn fuzz_block(bytes: &[u8]) {
    let payload = Bytes::copy_from_slice(bytes);
    // Damage is a valid answer; only a panic or an endless loop is not.
    let _ = read_all::<false>(payload.clone());
    let _ = read_all::<true>(payload.clone());
    let _ = TopIndex::new(payload.clone(), u64::MAX);
    let _ = TableProperties::decode(bytes);
    if let Ok(filter) = Filter::new(payload) {
        for hash in [0, 1, u64::MAX, bytes.len() as u64] {
            filter.contains(hash);
        }
    }
}

fn read_all<const INDEX: bool>(payload: Bytes) -> Decoded<()> {
    let block = Block::<INDEX>::new(payload)?;
    let mut iter = BlockIter::new(block.clone());
    iter.seek_to_first()?;
    while iter.valid() {
        let found = block.find(iter.key(), iter.trailer());
        if let Ok(Some((entry, _))) = found {
            block.value_bytes(&entry);
            block.clone().into_value(&entry);
        }
        iter.next()?;
    }
    iter.seek_to_last()?;
    // In a damaged block, overlapping restart points may send the cursor round and round.
    let mut steps = 0;
    while iter.valid() && steps < 10_000 {
        iter.value_bytes();
        iter.prev()?;
        steps += 1;
    }
    iter.seek(b"seek", 7)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::block_builder::{BlockBuilder, INDEX_INTERVAL};
    use super::super::stored::{BlockHandle, Damage, ENVELOPE_LEN};
    use super::*;
    use crate::coding::put_varint;
    use crate::key::MAX_KEY_LEN;

    fn payload(trailer: Option<u64>) -> Vec<u8> {
        let mut builder = BlockBuilder::new(4);
        for i in 0..12u8 {
            builder.add(&[b'k', i / 3, i], trailer, &[0, i, 9, 9]);
        }
        builder.finish().to_vec()
    }

    proptest! {
        #[test]
        fn mutated_blocks_return(
            index: bool,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = payload((!index).then_some(513));
            for (at, to) in changes {
                let at = at.index(bytes.len());
                bytes[at] = to;
            }
            fuzz_block(&bytes);
            let len = cut.index(bytes.len());
            fuzz_block(&bytes[..len]);
            prop_assert!(len < bytes.len());
        }
    }

    /// The value of a top-level entry whose partition begins at `index` and has its filter at
    /// `filter`; both are of the least length.
    fn top_level_value(index: u64, filter: u64) -> Vec<u8> {
        let mut value = vec![0];
        for offset in [index, filter] {
            let len = ENVELOPE_LEN as u32;
            BlockHandle { offset, len }.put(&mut value);
        }
        value
    }

    /// A top-level index with a key of `len` bytes, and `more` further entries with the same key.
    fn repeated_key(len: usize, more: u64) -> Bytes {
        let mut payload = Vec::new();
        for number in 0..=more {
            let (shared, suffix) = if number == 0 { (0, len) } else { (len, 0) };
            let offset = number * ENVELOPE_LEN as u64;
            let value = top_level_value((1 << 20) + offset, offset);
            for length in [shared, suffix, value.len()] {
                put_varint(&mut payload, length as u64);
            }
            payload.resize(payload.len() + suffix, b'k');
            payload.extend_from_slice(&value);
        }
        payload.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0]);
        Bytes::from(payload)
    }

    /// A block of 1 MB could have 45,000 entries that all shared a key of 500,000 bytes: opening
    /// its table took 22 GB. Checksums catch bit rot, but not crafted blocks.
    #[test]
    fn keys_of_a_top_level_index_are_in_proportion_to_its_block() {
        let refused = |payload| TopIndex::new(payload, u64::MAX).err();
        let longer = Damage("the keys of the top-level index are longer than its block");
        assert_eq!(refused(repeated_key(50_000, 4_500)), Some(longer));
        let long = Damage("a top-level entry's key is longer than any key");
        assert_eq!(refused(repeated_key(MAX_KEY_LEN + 1, 0)), Some(long));
        assert_eq!(refused(repeated_key(MAX_KEY_LEN, 0)), None);
        // In blocks that the builder writes, keys may share nearly all of their bytes.
        for common in [0, 10, 500, 1_000, 60_000] {
            let mut builder = BlockBuilder::new(INDEX_INTERVAL);
            for number in 0..40u8 {
                let mut key = vec![b'k'; common];
                key.push(number);
                let offset = u64::from(number) * ENVELOPE_LEN as u64;
                builder.add(&key, None, &top_level_value((1 << 20) + offset, offset));
            }
            let top = TopIndex::new(Bytes::copy_from_slice(builder.finish()), u64::MAX);
            assert_eq!(top.map(|top| top.len()), Ok(40), "{common} bytes in common");
        }
    }

    /// All entries could name one filter, which was then decoded for each of them: 50,000 times 50
    /// MB.
    #[test]
    fn partitions_of_a_top_level_index_follow_each_other() {
        let len = ENVELOPE_LEN as u64;
        for (index, filter, refused) in [
            (len, 200 + len, false),
            (0, 200 + len, true),
            (len, 200, true),
        ] {
            let mut builder = BlockBuilder::new(INDEX_INTERVAL);
            builder.add(b"a", None, &top_level_value(0, 200));
            builder.add(b"b", None, &top_level_value(index, filter));
            let top = TopIndex::new(Bytes::copy_from_slice(builder.finish()), u64::MAX);
            assert_eq!(top.is_err(), refused, "{index} and {filter}");
        }
    }

    #[test]
    fn intact_blocks_read_through() {
        assert_eq!(read_all::<false>(Bytes::from(payload(Some(513)))), Ok(()));
        assert_eq!(read_all::<true>(Bytes::from(payload(None))), Ok(()));
    }
}
