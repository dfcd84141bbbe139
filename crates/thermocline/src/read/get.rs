//! The read path: one key through I1's search order, many keys with shared and overlapped disk
//! reads.

#[cfg(test)]
mod tests;

use super::Moment;
use crate::engine::{Engine, Found, Tree};
use crate::error::Result;
use crate::ids::FileId;
use crate::key::{Kind, SeqNo};
use crate::placement::Read;
use crate::points::point;
use crate::read::{Place, PromotionView, Run, Superversion};
use crate::record::Record;
use crate::storage::{IoBuf, ReadRequest};
use crate::sync::Arc;
use crate::table::{BlockHandle, BlockSource, HashedKey, Located, ReadTrace, Table};
use crate::value::Value;
use crate::version::TableHandle;

/// Most bytes of blocks that a `multi_get` has read at once, before they are decoded: enough for
/// all that a device does at once.
const MAX_TOGETHER: u64 = 4 << 20;

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
        let mut trace = ReadTrace::default();
        if !self.stats.sampled() {
            return self.get_in(tree, from, key, moment, &mut trace);
        }
        let started = self.clock.now();
        let found = self.get_in(tree, from, key, moment, &mut trace);
        let now = self.clock.now();
        self.stats.time_get(now.saturating_sub(started), &trace);
        self.placement.tick(self, now);
        found
    }

    /// The value of `key` at `moment`, by what `from` holds. What that costs is added to `trace`.
    pub(crate) fn get_in(
        &self,
        tree: &Tree,
        from: &Superversion,
        key: &[u8],
        moment: Moment,
        trace: &mut ReadTrace,
    ) -> Result<Option<Value>> {
        let seq = moment.seq();
        let below = |trace: &mut ReadTrace| search(from, key, seq, PromotionView::get, trace);
        // I1: along the search order versions of a key never get newer, so the first hit wins.
        // [`cached`](super::cached) says why the record cache may come in between.
        let (found, record) = match (from.find_in_memtables(key, seq), &self.caches.records) {
            (Some(record), _) => (Found::Memtable, Some(record)),
            (None, None) => below(trace)?,
            (None, Some(cache)) => {
                self.get_cached(cache, tree, from, key, moment, || below(trace))?
            }
        };
        self.stats.count_read(found, trace);
        let read = Read {
            tree,
            seen: from,
            seq,
            key,
            found,
            record: record.as_ref(),
            trace,
        };
        self.placement.on_read(self, &read);
        Ok(visible_value(record))
    }

    /// As [`Engine::get`], for a key that it has just been asked for: nothing is counted, logged,
    /// offered or filled a second time.
    pub(crate) fn get_again(&self, tree: &Tree, key: &[u8]) -> Result<Option<Value>> {
        let from = tree.peek();
        let seq = self.visible();
        let in_memory = from.find_in_memtables(key, seq);
        let record = match in_memory.or_else(|| self.peek_cached(tree, &from, key, seq)) {
            Some(record) => Some(record),
            None => {
                let mut trace = ReadTrace::default();
                search(&from, key, seq, PromotionView::peek, &mut trace)?.1
            }
        };
        Ok(visible_value(record))
    }

    /// The values of `keys` at `seq`, which the caller keeps registered. Level by level, the
    /// blocks that all keys need there are read together, each once.
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
            if let Some(record) = superversion.find_in_memtables(lookup.key.bytes(), seq) {
                lookup.finish(Found::Memtable, record);
            } else if let Some(record) =
                self.find_cached(tree, &superversion, lookup.key.bytes(), seq)
            {
                lookup.finish(Found::RecordCache, record);
            }
        }
        for place in superversion.below_memtables() {
            match place {
                Place::Tables(run) => self.multi_get_round(&mut lookups, seq, run)?,
                Place::Promoted(caches) => search_promoted(caches, &mut lookups, seq),
            }
        }
        let values = lookups.into_iter().map(|lookup| {
            let (found, record) = lookup
                .done
                .map_or((Found::Nowhere, None), |(f, r)| (f, Some(r)));
            self.stats.count_read(found, &lookup.trace);
            let read = Read {
                tree,
                seen: &superversion,
                seq,
                key: lookup.key.bytes(),
                found,
                record: record.as_ref(),
                trace: &lookup.trace,
            };
            self.placement.on_read(self, &read);
            visible_value(record)
        });
        let values = values.collect();
        let took = self.clock.now().saturating_sub(started);
        self.stats.multi_get_latency.record(took);
        Ok(values)
    }

    /// Looks every unfinished key up in the tables of `run`. Each block that they need is read
    /// once, the reads overlapped.
    fn multi_get_round(&self, lookups: &mut [Lookup<'_>], seq: SeqNo, run: Run<'_>) -> Result<()> {
        let mut waiting: Vec<Waiting<'_>> = Vec::new();
        for (index, lookup) in lookups.iter_mut().enumerate() {
            if lookup.done.is_some() {
                continue;
            }
            let Some(table) = run.find(lookup.key.bytes()) else {
                continue;
            };
            let opened = table.table()?;
            match opened.locate(&lookup.key, seq, &mut lookup.trace)? {
                Located::Absent => {}
                Located::Found(record) => lookup.finish(found_in(table), record),
                Located::Read(handle) => waiting.push(Waiting {
                    index,
                    table,
                    opened,
                    handle,
                }),
            }
        }
        waiting.sort_by_key(Waiting::block);
        let shared = waiting.chunk_by(|a, b| a.block() == b.block());
        let mut left: Vec<SharedBlock<'_, '_>> = shared.filter_map(SharedBlock::new).collect();
        for tier in &self.tiers {
            let is_here = |block: &SharedBlock<'_, '_>| block.source_on(tier.index).is_some();
            let (here, mut elsewhere): (Vec<_>, Vec<_>) = left.into_iter().partition(is_here);
            let mut here = &here[..];
            while !here.is_empty() {
                let count = read_together(here.iter().map(|block| block.handle.len));
                let (batch, rest) = here.split_at(count);
                point!(self.points, "multi_get.batch")?;
                // The sources are taken only here, and held no longer than these reads take: a copy
                // whose room is claimed stays for as long as it is held (I8).
                let mut reads = Vec::with_capacity(count);
                for block in batch {
                    match block.source_on(tier.index) {
                        Some(source) => reads.push((*block, source)),
                        // The copy has gone meanwhile; the table lies on a tier whose turn is yet
                        // to come.
                        None => elsewhere.push(*block),
                    }
                }
                let requests = reads.iter().map(|(block, source)| block.request(source));
                let requests: Vec<ReadRequest> = requests.collect();
                for ((block, source), read) in reads.iter().zip(tier.tables.read_many(&requests)) {
                    block.finish(source, read, lookups, seq)?;
                }
                here = rest;
            }
            left = elsewhere;
        }
        Ok(())
    }
}

