//! An open table: point lookups.

use std::path::Path;
use std::sync::OnceLock;

use bytes::Bytes;

use super::block::Block;
use super::filter::Filter;
use super::hashed_key::HashedKey;
use super::heat::{Heat, TableHeat};
use super::iter::{ScanOptions, TableIter};
use super::partitions::{Partition, PartitionHandle, TopIndex};
use super::properties::TableProperties;
use super::source::{BlockSource, Copies};
use super::stored::{self, BlockHandle, Damage};
use super::tail::Tail;
use super::{TableMeta, index};
use crate::cache::{BlockCache, Pin, PinBudget};
use crate::error::{Error, Result};
use crate::key::{InternalKey, Kind, MAX_SEQ, SeqNo};
use crate::metrics::Purpose;
use crate::options::MAX_TIERS;
use crate::record::Record;
use crate::storage::IoBuf;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex};
use crate::tier::{Tier, TierFile};
use crate::value::Value;

/// How far a lookup gets without reading a data block.
#[derive(Debug)]
pub(crate) enum Located {
    /// The table has no visible version of the key.
    Absent,
    /// The block was in the cache.
    Found(Record),
    /// The block must be read; [`Table::receive`] goes on from there.
    Read(BlockHandle),
}

/// What lookups cost. Counts of blocks include partitions that are not pinned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadTrace {
    /// The purpose that point lookups are counted for.
    purpose: Purpose,
    pub(crate) device_reads: [u32; MAX_TIERS],
    pub(crate) cache_hits: u32,
    pub(crate) cache_misses: u32,
    /// Tables whose filter excluded the key.
    pub(crate) filter_skips: u32,
    /// Tables whose filter let the key pass although they hold no visible version of it.
    pub(crate) filter_false_positives: u32,
}

impl ReadTrace {
    /// A trace of lookups for `purpose`.
    pub(crate) fn new(purpose: Purpose) -> Self {
        Self {
            purpose,
            device_reads: [0; MAX_TIERS],
            cache_hits: 0,
            cache_misses: 0,
            filter_skips: 0,
            filter_false_positives: 0,
        }
    }
}

impl Default for ReadTrace {
    /// A trace of lookups for the user.
    fn default() -> Self {
        Self::new(Purpose::UserRead)
    }
}

/// An immutable sorted table, open for reading.
#[derive(Debug)]
pub(crate) struct Table {
    pub(super) meta: TableMeta,
    pub(super) file: TierFile,
    pub(super) properties: TableProperties,
    pub(super) top: TopIndex,
    /// Every partition, if the pin budget had room. Loaded at the first use, so that opening a
    /// store reads only the tails of its tables.
    pinned: OnceLock<Vec<Partition>>,
    /// Room for the partitions. While it is not granted, they are read through the cache.
    pub(super) pin: Pin,
    /// Held while the partitions are loaded, so that they are read only once.
    loading: Mutex<()>,
    /// Whether a partition is damaged or cannot be read. If so, each partition is read by itself,
    /// and none has room in the budget.
    is_apart: AtomicBool,
    pub(super) copies: Copies,
    pub(super) heat: Arc<TableHeat>,
    pub(super) cache: Arc<BlockCache>,
}

impl Table {
    /// Opens the table that `meta` names. For tables of any usual size this takes one read, of at
    /// most 64 KiB. Damage of filters and index, and unreadable sectors in them, are left to those
    /// who read them.
    ///
    /// # Errors
    /// [`Error::Corruption`] when the file's end is damaged, or when the file is another table or
    /// belongs to another keyspace or database; [`Error::FormatVersion`]; I/O errors of the tier.
    pub(crate) fn open(
        tier: &Arc<Tier>,
        meta: TableMeta,
        database: u128,
        cache: Arc<BlockCache>,
        pins: Arc<PinBudget>,
    ) -> Result<Self> {
        let file = tier.open(&meta.file_name())?;
        let tail = Tail::read(&file, Purpose::Open, &meta, database)?;
        let region = tail.properties.filter_bytes + tail.properties.index_bytes;
        let pin = pins.ask(tail.top.memory(), region);
        let mut table = Self {
            meta,
            file,
            properties: tail.properties,
            top: tail.top,
            pinned: OnceLock::new(),
            pin,
            loading: Mutex::new(()),
            is_apart: AtomicBool::new(false),
            copies: Copies::default(),
            heat: Arc::new(TableHeat::new(Heat::default())),
            cache,
        };
        if table.pin.is_granted() {
            // A small table's partitions have come with the tail. They are copied, because the tail
            // holds more bytes than the budget was asked for.
            let start = table.properties.data_bytes;
            if let Some(from) = start.checked_sub(tail.start)
                && let Some(part) = tail.bytes.get(from as usize..(from + region) as usize)
                && let Ok(partitions) = table.decode_partitions(&Bytes::copy_from_slice(part))
            {
                table.pinned = OnceLock::from(partitions);
            }
        }
        Ok(table)
    }

