//! Entry points for fuzzing: they must return, whatever the bytes.

use bytes::Bytes;

use super::block::Block;
use super::block_iter::BlockIter;
use super::filter::Filter;
use super::partitions::TopIndex;
use super::properties::TableProperties;
use super::stored::Decoded;

/// Takes `bytes` for the payload of every kind of block, and reads all of it.
pub(crate) fn fuzz_block(bytes: &[u8]) {
    let payload = Bytes::copy_from_slice(bytes);
    // Damage is an answer; only a panic or an endless loop would not be.
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
    // Restart points that overlap may send a damaged block round and round.
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
    use super::super::block_builder::BlockBuilder;
    use super::*;
    use proptest::prelude::*;

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

    #[test]
    fn intact_blocks_read_through() {
        assert_eq!(read_all::<false>(Bytes::from(payload(Some(513)))), Ok(()));
        assert_eq!(read_all::<true>(Bytes::from(payload(None))), Ok(()));
    }
}
