//! Where a table's blocks come from: memory, its file, or the file's copy on a faster tier.

use bytes::Bytes;

use super::reader::{ReadTrace, Table};
use super::stored::BlockHandle;
use crate::error::Result;
use crate::metrics::Purpose;
use crate::storage::{IoBuf, ReadRequest};
use crate::sync::Arc;
use crate::tier::{CopySlot, TableCopy, Tier, TierFile};

/// The file that blocks are read from.
#[derive(Debug)]
pub(crate) enum BlockSource {
    Table,
    Copy(Arc<TableCopy>),
}

impl BlockSource {
    /// Where in the table the file begins.
    fn start(&self) -> u64 {
        match self {
            Self::Table => 0,
            Self::Copy(copy) => copy.start,
        }
    }
}

/// A table's copies on a faster tier.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    pub(crate) whole: Arc<CopySlot>,
    /// Of everything behind the records.
    pub(crate) tail: Arc<CopySlot>,
}

impl Table {
    /// The payload of a block, read through the cache. If `keep`, a block that was read stays in
    /// the cache.
    pub(super) fn fetch(
        &self,
        handle: BlockHandle,
        purpose: Purpose,
        keep: bool,
        trace: &mut ReadTrace,
    ) -> Result<Bytes> {
        if let Some(payload) = self.cached(handle, keep, trace) {
            return Ok(payload);
        }
        let source = self.source_of(handle);
        let read = self.read_from(&source, handle);
        let payload = self.payload(handle, &source, read, purpose, trace)?;
        if keep {
            self.cache
                .insert(self.meta.id, handle.offset, payload.clone());
        }
        Ok(payload)
    }

    /// The payload of a block, if it is in the cache, in memory or in flash. If `keep`, a block
    /// found in flash also stays in memory.
    #[inline]
    pub(super) fn cached(
        &self,
        handle: BlockHandle,
        keep: bool,
        trace: &mut ReadTrace,
    ) -> Option<Bytes> {
        if let Some(payload) = self.cache.get(self.meta.id, handle.offset) {
            trace.cache_hits += 1;
            return Some(payload);
        }
        let payload = self
            .cache
            .get_from_flash(self.meta.id, handle.offset, keep)?;
        trace.cache_misses += 1;
        // The flash cache is on the first tier, and counts its own bytes there.
        trace.device_reads[0] += 1;
        Some(payload)
    }

    pub(super) fn count_miss(&self, read: &IoBuf, purpose: Purpose, trace: &mut ReadTrace) {
        trace.cache_misses += 1;
        self.count_device_read(read, purpose, trace);
    }

    pub(super) fn count_device_read(&self, read: &IoBuf, purpose: Purpose, trace: &mut ReadTrace) {
        self.count_read_on(self.tier(), read, purpose, trace);
    }

    /// Counts a read of one of its blocks, which `tier` has.
    #[inline]
    fn count_read_on(&self, tier: &Tier, read: &IoBuf, purpose: Purpose, trace: &mut ReadTrace) {
        tier.count_read(purpose, read.device_bytes());
        if let Some(reads) = trace.device_reads.get_mut(usize::from(tier.index)) {
            *reads += 1;
        }
        if purpose == Purpose::UserRead {
            self.heat.count();
        }
    }

    /// The best file to read any of its blocks from.
    #[inline]
    pub(crate) fn source(&self) -> BlockSource {
        self.copies
            .whole
            .get()
            .map_or(BlockSource::Table, BlockSource::Copy)
    }

    /// The best file to read the block `handle` from: its tail may have a copy of its own.
    fn source_of(&self, handle: BlockHandle) -> BlockSource {
        match self.source() {
            BlockSource::Table if handle.offset >= self.properties.data_bytes => {
                let tail = self.copies.tail.get();
                tail.map_or(BlockSource::Table, BlockSource::Copy)
            }
            source => source,
        }
    }

    /// The best file on tier `index` to read its blocks from: the table itself or its copy. `None`
    /// if neither is on that tier.
    pub(crate) fn source_on(&self, index: u8) -> Option<BlockSource> {
        let is_there = |source: &BlockSource| self.tier_of(source).index == index;
        [self.source(), BlockSource::Table]
            .into_iter()
            .find(is_there)
    }

    fn file_of<'a>(&'a self, source: &'a BlockSource) -> &'a TierFile {
        match source {
            BlockSource::Table => &self.file,
            BlockSource::Copy(copy) => &copy.file,
        }
    }

    /// The tier that a read from `source` goes to.
    fn tier_of<'a>(&'a self, source: &'a BlockSource) -> &'a Tier {
        &self.file_of(source).tier
    }

    /// The read that a [`Located::Read`] asks for. [`Table::receive`] counts it.
    pub(crate) fn read_request(&self, source: &BlockSource, handle: BlockHandle) -> ReadRequest {
        ReadRequest {
            file: Arc::clone(&self.file_of(source).file),
            offset: handle.offset - source.start(),
            len: handle.len as usize,
        }
    }

    #[inline]
    pub(super) fn read_from(&self, source: &BlockSource, handle: BlockHandle) -> Result<IoBuf> {
        let file = &self.file_of(source).file;
        file.read(handle.offset - source.start(), handle.len as usize)
    }

    /// The payload of a block that was `read` from `source`. If a copy cannot be read, it is given
    /// up, and the table is read instead.
    pub(super) fn payload(
        &self,
        handle: BlockHandle,
        source: &BlockSource,
        read: Result<IoBuf>,
        purpose: Purpose,
        trace: &mut ReadTrace,
    ) -> Result<Bytes> {
        trace.cache_misses += 1;
        if let BlockSource::Copy(copy) = source {
            let payload = read.and_then(|read| {
                self.count_read_on(&copy.file.tier, &read, purpose, trace);
                self.decode_read(read, handle)
            });
            if payload.is_ok() {
                return payload;
            }
            let read = self.read_from(&BlockSource::Table, handle)?;
            self.count_device_read(&read, purpose, trace);
            let payload = self.decode_read(read, handle)?;
            // The copy is given up only now, after the table could be read. If the table is damaged
            // too, its copy is no worse, and would be made again.
            let slot = match copy.start {
                0 => &self.copies.whole,
                _ => &self.copies.tail,
            };
            let _bytes = slot.clear();
            return Ok(payload);
        }
        let read = read?;
        self.count_device_read(&read, purpose, trace);
        self.decode_read(read, handle)
    }

    /// Raw bytes of the file.
    ///
    /// # Errors
    /// I/O errors of the tier.
    pub(crate) fn read_raw(&self, purpose: Purpose, offset: u64, len: usize) -> Result<IoBuf> {
        self.file.read(purpose, offset, len)
    }

    /// Its copies, of which there may be none.
    pub(crate) fn copies(&self) -> &Copies {
        &self.copies
    }

    /// Where its tail begins, if it is read from the device: a pinned one is in memory.
    pub(crate) fn tail_on_device(&self) -> Option<u64> {
        let start = self.properties.data_bytes;
        (!self.pin.is_granted() && start > 0).then_some(start)
    }
}