    /// Counts its reads in `heat` from now on.
    pub(super) fn with_heat(self, heat: Arc<TableHeat>) -> Self {
        Self { heat, ..self }
    }

    pub(crate) fn tier(&self) -> &Arc<Tier> {
        &self.file.tier
    }

    pub(crate) fn properties(&self) -> &TableProperties {
        &self.properties
    }

    /// Loads filters and index if they may stay in memory, so that damage in them is found now.
    ///
    /// # Errors
    /// [`Error::Corruption`]; I/O errors of the tier.
    pub(crate) fn load(&self) -> Result<()> {
        if self.pin.is_granted_by_now() {
            self.load_pinned()?;
        }
        Ok(())
    }

    /// Whether who reads it waits for a device.
    pub(crate) fn waits_for_a_device(&self) -> bool {
        self.file.file.waits_for_a_device()
    }

    /// Whether it may hold its index and filter partitions in memory.
    #[cfg(test)]
    pub(crate) fn is_pinned(&self) -> bool {
        self.pin.is_granted()
    }

    /// The newest version of `key` that a reader at `seq` sees.
    ///
    /// # Errors
    /// [`Error::Corruption`]; I/O errors of the tier.
    pub(crate) fn get(
        &self,
        key: &HashedKey<'_>,
        seq: SeqNo,
        trace: &mut ReadTrace,
    ) -> Result<Option<Record>> {
        match self.locate(key, seq, trace)? {
            Located::Absent => Ok(None),
            Located::Found(record) => Ok(Some(record)),
            Located::Read(handle) => {
                let source = self.source();
                let read = self.read_from(&source, handle);
                let payload = self.receive(handle, &source, read, trace)?;
                self.search(payload, handle, key.bytes(), seq, trace)
            }
        }
    }

    /// As [`Table::get`], but stops before the read of a data block. The caller makes many of those
    /// reads at once with [`Table::read_request`]; it goes on with [`Table::receive`] for each
    /// block and [`Table::search`] for each key.
    ///
    /// # Errors
    /// As [`Table::get`].
    #[inline]
    pub(crate) fn locate(
        &self,
        key: &HashedKey<'_>,
        seq: SeqNo,
        trace: &mut ReadTrace,
    ) -> Result<Located> {
        debug_assert!(
            self.properties.weight.is_none(),
            "the filters of a weighed table do not hold all of its records"
        );
        if self.meta.assigned().is_some_and(|assigned| assigned > seq) {
            return Ok(Located::Absent);
        }
        let trailer = seek_trailer(seq);
        let Some(number) = self.top.find(key.bytes(), trailer) else {
            return Ok(Located::Absent);
        };
        let handle = match self.pinned()? {
            Some(partitions) => match partitions.get(number) {
                Some(partition) => match &partition.filter {
                    Some(filter) if !filter.contains(key.hash()) => {
                        trace.filter_skips += 1;
                        return Ok(Located::Absent);
                    }
                    _ => self.search_index(&partition.index, number, key.bytes(), trailer)?,
                },
                None => None,
            },
            None => {
                if let Some(filter) = self.load_filter(number, trace.purpose, true, trace)?
                    && !filter.contains(key.hash())
                {
                    trace.filter_skips += 1;
                    return Ok(Located::Absent);
                }
                let index = self.load_index(number, trace.purpose, true, trace)?;
                self.search_index(&index, number, key.bytes(), trailer)?
            }
        };
        let Some(handle) = handle else {
            return Ok(Located::Absent);
        };
        let Some(payload) = self.cached(handle, true, trace) else {
            return Ok(Located::Read(handle));
        };
        Ok(
            match self.search_block(payload, handle, key.bytes(), trailer, trace)? {
                Some(record) => Located::Found(record),
                None => Located::Absent,
            },
        )
    }

