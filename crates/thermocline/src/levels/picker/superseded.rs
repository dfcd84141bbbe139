//! Compactions for the sake of superseded records. Small newer ones may never fill their level, and
//! so never come to the large ones that they hide on a lower one.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::deletes::WORTH_A_JOB;
use super::{Meant, Picker};
use crate::key::{KeyRange, SeqNo};
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::table::KeySample;
use crate::version::TableHandle;

/// Superseded bytes are at least this many times those that supersede them. Otherwise there are
/// fewer of them than the upper levels may hold, and they go as these fill.
const TIMES_ITS_OWN: u64 = 2;

/// To supersede that much, there has to be at least one record for this many below.
const ONE_FOR: u64 = 8;

/// How many keys of the tables below have to be in samples.
const LEAST_KEYS: usize = 8;

impl Picker<'_> {
    /// Whether `tables` of `level`, which lie within `range`, supersede at least one in `due` of
    /// the bytes below them, as the samples of open tables tell. So for each byte that goes at most
    /// `due` are written anew.
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
        // The answer is nearly always the same as at the last look, and thousands of tables are
        // looked at while writers to L0 wait.
        let as_it_is = state_of(tables, &below, due);
        let found = |table: &Arc<TableHandle>| table.hides_little_of.load(Ordering::Relaxed);
        if let [one] = tables
            && found(one) == as_it_is
        {
            return false;
        }
        let is_much = self.hide_much(tables, &below, due);
        if let ([one], false) = (tables, is_much) {
            one.hides_little_of.store(as_it_is, Ordering::Relaxed);
        }
        is_much
    }

    fn hide_much(&self, tables: &[Arc<TableHandle>], below: &[Arc<TableHandle>], due: u64) -> bool {
        let newer = newest(tables);
        let (mut hidden, mut all, mut keys) = (0_u64, 0_u64, 0);
        for table in below {
            all = all.saturating_add(table.raw_bytes());
            let Some((of_table, sampled)) = superseded_of(table, &newer) else {
                continue;
            };
            hidden = hidden.saturating_add(of_table);
            keys += sampled;
        }
        let own = tables.iter().map(|table| {
            let older = older_of(table).map_or(0, |(bytes, _)| bytes);
            table.raw_bytes().saturating_sub(older)
        });
        let own = own.fold(0, u64::saturating_add);
        keys >= LEAST_KEYS
            && hidden >= self.table_sizes.least / WORTH_A_JOB
            && hidden >= own.saturating_mul(TIMES_ITS_OWN)
            && hidden.saturating_mul(due) >= all
    }

    /// Whether at least one in `due` of the bytes of `table` belongs to older versions of its own
    /// records, which a reader that is gone needed.
    pub(super) fn keeps_much(&self, table: &TableHandle, due: u64) -> bool {
        older_of(table).is_some_and(|(older, keys)| {
            table.meta.max_seq <= self.oldest_reader
                && keys >= LEAST_KEYS
                && older >= self.table_sizes.least / WORTH_A_JOB
                && older.saturating_mul(due) >= table.raw_bytes()
        })
    }

    /// The tables below that `tables` come to, if `tables` have enough records to hide much of
    /// them.
    fn below_if_many(
        &self,
        level: usize,
        tables: &[Arc<TableHandle>],
        range: &KeyRange,
    ) -> Option<Vec<Arc<TableHandle>>> {
        // Hot records of level f come no further than to what its tables are merged with.
        let to = self.targets.next(level, self.version, range)?;
        let levels = match level == self.targets.last_fast() {
            true => self.way(to),
            false => to..=self.version.levels.len() - 1,
        };
        let met = || {
            let levels = self.version.levels[levels.clone()].iter();
            levels.flat_map(|level| level.overlapping(range))
        };
        // Counted before anything else is done, as this is asked of every table.
        let records: u64 = tables.iter().map(|table| table.meta.entries).sum();
        let below: u64 = met().map(|table| table.meta.entries).sum();
        (below > 0 && records.saturating_mul(ONE_FOR) >= below).then(|| met().cloned().collect())
    }

    /// The tables of level f that are `meant`, and for each that may hide much, the tables that it
    /// may hide. Their samples tell whether it does, once they are open.
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

/// A number that tells apart which tables lie below `tables`, how many of all of them are open, and
/// what is asked about them. Never 0.
fn state_of(tables: &[Arc<TableHandle>], below: &[Arc<TableHandle>], due: u64) -> u64 {
    let all = tables.iter().chain(below);
    let open = all.filter(|table| table.lazy.opened().is_some());
    let mut state = DefaultHasher::new();
    (due, open.count()).hash(&mut state);
    for table in below {
        table.meta.id.hash(&mut state);
    }
    state.finish() | 1
}

fn sample_of(table: &TableHandle) -> Option<&KeySample> {
    table.lazy.opened()?.properties().key_sample.as_ref()
}

/// The sampled keys of `tables` by their hashes, each with the sequence number of its newest
/// version, and the hash up to which all are there.
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
/// that. `None` if none does.
fn superseded_of(
    table: &TableHandle,
    (newer, bound): &(HashMap<u64, SeqNo>, u64),
) -> Option<(u64, usize)> {
    let sample = sample_of(table)?;
    let (mut hidden, mut all, mut keys) = (0_u64, 0_u64, 0);
    for (hash, key) in sample.keys(sample.bound()?.min(*bound)) {
        // A record that was promoted or copied has the same sequence number as before.
        let is_hidden = newer.get(&hash).is_some_and(|seq| *seq > key.seq);
        hidden = hidden.saturating_add(if is_hidden { key.live } else { 0 });
        all = all.saturating_add(key.live).saturating_add(key.dead);
        keys += 1;
    }
    (keys > 0).then(|| (scaled(table, hidden, all), keys))
}

/// About how many bytes of `table` are older versions of its own records, and how many of its keys
/// tell that. `None` if none does.
fn older_of(table: &TableHandle) -> Option<(u64, usize)> {
    let older = sample_of(table)?.older();
    (older.keys > 0).then(|| (scaled(table, older.bytes, older.of), older.keys))
}

/// Scales `part` of the `all` bytes of a sample up to all bytes of `table`.
fn scaled(table: &TableHandle, part: u64, all: u64) -> u64 {
    let scaled = u128::from(table.raw_bytes()) * u128::from(part) / u128::from(all.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
