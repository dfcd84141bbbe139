//! A cursor over one level below L0: over its tables, one after the other.

use std::ops::Range;

use bytes::Bytes;

use super::set::TableHandle;
use crate::error::Result;
use crate::iter::InternalIterator;
use crate::key::InternalKey;
use crate::sync::Arc;
use crate::table::{ScanOptions, TableIter};

/// The records of neighbouring tables, one table open at a time.
pub(crate) struct LevelIter {
    tables: Arc<Vec<Arc<TableHandle>>>,
    /// Positions of the tables that it goes over. The others are never opened.
    within: Range<usize>,
    how: ScanOptions,
    /// The open table's position and cursor.
    at: Option<(usize, TableIter)>,
}

impl LevelIter {
    /// A cursor over `tables`, which are in key order without overlap.
    pub(crate) fn new(tables: Arc<Vec<Arc<TableHandle>>>, how: ScanOptions) -> Self {
        let all = 0..tables.len();
        Self::within(tables, all, how)
    }

    /// As [`LevelIter::new`], but only over the `tables` whose positions are `within` this range.
    pub(crate) fn within(
        tables: Arc<Vec<Arc<TableHandle>>>,
        within: Range<usize>,
        how: ScanOptions,
    ) -> Self {
        Self {
            tables,
            within,
            how,
            at: None,
        }
    }

    fn open(&mut self, index: usize) -> Result<Option<&mut TableIter>> {
        if !self.within.contains(&index) {
            return Ok(None);
        }
        let reuse = matches!(self.at, Some((at, _)) if at == index);
        if !reuse {
            let Some(table) = self.tables.get(index) else {
                return Ok(None);
            };
            self.at = Some((index, table.table()?.iter(self.how)));
        }
        Ok(self.at.as_mut().map(|(_, iter)| iter))
    }

    /// At the end of a table, moves on to the next table that has a record.
    fn skip_forward(&mut self) -> Result<()> {
        while let Some((index, iter)) = &self.at {
            if iter.valid() {
                return Ok(());
            }
            let next = index + 1;
            if next >= self.within.end {
                self.at = None;
            } else if let Some(iter) = self.open(next)? {
                iter.seek_to_first()?;
            }
        }
        Ok(())
    }

    fn skip_backward(&mut self) -> Result<()> {
        while let Some((index, iter)) = &self.at {
            if iter.valid() {
                return Ok(());
            }
            let index = *index;
            if index <= self.within.start {
                self.at = None;
            } else if let Some(iter) = self.open(index - 1)? {
                iter.seek_to_last()?;
            }
        }
        Ok(())
    }

    fn current(&self) -> &TableIter {
        match &self.at {
            Some((_, iter)) => iter,
            None => unreachable!("a cursor is only read while valid"),
        }
    }
}

impl InternalIterator for LevelIter {
    fn valid(&self) -> bool {
        self.at.as_ref().is_some_and(|(_, iter)| iter.valid())
    }

    fn seek_to_first(&mut self) -> Result<()> {
        match self.open(self.within.start)? {
            Some(iter) => iter.seek_to_first()?,
            None => return Ok(()),
        }
        self.skip_forward()
    }

    fn seek_to_last(&mut self) -> Result<()> {
        match self.open(self.within.end.wrapping_sub(1))? {
            Some(iter) => iter.seek_to_last()?,
            None => return Ok(()),
        }
        self.skip_backward()
    }

    fn seek(&mut self, target: InternalKey<'_>) -> Result<()> {
        let index = self
            .tables
            .partition_point(|table| &table.meta.range.last[..] < target.user_key);
        match self.open(index.max(self.within.start))? {
            Some(iter) => iter.seek(target)?,
            None => self.at = None,
        }
        self.skip_forward()
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) -> Result<()> {
        let after = self
            .tables
            .partition_point(|table| &table.meta.range.first[..] <= target.user_key);
        match self.open(after.min(self.within.end).wrapping_sub(1))? {
            Some(iter) => iter.seek_for_prev(target)?,
            None => self.at = None,
        }
        self.skip_backward()
    }

    fn next(&mut self) -> Result<()> {
        if let Some((_, iter)) = &mut self.at {
            iter.next()?;
        }
        self.skip_forward()
    }

    fn prev(&mut self) -> Result<()> {
        if let Some((_, iter)) = &mut self.at {
            iter.prev()?;
        }
        self.skip_backward()
    }

    fn key(&self) -> InternalKey<'_> {
        self.current().key()
    }

    fn value(&self) -> &[u8] {
        self.current().value()
    }

    fn value_bytes(&self) -> Bytes {
        self.current().value_bytes()
    }

    fn value_len(&self) -> usize {
        self.current().value_len()
    }

    fn let_go(&mut self) {
        if let Some((_, iter)) = &mut self.at {
            iter.let_go();
        }
    }

    fn load(&mut self) -> Result<()> {
        match &mut self.at {
            Some((_, iter)) => iter.load(),
            None => Ok(()),
        }
    }
}
