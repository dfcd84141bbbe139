//! Writes a table, front to back.

use std::path::PathBuf;

use bytes::Bytes;

use super::block_builder::{BlockBuilder, DATA_INTERVAL, INDEX_INTERVAL};
use super::footer::Footer;
use super::index::{BlockWeight, Separator};
use super::key_sample::Sampler;
use super::properties::TableProperties;
use super::stored::{self, BlockHandle, LARGE_BLOCK, Sealer};
use super::{TableMeta, filter};
use crate::cache::HeldBuffer;
use crate::error::{Error, Result};
use crate::ids::{FileId, KeyspaceId, table_file_name};
use crate::key::{InternalKey, Kind, MAX_KEY_LEN, MAX_VALUE_LEN, SeqNo};
use crate::metrics::Purpose;
use crate::options::{Compression, FilterPolicy};
use crate::sync::Arc;
use crate::tier::{CountedWriter, Tier};

/// A partition is cut once it covers this many user keys, or its index this many bytes: a
/// reader that cannot pin partitions fetches one with one read of about this size.
const PARTITION_KEYS: usize = 4096;
const PARTITION_INDEX_BYTES: usize = 32 << 10;

/// Whose table it is. A repair needs this, so that it does not bring back records that a compaction
/// has already consumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableIdentity {
    pub(crate) database: u128,
    pub(crate) keyspace: KeyspaceId,
    pub(crate) id: FileId,
    pub(crate) level: u8,
    pub(crate) tier: u8,
    pub(crate) epoch: u64,
    /// The tables whose records it took over.
    pub(crate) replaces: Vec<FileId>,
    /// Tables that had been replaced before this one was written, and whose files still existed
    /// then.
    pub(crate) gone: Vec<FileId>,
    /// Name of the keyspace, so that a repair can restore it; empty if the keyspace has none.
    pub(crate) keyspace_name: Bytes,
}

/// A partition whose blocks wait in memory until all data blocks are written.
#[derive(Debug)]
struct Partition {
    last: Separator,
    index: Vec<u8>,
    filter: Option<Vec<u8>>,
}

/// A table under construction. Dropping it unfinished removes it.
#[derive(Debug)]
pub(crate) struct TableBuilder {
    writer: CountedWriter,
    path: PathBuf,
    block_size: usize,
    filter: FilterPolicy,
    sealer: Sealer,
    /// Bytes written.
    offset: u64,
    block: BlockBuilder,
    last_key: Vec<u8>,
    last_trailer: u64,
    /// The last block written. It is indexed once the next key is known, which its separator must
    /// sort before.
    unindexed: Option<(BlockHandle, BlockWeight)>,
    /// Weight of the current block, and of the blocks before it.
    block_weight: BlockWeight,
    index: BlockBuilder,
    index_value: Vec<u8>,
    hashes: Vec<u64>,
    partition_keys: usize,
    partitions: Vec<Partition>,
    /// Bytes that the finished partitions will take, with their entries in the top-level index.
    partition_bytes: usize,
    /// Checksum over the checksums of the data blocks so far.
    data_checksum: u64,
    sampler: Sampler,
    properties: TableProperties,
    tier: Arc<Tier>,
    /// Counts the current block and its compressed form, when a value makes them large.
    held: [Option<HeldBuffer>; 2],
}

impl TableBuilder {
    /// Overrides the highest sequence number, with one that no store writes.
    #[cfg(test)]
    pub(crate) fn craft_max_seq(&mut self, seq: u64) {
        self.properties.max_seq = seq;
    }

    /// Makes the properties say that all records together weigh `weight`.
    #[cfg(test)]
    pub(crate) fn craft_weight(&mut self, weight: u64) {
        self.properties.weight = Some(weight);
    }

