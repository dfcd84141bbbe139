//! The tables of RALT at one moment, and what is hot by them. Readers take a version and are never
//! held up by a merge.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::histogram::{Bin, Histogram};
use super::levels::{Levels, Placed, Sums};
use super::limits::Limits;
use super::record::{split_key, tracked_key};
use super::sizes::LEVEL0_TABLES;
use crate::error::Result;
use crate::ids::KeyspaceId;
use crate::sync::Arc;
use crate::table::{Table, TableMeta};

/// A table as part of a version.
#[derive(Debug, Clone)]
pub(super) struct Tracked {
    pub(super) meta: TableMeta,
    pub(super) table: Arc<Table>,
    pub(super) histogram: Arc<Histogram>,
    /// Records up to this key were merged into another table and are not seen here any more.
    pub(super) trim: Option<Bytes>,
    /// HotRAP size of its hot records, without those that were merged away.
    pub(super) hot: u64,
}

impl Tracked {
    /// An open table, whole or trimmed.
    ///
    /// # Errors
    /// Damage; I/O errors.
    pub(super) fn new(
        meta: TableMeta,
        table: Arc<Table>,
        histogram: Arc<Histogram>,
        trim: Option<Bytes>,
    ) -> Result<Self> {
        let all = table.properties().weight.unwrap_or(0);
        let gone = match &trim {
            Some(trim) => table.weight_before(trim)?,
            None => 0,
        };
        Ok(Self {
            meta,
            table,
            histogram,
            trim,
            hot: all.saturating_sub(gone),
        })
    }

    /// The same table without its records up to `trim`.
    ///
    /// # Errors
    /// Damage; I/O errors.
    pub(super) fn trimmed(&self, trim: Bytes) -> Result<Self> {
        let (table, histogram) = (Arc::clone(&self.table), Arc::clone(&self.histogram));
        Self::new(self.meta.clone(), table, histogram, Some(trim))
    }

    /// The bytes of its records up to `end`, or of all records if there is no `end`, without those
    /// that were merged away. Exact to a block.
    ///
    /// # Errors
    /// Damage; I/O errors.
    pub(super) fn bytes_through(&self, end: Option<&Bytes>) -> Result<u64> {
        let before = |key: Option<&Bytes>| key.map(|key| self.table.share_before(key)).transpose();
        let gone = before(self.trim.as_ref())?.unwrap_or(0.0);
        let through = before(end)?.unwrap_or(1.0);
        Ok(((through - gone).max(0.0) * self.meta.len as f64) as u64)
    }

    /// Whether all its records are of one of `keyspaces`, as far as its first and its last key
    /// tell.
    pub(super) fn holds_only(&self, keyspaces: &BTreeSet<KeyspaceId>) -> bool {
        let of = |key: &[u8]| split_key(key).map(|(keyspace, _)| keyspace);
        let range = &self.meta.range;
        let first = of(&range.first[..]);
        first == of(&range.last[..]) && first.is_some_and(|id| keyspaces.contains(&id))
    }

    fn is_trimmed_at(&self, key: &[u8]) -> bool {
        self.trim.as_ref().is_some_and(|trim| key <= &trim[..])
    }

    /// Whether a record of a key up to `last` may be seen here.
    fn begins_by(&self, last: &[u8]) -> bool {
        &self.meta.range.first[..] <= last && !self.is_trimmed_at(last)
    }

    /// Whether a record of a key in `first..=last` may be seen here.
    pub(super) fn meets(&self, first: &[u8], last: &[u8]) -> bool {
        self.begins_by(last) && first <= &self.meta.range.last[..]
    }

    /// Whether records of one key may be seen here and in one of `others`, which are in key order.
    pub(super) fn meets_any(&self, others: &[Placed]) -> bool {
        let at = others.partition_point(|other| !self.begins_by(&other.meta.range.last));
        let other = others.get(at);
        other.is_some_and(|other| other.begins_by(&self.meta.range.last))
    }

    pub(super) fn may_be_hot(&self, key: &[u8]) -> Result<bool> {
        Ok(self.meets(key, key) && self.table.may_contain(key)?)
    }

    fn may_be_hot_with_a_read(&self, key: &[u8]) -> Result<bool> {
        let meets = self.meets(key, key);
        Ok(meets && (self.table.may_contain(key)? || self.table.may_be_marked(key)?))
    }

    fn hot_bytes(&self, first: &[u8], last: &[u8]) -> Result<u64> {
        if !self.meets(first, last) {
            return Ok(0);
        }
        let first = match &self.trim {
            Some(trim) if first < &trim[..] => &trim[..],
            _ => first,
        };
        let through = self.table.weight_through(last)?;
        Ok(through.saturating_sub(self.table.weight_before(first)?))
    }

