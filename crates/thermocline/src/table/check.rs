//! Verification: reads all of a table and checks what readers take for granted.

use super::block::Block;
use super::block_iter::BlockIter;
use super::filter;
use super::index::BlockWeight;
use super::partitions::Partition;
use super::reader::{ReadTrace, Table};
use super::stored::{self, BlockHandle};
use super::tail::Tail;
use crate::error::{Error, Result};
use crate::key::{Kind, SeqNo};
use crate::metrics::Purpose;
use crate::storage::IoBuf;

/// Bytes read in one I/O.
const READ_LEN: u64 = 1 << 20;

/// What a verification saw. Damage is reported as an error instead.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TableCheck {
    pub(crate) entries: u64,
    pub(crate) deletes: u64,
    /// Data blocks.
    pub(crate) blocks: u64,
    /// Bytes of the file.
    pub(crate) bytes: u64,
}

/// The state of a verification, block by block.
struct Checker<'a> {
    table: &'a Table,
    check: TableCheck,
    /// Bytes read from the file, and their offset.
    window: Option<(u64, IoBuf)>,
    /// Where the next block must begin: blocks are packed back to back.
    offset: u64,
    last: Option<(Vec<u8>, u64)>,
    min_seq: SeqNo,
    max_seq: SeqNo,
    raw_key_bytes: u64,
    raw_value_bytes: u64,
    /// In a weighed table: the weight of the blocks so far, as the index gives it.
    weight: u64,
    /// Checksum over the checksums of the blocks so far.
    data_checksum: u64,
}

impl Table {
    /// Number of partitions of its index.
    pub(crate) fn partitions(&self) -> usize {
        self.top.len()
    }

    /// Number of data blocks that the index names.
    ///
    /// # Errors
    /// [`Error::Corruption`]; I/O errors of the tier.
    pub(crate) fn count_data_blocks(&self) -> Result<u64> {
        let mut blocks = 0;
        let partitions = self.read_partitions(Purpose::Maintenance)?;
        for (number, partition) in partitions.iter().enumerate() {
            let at = self.index_offset(number);
            let mut index = BlockIter::new(partition.index.clone());
            self.at(at, index.seek_to_first())?;
            while index.valid() {
                self.data_handle(index.value(), number)?;
                blocks += 1;
                self.at(at, index.next())?;
            }
        }
        Ok(blocks)
    }

    /// Reads every byte of the table, and checks checksums, order, separators, filters, and the
    /// counts and ranges of properties and manifest. Bypasses every cache.
    ///
    /// # Errors
    /// [`Error::Corruption`] at the first check that fails; I/O errors of the tier.
    pub(crate) fn verify(&self) -> Result<TableCheck> {
        let purpose = Purpose::Maintenance;
        let database = self.properties.identity.database;
        let tail = Tail::read(&self.file, purpose, &self.meta, database)?;
        if tail.properties != self.properties {
            let what = "the properties are not those that were read when it was opened";
            return Err(Error::corruption(self.path(), self.meta.len, what));
        }
        let mut checker = Checker {
            table: self,
            check: TableCheck {
                bytes: self.meta.len,
                ..TableCheck::default()
            },
            window: None,
            offset: 0,
            last: None,
            min_seq: SeqNo::MAX,
            max_seq: 0,
            raw_key_bytes: 0,
            raw_value_bytes: 0,
            weight: 0,
            data_checksum: 0,
        };
        for (number, partition) in self.read_partitions(purpose)?.iter().enumerate() {
            checker.partition(number, partition)?;
        }
        checker.finish()
    }
}

