//! The first read of a table that a scan comes to next.

use super::{Enter, TableIter};
use crate::error::Result;

impl TableIter {
    /// Whether the last data block has been read for a scan to the end. That nothing is on its way
    /// does not say so: before a large value a scan reads nothing ahead (I8).
    pub(crate) fn has_read_all(&self) -> bool {
        let end = self.table.properties().data_bytes;
        let reaches = |w: &super::Window| w.start + w.stored.len() as u64 >= end;
        self.how.to_end && self.window.as_ref().is_some_and(reaches)
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