    /// As [`Tracked::hot_bytes`] for the keys from `first` to before `end`. But a block in which
    /// several ranges begin or end counts for the last of them alone, so that ranges beside each
    /// other add up to the whole.
    fn hot_part(&self, first: &[u8], end: &[u8]) -> Result<u64> {
        let range = &self.meta.range;
        if first <= &range.first[..] && &range.last[..] < end {
            return Ok(self.hot);
        }
        let from = |key: &[u8]| match &self.trim {
            Some(trim) if key < &trim[..] => self.table.weight_before(trim),
            _ => self.table.weight_before(key),
        };
        Ok(from(end)?.saturating_sub(from(first)?))
    }
}

/// What one step of work does to the tables.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub(super) removed: Vec<Arc<Tracked>>,
    /// As they are from now on.
    pub(super) trimmed: Vec<Arc<Tracked>>,
    pub(super) added: Vec<Arc<Tracked>>,
}

/// The tables of one moment, with the limits and thresholds in force.
#[derive(Debug, Clone, Default)]
pub(super) struct Version {
    pub(super) levels: Levels,
    pub(super) limits: Limits,
    /// The share of the records above the lowest level that lie in the lowest level, too, as the
    /// last merge into it found.
    pub(super) duplicates: f64,
}

impl Version {
    /// Every table.
    pub(super) fn tables(&self) -> impl Iterator<Item = &Arc<Tracked>> {
        self.numbered().map(|(_, table)| table)
    }

    /// The bins of every table.
    pub(super) fn bins(&self) -> impl Iterator<Item = &Bin> {
        self.tables().flat_map(|table| &table.histogram.bins)
    }

    /// The tables of a level, none where there is no such level.
    pub(super) fn level(&self, number: usize) -> &[Placed] {
        self.levels.get(number).map_or(&[], |level| &level.tables)
    }

    /// Whether as many tables wait in level 0 as are merged at once. Every question asks each of
    /// them, and each is a file that is open.
    pub(super) fn has_full_level0(&self) -> bool {
        self.level(0).len() >= LEVEL0_TABLES
    }

    /// Bytes of the files of a level.
    pub(super) fn level_bytes(&self, number: usize) -> u64 {
        self.levels.get(number).map_or(0, |level| level.bytes)
    }

    /// The lowest level that holds a table.
    pub(super) fn bottom(&self) -> usize {
        self.levels.bottom()
    }

