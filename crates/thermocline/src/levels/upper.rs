//! What a job merges from above: it need not be tables.

use bytes::Bytes;

use crate::iter::InternalIterator;
use crate::memtable::{Memtable, MemtableIter};
use crate::sync::Arc;
use crate::table::ScanOptions;
use crate::version::{LevelIter, TableHandle};

/// What comes from above.
#[derive(Debug, Clone)]
pub(crate) enum Upper {
    /// Tables of one level; those of L0 newest first. They go once what comes of them is installed.
    Tables(Vec<Arc<TableHandle>>),
    /// A frozen memtable. Whoever flushes it lets it go.
    Memtable(Arc<Memtable>),
}

impl Upper {
    /// The tables, if it is tables.
    pub(crate) fn tables(&self) -> &[Arc<TableHandle>] {
        match self {
            Upper::Tables(tables) => tables,
            Upper::Memtable(_) => &[],
        }
    }

    /// Bytes of the tables' files.
    pub(crate) fn bytes(&self) -> u64 {
        self.tables().iter().map(|table| table.meta.len).sum()
    }

    /// How many cursors there are over it. Tables of L0 overlap: each has one of its own.
    pub(crate) fn runs(&self, level: usize) -> usize {
        match self {
            Upper::Tables(tables) if level == 0 => tables.len(),
            _ => 1,
        }
    }

    /// Cursors over its records, which come from `level`; in search order (I1). They are not read
    /// beyond the key `until`.
    pub(crate) fn cursors(
        &self,
        level: usize,
        how: ScanOptions,
        until: Option<&Bytes>,
    ) -> Vec<Box<dyn InternalIterator>> {
        let over = |tables: Vec<Arc<TableHandle>>| {
            let iter = LevelIter::new(Arc::new(tables), how).until(until.cloned());
            Box::new(iter) as Box<dyn InternalIterator>
        };
        match self {
            Upper::Tables(tables) if level == 0 => {
                let each = tables.iter().map(|table| over(vec![Arc::clone(table)]));
                each.collect()
            }
            Upper::Tables(tables) => vec![over(tables.clone())],
            Upper::Memtable(memtable) => vec![Box::new(MemtableIter::new(Arc::clone(memtable)))],
        }
    }
}
