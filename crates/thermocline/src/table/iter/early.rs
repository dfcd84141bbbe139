//! The first read of a table that a scan comes to next.

use super::{Enter, TableIter};
use crate::error::Result;
use crate::key::{InternalKey, MAX_SEQ};
use crate::table::block_iter::BlockIter;

impl TableIter {
    /// Whether the last data block has been read for a scan to the end. That nothing is on its way
    /// does not say so: before a large value a scan reads nothing ahead (I8).
    pub(crate) fn has_read_all(&self) -> bool {
        let end = self.table.properties().data_bytes;
        let reaches = |w: &super::Window| w.start + w.stored.len() as u64 >= end;
        self.how.to_end && self.window.as_ref().is_some_and(reaches)
    }

    /// Has a scan to the end read nothing ahead behind the block that `key` belongs to.
    ///
    /// # Errors
    /// The index cannot be read.
    pub(crate) fn until(&mut self, key: &[u8]) -> Result<()> {
        let trailer = InternalKey::seek_to(key, MAX_SEQ).trailer();
        let Some(number) = self.table.top.find(key, trailer) else {
            return Ok(());
        };
        let mut index = BlockIter::new(self.partition_index(number)?);
        let moved = index.seek(key, trailer);
        self.table.at(self.table.index_offset(number), moved)?;
        if index.valid() {
            self.limit = self.table.data_handle(index.value(), number)?.end();
        }
        Ok(())
    }

    /// Begins the first read of a scan to the end, which is to start at the first record.
    ///
    /// # Errors
    /// The index cannot be read.
    pub(crate) fn begin(&mut self) -> Result<()> {
        if !self.how.to_end || !self.table.file.file.waits_for_a_device() {
            return Ok(());
        }
        self.enter_partition(0, Enter::First)?;
        let value = self.index.as_ref().map_or(&[][..], |index| index.value());
        let first = self.table.data_handle(value, self.partition)?;
        // A large value waits until the scan comes to it: another input may hold one (I8).
        if first.len as usize <= self.how.readahead {
            let end = self.window_end(first, self.how.readahead);
            self.upcoming = Some(self.begin_read(first.offset, end));
        }
        Ok(())
    }
}
