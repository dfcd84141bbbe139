//! Reads what can be read of a damaged table, and says which keys were in the rest.

use bytes::Bytes;

use super::block::Block;
use super::block_iter::BlockIter;
use super::reader::Table;
use super::stored::{self, BlockHandle};
use crate::error::{Error, Result};
use crate::key::{InternalKey, Kind};
use crate::metrics::Purpose;
use crate::sync::Arc;

/// A part of a table that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostPart {
    pub(crate) offset: u64,
    pub(crate) what: String,
    /// Its keys lie after this one, or begin with it if the table does. They end with `last`.
    pub(crate) after: Bytes,
    pub(crate) last: Bytes,
}

/// A forward cursor over the records of a table that skips what is damaged.
#[derive(Debug)]
pub(crate) struct Salvage {
    table: Arc<Table>,
    /// The partition to be read next.
    partition: usize,
    index: Option<BlockIter<true>>,
    records: Option<BlockIter<false>>,
    kind: Kind,
    /// Separator of the block that was read last: the next keys lie after it.
    after: Bytes,
    /// Handle of the block that `records` stands in.
    handle: BlockHandle,
    last: Option<(Bytes, u64)>,
    lost: Vec<LostPart>,
}

impl Salvage {
    /// A cursor before the first record.
    pub(crate) fn new(table: Arc<Table>) -> Self {
        Self {
            after: table.meta.range.first.clone(),
            table,
            partition: 0,
            index: None,
            records: None,
            kind: Kind::Put,
            handle: BlockHandle { offset: 0, len: 0 },
            last: None,
            lost: Vec::new(),
        }
    }

    /// What has been skipped so far.
    pub(crate) fn into_lost(self) -> Vec<LostPart> {
        self.lost
    }

    /// Moves to the next record that can be read; returns whether there is one.
    ///
    /// # Errors
    /// I/O errors of the tier. Damage is not an error here.
    pub(crate) fn next(&mut self) -> Result<bool> {
        loop {
            if self.step()? {
                return Ok(true);
            }
            if !self.next_block()? {
                return Ok(false);
            }
        }
    }

    /// The record that the cursor stands at.
    pub(crate) fn record(&self) -> Option<(InternalKey<'_>, &[u8])> {
        let records = self.records.as_ref().filter(|records| records.valid())?;
        let seq = self.table.trailer(records.trailer()) >> 8;
        let key = InternalKey::new(records.key(), seq, self.kind);
        Some((key, records.value()))
    }

    /// Moves on within the block. `false` at its end, or if the rest of it cannot be decoded.
    fn step(&mut self) -> Result<bool> {
        let Some(records) = &mut self.records else {
            return Ok(false);
        };
        let moved = match records.valid() {
            true => records.next(),
            false => records.seek_to_first(),
        };
        let offset = self.handle.offset;
        let checked = self.table.at(offset, moved).and_then(|()| {
            if !records.valid() {
                return Ok(None);
            }
            let (key, trailer) = (records.key(), records.trailer());
            let in_order = self.last.as_ref().is_none_or(|(last, last_trailer)| {
                (&last[..], u64::MAX - last_trailer) < (key, u64::MAX - trailer)
            });
            if !in_order {
                let what = "records are not in order";
                return Err(Error::corruption(self.table.path(), offset, what));
            }
            let kind = self.table.kind(trailer, offset)?;
            Ok(Some((Bytes::copy_from_slice(key), trailer, kind)))
        });
        match checked {
            Ok(Some((key, trailer, kind))) => {
                self.kind = kind;
                self.last = Some((key, trailer));
                Ok(true)
            }
            Ok(None) => {
                self.records = None;
                Ok(false)
            }
            Err(error) => {
                self.records = None;
                let after = self.last.as_ref().map(|(key, _)| key.clone());
                let last = self.after.clone();
                self.lose(error, after.unwrap_or_default(), last)?;
                Ok(false)
            }
        }
    }

    /// Moves on to the next block that the index names and that can be read.
    fn next_block(&mut self) -> Result<bool> {
        loop {
            let Some(entry) = self.next_entry()? else {
                return Ok(false);
            };
            let (before, separator) = (self.after.clone(), entry.0);
            self.after = separator.clone();
            let read = entry.1.and_then(|handle| {
                self.handle = handle;
                let file = &self.table.file;
                let stored = file.read(Purpose::Maintenance, handle.offset, handle.len as usize)?;
                let payload = self.table.decode(&stored, handle)?;
                self.table.at(handle.offset, Block::<false>::new(payload))
            });
            match read {
                Ok(block) => {
                    self.records = Some(BlockIter::new(block));
                    return Ok(true);
                }
                Err(error) => self.lose(error, before, separator)?,
            }
        }
    }

    /// The next entry of the index: its separator, and the block that it names.
    fn next_entry(&mut self) -> Result<Option<(Bytes, Result<BlockHandle>)>> {
        loop {
            if let Some(index) = &mut self.index {
                let number = self.partition - 1;
                let at = self.table.index_offset(number);
                let end = self.table.partition(number).map(|p| p.last_key());
                let end = end.unwrap_or_default();
                match index.valid() {
                    true => {
                        let key = Bytes::copy_from_slice(index.key());
                        let handle = self.table.data_handle(index.value(), number);
                        if let Err(error) = self.table.at(at, index.next()) {
                            self.index = None;
                            self.lose(error, key.clone(), end)?;
                        }
                        return Ok(Some((key, handle)));
                    }
                    false => self.index = None,
                }
            }
            let number = self.partition;
            let Some(partition) = self.table.partition(number) else {
                return Ok(None);
            };
            let (handle, last) = (partition.index, partition.last_key());
            self.partition += 1;
            match self.read_index(handle) {
                Ok(index) => self.index = Some(index),
                Err(error) => {
                    let after = std::mem::replace(&mut self.after, last.clone());
                    self.lose(error, after, last)?;
                }
            }
        }
    }

    fn read_index(&self, handle: BlockHandle) -> Result<BlockIter<true>> {
        let file = &self.table.file;
        let stored = file.read(Purpose::Maintenance, handle.offset, handle.len as usize)?;
        let payload = stored::decode(&stored, self.table.meta.id, handle.offset);
        let block = payload.and_then(Block::<true>::new);
        let mut index = BlockIter::new(self.table.at(handle.offset, block)?);
        self.table.at(handle.offset, index.seek_to_first())?;
        Ok(index)
    }

    /// Records damage. Any other error is returned.
    fn lose(&mut self, error: Error, after: Bytes, last: Bytes) -> Result<()> {
        match error {
            Error::Corruption { offset, what, .. } => {
                self.lost.push(LostPart {
                    offset,
                    what,
                    after,
                    last: last.min(self.table.meta.range.last.clone()),
                });
                Ok(())
            }
            other => Err(other),
        }
    }
}
