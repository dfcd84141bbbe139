//! Filters: "is this user key in the partition" without reading a block.
//!
//! A binary fuse filter with 8-bit fingerprints (the `xorf` crate): 0.4 % false positives
//! at about 9 bits a key, less than half the error of a 10-bit Bloom filter, and three
//! memory accesses whatever the answer.

use bytes::Bytes;
use xorf::{BinaryFuse8, BinaryFuse8Ref, DmaSerializable, Filter as _, FilterRef as _};
use xxhash_rust::xxh3::xxh3_64;

use super::stored::{Damage, Decoded};

const DESCRIPTOR_LEN: usize = BinaryFuse8::DESCRIPTOR_LEN;

/// What a filter knows of a user key.
#[inline]
pub(super) fn hash(user_key: &[u8]) -> u64 {
    xxh3_64(user_key)
}

/// The payload of a filter over `hashes`, which it sorts and empties. `None` when there is
/// nothing to filter, or no filter could be made; a reader takes that as "maybe".
pub(super) fn build(hashes: &mut Vec<u64>) -> Option<Vec<u8>> {
    hashes.sort_unstable();
    hashes.dedup();
    // Each of its thousand tries takes another seed.
    let filter = match hashes.is_empty() {
        true => None,
        false => BinaryFuse8::try_from(&*hashes).ok(),
    };
    hashes.clear();
    let filter = filter?;
    let mut payload = vec![0; DESCRIPTOR_LEN];
    filter.dma_copy_descriptor_to(&mut payload);
    payload.extend_from_slice(filter.dma_fingerprints());
    Some(payload)
}

/// A filter on bytes that it borrows from a partition.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    payload: Bytes,
}

impl Filter {
    /// Checks the descriptor against the number of fingerprints, so that no hash can lead
    /// outside of them.
    pub(super) fn new(payload: Bytes) -> Decoded<Self> {
        const WRONG: Damage = Damage("a filter's descriptor does not add up");
        let field = |at: usize| {
            let bytes = payload.get(at..)?.first_chunk::<4>()?;
            Some(u32::from_le_bytes(*bytes))
        };
        let (segment, mask, segments) =
            (|| Some((field(8)?, field(12)?, field(16)?)))().ok_or(WRONG)?;
        let fingerprints = payload.len() as u64 - DESCRIPTOR_LEN as u64;
        // A hash picks h0 < segments, then h1 and h2 one and two segments on, each moved
        // within its segment by masked bits: below segments + 2 * segment if segments are
        // aligned.
        let sound = segment.is_power_of_two()
            && mask == segment - 1
            && segments > 0
            && segments.is_multiple_of(segment)
            && fingerprints == u64::from(segments) + 2 * u64::from(segment);
        match sound {
            true => Ok(Self { payload }),
            false => Err(WRONG),
        }
    }

    /// Whether the key may be there; `false` is certain.
    #[inline]
    pub(super) fn contains(&self, hash: u64) -> bool {
        match self.payload.split_at_checked(DESCRIPTOR_LEN) {
            Some((descriptor, prints)) => {
                BinaryFuse8Ref::from_dma(descriptor, prints).contains(&hash)
            }
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_false_negative_and_less_than_one_percent_false_positives() {
        let key = |i: u32| hash(format!("user{i:08}").as_bytes());
        for count in [1, 2, 3, 10, 100, 4096, 20_000] {
            let payload = build(&mut (0..count).map(key).collect()).unwrap();
            let filter = Filter::new(Bytes::from(payload)).unwrap();
            assert!((0..count).all(|i| filter.contains(key(i))), "{count} keys");
            let wrong = (1_000_000..1_020_000).filter(|i| filter.contains(key(*i)));
            assert!(wrong.count() < 200, "1 % of 20,000, with {count} keys");
        }
    }

    #[test]
    fn duplicates_are_fine_and_nothing_makes_no_filter() {
        assert_eq!(build(&mut Vec::new()), None);
        let payload = build(&mut vec![7; 50]).unwrap();
        assert!(Filter::new(Bytes::from(payload)).unwrap().contains(7));
    }

    proptest! {
        #[test]
        fn a_damaged_filter_is_refused_or_answers(at in 0usize..64, to: u8, probes: Vec<u64>) {
            let mut payload = build(&mut (0..40).collect()).unwrap();
            let at = at % payload.len();
            payload[at] = to;
            if let Ok(filter) = Filter::new(Bytes::from(payload)) {
                let yes = probes.iter().filter(|hash| filter.contains(**hash)).count();
                prop_assert!(yes <= probes.len());
            }
        }

        #[test]
        fn arbitrary_bytes_are_refused_or_answer(payload: Vec<u8>, probe: u64) {
            if let Ok(filter) = Filter::new(Bytes::from(payload)) {
                filter.contains(probe);
            }
        }
    }
}
