//! A cursor over a table, with read-ahead.

mod early;
mod large;

use bytes::Bytes;

use super::block::Block;
use super::block_iter::BlockIter;
use super::reader::{ReadTrace, Table};
use super::stored::{BlockHandle, LARGE_BLOCK};
use crate::cache::HeldBuffer;
use crate::error::Result;
use crate::iter::InternalIterator;
use crate::key::{InternalKey, Kind};
use crate::metrics::Purpose;
use crate::storage::IoBuf;
use crate::storage::background::Background;
use crate::sync::Arc;

/// How a scan reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScanOptions {
    pub(crate) purpose: Purpose,
    /// Bytes read ahead in one I/O; 0 reads block by block. A user's scan begins with single
    /// blocks, and doubles up to this while it goes forward. Every other scan begins with this
    /// much, and bypasses the block cache.
    pub(crate) readahead: usize,
    /// Whether blocks that were read stay in the block cache.
    pub(crate) fill_cache: bool,
    /// Whether tables are read to their ends. If so, the next read begins while the scan goes
    /// through the last one.
    pub(crate) to_end: bool,
}

/// Consecutive stored blocks, read in one I/O.
#[derive(Debug)]
struct Window {
    start: u64,
    stored: IoBuf,
}

impl Window {
    fn block(&self, handle: BlockHandle) -> Option<&[u8]> {
        let from = usize::try_from(handle.offset.checked_sub(self.start)?).ok()?;
        self.stored
            .get(from..from.checked_add(handle.len as usize)?)
    }
}

/// The window after the current one, while it is being read.
#[derive(Debug)]
struct Upcoming {
    start: u64,
    end: u64,
    read: Background<Result<IoBuf>>,
}

/// A cursor over a table's records, in both directions.
#[derive(Debug)]
pub(crate) struct TableIter {
    table: Arc<Table>,
    how: ScanOptions,
    /// The offset that a scan to the end reads nothing ahead beyond.
    limit: u64,
    /// The partition that `index` stands in.
    partition: usize,
    index: Option<BlockIter<true>>,
    /// Later partitions' indexes, by number, loaded to see how far a read may go. They are kept:
    /// the cursor comes to them next, and a compaction leaves nothing in the block cache.
    loaded: Vec<(usize, Block<true>)>,
    data: Option<BlockIter<false>>,
    /// The data block's offset, for messages.
    offset: u64,
    /// The data block, if its memory was freed.
    let_go: Option<BlockHandle>,
    /// Length of the data block as it is stored.
    stored_len: u32,
    /// Counts the data block, if it is large.
    held: Option<HeldBuffer>,
    kind: Kind,
    window: Option<Window>,
    upcoming: Option<Upcoming>,
    /// Bytes to read at the next miss.
    ahead: usize,
    /// Where the last block read ended. A miss at this offset means that the scan goes on forward.
    expected: u64,
    trace: ReadTrace,
}

/// The entry to stand on after entering a block or partition.
#[derive(Clone, Copy)]
enum Enter {
    First,
    Last,
}

impl TableIter {
    pub(super) fn new(table: Arc<Table>, how: ScanOptions) -> Self {
        Self {
            table,
            how,
            limit: u64::MAX,
            partition: 0,
            index: None,
            loaded: Vec::new(),
            data: None,
            offset: 0,
            let_go: None,
            stored_len: 0,
            held: None,
            kind: Kind::Delete,
            window: None,
            upcoming: None,
            ahead: 0,
            expected: u64::MAX,
            trace: ReadTrace::default(),
        }
    }

    /// What the cursor's reads cost so far.
    #[cfg(test)]
    pub(crate) fn trace(&self) -> &ReadTrace {
        &self.trace
    }

    /// Whether blocks are looked up in the block cache.
    fn uses_cache(&self) -> bool {
        self.how.readahead == 0 || self.how.purpose == Purpose::UserRead
    }

    fn lose_position(&mut self) {
        self.index = None;
        self.data = None;
    }

