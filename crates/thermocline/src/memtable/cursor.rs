//! A cursor over a memtable that keeps it alive.

use std::ops::Bound;

use bytes::Bytes;
use crossbeam_skiplist::map::Entry;

use super::Memtable;
use super::key::{MemKey, Probe};
use crate::error::Result;
use crate::iter::InternalIterator;
use crate::key::InternalKey;
use crate::sync::Arc;

/// Cursor over a [`Memtable`]. Between moves it holds the record, not the skiplist node, so each
/// move costs a search. It may or may not see records that are inserted meanwhile; their sequence
/// numbers hide them from readers that must not see them.
pub(crate) struct MemtableIter {
    memtable: Arc<Memtable>,
    at: Option<(MemKey, Bytes)>,
}

impl MemtableIter {
    pub(crate) fn new(memtable: Arc<Memtable>) -> Self {
        Self { memtable, at: None }
    }

    fn at_or_after(&self, bound: Bound<&dyn Probe>) -> Option<(MemKey, Bytes)> {
        self.memtable.records.lower_bound(bound).map(copy)
    }

    fn at_or_before(&self, bound: Bound<&dyn Probe>) -> Option<(MemKey, Bytes)> {
        self.memtable.records.upper_bound(bound).map(copy)
    }

    fn current(&self) -> (&MemKey, &Bytes) {
        match &self.at {
            Some((key, value)) => (key, value),
            None => unreachable!("a cursor is only read while valid"),
        }
    }
}

fn copy(entry: Entry<'_, MemKey, Bytes>) -> (MemKey, Bytes) {
    (entry.key().clone(), entry.value().clone())
}

impl InternalIterator for MemtableIter {
    fn valid(&self) -> bool {
        self.at.is_some()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.at = self.memtable.records.front().map(copy);
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.at = self.memtable.records.back().map(copy);
        Ok(())
    }

    fn seek(&mut self, target: InternalKey<'_>) -> Result<()> {
        self.at = self.at_or_after(Bound::Included(&target));
        Ok(())
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) -> Result<()> {
        self.at = self.at_or_before(Bound::Included(&target));
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        let (key, _) = self.current();
        self.at = self.at_or_after(Bound::Excluded(key));
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        let (key, _) = self.current();
        self.at = self.at_or_before(Bound::Excluded(key));
        Ok(())
    }

    fn key(&self) -> InternalKey<'_> {
        self.current().0.internal()
    }

    fn value(&self) -> &[u8] {
        self.current().1
    }

    fn value_bytes(&self) -> Bytes {
        self.current().1.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Kind;

    #[test]
    fn moves_in_internal_key_order_both_ways() {
        let memtable = Arc::new(Memtable::default());
        for (key, seq) in [("b", 1), ("a", 2), ("b", 3), ("c", 4)] {
            memtable.insert(Bytes::from(key), seq, Kind::Put, Bytes::new());
        }
        let mut iter = MemtableIter::new(memtable);
        let mut seen = Vec::new();
        iter.seek_to_first().unwrap();
        while iter.valid() {
            seen.push((iter.key().user_key.to_vec(), iter.key().seq));
            iter.next().unwrap();
        }
        let order = [("a", 2), ("b", 3), ("b", 1), ("c", 4)];
        assert!(
            seen.iter()
                .map(|(k, s)| (&k[..], *s))
                .eq(order.iter().map(|(k, s)| (k.as_bytes(), *s)))
        );
        iter.seek_for_prev(InternalKey::seek_to(b"b", 2)).unwrap();
        assert_eq!(
            iter.key().seq,
            3,
            "the last record before every version of b visible at 2"
        );
        iter.prev().unwrap();
        assert_eq!(iter.key().user_key, b"a");
        iter.prev().unwrap();
        assert!(!iter.valid());
    }
}
