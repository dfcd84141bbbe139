//! Where one output table ends and the next begins.

use super::below::{Below, TableBelow};
use crate::sync::Arc;

/// Ends output tables where the tables one level further down end. A table that ends where they do
/// meets fewer of them, so less is rewritten when it moves on.
#[derive(Debug)]
pub(crate) struct Cutter {
    /// The tables of the next level in use below the output, as far as they meet the job's keys;
    /// none where there is no such level.
    below: Option<Arc<Vec<TableBelow>>>,
    /// The first of them that does not end before the last key looked at.
    at: usize,
    size: u64,
    /// Bytes of tables below that end within the present table, and how many such bytes it may
    /// meet.
    met: u64,
    most_met: u64,
}

impl Cutter {
    /// For output of level `level` in tables of about `size` bytes. Each of them meets about
    /// `most_met` bytes of tables below at most: a later compaction of the table has to rewrite
    /// those.
    pub(crate) fn new(below: &Below, level: usize, size: u64, most_met: u64) -> Self {
        Self {
            below: below.next(level),
            at: 0,
            size,
            met: 0,
            most_met,
        }
    }

    /// For output that is one table, whatever lies below.
    pub(crate) fn never() -> Self {
        Self {
            below: None,
            at: 0,
            size: u64::MAX,
            met: 0,
            most_met: u64::MAX,
        }
    }

    /// Whether a table that is `len` bytes long should end before `key`. Called with ascending
    /// keys, once each.
    pub(crate) fn ends_before(&mut self, key: &[u8], len: u64) -> bool {
        let before = self.at;
        let below = self.below.as_ref();
        while let Some(table) = below.and_then(|tables| tables.get(self.at))
            && &table.range.last[..] < key
        {
            self.met += table.len;
            self.at += 1;
        }
        let at_an_end = self.at > before;
        let is_full = if self.below.is_none() {
            len >= self.size
        } else {
            let is_long = len >= self.size / 4 * 3 || self.met >= self.most_met;
            at_an_end && is_long || len >= self.size / 4 * 5
        };
        if is_full || len == 0 {
            self.met = 0;
        }
        is_full && len > 0
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::key::KeyRange;
    use crate::storage::Memory;
    use crate::version::Version;
    use crate::{Db, Options};

    /// The tables a to m and r to z of L2, and the length that each of them has.
    fn below() -> (Below, u64) {
        let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(Memory::new()));
        let db = builder.open().unwrap();
        let mut tables = Vec::new();
        for keys in [["a", "m"], ["r", "z"]] {
            for key in keys {
                db.put(key, "v").unwrap();
            }
            db.flush().unwrap();
            let newest = Arc::clone(&db.tree().pin().version.levels[0].tables[0]);
            let mut handle = (*newest).clone();
            handle.meta.level = 2;
            tables.push(Arc::new(handle));
        }
        let len = tables[0].meta.len;
        let all = KeyRange {
            first: Bytes::from_static(b"a"),
            last: Bytes::from_static(b"z"),
        };
        let version = Version::default().with(&[], tables);
        (Below::new(&version, &all), len)
    }

    #[test]
    fn a_table_ends_where_one_below_does_once_it_is_long_enough() {
        let (below, _) = below();
        let ends = |key: &[u8], len| Cutter::new(&below, 1, 100, u64::MAX).ends_before(key, len);
        assert!(ends(b"n", 75), "the table below ends at m");
        assert!(!ends(b"n", 74), "too short");
        assert!(!ends(b"b", 124), "within a table below");
        assert!(ends(b"b", 125), "too long to wait for its end");
    }

    #[test]
    fn each_end_below_counts_once() {
        let (below, _) = below();
        let mut cutter = Cutter::new(&below, 1, 100, u64::MAX);
        assert!(cutter.ends_before(b"n", 80));
        assert!(
            !cutter.ends_before(b"o", 80),
            "the end at m has been passed"
        );
    }

    #[test]
    fn a_table_that_meets_enough_below_ends_with_it() {
        let (below, len) = below();
        let mut cutter = Cutter::new(&below, 1, 1000, len);
        assert!(!cutter.ends_before(b"b", 10));
        assert!(cutter.ends_before(b"n", 10), "it has met a whole table");
        let mut cutter = Cutter::new(&below, 1, 1000, len);
        assert!(!cutter.ends_before(b"n", 0), "there is no table to end");
        assert!(
            !cutter.ends_before(b"o", 10),
            "what ended before it began does not count"
        );
    }

    #[test]
    fn without_tables_below_the_size_alone_counts() {
        let (below, _) = below();
        let mut cutter = Cutter::new(&below, 2, 100, u64::MAX);
        assert!(!cutter.ends_before(b"n", 99));
        assert!(cutter.ends_before(b"n", 100));
    }
}