    /// The index of partition `number`; loads it if it is not loaded yet.
    fn partition_index(&mut self, number: usize) -> Result<Block<true>> {
        if let Some((_, block)) = self.loaded.iter().find(|(loaded, _)| *loaded == number) {
            return Ok(block.clone());
        }
        let how = self.how;
        self.table
            .index(number, how.purpose, how.fill_cache, &mut self.trace)
    }

    /// Opens the index of partition `number`; stands on none of its entries yet.
    fn open_partition(&mut self, number: usize) -> Result<&mut BlockIter<true>> {
        let block = self.partition_index(number)?;
        // A cursor that goes back will not come to the loaded indexes soon.
        match number < self.partition {
            true => self.loaded.clear(),
            false => self.loaded.retain(|(loaded, _)| *loaded > number),
        }
        self.partition = number;
        Ok(self.index.insert(BlockIter::new(block)))
    }

    fn enter_partition(&mut self, number: usize, enter: Enter) -> Result<()> {
        let iter = self.open_partition(number)?;
        let moved = match enter {
            Enter::First => iter.seek_to_first(),
            Enter::Last => iter.seek_to_last(),
        };
        self.table.at(self.table.index_offset(number), moved)
    }

    /// Loads the data block that the index stands on; stands on none of the block's entries yet.
    fn open_block(&mut self) -> Result<&mut BlockIter<false>> {
        let value = self.index.as_ref().map_or(&[][..], BlockIter::value);
        let handle = self.table.data_handle(value, self.partition)?;
        self.let_go = None;
        // Freed before the next block is read: two large ones need not be in memory at once (I8).
        if let Some(data) = self.data.take_if(|data| data.block_len() > LARGE_BLOCK) {
            drop(data);
            self.held = None;
        }
        let payload = self.block(handle)?;
        let block = self.table.at(handle.offset, Block::new(payload))?;
        (self.offset, self.stored_len) = (handle.offset, handle.len);
        self.held = self.table.tier().large.hold(block.len());
        Ok(match &mut self.data {
            Some(data) => {
                data.replace(block);
                data
            }
            none => none.insert(BlockIter::new(block)),
        })
    }

    fn enter_block(&mut self, enter: Enter) -> Result<()> {
        let iter = self.open_block()?;
        let moved = match enter {
            Enter::First => iter.seek_to_first(),
            Enter::Last => iter.seek_to_last(),
        };
        self.table.at(self.offset, moved)
    }

    fn block(&mut self, handle: BlockHandle) -> Result<Bytes> {
        if self.how.readahead == 0 {
            return self.table.fetch(
                handle,
                self.how.purpose,
                self.how.fill_cache,
                &mut self.trace,
            );
        }
        let cached = self.uses_cache();
        let keep = self.how.fill_cache;
        if cached && let Some(payload) = self.table.cached(handle, keep, &mut self.trace) {
            self.expected = handle.end();
            return Ok(payload);
        }
        if self
            .window
            .as_ref()
            .is_none_or(|w| w.block(handle).is_none())
        {
            self.read_window(handle)?;
        }
        self.expected = handle.end();
        let payload = self.decode_of_window(handle)?;
        if cached && keep {
            self.table
                .cache
                .insert(self.table.meta.id, handle.offset, payload.clone());
        }
        Ok(payload)
    }

    /// Reads whole blocks from `handle` on, as far as read-ahead goes now.
    fn read_window(&mut self, handle: BlockHandle) -> Result<()> {
        let single = handle.len as usize;
        self.ahead = if self.how.purpose != Purpose::UserRead {
            self.how.readahead
        } else if handle.offset == self.expected {
            // Nothing has been read ahead yet if the block before was cached.
            let before = self.ahead.max(single);
            before.saturating_mul(2).min(self.how.readahead)
        } else {
            single
        };
        // The old window's buffer goes back to its pool before the next one is taken.
        self.window = None;
        let (end, stored) = match self.upcoming.take() {
            Some(upcoming) if upcoming.start == handle.offset => {
                (upcoming.end, self.wait_for(upcoming)?)
            }
            _ => {
                let end = self.window_end(handle, self.ahead);
                match self.read(handle.offset, end) {
                    // The blocks ahead may never be wanted, so an error in them must not fail this
                    // read. The scan begins again with single blocks, and so meets few errors
                    // before it comes to the block that cannot be read.
                    Err(_) if end > handle.end() && self.how.purpose == Purpose::UserRead => {
                        self.ahead = single;
                        (handle.end(), self.read(handle.offset, handle.end())?)
                    }
                    read => (end, read?),
                }
            }
        };
        if self.how.to_end && self.table.file.file.waits_for_a_device() {
            let after = self.window_end(handle, (end - handle.offset) as usize + self.ahead);
            self.upcoming = (after > end).then(|| self.begin_read(end, after));
        }
        self.table
            .count_miss(&stored, self.how.purpose, &mut self.trace);
        self.window = Some(Window {
            start: handle.offset,
            stored,
        });
        Ok(())
    }

