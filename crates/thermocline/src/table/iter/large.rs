//! Blocks of large values: one at a time, in one piece of memory (I8).

use bytes::Bytes;

use super::TableIter;
use crate::error::Result;
use crate::storage::IoBuf;
use crate::table::block::Block;
use crate::table::stored::{BlockHandle, LARGE_BLOCK};

impl TableIter {
    /// The payload of a block that is in the window.
    pub(super) fn decode_of_window(&mut self, handle: BlockHandle) -> Result<Bytes> {
        let is_large = handle.len as usize > LARGE_BLOCK;
        // A large block is alone in its window, and the window is not needed any more.
        let alone = |w: &mut super::Window| is_large && w.stored.len() == handle.len as usize;
        if let Some(window) = self.window.take_if(alone) {
            return self.table.decode_read(window.stored, handle);
        }
        let stored = self.window.as_ref().and_then(|w| w.block(handle));
        self.table.decode(stored.unwrap_or_default(), handle)
    }

    /// Frees the block if it is large and the cursor can move on without it.
    pub(super) fn let_go_of_large(&mut self) {
        // Only a compaction loads again what it has let go of.
        if !self.how.to_end {
            return;
        }
        if let Some(data) = &mut self.data
            && data.block_len() > LARGE_BLOCK
            && data.is_last()
        {
            data.let_go();
            self.held = None;
            self.let_go = Some(BlockHandle {
                offset: self.offset,
                len: self.stored_len,
            });
        }
    }

    /// Reads again the block that the cursor let go of.
    ///
    /// # Errors
    /// I/O errors, and damage that has occurred since.
    pub(super) fn load_again(&mut self) -> Result<()> {
        let Some(handle) = self.let_go else {
            return Ok(());
        };
        let stored: IoBuf = self.read(handle.offset, handle.end())?;
        self.table
            .count_device_read(&stored, self.how.purpose, &mut self.trace);
        let payload = self.table.decode_read(stored, handle)?;
        let block = self.table.at(handle.offset, Block::new(payload))?;
        if let Some(data) = &mut self.data {
            self.held = self.table.tier().large.hold(block.len());
            data.put_back(block);
        }
        self.let_go = None;
        Ok(())
    }
}
