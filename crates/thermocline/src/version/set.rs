//! A version: the immutable set of a keyspace's tables, level by level.

use std::cmp::Reverse;

use super::files::FileGuard;
use super::hot_estimate::HotEstimate;
use crate::error::Result;
use crate::ids::FileId;
use crate::key::KeyRange;
use crate::options::MAX_TIERS;
use crate::sync::Arc;
use crate::sync::atomic::AtomicU64;
use crate::table::{KeySample, LazyTable, Table, TableContent, TableMeta};

/// L0 and the levels below it.
pub(crate) const MAX_LEVELS: usize = 7;

/// A table as part of a version.
#[derive(Debug, Clone)]
pub(crate) struct TableHandle {
    pub(crate) meta: TableMeta,
    /// Shared with the handles of the same file at other levels.
    pub(crate) lazy: Arc<LazyTable>,
    pub(crate) file: Arc<FileGuard>,
    pub(crate) hot: HotEstimate,
    /// State of what lies below the table when this table was found to hide little of that; 0 if it
    /// never was.
    pub(crate) hides_little_of: Arc<AtomicU64>,
    /// How often scans have looked into it, as far as it lies between f and the last level.
    pub(crate) looks: Arc<AtomicU64>,
}

impl TableHandle {
    /// The table; it is opened at its first use.
    ///
    /// # Errors
    /// Those of [`Table::open`].
    #[inline]
    pub(crate) fn table(&self) -> Result<&Arc<Table>> {
        self.lazy.open()
    }

    fn content(&self) -> TableContent {
        self.meta.content.unwrap_or_default()
    }

    /// Bytes of keys and values.
    pub(crate) fn raw_bytes(&self) -> u64 {
        let content = self.content();
        content
            .raw_key_bytes
            .saturating_add(content.raw_value_bytes)
    }

    /// How hot it is: reads a second of its blocks on a device, for each byte of keys and values,
    /// so that it is the same on every tier. Before its first second is over, what was read so far
    /// counts.
    pub(crate) fn density(&self) -> f64 {
        let heat = self.lazy.heat();
        let rate = heat.get().known().unwrap_or_else(|| heat.reads());
        rate / self.raw_bytes().max(1) as f64
    }

    /// Whether some of its blocks are compressed, as far as lengths tell: an entry takes 11 bytes
    /// besides its value and the part of its key that is not shared.
    pub(crate) fn is_compressed(&self) -> bool {
        let content = self.content();
        let least = self.meta.entries.saturating_mul(11);
        content.data_bytes < content.raw_value_bytes.saturating_add(least)
    }

    /// About how long the table would be without compression, in bytes.
    pub(crate) fn raw_len(&self) -> u64 {
        let sample = KeySample::most_len(self.meta.entries);
        let beside = self.meta.entries.saturating_mul(24).saturating_add(sample);
        self.raw_bytes().saturating_add(beside).max(self.meta.len)
    }
}

/// The tables of one level: in L0, newest first; in the others, in key order without overlap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Level {
    /// Shared with the cursors over it.
    pub(crate) tables: Arc<Vec<Arc<TableHandle>>>,
    pub(crate) bytes: u64,
    /// The same, by tier.
    pub(crate) bytes_on: [u64; MAX_TIERS],
    /// Bytes of keys and values.
    pub(crate) raw_bytes: u64,
}

impl Level {
    /// The tables that overlap `range`, in a level below L0, where they are neighbours.
    pub(crate) fn overlapping(&self, range: &KeyRange) -> &[Arc<TableHandle>] {
        let first = self
            .tables
            .partition_point(|table| table.meta.range.last < range.first);
        let len =
            self.tables[first..].partition_point(|table| table.meta.range.first <= range.last);
        &self.tables[first..first + len]
    }

    /// The table that may hold `key`, in a level below L0.
    pub(crate) fn find(&self, key: &[u8]) -> Option<&Arc<TableHandle>> {
        let at = self
            .tables
            .partition_point(|table| &table.meta.range.last[..] < key);
        let table = self.tables.get(at)?;
        (&table.meta.range.first[..] <= key).then_some(table)
    }
}

/// The set of a keyspace's tables at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Version {
    pub(crate) levels: [Level; MAX_LEVELS],
}

impl Version {
    /// This version without the tables `removed` and with the tables `added`, in search order (I1).
    pub(crate) fn with(&self, removed: &[FileId], added: Vec<Arc<TableHandle>>) -> Version {
        let mut next = self.clone();
        let mut changed = [false; MAX_LEVELS];
        for (level, changed) in next.levels.iter_mut().zip(&mut changed) {
            let goes = |table: &Arc<TableHandle>| removed.contains(&table.meta.id);
            if level.tables.iter().any(goes) {
                Arc::make_mut(&mut level.tables).retain(|table| !goes(table));
                *changed = true;
            }
        }
        for table in added {
            let number = usize::from(table.meta.level);
            Arc::make_mut(&mut next.levels[number].tables).push(table);
            changed[number] = true;
        }
        let levels = next.levels.iter_mut().enumerate();
        for (number, level) in levels.filter(|(number, _)| changed[*number]) {
            let tables = Arc::make_mut(&mut level.tables);
            if number == 0 {
                // I2: the order is by epoch, not by arrival.
                tables.sort_by_key(|table| Reverse(table.meta.epoch));
            } else {
                tables.sort_by(|a, b| a.meta.range.first.cmp(&b.meta.range.first));
            }
            level.bytes_on = [0; MAX_TIERS];
            for table in level.tables.iter() {
                level.bytes_on[usize::from(table.meta.tier)] += table.meta.len;
            }
            level.bytes = level.bytes_on.iter().sum();
            // Counts of a damaged or crafted table may come to anything.
            let raw = level.tables.iter().map(|table| table.raw_bytes());
            level.raw_bytes = raw.fold(0, u64::saturating_add);
        }
        next
    }

    /// Every table, in search order.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<TableHandle>> {
        self.levels.iter().flat_map(|level| level.tables.iter())
    }

    /// Bytes of keys and values in all tables.
    pub(crate) fn raw_bytes(&self) -> u64 {
        let levels = self.levels.iter().map(|level| level.raw_bytes);
        levels.fold(0, u64::saturating_add)
    }

    /// The lowest level that holds tables.
    pub(crate) fn last_level(&self) -> Option<usize> {
        (0..MAX_LEVELS)
            .rev()
            .find(|&l| !self.levels[l].tables.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::scene::Scene;

    /// A count in a manifest may be any number. The sum overflowed, which made the job panic, or
    /// gave a length that was much too short.
    #[test]
    fn a_length_from_counts_that_cannot_be_is_as_long_as_can_be() {
        let scene = Scene::with_old(&["key"]);
        let version = Arc::clone(&scene.tree().peek().version);
        let table = version.tables().next().expect("a table");
        for entries in [u64::MAX / 24, u64::MAX / 24 + 1, u64::MAX] {
            let mut crafted = TableHandle::clone(table);
            crafted.meta.entries = entries;
            assert!(crafted.raw_len() >= u64::MAX - 24, "{entries}");
        }
    }
}
