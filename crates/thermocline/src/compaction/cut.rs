//! Where one output table ends and the next begins.

use crate::sync::Arc;
use crate::version::{MAX_LEVELS, TableHandle, Version};

/// Places the ends of output tables at those of the tables one level further down: a table that
/// ends where theirs do meets fewer of them, and less is rewritten when it moves on.
#[derive(Debug)]
pub(crate) struct Cutter {
    /// The tables of the next level in use below the output.
    below: Arc<Vec<Arc<TableHandle>>>,
    /// The first of them that does not end before the last key looked at.
    at: usize,
    size: u64,
}

impl Cutter {
    /// For output of level `level` in tables of about `size` bytes.
    pub(crate) fn new(version: &Version, level: usize, size: u64) -> Self {
        let below = (level + 1..MAX_LEVELS).find(|&l| !version.levels[l].tables.is_empty());
        Self {
            below: below.map_or_else(Arc::default, |l| Arc::clone(&version.levels[l].tables)),
            at: 0,
            size,
        }
    }

    /// Whether a table that is `len` bytes long should end before `key`. Called with ascending
    /// keys, once each.
    pub(crate) fn ends_before(&mut self, key: &[u8], len: u64) -> bool {
        let before = self.at;
        while self
            .below
            .get(self.at)
            .is_some_and(|table| &table.meta.range.last[..] < key)
        {
            self.at += 1;
        }
        let at_an_end = self.at > before;
        if self.below.is_empty() {
            return len >= self.size;
        }
        at_an_end && len >= self.size / 4 * 3 || len >= self.size / 4 * 5
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;
    use crate::{Db, Options};

    /// A version with the tables a to m and r to z in L2, and the store that holds their files.
    fn version() -> (Db, Version) {
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
        (db, Version::default().with(&[], tables))
    }

    #[test]
    fn a_table_ends_where_one_below_does_once_it_is_long_enough() {
        let (_db, version) = version();
        let ends = |key: &[u8], len| Cutter::new(&version, 1, 100).ends_before(key, len);
        assert!(ends(b"n", 75), "the table below ends at m");
        assert!(!ends(b"n", 74), "too short");
        assert!(!ends(b"b", 124), "within a table below");
        assert!(ends(b"b", 125), "too long to wait for its end");
    }

    #[test]
    fn each_end_below_counts_once() {
        let (_db, version) = version();
        let mut cutter = Cutter::new(&version, 1, 100);
        assert!(cutter.ends_before(b"n", 80));
        assert!(
            !cutter.ends_before(b"o", 80),
            "the end at m has been passed"
        );
    }

    #[test]
    fn without_tables_below_the_size_alone_counts() {
        let (_db, version) = version();
        let mut cutter = Cutter::new(&version, 2, 100);
        assert!(!cutter.ends_before(b"n", 99));
        assert!(cutter.ends_before(b"n", 100));
    }
}
