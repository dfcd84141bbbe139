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