/// A key of a round that needs a block which is not in memory.
struct Waiting<'v> {
    /// The index of its lookup.
    index: usize,
    table: &'v Arc<TableHandle>,
    opened: &'v Arc<Table>,
    handle: BlockHandle,
}

impl Waiting<'_> {
    fn block(&self) -> (FileId, u64) {
        (self.table.meta.id, self.handle.offset)
    }
}

/// A block, with all keys of a round that need it.
#[derive(Clone, Copy)]
struct SharedBlock<'a, 'v> {
    table: &'v Arc<TableHandle>,
    opened: &'v Arc<Table>,
    handle: BlockHandle,
    keys: &'a [Waiting<'v>],
}

impl<'a, 'v> SharedBlock<'a, 'v> {
    /// The block that all of `keys` wait for.
    fn new(keys: &'a [Waiting<'v>]) -> Option<Self> {
        let first = keys.first()?;
        Some(Self {
            table: first.table,
            opened: first.opened,
            handle: first.handle,
            keys,
        })
    }

    fn source_on(&self, tier: u8) -> Option<BlockSource> {
        self.opened.source_on(tier)
    }

    fn request(&self, source: &BlockSource) -> ReadRequest {
        self.opened.read_request(source, self.handle)
    }

    /// Searches what was `read` from `source` for each of the keys. The read counts for the first
    /// of them. For the others it counts as a block in the cache, which it would have been had they
    /// come one by one.
    fn finish(
        &self,
        source: &BlockSource,
        read: Result<IoBuf>,
        lookups: &mut [Lookup<'_>],
        seq: SeqNo,
    ) -> Result<()> {
        let [first, others @ ..] = self.keys else {
            return Ok(());
        };
        let table = self.opened;
        let trace = &mut lookups[first.index].trace;
        let payload = table.receive(self.handle, source, read, trace)?;
        for other in others {
            lookups[other.index].trace.cache_hits += 1;
        }
        for waiting in self.keys {
            let lookup = &mut lookups[waiting.index];
            let (key, trace) = (lookup.key.bytes(), &mut lookup.trace);
            let found = table.search(payload.clone(), self.handle, key, seq, trace)?;
            if let Some(record) = found {
                lookup.finish(found_in(self.table), record);
            }
        }
        Ok(())
    }
}

/// How many blocks of these lengths, from the first on, are read at once: at least one.
fn read_together(lens: impl Iterator<Item = u32>) -> usize {
    let mut bytes = 0;
    let fits = |len: &u32| {
        bytes += u64::from(*len);
        bytes <= MAX_TOGETHER
    };
    lens.take_while(fits).count().max(1)
}

/// A key of a `multi_get` on its way down the levels.
struct Lookup<'a> {
    key: HashedKey<'a>,
    trace: ReadTrace,
    done: Option<(Found, Record)>,
}

impl<'a> Lookup<'a> {
    fn new(key: &'a [u8]) -> Self {
        Self {
            key: HashedKey::new(key),
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

fn search_promoted(caches: &PromotionView, lookups: &mut [Lookup<'_>], seq: SeqNo) {
    for lookup in lookups.iter_mut().filter(|lookup| lookup.done.is_none()) {
        if let Some(record) = caches.get(lookup.key.bytes(), seq) {
            lookup.finish(Found::PromotionCache, record);
        }
    }
}

fn visible_value(record: Option<Record>) -> Option<Value> {
    record.filter(|r| r.kind == Kind::Put).map(|r| r.value)
}

/// The record of `key` below the memtables: what is found first is newest (I1). `promoted` looks at
/// what waits between levels.
fn search(
    from: &Superversion,
    key: &[u8],
    seq: SeqNo,
    promoted: impl Fn(&PromotionView, &[u8], SeqNo) -> Option<Record>,
    trace: &mut ReadTrace,
) -> Result<(Found, Option<Record>)> {
    let hashed = HashedKey::new(key);
    for place in from.below_memtables() {
        match place {
            Place::Tables(run) => {
                let Some(table) = run.find(key) else { continue };
                if let Some(record) = table.table()?.get(&hashed, seq, trace)? {
                    return Ok((found_in(table), Some(record)));
                }
            }
            Place::Promoted(caches) => {
                if let Some(record) = promoted(caches, key, seq) {
                    return Ok((Found::PromotionCache, Some(record)));
                }
            }
        }
    }
    Ok((Found::Nowhere, None))
}