    /// Starts the table `identity.id` on `tier`, expected to be about `expected_len` bytes long.
    ///
    /// # Errors
    /// I/O errors of the tier.
    pub(crate) fn new(
        tier: &Arc<Tier>,
        identity: TableIdentity,
        expected_len: u64,
        purpose: Purpose,
    ) -> Result<Self> {
        let name = table_file_name(identity.id);
        let path = tier.tables.path().join(&name);
        let sealer = Sealer::new(identity.id, tier.options.compression)
            .map_err(|source| Error::io("set up compression for", &path, source))?;
        Ok(Self {
            writer: tier.create(&name, expected_len, purpose)?,
            path,
            block_size: tier.options.block_size,
            filter: tier.options.filter,
            sealer,
            offset: 0,
            block: BlockBuilder::new(DATA_INTERVAL),
            last_key: Vec::new(),
            last_trailer: 0,
            unindexed: None,
            block_weight: BlockWeight::default(),
            index: BlockBuilder::new(INDEX_INTERVAL),
            index_value: Vec::new(),
            hashes: Vec::new(),
            partition_keys: 0,
            partitions: Vec::new(),
            partition_bytes: 0,
            data_checksum: 0,
            sampler: Sampler::default(),
            properties: TableProperties::new(identity),
            tier: Arc::clone(tier),
            held: [None, None],
        })
    }

    /// Makes this a weighed table. Its index tells how much records weigh, and its filters hold
    /// only marks and the records that weigh something. Such a table is for scans and for
    /// [`super::Table::may_contain`], not for point lookups.
    #[must_use]
    pub(crate) fn weighed(mut self) -> Self {
        self.properties.weight = Some(0);
        self
    }

    /// Makes this a table of an ingestion, whose records are all written with number 0: the number
    /// that they get is greater than `after`, and the manifest says which it is.
    #[must_use]
    pub(crate) fn ingested(mut self, after: SeqNo) -> Self {
        self.properties.ingested_after = Some(after);
        self
    }

    /// Appends a record; in a weighed table, one without weight. Keys come in ascending order. A
    /// key equal to the last one is dropped, since the same record may reach a merge by two ways
    /// (I1).
    ///
    /// # Errors
    /// [`Error::TooLarge`]; [`Error::Corruption`] when the key is below the last one, which damaged
    /// input may cause; I/O errors of the tier. After an I/O error, the builder must be dropped.
    pub(crate) fn add(&mut self, key: InternalKey<'_>, value: &[u8]) -> Result<()> {
        self.add_weighing(key, value, 0)
    }

    /// As [`TableBuilder::add`], with the record's weight in a weighed table. There, every record
    /// has a user key of its own.
    ///
    /// # Errors
    /// As [`TableBuilder::add`].
    pub(crate) fn add_weighing(
        &mut self,
        key: InternalKey<'_>,
        value: &[u8],
        weight: u64,
    ) -> Result<()> {
        for (what, len, limit) in [
            ("key", key.user_key.len(), MAX_KEY_LEN),
            ("value", value.len(), MAX_VALUE_LEN),
        ] {
            if len > limit {
                return Err(Error::TooLarge { what, len, limit });
            }
        }
        let trailer = key.trailer();
        let first = self.properties.entries == 0;
        let new_user_key = first || self.last_key != key.user_key;
        if !first {
            let ascending = match new_user_key {
                true => self.last_key[..] < *key.user_key,
                false if self.last_trailer == trailer => return Ok(()),
                false => self.last_trailer > trailer,
            };
            if !ascending {
                let what = "a record was to be written out of order";
                return Err(Error::corruption(&self.path, self.offset, what));
            }
        }
        self.index_block(Some(key.user_key));
        if value.len() >= LARGE_BLOCK && !self.block.is_empty() {
            // A large value gets a block of its own, so that readers of the records before it need
            // not read it.
            self.write_block()?;
            self.index_block(Some(key.user_key));
        }

        if first {
            self.properties.range.first = Bytes::copy_from_slice(key.user_key);
        }
        if new_user_key || self.partition_keys == 0 {
            self.partition_keys += 1;
            let filtered = weight > 0 || self.properties.weight.is_none();
            if filtered && self.filter != FilterPolicy::None {
                self.hashes.push(filter::hash(key.user_key));
            }
            self.last_key.clear();
            self.last_key.extend_from_slice(key.user_key);
        }
        self.last_trailer = trailer;
        if self.properties.weight.is_none() {
            self.sampler.add(key, value, new_user_key);
        }
        let properties = &mut self.properties;
        properties.entries += 1;
        properties.deletes += u64::from(key.kind == Kind::Delete);
        properties.min_seq = properties.min_seq.min(key.seq);
        properties.max_seq = properties.max_seq.max(key.seq);
        properties.raw_key_bytes += key.user_key.len() as u64;
        properties.raw_value_bytes += value.len() as u64;
        if let Some(sum) = &mut properties.weight {
            *sum = sum.saturating_add(weight);
            self.block_weight.own = self.block_weight.own.saturating_add(weight);
        }
        if value.len() >= LARGE_BLOCK && !self.sealer.may_shrink(value) {
            return self.write_alone(key.user_key, trailer, value);
        }
        self.held[0] = self.held[0]
            .take()
            .or_else(|| self.tier.large.hold(value.len()));
        self.block.add(key.user_key, Some(trailer), value);
        if self.block.len() >= self.block_size {
            self.write_block()?;
        }
        Ok(())
    }

