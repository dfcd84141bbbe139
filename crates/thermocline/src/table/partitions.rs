//! The top-level index of an open table, and the partitions below it.

use std::path::Path;

use bytes::Bytes;

use super::block::Block;
use super::block_builder::INDEX_INTERVAL;
use super::block_iter::BlockIter;
use super::filter::Filter;
use super::stored::{self, BlockHandle, Damage, Decoded};
use crate::coding::Decoder;
use crate::error::Result;
use crate::ids::FileId;
use crate::key::MAX_KEY_LEN;

/// Where a partition's blocks are.
#[derive(Debug, Clone)]
pub(super) struct PartitionHandle {
    /// The last key that the partition covers, as a separator.
    user_key: Bytes,
    trailer: u64,
    pub(super) index: BlockHandle,
    pub(super) filter: Option<BlockHandle>,
}

impl PartitionHandle {
    /// A user key at or after every key of the partition.
    pub(super) fn last_key(&self) -> Bytes {
        self.user_key.clone()
    }
}

/// The top-level index, always in memory.
#[derive(Debug)]
pub(super) struct TopIndex {
    partitions: Vec<PartitionHandle>,
}

impl TopIndex {
    /// Decodes the payload; blocks must end at or before `limit`. Refuses payloads that would take
    /// memory out of all proportion, since keys are held in full, and [`TopIndex::decode_all`]
    /// decodes the blocks that each entry names.
    pub(super) fn new(payload: Bytes, limit: u64) -> Decoded<Self> {
        // A key shares bytes with earlier ones only within a restart interval.
        let mut room = payload.len().saturating_mul(INDEX_INTERVAL);
        let (mut index_end, mut filter_end) = (None, None);
        let mut iter = BlockIter::new(Block::<true>::new(payload)?);
        let mut partitions = Vec::new();
        iter.seek_to_first()?;
        while iter.valid() {
            let key = iter.key();
            if key.len() > MAX_KEY_LEN {
                return Err(Damage("a top-level entry's key is longer than any key"));
            }
            let too_long = Damage("the keys of the top-level index are longer than its block");
            room = room.checked_sub(key.len()).ok_or(too_long)?;
            let mut decoder = Decoder::new(iter.value());
            let handles = BlockHandle::take(&mut decoder).zip(BlockHandle::take(&mut decoder));
            let (index, filter) = handles.ok_or(Damage("a top-level entry is cut short"))?;
            let filter = match filter.len {
                0 => None,
                _ => Some(next_block(filter.within(limit)?, &mut filter_end)?),
            };
            partitions.push(PartitionHandle {
                user_key: Bytes::copy_from_slice(key),
                trailer: iter.trailer(),
                index: next_block(index.within(limit)?, &mut index_end)?,
                filter,
            });
            iter.next()?;
        }
        Ok(Self { partitions })
    }

    pub(super) fn len(&self) -> usize {
        self.partitions.len()
    }

    /// Bytes that it takes in memory.
    pub(super) fn memory(&self) -> u64 {
        let keys: usize = self.partitions.iter().map(|p| p.user_key.len()).sum();
        (keys + self.partitions.len() * size_of::<PartitionHandle>()) as u64
    }

    pub(super) fn get(&self, number: usize) -> Option<&PartitionHandle> {
        self.partitions.get(number)
    }

    /// The partition that holds the first record at or after the target, if any does.
    #[inline]
    pub(super) fn find(&self, user_key: &[u8], trailer: u64) -> Option<usize> {
        let number = self.partitions.partition_point(|partition| {
            match partition.user_key[..].cmp(user_key) {
                std::cmp::Ordering::Less => true,
                std::cmp::Ordering::Equal => partition.trailer > trailer,
                std::cmp::Ordering::Greater => false,
            }
        });
        (number < self.len()).then_some(number)
    }

    /// Decodes every partition. `region` holds all of them, and begins at `start` in the file. The
    /// result takes no more memory than the region.
    pub(super) fn decode_all(
        &self,
        region: &Bytes,
        start: u64,
        table: FileId,
        path: &Path,
    ) -> Result<Vec<Partition>> {
        let payload = |handle: BlockHandle| -> Result<Bytes> {
            let slice = || {
                let from = usize::try_from(handle.offset.checked_sub(start)?).ok()?;
                let to = from.checked_add(handle.len as usize)?;
                (to <= region.len()).then(|| region.slice(from..to))
            };
            let outside = Damage("a partition lies outside of its region");
            let stored = stored::at(slice().ok_or(outside), path, handle.offset)?;
            let payload = stored::unseal_raw(&stored, table, handle.offset);
            let payload = stored::at(payload, path, handle.offset)?;
            Ok(stored.slice_ref(payload))
        };
        let filter = |partition: &PartitionHandle| match partition.filter {
            Some(handle) => {
                let decoded = Filter::new(payload(handle)?);
                stored::at(decoded, path, handle.offset).map(Some)
            }
            None => Ok(None),
        };
        let filters = self.partitions.iter().map(filter);
        let filters = filters.collect::<Result<Vec<_>>>()?;
        // Wide filters have been copied. If an index borrowed from the region, it would keep all of
        // the region in memory, including what was copied.
        let has_copies = filters
            .iter()
            .any(|filter| matches!(filter, Some(Filter::Fuse16(_))));
        let partition = |(handle, filter): (&PartitionHandle, Option<Filter>)| {
            let mut index = payload(handle.index)?;
            if has_copies {
                index = Bytes::copy_from_slice(&index);
            }
            let index = stored::at(Block::new(index), path, handle.index.offset)?;
            Ok(Partition { index, filter })
        };
        self.partitions.iter().zip(filters).map(partition).collect()
    }
}

/// `handle`, if its block begins where the one before it ended: blocks of one kind are packed back
/// to back.
fn next_block(handle: BlockHandle, end: &mut Option<u64>) -> Decoded<BlockHandle> {
    if end.is_some_and(|end| end != handle.offset) {
        return Err(Damage("the partitions do not follow each other"));
    }
    *end = Some(handle.end());
    Ok(handle)
}

/// A partition in memory.
#[derive(Debug)]
pub(super) struct Partition {
    pub(super) index: Block<true>,
    pub(super) filter: Option<Filter>,
}