    fn read(&self, start: u64, end: u64) -> Result<IoBuf> {
        self.table.file.file.read(start, (end - start) as usize)
    }

    fn begin_read(&self, start: u64, end: u64) -> Upcoming {
        let file = Arc::clone(&self.table.file.file);
        let read = Background::begin(move || file.read(start, (end - start) as usize));
        Upcoming { start, end, read }
    }

    fn wait_for(&self, upcoming: Upcoming) -> Result<IoBuf> {
        // A read that panicked is repeated here, where its panic may say more.
        let again = || self.read(upcoming.start, upcoming.end);
        upcoming.read.wait().unwrap_or_else(again)
    }

    /// The end of the last block that begins at or after `handle` and lies within `ahead` bytes of
    /// it. An index that cannot be read ends the window too: the error is reported when the scan
    /// comes to its records.
    fn window_end(&mut self, handle: BlockHandle, ahead: usize) -> u64 {
        let limit = handle.offset.saturating_add(ahead as u64);
        let limit = limit.min(self.limit);
        let mut end = handle.end();
        let mut number = self.partition;
        let Some(mut index) = self.index.clone() else {
            return end;
        };
        while end < limit
            && let Ok(Some(next)) = self.block_after(&mut index, &mut number)
            && next.offset == end
            && next.end() <= limit
        {
            end = next.end();
        }
        end
    }

    /// Moves `index`, of partition `number`, to the next block and returns that block; `None` after
    /// the last one.
    fn block_after(
        &mut self,
        index: &mut BlockIter<true>,
        number: &mut usize,
    ) -> Result<Option<BlockHandle>> {
        self.table
            .at(self.table.index_offset(*number), index.next())?;
        if !index.valid() {
            *number += 1;
            if self.table.partition(*number).is_none() {
                return Ok(None);
            }
            let block = self.partition_index(*number)?;
            if self.loaded.iter().all(|(loaded, _)| *loaded != *number) {
                self.loaded.push((*number, block.clone()));
            }
            index.replace(block);
            self.table
                .at(self.table.index_offset(*number), index.seek_to_first())?;
        }
        self.table.data_handle(index.value(), *number).map(Some)
    }

    /// Checks the kind of the record that the cursor has come to, if it stands on one.
    fn settle(&mut self) -> Result<()> {
        if let Some(data) = &self.data
            && data.valid()
        {
            self.kind = self.table.kind(data.trailer(), self.offset)?;
        }
        Ok(())
    }

    /// Moves from the end of a block to the first record of the next.
    fn next_block(&mut self) -> Result<()> {
        let Some(index) = &mut self.index else {
            return Ok(());
        };
        let offset = self.table.index_offset(self.partition);
        self.table.at(offset, index.next())?;
        if !index.valid() {
            let next = self.partition + 1;
            if self.table.partition(next).is_none() {
                self.lose_position();
                return Ok(());
            }
            self.enter_partition(next, Enter::First)?;
        }
        self.enter_block(Enter::First)
    }

