//! The read path: one key through I1's search order, many keys with overlapped disk reads.

use super::engine::Engine;
use super::record_cache::Moment;
use super::stats::{Found, sampled};
use super::tree::Tree;
use crate::error::Result;
use crate::key::{Kind, SeqNo};
use crate::storage::ReadRequest;
use crate::sync::Arc;
use crate::table::{BlockHandle, BlockSource, Located, ReadTrace, Record};
use crate::value::Value;
use crate::version::{MAX_LEVELS, Superversion, TableHandle};

impl Engine {
    /// The newest value of `key`.
    ///
    /// The superversion is taken before the sequence number: the other way round a version
    /// newer than the number could have replaced the one it needs.
    pub(crate) fn get(&self, tree: &Tree, key: &[u8]) -> Result<Option<Value>> {
        let superversion = tree.peek();
        self.get_measured(tree, &superversion, key, Moment::Latest(self.visible()))
    }

    /// The value of `key` at `seq`, which the caller keeps registered.
    pub(crate) fn get_at(&self, tree: &Tree, key: &[u8], seq: SeqNo) -> Result<Option<Value>> {
        let superversion = tree.peek();
        self.get_measured(tree, &superversion, key, Moment::Past(seq))
    }

    fn get_measured(
        &self,
        tree: &Tree,
        from: &Superversion,
        key: &[u8],
        moment: Moment,
    ) -> Result<Option<Value>> {
        if !sampled() {
            return self.get_in(tree, from, key, moment);
        }
        let started = self.clock.now();
        let found = self.get_in(tree, from, key, moment);
        let took = self.clock.now().saturating_sub(started);
        self.stats.get_latency.record(took);
        found
    }

    /// The value of `key` at `moment`, by what `from` holds.
    pub(crate) fn get_in(
        &self,
        tree: &Tree,
        from: &Superversion,
        key: &[u8],
        moment: Moment,
    ) -> Result<Option<Value>> {
        let mut trace = ReadTrace::default();
        let seq = moment.seq();
        let below = |trace: &mut ReadTrace| search(from, tree.last_fast_level, key, seq, trace);
        // I1: along this order versions of a key never get newer, so the first hit wins.
        let (found, record) = match (search_memtables(from, key, seq), &self.records) {
            (Some(record), _) => (Found::Memtable, Some(record)),
            (None, None) => below(&mut trace)?,
            (None, Some(cache)) => {
                self.get_cached(cache, tree, from, key, moment, || below(&mut trace))?
            }
        };
        self.stats.count_read(found, &trace);
        self.note_slow_reads(&trace);
        if let Some(record) = &record {
            self.note_access(tree, from, seq, key, found, record);
        }
        Ok(visible_value(record))
    }

    /// The values of `keys` at `seq`, which the caller keeps registered. Level by level, the
    /// blocks that all keys need there are read together.
    pub(crate) fn multi_get_at<K: AsRef<[u8]>>(
        &self,
        tree: &Tree,
        keys: &[K],
        seq: SeqNo,
    ) -> Result<Vec<Option<Value>>> {
        let started = self.clock.now();
        let superversion = tree.pin();
        let mut lookups: Vec<Lookup<'_>> = keys.iter().map(|k| Lookup::new(k.as_ref())).collect();
        for lookup in &mut lookups {
            if let Some(record) = search_memtables(&superversion, lookup.key, seq) {
                lookup.finish(Found::Memtable, record);
            } else if let Some(record) = self.find_cached(tree, &superversion, lookup.key, seq) {
                lookup.finish(Found::RecordCache, record);
            }
        }
        let version = &superversion.version;
        for table in version.levels[0].tables.iter() {
            self.multi_get_round(&mut lookups, seq, |key| {
                table.meta.range.contains(key).then_some(table)
            })?;
        }
        for (number, level) in version.levels.iter().enumerate().skip(1) {
            if number == usize::from(tree.last_fast_level) + 1 {
                search_promotion(&superversion, &mut lookups, seq);
            }
            self.multi_get_round(&mut lookups, seq, |key| level.find(key))?;
        }
        let values = lookups.into_iter().map(|lookup| {
            let (found, record) = lookup
                .done
                .map_or((Found::Nowhere, None), |(f, r)| (f, Some(r)));
            self.stats.count_read(found, &lookup.trace);
            self.note_slow_reads(&lookup.trace);
            if let Some(record) = &record {
                self.note_access(tree, &superversion, seq, lookup.key, found, record);
            }
            visible_value(record)
        });
        let values = values.collect();
        let took = self.clock.now().saturating_sub(started);
        self.stats.multi_get_latency.record(took);
        Ok(values)
    }

