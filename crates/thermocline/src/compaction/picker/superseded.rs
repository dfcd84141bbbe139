//! Compactions for the sake of superseded records. Small newer ones may never fill their level, and
//! so never come to the large ones that they hide on a lower one.

use std::collections::HashMap;

use super::deletes::WORTH_A_JOB;
use super::{Meant, Picker};
use crate::key::{KeyRange, SeqNo};
use crate::sync::Arc;
use crate::table::{KeySample, SampledKey};
use crate::version::TableHandle;

/// What is superseded is more than so many times what supersedes it: otherwise there is less of it
/// than the upper levels may hold, and it goes as they fill.
const TIMES_ITS_OWN: u64 = 2;

/// Records that supersede so much are at least one for so many below them.
const ONE_FOR: u64 = 8;

/// Keys below that have to be in a sample.
const LEAST_KEYS: usize = 8;

impl Picker<'_> {
    /// Whether what `tables` of `level`, which lie within `range`, supersede below them is one in
    /// `due` of the bytes there, as the samples tell of tables that are open: so each byte that
    /// goes costs `due` that are written anew, at most.
    pub(super) fn supersede_much(
        &self,
        level: usize,
        tables: &[Arc<TableHandle>],
        range: &KeyRange,
        due: u64,
    ) -> bool {
        let Some(below) = self.below_if_many(level, tables, range) else {
            return false;
        };
        let newer = newest(tables);
        let (mut hidden, mut all, mut keys) = (0_u64, 0_u64, 0);
        for table in &below {
            all = all.saturating_add(table.raw_bytes());
            let Some((of_table, sampled)) = superseded_of(table, &newer) else {
                continue;
            };
            hidden = hidden.saturating_add(of_table);
            keys += sampled;
        }
        let own = tables.iter().map(|table| {
            let older = older_of(table).map_or(0, |(older, _)| older);
            table.raw_bytes().saturating_sub(older)
        });
        let own = own.fold(0, u64::saturating_add);
        keys >= LEAST_KEYS
            && hidden >= self.table_sizes.least / WORTH_A_JOB
            && hidden >= own.saturating_mul(TIMES_ITS_OWN)
            && hidden.saturating_mul(due) >= all
    }

    /// Whether one in `due` of the bytes of `table` is of older versions of its own records, which
    /// a reader that is gone needed.
    pub(super) fn keeps_much(&self, table: &TableHandle, due: u64) -> bool {
        older_of(table).is_some_and(|(older, keys)| {
            table.meta.max_seq <= self.oldest_reader
                && keys >= LEAST_KEYS
                && older >= self.table_sizes.least / WORTH_A_JOB
                && older.saturating_mul(due) >= table.raw_bytes()
        })
    }

    /// What lies below `tables` and they come to, where they have records enough to hide much of
    /// it.
    fn below_if_many(
        &self,
        level: usize,
        tables: &[Arc<TableHandle>],
        range: &KeyRange,
    ) -> Option<Vec<Arc<TableHandle>>> {
        // Hot records come no further than what level f's tables are merged with.
        let to = self.targets.next(level, self.version, range)?;
        let levels = match level == self.targets.last_fast() {
            true => to..=to,
            false => to..=self.version.levels.len() - 1,
        };
        let levels = self.version.levels[levels].iter();
        let below: Vec<_> = levels
            .flat_map(|level| level.overlapping(range))
            .cloned()
            .collect();
        let sum = |tables: &[Arc<TableHandle>]| {
            let records = tables.iter().map(|table| table.meta.entries);
            records.fold(0, u64::saturating_add)
        };
        (sum(tables).saturating_mul(ONE_FOR) >= sum(&below)).then_some(below)
    }

    /// The tables of level f that are `meant`, and what those may hide that may hide much: their
    /// samples tell it once they are open.
    pub(crate) fn to_sample(&self, meant: &Meant) -> Vec<Arc<TableHandle>> {
        let f = self.targets.last_fast();
        let mut found = Vec::new();
        let here = self.version.levels[f].tables.iter();
        for table in here.filter(|table| meant.holds(f, table)) {
            let one = std::slice::from_ref(table);
            found.push(Arc::clone(table));
            found.extend(
                self.below_if_many(f, one, &table.meta.range)
                    .unwrap_or_default(),
            );
        }
        found
    }
}

fn sample_of(table: &TableHandle) -> Option<&KeySample> {
    table.lazy.opened()?.properties().key_sample.as_ref()
}

/// The sampled keys of `tables` by their hashes, with the sequence number of the newest version,
/// and up to which hash all are there.
fn newest(tables: &[Arc<TableHandle>]) -> (HashMap<u64, SeqNo>, u64) {
    let samples = || tables.iter().filter_map(|table| sample_of(table));
    let bounds = samples().map(|sample| sample.bound().unwrap_or(0));
    let bound = bounds.min().unwrap_or(0);
    let mut newest = HashMap::new();
    for (hash, key) in samples().flat_map(|sample| sample.keys(bound)) {
        let seq = newest.entry(hash).or_insert(key.seq);
        *seq = key.seq.max(*seq);
    }
    (newest, bound)
}

/// About how many bytes of `table` are superseded by what is `newer`, and how many of its keys tell
/// that. `None` where none does.
fn superseded_of(
    table: &TableHandle,
    (newer, bound): &(HashMap<u64, SeqNo>, u64),
) -> Option<(u64, usize)> {
    part_of(table, *bound, |hash, key| {
        // What was promoted, or copied, has the sequence number that it had before.
        let is_hidden = newer.get(&hash).is_some_and(|seq| *seq > key.seq);
        if is_hidden { key.live } else { 0 }
    })
}

/// About how many bytes of `table` are older versions of its own records, and how many of its keys
/// tell that. `None` where none does.
fn older_of(table: &TableHandle) -> Option<(u64, usize)> {
    // A delete takes room itself, and stays.
    let older = |_, key: SampledKey| if key.live > 0 { key.dead } else { 0 };
    part_of(table, u64::MAX, older)
}

/// About how many bytes of `table` are what `part` says of its sampled keys with hashes of at most
/// `bound`, and how many keys those are.
fn part_of(
    table: &TableHandle,
    bound: u64,
    part: impl Fn(u64, SampledKey) -> u64,
) -> Option<(u64, usize)> {
    let sample = sample_of(table)?;
    let (mut sum, mut all, mut keys) = (0_u64, 0_u64, 0);
    for (hash, key) in sample.keys(sample.bound()?.min(bound)) {
        sum = sum.saturating_add(part(hash, key));
        all = all.saturating_add(key.live).saturating_add(key.dead);
        keys += 1;
    }
    let scaled = u128::from(table.raw_bytes()) * u128::from(sum) / u128::from(all.max(1));
    (keys > 0).then_some((u64::try_from(scaled).unwrap_or(u64::MAX), keys))
}