    /// The payload of a block that [`Table::locate`] asked for and that was `read` from `source`.
    /// Checks the block, puts it into the cache and counts the read.
    ///
    /// # Errors
    /// The error of `read`; [`Error::Corruption`].
    pub(crate) fn receive(
        &self,
        handle: BlockHandle,
        source: &BlockSource,
        read: Result<IoBuf>,
        trace: &mut ReadTrace,
    ) -> Result<Bytes> {
        let payload = self.payload(handle, source, read, trace.purpose, trace)?;
        self.cache
            .insert(self.meta.id, handle.offset, payload.clone());
        Ok(payload)
    }

    /// Searches for `key` in the block that [`Table::locate`] asked for.
    ///
    /// # Errors
    /// [`Error::Corruption`].
    pub(crate) fn search(
        &self,
        payload: Bytes,
        handle: BlockHandle,
        key: &[u8],
        seq: SeqNo,
        trace: &mut ReadTrace,
    ) -> Result<Option<Record>> {
        self.search_block(payload, handle, key, seek_trailer(seq), trace)
    }

    /// A cursor over the table.
    pub(crate) fn iter(self: &Arc<Self>, how: ScanOptions) -> TableIter {
        TableIter::new(Arc::clone(self), how)
    }

    pub(super) fn path(&self) -> &Path {
        self.file.file.path()
    }

    /// Adds the path and `offset` to damage.
    #[inline]
    pub(super) fn at<T>(&self, offset: u64, decoded: stored::Decoded<T>) -> Result<T> {
        match decoded {
            Ok(value) => Ok(value),
            Err(damage) => stored::at(Err(damage), self.path(), offset),
        }
    }

    pub(super) fn decode_read(&self, read: IoBuf, handle: BlockHandle) -> Result<Bytes> {
        self.at(
            handle.offset,
            stored::decode_read(read, self.meta.id, handle.offset),
        )
    }

    pub(super) fn decode(&self, stored: &[u8], handle: BlockHandle) -> Result<Bytes> {
        self.at(
            handle.offset,
            stored::decode(stored, self.meta.id, handle.offset),
        )
    }

    pub(super) fn load_filter(
        &self,
        number: usize,
        purpose: Purpose,
        keep: bool,
        trace: &mut ReadTrace,
    ) -> Result<Option<Filter>> {
        let Some(handle) = self.top.get(number).and_then(|p| p.filter) else {
            return Ok(None);
        };
        let payload = self.fetch(handle, purpose, keep, trace)?;
        Ok(Some(self.at(handle.offset, Filter::new(payload))?))
    }

    fn load_index(
        &self,
        number: usize,
        purpose: Purpose,
        keep: bool,
        trace: &mut ReadTrace,
    ) -> Result<Block<true>> {
        let missing = Damage("a partition is asked for that the table does not have");
        let partition = self.top.get(number).ok_or(missing);
        let handle = self.at(0, partition)?.index;
        let payload = self.fetch(handle, purpose, keep, trace)?;
        self.at(handle.offset, Block::new(payload))
    }

    /// The index of partition `number`: pinned, or through the cache.
    pub(super) fn index(
        &self,
        number: usize,
        purpose: Purpose,
        keep: bool,
        trace: &mut ReadTrace,
    ) -> Result<Block<true>> {
        match self.pinned()?.and_then(|all| all.get(number)) {
            Some(partition) => Ok(partition.index.clone()),
            None => self.load_index(number, purpose, keep, trace),
        }
    }

    /// The offset to report for damage in the index of partition `number`.
    pub(super) fn index_offset(&self, number: usize) -> u64 {
        self.top.get(number).map_or(0, |p| p.index.offset)
    }

    /// The block that the index names; checks that it is among the data blocks.
    pub(super) fn data_handle(&self, value: &[u8], number: usize) -> Result<BlockHandle> {
        let handle = index::data_handle(value).and_then(|h| h.within(self.properties.data_bytes));
        match handle {
            Ok(handle) => Ok(handle),
            Err(damage) => self.at(self.index_offset(number), Err(damage)),
        }
    }

    #[inline]
    fn search_index(
        &self,
        index: &Block<true>,
        number: usize,
        key: &[u8],
        trailer: u64,
    ) -> Result<Option<BlockHandle>> {
        match index.find(key, trailer) {
            Ok(Some((entry, _))) => self.data_handle(index.value(&entry), number).map(Some),
            Ok(None) => Ok(None),
            Err(damage) => self.at(self.index_offset(number), Err(damage)),
        }
    }

