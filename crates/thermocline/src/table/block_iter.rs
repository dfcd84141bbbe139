//! A cursor over one block, in both directions.

use bytes::Bytes;

use super::block::{Block, Entry};
use super::stored::{Damage, Decoded};

/// A position in a block, and the assembled key at that position.
#[derive(Debug, Clone)]
pub(super) struct BlockIter<const INDEX: bool> {
    block: Block<INDEX>,
    key: Vec<u8>,
    /// Offset of the current entry, and the entry; `None` when off either end.
    current: Option<(usize, Entry)>,
}

impl<const INDEX: bool> BlockIter<INDEX> {
    pub(super) fn new(block: Block<INDEX>) -> Self {
        Self {
            block,
            key: Vec::new(),
            current: None,
        }
    }

    /// Goes on with another block and keeps the key's buffer. The cursor stands on no entry yet.
    pub(super) fn replace(&mut self, block: Block<INDEX>) {
        self.block = block;
        self.current = None;
    }

    #[inline]
    pub(super) fn valid(&self) -> bool {
        self.current.is_some()
    }

    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// The trailer; 0 when the cursor stands on no entry.
    #[inline]
    pub(super) fn trailer(&self) -> u64 {
        self.current.as_ref().map_or(0, |(_, entry)| entry.trailer)
    }

    #[inline]
    pub(super) fn value(&self) -> &[u8] {
        match &self.current {
            Some((_, entry)) => self.block.value(entry),
            None => &[],
        }
    }

    pub(super) fn value_bytes(&self) -> Bytes {
        match &self.current {
            Some((_, entry)) => self.block.value_bytes(entry),
            None => Bytes::new(),
        }
    }

    /// Bytes of the block in memory.
    pub(super) fn block_len(&self) -> usize {
        self.block.len()
    }

    /// How long the value is, whether it is in memory or not.
    pub(super) fn value_len(&self) -> usize {
        self.current
            .as_ref()
            .map_or(0, |(_, entry)| entry.value_len())
    }

    /// Whether the current entry is the last one of the block.
    pub(super) fn is_last(&self) -> bool {
        let ends_at = |(_, entry): &(usize, Entry)| entry.end >= self.block.entries_end();
        self.current.as_ref().is_some_and(ends_at)
    }

    /// Frees the block's memory. Until [`BlockIter::put_back`] there is no value. The key stays,
    /// and from the block's last entry the cursor can move on.
    pub(super) fn let_go(&mut self) {
        self.block.let_go();
    }

    /// Puts the same block back, at the same position.
    pub(super) fn put_back(&mut self, block: Block<INDEX>) {
        self.block = block;
    }

    pub(super) fn seek_to_first(&mut self) -> Decoded<()> {
        self.load_restart(0)
    }

    pub(super) fn seek_to_last(&mut self) -> Decoded<()> {
        self.load_restart(self.block.restarts() - 1)?;
        self.advance_to_entry_before(self.block.entries_end())
    }

    /// Moves to the first entry at or after the target, or off the end.
    pub(super) fn seek(&mut self, key: &[u8], trailer: u64) -> Decoded<()> {
        self.load_restart(self.block.restart_before(key, trailer)?)?;
        while self.valid() {
            let order = self.key[..].cmp(key);
            if order.is_gt() || (order.is_eq() && self.trailer() <= trailer) {
                break;
            }
            self.next()?;
        }
        Ok(())
    }

    #[inline]
    pub(super) fn next(&mut self) -> Decoded<()> {
        match self.current {
            Some((_, entry)) => self.load(entry.end),
            None => Ok(()),
        }
    }

    /// Moves back by one, or off the front.
    pub(super) fn prev(&mut self) -> Decoded<()> {
        let Some((here, _)) = self.current else {
            return Ok(());
        };
        // Find the last restart point before this entry, since entries can only be read forward.
        let (mut low, mut high) = (0, self.block.restarts());
        while low < high {
            let middle = low.midpoint(high);
            if self.block.restart(middle)? < here {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if low == 0 {
            self.current = None;
            return Ok(());
        }
        self.load_restart(low - 1)?;
        self.advance_to_entry_before(here)
    }

    fn advance_to_entry_before(&mut self, end: usize) -> Decoded<()> {
        while let Some((_, entry)) = self.current
            && entry.end < end
        {
            self.load(entry.end)?;
        }
        Ok(())
    }

    fn load_restart(&mut self, number: usize) -> Decoded<()> {
        self.key.clear();
        self.load(self.block.restart(number)?)
    }

    #[inline]
    fn load(&mut self, at: usize) -> Decoded<()> {
        if at >= self.block.entries_end() {
            self.current = None;
            return Ok(());
        }
        let entry = self.block.entry(at)?;
        if entry.shared > self.key.len() {
            return Err(Damage("an entry shares more than the key before it has"));
        }
        self.key.truncate(entry.shared);
        self.key.extend_from_slice(self.block.suffix(&entry));
        self.current = Some((at, entry));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::block_builder::BlockBuilder;
    use super::*;

    #[test]
    fn walks_both_ways_and_falls_off_both_ends() {
        let mut builder = BlockBuilder::new(3);
        let keys: Vec<String> = (0..10).map(|i| format!("key{i}")).collect();
        for key in &keys {
            builder.add(key.as_bytes(), Some(7), key.as_bytes());
        }
        let block = Block::<false>::new(Bytes::copy_from_slice(builder.finish())).unwrap();
        let mut iter = BlockIter::new(block);
        iter.seek_to_first().unwrap();
        for key in &keys {
            assert_eq!((iter.key(), iter.value()), (key.as_bytes(), key.as_bytes()));
            iter.next().unwrap();
        }
        assert!(!iter.valid());
        iter.seek_to_last().unwrap();
        for key in keys.iter().rev() {
            assert_eq!((iter.key(), iter.trailer()), (key.as_bytes(), 7));
            iter.prev().unwrap();
        }
        assert!(!iter.valid());
    }
}