    /// Marks the record that was added last, which must be one without weight in a weighed table.
    /// [`super::Table::may_be_marked`] finds marks. A mark is one more entry of the filter, with a
    /// hash of its own.
    pub(crate) fn mark_last(&mut self) {
        // The last record's partition is still open: the next record, or the end, cuts it.
        self.hashes.push(filter::mark(&self.last_key));
    }

    /// Ends the current block, if there is one. The sum of the weights up to here is then exact.
    ///
    /// # Errors
    /// I/O errors of the tier.
    pub(crate) fn end_block(&mut self) -> Result<()> {
        if !self.block.is_empty() {
            self.write_block()?;
        }
        Ok(())
    }

    /// Bytes so far: what is written, the current block, and the index and filters, which are
    /// written last. With long keys, the index is longer than the records.
    pub(crate) fn estimated_len(&self) -> u64 {
        let begun = [&self.block, &self.index].map(|block| match block.is_empty() {
            true => 0,
            false => block.len(),
        });
        self.offset + (begun[0] + begun[1] + self.partition_bytes) as u64
    }

    /// Records so far.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> u64 {
        self.properties.entries
    }

    /// Writes what is left; the table and its name are durable on return (I4).
    ///
    /// # Errors
    /// [`Error::Corruption`] when no record was added: the manifest cannot name a table without a
    /// range. [`Error::TooLarge`] when the top-level index reaches 4 GiB. I/O errors of the tier.
    pub(crate) fn finish(mut self) -> Result<TableMeta> {
        if self.properties.entries == 0 {
            let what = "a table without records was to be finished";
            return Err(Error::corruption(&self.path, 0, what));
        }
        if !self.block.is_empty() {
            self.write_block()?;
        }
        self.index_block(None);
        self.properties.range.last = Bytes::copy_from_slice(&self.last_key);
        self.properties.data_bytes = self.offset;
        self.properties.data_checksum = Some(self.data_checksum);
        if self.properties.weight.is_none() {
            self.properties.key_sample = Some(self.sampler.finish());
        }

        let partitions = std::mem::take(&mut self.partitions);
        let mut filters = Vec::with_capacity(partitions.len());
        for partition in &partitions {
            filters.push(match &partition.filter {
                Some(payload) => self.write_sealed(payload)?,
                None => BlockHandle { offset: 0, len: 0 },
            });
        }
        self.properties.filter_bytes = self.offset - self.properties.data_bytes;
        let index_start = self.offset;
        let mut top = BlockBuilder::new(INDEX_INTERVAL);
        for (partition, filter) in partitions.iter().zip(filters) {
            let index = self.write_sealed(&partition.index)?;
            partition.last.put_value(&mut self.index_value, false);
            index.put(&mut self.index_value);
            filter.put(&mut self.index_value);
            top.add(&partition.last.user_key, None, &self.index_value);
        }
        self.properties.index_bytes = self.offset - index_start;
        let footer = Footer {
            top_index: self.write_sealed(top.finish())?,
            properties: self.write_sealed(&self.properties.encode())?,
            table: self.properties.identity.id,
        }
        .encode();
        self.writer.append(&footer)?;
        self.offset += footer.len() as u64;
        self.writer.finish()?;

        let content = self.properties.content();
        let TableProperties {
            identity,
            ingested_after,
            min_seq,
            max_seq,
            entries,
            deletes,
            range,
            ..
        } = self.properties;
        Ok(TableMeta {
            content: Some(content),
            id: identity.id,
            keyspace: identity.keyspace,
            level: identity.level,
            tier: identity.tier,
            epoch: identity.epoch,
            len: self.offset,
            entries,
            deletes,
            min_seq,
            max_seq,
            ingested: ingested_after.is_some(),
            range,
        })
    }

    fn write_block(&mut self) -> Result<()> {
        if self.tier.options.compression != Compression::None {
            self.held[1] = self.tier.large.hold(self.block.len());
        }
        let stored = self
            .sealer
            .seal_compressed(self.block.finish(), self.offset);
        self.writer.append(stored)?;
        let (len, sum) = (stored.len(), stored::chain(self.data_checksum, stored));
        self.block_written(len, sum);
        Ok(())
    }

    /// Writes a block of one record uncompressed, without copying the value: there may be no memory
    /// for a copy (I8).
    fn write_alone(&mut self, key: &[u8], trailer: u64, value: &[u8]) -> Result<()> {
        let head = self.block.add_head(key, Some(trailer), value.len());
        let (head, behind) = self.block.finish().split_at(head);
        let envelope = self.sealer.envelope([head, value, behind], self.offset);
        let mut len = 0;
        for part in [head, value, behind, &envelope] {
            self.writer.append(part)?;
            len += part.len();
        }
        self.block_written(len, stored::chain(self.data_checksum, &envelope));
        Ok(())
    }

    /// Notes that a block of `len` bytes was written. `sum` is the checksum of all data blocks
    /// including it.
    fn block_written(&mut self, len: usize, sum: u64) {
        let handle = BlockHandle {
            offset: self.offset,
            len: len as u32,
        };
        let weight = self.block_weight;
        self.unindexed = Some((handle, weight));
        self.block_weight = BlockWeight {
            before: weight.before.saturating_add(weight.own),
            own: 0,
        };
        self.data_checksum = sum;
        self.offset += len as u64;
        self.block.reset();
        self.sealer.let_go();
        self.held = [None, None];
    }

    fn write_sealed(&mut self, payload: &[u8]) -> Result<BlockHandle> {
        let stored = self.sealer.seal(payload, self.offset);
        // Only the top-level index can be that long, and its restart points could not reach
        // further.
        let len = u32::try_from(stored.len()).map_err(|_| Error::TooLarge {
            what: "top-level index of a table",
            len: stored.len(),
            limit: u32::MAX as usize,
        })?;
        let handle = BlockHandle {
            offset: self.offset,
            len,
        };
        self.writer.append(stored)?;
        self.offset += stored.len() as u64;
        Ok(handle)
    }

    /// Indexes the block that was written last, now that the key after it, `next`, is known. Cuts
    /// the partition if it is full or the table ends.
    fn index_block(&mut self, next: Option<&[u8]>) {
        let Some((block, weight)) = self.unindexed.take() else {
            return;
        };
        let weighed = self.properties.weight.is_some();
        let separator = Separator::between(&self.last_key, self.last_trailer, next);
        separator.put_value(&mut self.index_value, weighed);
        block.put(&mut self.index_value);
        if weighed {
            weight.put(&mut self.index_value);
        }
        self.index.add(&separator.user_key, None, &self.index_value);
        if next.is_none()
            || self.partition_keys >= PARTITION_KEYS
            || self.index.len() >= PARTITION_INDEX_BYTES
        {
            let index = self.index.finish().to_vec();
            self.index.reset();
            self.partition_keys = 0;
            let filter = filter::build(&mut self.hashes, self.filter);
            let filter_len = filter.as_ref().map_or(0, Vec::len);
            self.partition_bytes += index.len() + filter_len + separator.user_key.len();
            self.partitions.push(Partition {
                last: separator,
                index,
                filter,
            });
        }
    }
}
