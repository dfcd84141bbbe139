//! A cursor over one level below L0: its tables one after the other.

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
    how: ScanOptions,
    /// The open table's position and cursor.
    at: Option<(usize, TableIter)>,
}

impl LevelIter {
    /// A cursor over `tables`, which are in key order without overlap.
    pub(crate) fn new(tables: Arc<Vec<Arc<TableHandle>>>, how: ScanOptions) -> Self {
        Self {
            tables,
            how,
            at: None,
        }
    }

    fn open(&mut self, index: usize) -> Option<&mut TableIter> {
        let reuse = matches!(self.at, Some((at, _)) if at == index);
        if !reuse {
            let table = self.tables.get(index)?;
            self.at = Some((index, table.table.iter(self.how)));
        }
        self.at.as_mut().map(|(_, iter)| iter)
    }

    /// Past the end of a table, goes on to the next one that has a record.
    fn skip_forward(&mut self) -> Result<()> {
        while let Some((index, iter)) = &self.at {
            if iter.valid() {
                return Ok(());
            }
            let next = index + 1;
            if next >= self.tables.len() {
                self.at = None;
            } else if let Some(iter) = self.open(next) {
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
            match index.checked_sub(1) {
                None => self.at = None,
                Some(previous) => {
                    if let Some(iter) = self.open(previous) {
                        iter.seek_to_last()?;
                    }
                }
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
        match self.open(0) {
            Some(iter) => iter.seek_to_first()?,
            None => return Ok(()),
        }
        self.skip_forward()
    }

    fn seek_to_last(&mut self) -> Result<()> {
        match self.open(self.tables.len().wrapping_sub(1)) {
            Some(iter) => iter.seek_to_last()?,
            None => return Ok(()),
        }
        self.skip_backward()
    }

    fn seek(&mut self, target: InternalKey<'_>) -> Result<()> {
        let index = self
            .tables
            .partition_point(|table| &table.meta.range.last[..] < target.user_key);
        match self.open(index) {
            Some(iter) => iter.seek(target)?,
            None => self.at = None,
        }
        self.skip_forward()
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) -> Result<()> {
        let after = self
            .tables
            .partition_point(|table| &table.meta.range.first[..] <= target.user_key);
        let Some(index) = after.checked_sub(1) else {
            self.at = None;
            return Ok(());
        };
        if let Some(iter) = self.open(index) {
            iter.seek_for_prev(target)?;
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
}