    /// Moves from the front of a block to the last record of the one before.
    fn prev_block(&mut self) -> Result<()> {
        let Some(index) = &mut self.index else {
            return Ok(());
        };
        let offset = self.table.index_offset(self.partition);
        self.table.at(offset, index.prev())?;
        if !index.valid() {
            let Some(before) = self.partition.checked_sub(1) else {
                self.lose_position();
                return Ok(());
            };
            self.enter_partition(before, Enter::Last)?;
        }
        self.enter_block(Enter::Last)
    }

    /// Moves within the block that the index names for the target: to the first record at or after
    /// the target, or off the block's end. `false` when the whole table lies before the target.
    fn seek_within_block(&mut self, target: InternalKey<'_>) -> Result<bool> {
        let (key, trailer) = (target.user_key, target.trailer());
        let Some(number) = self.table.top.find(key, trailer) else {
            return Ok(false);
        };
        let moved = self.open_partition(number)?.seek(key, trailer);
        self.table.at(self.table.index_offset(number), moved)?;
        if self.index.as_ref().is_none_or(|index| !index.valid()) {
            return Ok(false);
        }
        let moved = self.open_block()?.seek(key, trailer);
        self.table.at(self.offset, moved)?;
        Ok(true)
    }
}

impl InternalIterator for TableIter {
    fn valid(&self) -> bool {
        self.data.as_ref().is_some_and(BlockIter::valid)
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.lose_position();
        self.enter_partition(0, Enter::First)?;
        self.enter_block(Enter::First)?;
        self.settle()
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.lose_position();
        self.enter_partition(self.table.top.len().saturating_sub(1), Enter::Last)?;
        self.enter_block(Enter::Last)?;
        self.settle()
    }

    fn seek(&mut self, target: InternalKey<'_>) -> Result<()> {
        self.lose_position();
        if !self.seek_within_block(target)? {
            self.lose_position();
        } else if !self.valid() {
            // A shortened separator may lie past the block's last record.
            self.next_block()?;
        }
        if self.table.meta.ingested
            && self.valid()
            && let Some(data) = &self.data
            && data.key() == target.user_key
            && self.table.trailer(data.trailer()) > target.trailer()
        {
            // By its stored number it comes behind the target, by its own before.
            return self.next();
        }
        self.settle()
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) -> Result<()> {
        self.lose_position();
        if !self.seek_within_block(target)? {
            return self.seek_to_last();
        }
        match &mut self.data {
            Some(data) if data.valid() => {
                let trailer = self.table.trailer(data.trailer());
                let there = data.key() == target.user_key
                    && (trailer == target.trailer()
                        // By its stored number it comes behind the target.
                        || self.table.meta.ingested && trailer > target.trailer());
                if !there {
                    return self.prev();
                }
            }
            Some(data) => {
                let moved = data.seek_to_last();
                self.table.at(self.offset, moved)?;
            }
            None => {}
        }
        self.settle()
    }

    fn next(&mut self) -> Result<()> {
        if let Some(data) = &mut self.data {
            let moved = data.next();
            let ended = !data.valid();
            self.table.at(self.offset, moved)?;
            if ended {
                self.next_block()?;
            }
        }
        self.settle()
    }

    fn prev(&mut self) -> Result<()> {
        if let Some(data) = &mut self.data {
            let moved = data.prev();
            let ended = !data.valid();
            self.table.at(self.offset, moved)?;
            if ended {
                self.prev_block()?;
            }
        }
        self.settle()
    }

    fn key(&self) -> InternalKey<'_> {
        match &self.data {
            Some(data) => {
                let seq = self.table.trailer(data.trailer()) >> 8;
                InternalKey::new(data.key(), seq, self.kind)
            }
            None => InternalKey::new(&[], 0, self.kind),
        }
    }

    fn value(&self) -> &[u8] {
        self.data.as_ref().map_or(&[], BlockIter::value)
    }

    fn value_bytes(&self) -> Bytes {
        self.data
            .as_ref()
            .map_or_else(Bytes::new, BlockIter::value_bytes)
    }

    fn value_len(&self) -> usize {
        self.data.as_ref().map_or(0, BlockIter::value_len)
    }

    fn let_go(&mut self) {
        self.let_go_of_large();
    }

    fn load(&mut self) -> Result<()> {
        self.load_again()
    }
}