impl Checker<'_> {
    fn damaged(&self, offset: u64, what: impl Into<String>) -> Error {
        Error::corruption(self.table.path(), offset, what)
    }

    fn partition(&mut self, number: usize, partition: &Partition) -> Result<()> {
        let at = self.table.index_offset(number);
        let mut index = BlockIter::new(partition.index.clone());
        self.table.at(at, index.seek_to_first())?;
        while index.valid() {
            let handle = self.table.data_handle(index.value(), number)?;
            if handle.offset != self.offset {
                return Err(self.damaged(at, "the index skips or repeats bytes of the data"));
            }
            let separator = (index.key(), index.trailer());
            if let Some((key, trailer)) = &self.last
                && !before(key, *trailer, separator.0, separator.1)
            {
                return Err(self.damaged(at, "separators are not in order"));
            }
            self.block(handle, separator, number, partition)?;
            if self.table.properties.weight.is_some() {
                let weight = self.table.at(at, BlockWeight::of(index.value()))?;
                if weight.before != self.weight {
                    return Err(self.damaged(at, "the weights of the index do not add up"));
                }
                self.weight = self.weight.saturating_add(weight.own);
            }
            self.offset = handle.end();
            self.table.at(at, index.next())?;
        }
        // For this partition's last record, the top-level index must lead to this partition; for
        // the next record, past it.
        let found = |(key, trailer): &(Vec<u8>, u64)| self.table.top.find(key, *trailer);
        if self.last.as_ref().and_then(found) != Some(number) {
            return Err(self.damaged(at, "the top-level index leads past a partition"));
        }
        Ok(())
    }

    fn block(
        &mut self,
        handle: BlockHandle,
        separator: (&[u8], u64),
        number: usize,
        partition: &Partition,
    ) -> Result<()> {
        let at = handle.offset;
        let payload = self.read(handle)?;
        let mut records = BlockIter::new(self.table.at(at, Block::<false>::new(payload))?);
        self.table.at(at, records.seek_to_first())?;
        let mut first = true;
        while records.valid() {
            let (key, trailer) = (records.key(), records.trailer());
            if let Some((last_key, last_trailer)) = &self.last
                && !before(last_key, *last_trailer, key, trailer)
            {
                return Err(self.damaged(at, "records are not in order"));
            }
            if first && self.table.top.find(key, trailer) != Some(number) {
                return Err(self.damaged(at, "the top-level index leads elsewhere for a record"));
            }
            first = false;
            if self.table.properties.weight.is_none()
                && let Some(filter) = &partition.filter
                && !filter.contains(filter::hash(key))
            {
                return Err(self.damaged(at, "a filter excludes a key that is there"));
            }
            let kind = self.table.kind(trailer, at)?;
            self.check.entries += 1;
            self.check.deletes += u64::from(kind == Kind::Delete);
            let seq = self.table.trailer(trailer) >> 8;
            self.min_seq = self.min_seq.min(seq);
            self.max_seq = self.max_seq.max(seq);
            self.raw_key_bytes += key.len() as u64;
            self.raw_value_bytes += records.value().len() as u64;
            let range = &self.table.meta.range;
            if self.last.is_none() && *key != range.first[..] {
                return Err(self.damaged(at, "the first key is not the one in the manifest"));
            }
            match &mut self.last {
                Some((last_key, last_trailer)) => {
                    last_key.clear();
                    last_key.extend_from_slice(key);
                    *last_trailer = trailer;
                }
                None => self.last = Some((key.to_vec(), trailer)),
            }
            self.table.at(at, records.next())?;
        }
        let ends = |(key, trailer): &(Vec<u8>, u64)| {
            (&key[..], *trailer) == separator || before(key, *trailer, separator.0, separator.1)
        };
        if !self.last.as_ref().is_some_and(ends) {
            return Err(self.damaged(at, "a block ends past its separator"));
        }
        self.check.blocks += 1;
        Ok(())
    }

    /// The payload of a block, taken from a window over the file.
    fn read(&mut self, handle: BlockHandle) -> Result<bytes::Bytes> {
        let part = |window: &(u64, IoBuf)| {
            let from = usize::try_from(handle.offset.checked_sub(window.0)?).ok()?;
            let stored = window.1.get(from..from.checked_add(handle.len as usize)?)?;
            let chained = stored::chain(self.data_checksum, stored);
            Some((self.table.decode(stored, handle), chained))
        };
        if let Some((decoded, chained)) = self.window.as_ref().and_then(part) {
            self.data_checksum = chained;
            return decoded;
        }
        let left = self.table.properties.data_bytes - handle.offset;
        let len = READ_LEN.max(u64::from(handle.len)).min(left);
        self.window = None;
        let read = self.table.file.file.read(handle.offset, len as usize)?;
        let mut trace = ReadTrace::default();
        self.table
            .count_device_read(&read, Purpose::Maintenance, &mut trace);
        let stored = read.get(..handle.len as usize).unwrap_or_default();
        let decoded = self.table.decode(stored, handle);
        self.data_checksum = stored::chain(self.data_checksum, stored);
        self.window = Some((handle.offset, read));
        decoded
    }

    fn finish(self) -> Result<TableCheck> {
        let (meta, properties) = (&self.table.meta, &self.table.properties);
        let last = self.last.as_ref().map(|(key, _)| &key[..]);
        let disagreement = if self.offset != properties.data_bytes {
            "the index does not reach the end of the data"
        } else if last != Some(&meta.range.last[..]) {
            "the last key is not the one in the manifest"
        } else if meta.range != properties.range {
            "the key range of the properties is not the one in the manifest"
        } else if [self.check.entries; 2] != [meta.entries, properties.entries] {
            "the number of records is not the one recorded"
        } else if [self.check.deletes; 2] != [meta.deletes, properties.deletes] {
            "the number of deletes is not the one recorded"
        } else if [(self.min_seq, self.max_seq); 2]
            != [
                (meta.min_seq, meta.max_seq),
                (properties.min_seq, properties.max_seq),
            ]
        {
            "the sequence numbers do not span what is recorded"
        } else if (self.raw_key_bytes, self.raw_value_bytes)
            != (properties.raw_key_bytes, properties.raw_value_bytes)
        {
            "the bytes of keys and values are not those recorded"
        } else if properties
            .data_checksum
            .is_some_and(|sum| sum != self.data_checksum)
        {
            "the checksum of the data is not the one recorded"
        } else if self.weight != properties.weight.unwrap_or(0) {
            "the weight is not the one recorded"
        } else {
            return Ok(self.check);
        };
        Err(self.damaged(self.offset, disagreement))
    }
}

/// Whether one internal key sorts before another.
fn before(a: &[u8], a_trailer: u64, b: &[u8], b_trailer: u64) -> bool {
    a.cmp(b).then(b_trailer.cmp(&a_trailer)).is_lt()
}