    /// Every table, with its level.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (usize, &Arc<Tracked>)> {
        let levels = self.levels.iter().enumerate();
        levels.flat_map(|(level, of)| of.tables.iter().map(move |table| (level, &**table)))
    }

    /// The tables whose records are all of different keys: the lowest sorted run.
    pub(super) fn lowest_run(&self) -> impl Iterator<Item = &Arc<Tracked>> {
        self.of_lowest_run(true)
    }

    /// The tables above the lowest run.
    pub(super) fn above_lowest(&self) -> impl Iterator<Item = &Arc<Tracked>> {
        self.of_lowest_run(false)
    }

    fn of_lowest_run(&self, is_lowest: bool) -> impl Iterator<Item = &Arc<Tracked>> {
        let tables = self.levels.iter().flat_map(|level| &level.tables);
        let tables = tables.filter(move |table| table.is_lowest == is_lowest);
        tables.map(|table| &**table)
    }

    /// The highest level from which on down there is nothing but the lowest run; 0 if no table lies
    /// below level 0.
    pub(super) fn lowest_level(&self) -> usize {
        let is_part = |level: &usize| self.levels.is_lowest_run(*level);
        let parts = (1..=self.bottom()).rev().take_while(is_part);
        parts.last().unwrap_or(0)
    }

    /// Whether no key lies in two tables.
    pub(super) fn is_one_run(&self) -> bool {
        (0..=self.bottom()).all(|level| self.levels.is_lowest_run(level))
    }

    /// Sums over the lowest run, and over all that lies above it.
    pub(super) fn sums(&self) -> (Sums, Sums) {
        (self.levels.lowest, self.levels.above)
    }

    /// How much of what lies above the lowest run does not lie in the lowest run already.
    pub(super) fn new_share(&self) -> f64 {
        1.0 - self.duplicates
    }

    /// Whether nothing was ever evicted: there was room for every record read so far.
    pub(super) fn is_young(&self) -> bool {
        self.limits.generation == 0
    }

    /// About the HotRAP size of all hot records; exact when there is one run.
    pub(super) fn hot_set(&self) -> u64 {
        let (lowest, above) = self.sums();
        lowest.hot + (above.hot as f64 * self.new_share()) as u64
    }

    /// Bytes of all files.
    pub(super) fn physical(&self) -> u64 {
        let (lowest, above) = self.sums();
        lowest.physical + above.physical
    }

    /// Whether a key, as tables hold it, is hot. Filters only.
    ///
    /// # Errors
    /// Damage; I/O errors.
    pub(super) fn may_be_hot(&self, key: &[u8]) -> Result<bool> {
        self.any_at(key, |table| table.may_be_hot(key))
    }

    /// Whether a key, as tables hold it, is hot, or would be with one more read
    /// ([`super::outlook`]). Filters only.
    ///
    /// # Errors
    /// Damage; I/O errors.
    pub(super) fn may_be_hot_with_a_read(&self, key: &[u8]) -> Result<bool> {
        self.any_at(key, |table| table.may_be_hot_with_a_read(key))
    }

    /// Whether `says` is true of one of the tables whose keys are around `key`.
    fn any_at(&self, key: &[u8], says: impl Fn(&Tracked) -> Result<bool>) -> Result<bool> {
        for table in self.level(0) {
            if says(table)? {
                return Ok(true);
            }
        }
        for level in self.levels.iter().skip(1) {
            let at = level.first_ending_at(key);
            if let Some(table) = level.tables.get(at)
                && says(table)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The tables that may hold keys in `first..=last`, with their levels. Tables of level 0 are
    /// over all of the range. The other levels are sorted, even if their tables are trimmed: what
    /// is left of a table ends where the whole table did.
    fn meeting<'a>(
        &'a self,
        first: &'a [u8],
        last: &'a [u8],
    ) -> impl Iterator<Item = (usize, &'a Placed)> {
        let levels = self.levels.iter().enumerate();
        levels.flat_map(move |(number, level)| {
            let from = match number {
                0 => 0,
                _ => level.first_ending_at(first),
            };
            let meets = move |table: &&Placed| number == 0 || &table.meta.range.first[..] <= last;
            let tables = level.tables[from..].iter().take_while(meets);
            tables.map(move |table| (number, table))
        })
    }

    /// The tables where a record of a key in `first..=last` may be seen, with their levels: files
    /// of other tables need not stay for whoever holds these.
    pub(super) fn within(&self, first: &[u8], last: &[u8]) -> Vec<(usize, Arc<Tracked>)> {
        let meeting = self.meeting(first, last);
        let meeting = meeting.filter(|(_, table)| table.meets(first, last));
        let tables = meeting.map(|(level, table)| (level, Arc::clone(table)));
        tables.collect()
    }

    /// About the HotRAP size of the hot records with keys in `first..=last`.
    ///
    /// # Errors
    /// Damage; I/O errors.
    pub(super) fn hot_bytes(&self, first: &[u8], last: &[u8]) -> Result<u64> {
        self.sum_meeting(first, last, |table| table.hot_bytes(first, last))
    }

    /// About the HotRAP size of the hot records of a keyspace: its part of [`Version::hot_set`].
    ///
    /// # Errors
    /// Damage; I/O errors.
    pub(super) fn hot_set_of(&self, keyspace: KeyspaceId) -> Result<u64> {
        // The separator before this keyspace's first block may be the keyspace's number alone.
        let first = tracked_key(keyspace, b"\0");
        let end = tracked_key(keyspace.saturating_add(1), b"\0");
        self.sum_meeting(&first, &end, |table| table.hot_part(&first, &end))
    }

    /// The sum of `of` over the tables that may hold keys in `first..=last`, less what lies in
    /// several of them.
    fn sum_meeting(
        &self,
        first: &[u8],
        last: &[u8],
        of: impl Fn(&Tracked) -> Result<u64>,
    ) -> Result<u64> {
        let (mut lowest, mut above) = (0, 0);
        for (_, table) in self.meeting(first, last) {
            // A part counts for no more than the whole table weighs: the index's numbers were not
            // checked, and have to add up.
            match of(table)?.min(table.hot) {
                0 => {}
                bytes if table.is_lowest => lowest += bytes,
                bytes => above += bytes,
            }
        }
        Ok(lowest + (above as f64 * self.new_share()) as u64)
    }

    /// Takes a step of work in.
    pub(super) fn apply(&mut self, change: &Change) {
        let level_of = |table: &Arc<Tracked>| usize::from(table.meta.level);
        for table in &change.removed {
            self.levels.remove(level_of(table), table);
        }
        for table in &change.trimmed {
            self.levels.replace(level_of(table), Arc::clone(table));
        }
        for table in &change.added {
            self.insert(level_of(table), Arc::clone(table));
        }
    }

    /// Puts a table into its level: on top of level 0, in key order below.
    pub(super) fn insert(&mut self, level: usize, table: Arc<Tracked>) {
        self.levels.insert(level, table);
    }
}
