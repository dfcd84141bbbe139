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
    /// The key that a scan to the end ends before, if not at the end.
    until: Option<Bytes>,
    /// The open table's position and cursor.
    at: Option<(usize, TableIter)>,
    /// The position of the table after it, once the open one has been read, and its cursor, whose
    /// first read has begun. None if it could not: that is told when the cursor comes to it.
    next: Option<(usize, Option<TableIter>)>,
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
            until: None,
            at: None,
            next: None,
        }
    }

    /// Has a scan to the end read nothing ahead that lies behind the key `until`.
    pub(crate) fn until(self, until: Option<Bytes>) -> Self {
        Self { until, ..self }
    }

    fn cursor(&self, table: &TableHandle) -> Result<TableIter> {
        let mut iter = table.table()?.iter(self.how);
        if let Some(key) = &self.until {
            iter.until(key)?;
        }
        Ok(iter)
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
            let begun = self.next.take().filter(|(at, _)| *at == index);
            let iter = match begun.and_then(|(_, iter)| iter) {
                Some(iter) => iter,
                None => self.cursor(table)?,
            };
            self.at = Some((index, iter));
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

    /// Has the next table's first read begin while a compaction goes through the last one of this
    /// table. The buffer is that of the read that this table does not need any more.
    fn begin_next(&mut self) {
        let Some((index, iter)) = &self.at else {
            return;
        };
        let next = index + 1;
        if self.next.is_some() || !iter.has_read_all() || !self.within.contains(&next) {
            return;
        }
        let is_wanted = |table: &&Arc<TableHandle>| {
            let first = &table.meta.range.first;
            self.until.as_ref().is_none_or(|until| first < until)
        };
        let begun = self.tables.get(next).filter(is_wanted).and_then(|table| {
            let mut iter = self.cursor(table).ok()?;
            iter.begin().ok().map(|()| iter)
        });
        self.next = Some((next, begun));
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
        self.skip_forward()?;
        self.begin_next();
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Purpose;
    use crate::testing::priced::{RECORDS, Store, value};

    /// At each table's end a compaction waited for the first read of the next.
    #[test]
    fn a_compaction_begins_the_next_table_while_it_goes_through_the_last_of_this_one() {
        let store = Store::filled();
        let version = store.db.tree().version();
        let tables = version.levels.iter().map(|level| &level.tables);
        let tables = tables.max_by_key(|tables| tables.len()).unwrap();
        assert!(tables.len() > 10);
        let how = ScanOptions {
            purpose: Purpose::Compaction,
            readahead: 512 << 10,
            fill_cache: false,
            to_end: true,
        };
        let mut iter = LevelIter::within(Arc::clone(tables), 2..7, how);
        iter.seek_to_first().unwrap();
        let (mut seen, mut begun) = (0, Vec::new());
        while iter.valid() {
            let number = std::str::from_utf8(&iter.key().user_key[3..]).unwrap();
            let number: u32 = number.parse().unwrap();
            assert!(number < RECORDS && iter.value() == value(number));
            seen += 1;
            iter.next().unwrap();
            begun.extend(iter.next.as_ref().map(|(at, begun)| (*at, begun.is_some())));
        }
        let records: u64 = tables[2..7].iter().map(|table| table.meta.entries).sum();
        assert_eq!(seen, records);
        begun.dedup();
        assert_eq!(begun, [3, 4, 5, 6].map(|at| (at, true)));
        // A user's scan may end in any table.
        let users = ScanOptions {
            to_end: false,
            ..how
        };
        let mut iter = LevelIter::new(Arc::clone(tables), users);
        iter.seek_to_first().unwrap();
        iter.next().unwrap();
        assert!(iter.next.is_none());
    }
}
