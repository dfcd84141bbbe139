//! Filters: "is this user key in the partition" without reading a block.
//!
//! A binary fuse filter (the `xorf` crate). With 8-bit fingerprints it has 0.4 % false positives at
//! about 9 bits a key, less than half the error of a 10-bit Bloom filter. With 16-bit ones it has
//! 0.002 % at about 18 bits. Every answer takes three memory accesses.

use bytes::Bytes;
use xorf::{
    BinaryFuse8, BinaryFuse8Ref, BinaryFuse16, Descriptor, DmaSerializable, Filter as _,
    FilterRef as _,
};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::stored::{Damage, Decoded};
use crate::options::FilterPolicy;
use crate::sync::Arc;

const DESCRIPTOR_LEN: usize = BinaryFuse8::DESCRIPTOR_LEN;

/// The seed for the hashes of marks; the hashes of keys use 0.
const MARKED: u64 = 1;

/// The hash by which a filter knows a user key.
#[inline]
pub(super) fn hash(user_key: &[u8]) -> u64 {
    xxh3_64(user_key)
}

/// The hash by which a filter knows a marked record's user key. Only by chance does it equal the
/// hash of a key that is there unmarked.
pub(super) fn mark(user_key: &[u8]) -> u64 {
    xxh3_64_with_seed(user_key, MARKED)
}

/// The payload of a filter over `hashes`; sorts and empties them. `None` when there is nothing to
/// filter, or when no filter could be made: a reader takes that as "maybe".
pub(super) fn build(hashes: &mut Vec<u64>, policy: FilterPolicy) -> Option<Vec<u8>> {
    hashes.sort_unstable();
    hashes.dedup();
    // Making a filter takes up to a thousand tries, each with another seed.
    let payload = match policy {
        _ if hashes.is_empty() => None,
        FilterPolicy::None => None,
        FilterPolicy::Fuse8 => BinaryFuse8::try_from(&*hashes).ok().map(serialize),
        FilterPolicy::Fuse16 => BinaryFuse16::try_from(&*hashes).ok().map(|filter| {
            let mut payload = vec![0; DESCRIPTOR_LEN];
            filter.dma_copy_descriptor_to(&mut payload);
            let prints = filter.fingerprints.iter();
            payload.extend(prints.flat_map(|print| print.to_le_bytes()));
            payload
        }),
    };
    hashes.clear();
    payload
}

fn serialize(filter: BinaryFuse8) -> Vec<u8> {
    let mut payload = vec![0; DESCRIPTOR_LEN];
    filter.dma_copy_descriptor_to(&mut payload);
    payload.extend_from_slice(filter.dma_fingerprints());
    payload
}

/// A filter in memory.
#[derive(Debug, Clone)]
pub(super) enum Filter {
    /// Reads bytes that are borrowed from a partition.
    Fuse8(Bytes),
    /// Has memory of its own, because within a partition the fingerprints may lie at odd addresses.
    Fuse16(Arc<BinaryFuse16>),
}

impl Filter {
    /// Checks the descriptor against the number of fingerprints, so that no hash can lead outside
    /// them. The number also tells the two fingerprint widths apart.
    pub(super) fn new(payload: Bytes) -> Decoded<Self> {
        const WRONG: Damage = Damage("a filter's descriptor does not add up");
        let field = |at: usize| {
            let bytes = payload.get(at..)?.first_chunk::<4>()?;
            Some(u32::from_le_bytes(*bytes))
        };
        let (segment, mask, segments) =
            (|| Some((field(8)?, field(12)?, field(16)?)))().ok_or(WRONG)?;
        let (descriptor, prints) = payload.split_at_checked(DESCRIPTOR_LEN).ok_or(WRONG)?;
        // A hash picks h0 < segments. h1 and h2 lie one and two segments further, each moved within
        // its segment by masked bits. All are below segments + 2 * segment if segments are aligned.
        let sound = segment.is_power_of_two()
            && mask == segment - 1
            && segments > 0
            && segments.is_multiple_of(segment);
        let count = u64::from(segments) + 2 * u64::from(segment);
        let width = match prints.len() as u64 {
            len if len == count => 1,
            len if len == 2 * count => 2,
            _ => 0,
        };
        match (sound, width) {
            (true, 1) => Ok(Self::Fuse8(payload)),
            (true, 2) => {
                let seed = descriptor.first_chunk::<8>().ok_or(WRONG)?;
                let prints = prints.as_chunks::<2>().0.iter();
                Ok(Self::Fuse16(Arc::new(BinaryFuse16 {
                    descriptor: Descriptor {
                        seed: u64::from_le_bytes(*seed),
                        segment_length: segment,
                        segment_length_mask: mask,
                        segment_count_length: segments,
                    },
                    fingerprints: prints.map(|print| u16::from_le_bytes(*print)).collect(),
                })))
            }
            _ => Err(WRONG),
        }
    }

    /// Whether the key may be there; `false` is certain.
    #[inline]
    pub(super) fn contains(&self, hash: u64) -> bool {
        match self {
            Self::Fuse8(payload) => match payload.split_at_checked(DESCRIPTOR_LEN) {
                Some((descriptor, prints)) => {
                    BinaryFuse8Ref::from_dma(descriptor, prints).contains(&hash)
                }
                None => true,
            },
            Self::Fuse16(filter) => filter.contains(&hash),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn no_false_negative_and_few_false_positives() {
        let key = |i: u32| hash(format!("user{i:08}").as_bytes());
        // 1 % and 0.05 % of the 20,000 keys that are not there.
        for (policy, most) in [(FilterPolicy::Fuse8, 200), (FilterPolicy::Fuse16, 10)] {
            for count in [1, 2, 3, 10, 100, 4096, 20_000] {
                let payload = build(&mut (0..count).map(key).collect(), policy).unwrap();
                let filter = Filter::new(Bytes::from(payload)).unwrap();
                assert!((0..count).all(|i| filter.contains(key(i))), "{count} keys");
                let wrong = (1_000_000..1_020_000).filter(|i| filter.contains(key(*i)));
                assert!(wrong.count() < most, "{policy:?} with {count} keys");
            }
        }
    }

    #[test]
    fn a_wide_filter_reads_at_odd_addresses() {
        let payload = build(&mut (0..500).collect(), FilterPolicy::Fuse16).unwrap();
        let mut shifted = vec![0];
        shifted.extend_from_slice(&payload);
        for bytes in [Bytes::from(payload), Bytes::from(shifted).slice(1..)] {
            let filter = Filter::new(bytes).unwrap();
            assert!((0..500).all(|hash| filter.contains(hash)));
        }
    }

    #[test]
    fn duplicates_are_fine_and_nothing_makes_no_filter() {
        let fuse = FilterPolicy::Fuse8;
        assert_eq!(build(&mut Vec::new(), fuse), None);
        let payload = build(&mut vec![7; 50], fuse).unwrap();
        assert!(Filter::new(Bytes::from(payload)).unwrap().contains(7));
    }

    proptest! {
        #[test]
        fn a_damaged_filter_is_refused_or_answers(
            at in 0usize..64, to: u8, probes: Vec<u64>, wide: bool,
        ) {
            let policy = if wide { FilterPolicy::Fuse16 } else { FilterPolicy::Fuse8 };
            let mut payload = build(&mut (0..40).collect(), policy).unwrap();
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