    #[inline]
    fn search_block(
        &self,
        payload: Bytes,
        handle: BlockHandle,
        key: &[u8],
        trailer: u64,
        trace: &mut ReadTrace,
    ) -> Result<Option<Record>> {
        let block = self.at(handle.offset, Block::<false>::new(payload))?;
        match self.at(handle.offset, block.find(key, trailer))? {
            Some((entry, true)) => Ok(Some(Record {
                seq: self.trailer(entry.trailer) >> 8,
                kind: self.kind(entry.trailer, handle.offset)?,
                value: Value::new(block.into_value(&entry)),
            })),
            _ => {
                if self.properties.filter_bytes > 0 {
                    trace.filter_false_positives += 1;
                }
                Ok(None)
            }
        }
    }

    /// The trailer of a record for which `stored` is stored: records of an ingestion have the
    /// number that the manifest says.
    #[inline]
    pub(super) fn trailer(&self, stored: u64) -> u64 {
        match self.meta.assigned() {
            None => stored,
            Some(seq) => seq << 8 | stored & 0xff,
        }
    }

    /// The kind in a trailer, if this build can answer reads of it.
    #[inline]
    pub(super) fn kind(&self, trailer: u64, offset: u64) -> Result<Kind> {
        let byte = trailer as u8;
        match Kind::from_byte(byte) {
            Some(kind) if kind.is_supported() => Ok(kind),
            Some(kind) => Err(Error::corruption(
                self.path(),
                offset,
                format!("a record is a {kind:?}, which is unsupported by this build"),
            )),
            None => Err(Error::corruption(
                self.path(),
                offset,
                format!("a record is of the unknown kind {byte}"),
            )),
        }
    }

    /// The partitions in memory, if they fit the pin budget.
    #[inline]
    pub(super) fn pinned(&self) -> Result<Option<&[Partition]>> {
        match self.pinned.get() {
            Some(partitions) => Ok(Some(partitions)),
            None if self.is_apart.load(Ordering::Relaxed) => Ok(None),
            None if !self.pin.is_granted_by_now() => Ok(None),
            None => match self.load_pinned() {
                // Only reads that need the unreadable partition fail.
                Err(_) if self.is_apart.load(Ordering::Relaxed) => Ok(None),
                loaded => loaded,
            },
        }
    }

    /// Loads the partitions, unless the room has been granted to others meanwhile.
    #[cold]
    fn load_pinned(&self) -> Result<Option<&[Partition]>> {
        let _alone = self.loading.lock();
        if let Some(partitions) = self.pinned.get() {
            return Ok(Some(partitions));
        }
        // The thread that was here before may have given the room back. As long as this thread
        // holds the lock, no other one does.
        if !self.pin.is_granted_by_now() {
            return Ok(None);
        }
        let read = self.read_partitions(Purpose::Open);
        // Damage, or something that the device cannot read. If the process lacks a resource, that
        // is no property of the file, and will pass.
        if let Err(Error::Corruption { .. } | Error::Io { .. }) = read {
            self.is_apart.store(true, Ordering::Relaxed);
            self.pin.give_back();
        }
        let partitions = read?;
        Ok(Some(self.pinned.get_or_init(|| partitions)))
    }

    /// Reads all partitions at once, since they follow each other.
    pub(super) fn read_partitions(&self, purpose: Purpose) -> Result<Vec<Partition>> {
        let len = self.properties.filter_bytes + self.properties.index_bytes;
        let start = self.properties.data_bytes;
        let region = self.file.read_bytes(purpose, start, len as usize)?;
        self.decode_partitions(&region)
    }

    fn decode_partitions(&self, region: &Bytes) -> Result<Vec<Partition>> {
        let start = self.properties.data_bytes;
        self.top
            .decode_all(region, start, self.meta.id, self.path())
    }

    pub(super) fn partition(&self, number: usize) -> Option<&PartitionHandle> {
        self.top.get(number)
    }
}

/// The trailer that sorts before every version visible at `seq`.
#[inline]
fn seek_trailer(seq: SeqNo) -> u64 {
    InternalKey::seek_to(&[], seq.min(MAX_SEQ)).trailer()
}