    /// Looks every unfinished key up in the table that `table_for` names, the reads overlapped.
    fn multi_get_round<'v>(
        &self,
        lookups: &mut [Lookup<'_>],
        seq: SeqNo,
        table_for: impl Fn(&[u8]) -> Option<&'v Arc<TableHandle>>,
    ) -> Result<()> {
        let mut waiting: Vec<(usize, &Arc<TableHandle>, BlockHandle, BlockSource)> = Vec::new();
        for (index, lookup) in lookups.iter_mut().enumerate() {
            if lookup.done.is_some() {
                continue;
            }
            let Some(table) = table_for(lookup.key) else {
                continue;
            };
            match table.table.locate(lookup.key, seq, &mut lookup.trace)? {
                Located::Absent => {}
                Located::Found(record) => lookup.finish(found_in(table), record),
                Located::Read(handle) => {
                    waiting.push((index, table, handle, table.table.source()));
                }
            }
        }
        for tier in &self.tiers {
            let here: Vec<_> = waiting
                .iter()
                .filter(|(_, table, _, source)| table.table.tier_of(source).index == tier.index)
                .collect();
            let requests: Vec<ReadRequest> = here
                .iter()
                .map(|(_, table, handle, source)| table.table.read_request(source, *handle))
                .collect();
            let reads = if requests.is_empty() {
                Vec::new()
            } else {
                tier.tables.read_many(&requests)
            };
            for ((index, table, handle, source), read) in here.into_iter().zip(reads) {
                let Lookup { key, trace, .. } = &mut lookups[*index];
                let completed = table.table.complete(*handle, source, read, key, seq, trace);
                let record = completed?;
                let lookup = &mut lookups[*index];
                if let Some(record) = record {
                    lookup.finish(found_in(table), record);
                }
            }
        }
        Ok(())
    }
}

/// A key of a `multi_get` on its way down the levels.
struct Lookup<'a> {
    key: &'a [u8],
    trace: ReadTrace,
    done: Option<(Found, Record)>,
}

impl<'a> Lookup<'a> {
    fn new(key: &'a [u8]) -> Self {
        Self {
            key,
            trace: ReadTrace::default(),
            done: None,
        }
    }

    fn finish(&mut self, found: Found, record: Record) {
        self.done = Some((found, record));
    }
}

fn found_in(table: &TableHandle) -> Found {
    Found::Table {
        level: table.meta.level,
        tier: table.meta.tier,
    }
}

/// The promotion caches lie between level f and what is below (I6).
fn search_promotion(from: &Superversion, lookups: &mut [Lookup<'_>], seq: SeqNo) {
    for lookup in lookups.iter_mut().filter(|lookup| lookup.done.is_none()) {
        if let Some(record) = from.promotion.get(lookup.key, seq) {
            lookup.finish(Found::PromotionCache, record);
        }
    }
}

fn visible_value(record: Option<Record>) -> Option<Value> {
    record.filter(|r| r.kind == Kind::Put).map(|r| r.value)
}

fn search_memtables(from: &Superversion, key: &[u8], seq: SeqNo) -> Option<Record> {
    from.active
        .get(key, seq)
        .or_else(|| from.immutables.iter().find_map(|m| m.get(key, seq)))
}

/// The record of `key` below the memtables: what is found first is newest (I1).
fn search(
    from: &Superversion,
    f: u8,
    key: &[u8],
    seq: SeqNo,
    trace: &mut ReadTrace,
) -> Result<(Found, Option<Record>)> {
    let f = usize::from(f);
    let mut search_tables = |levels| {
        for table in from.version.holding(key, levels) {
            if let Some(record) = table.table.get(key, seq, trace)? {
                return Ok(Some((found_in(table), Some(record))));
            }
        }
        Ok(None)
    };
    if let Some(found) = search_tables(0..=f)? {
        return Ok(found);
    }
    // Not older than what lies below (I6), nor newer than what was searched so far.
    if let Some(record) = from.promotion.get(key, seq) {
        return Ok((Found::PromotionCache, Some(record)));
    }
    Ok(search_tables(f + 1..=MAX_LEVELS)?.unwrap_or((Found::Nowhere, None)))
}
