//! The record cache in the read path: who may use an entry, who may make one, and when it has to
//! go.
//!
//! # What holds
//!
//! An entry stands for the newest version of its key *below the memtables*. Write N(S) for the
//! newest version of a key, deletes included, in the tables of a superversion S. N(S) never gets
//! older from one superversion to the next: flushes add versions, and compactions and promotions
//! drop or bring up only what is shadowed, or a delete together with all that it shadows. The
//! cache keeps this:
//!
//! > A reader that has pinned S and finds an entry e has e ≥ N(S) (I1).
//!
//! Both uses follow from that. A read at the *latest* moment has seen that the memtables of S hold
//! no version that it may see. So what was written before it began is in tables, and e is not
//! older. And e was published before the read took its sequence number, or it is a miss. So e was
//! the newest version at some time during the read.
//!
//! A read of a *snapshot* s wants the newest version ≤ s. S holds all versions ≤ s, and those in
//! memtables were ruled out. An entry > s is a miss, and the search goes on below. An entry e ≤ s
//! is a version that the snapshot sees, and not older than N(S). So e = N(S), which is the answer.
//!
//! # Filling
//!
//! Only a read at the latest moment fills. Its sequence number is taken after S was pinned, so it
//! sees every version in the tables of S and in S's frozen memtables (I10), and what it found
//! below the memtables is N(S). It then
//!
//! 1. *reserves* a place, with the record in it, which is *pending*: nobody finds it yet,
//! 2. *checks* that S is still the present superversion,
//! 3. *completes* the place, unless it was taken out.
//!
//! A flush of memtable M has three steps. M is frozen, by a superversion S_f in which it is
//! immutable. For every key of M the cache is *refreshed*: if M's newest version m is a put and
//! the cache holds an older record, m takes its place; all else there is of the key goes, pending
//! places too. S_p, without M and with its table, is *published*. What may go wrong is that a
//! reader of S_p looks and finds an entry e < N(S_p). Say M holds the key.
//!
//! - The check came before S_f was published. Then the place was reserved before the flush looked.
//!   The flush finds it pending, and the completion fails; or it finds the record, and replaces or
//!   removes it. A place that another fill has reserved since is another one.
//! - The check came after S_f. Then it succeeds only for S = S_f or a later superversion, whose
//!   reader has searched M, or M's table. If it found the key in M, it was through before it came
//!   here. If it searched the table, it found N(S_p) or newer.
//!
//! That m is found before S_p is published does no harm. Memtables are flushed in the order of
//! their freezing, so m = N(S_p) ≥ N(S) for every S up to S_p, and more is not asked of an entry.
//! A reader whose S has M, and who may see m, has found m or a newer version in a memtable. If S
//! is older than M, m was written after S was pinned: a read of the present may return it, and for
//! a snapshot it is too new.
//!
//! So the refreshing may be done at any time between freeze and publication, without any lock.
//! After the publication would be too late: a reader of S_p would find what M supersedes. It does
//! no harm that the check is not part of the exchange, as the first case shows. What matters is
//! that the place is seen before the check, and two fences see to that (`cache/record_cache`). The
//! place need not be there while the tables are read, so a key that is not found costs no place.
//!
//! An ingestion brings tables without a memtable, so there is no S_f whose readers would find the
//! new versions. In its place comes a superversion S_i whose readers neither ask the cache nor fill
//! it. Then all of the keyspace is taken out, and then the tables are published. A fill whose check
//! came before S_i has its place before the cache is gone through, and a later check fails.
//!
//! Compactions, crossings and promotions by flush change the superversion but not N, so they
//! invalidate nothing. A fill that they overtake is refused without need, and a later read makes
//! it. A dropped keyspace gets an empty superversion, whose readers do not ask the cache, and then
//! its entries go. Identities of keyspaces are not used again. Iterators do not ask the cache. The
//! cache is in memory only: after a crash there is nothing to recover, and replayed records are in
//! memtables.
//!
//! Absent keys have no entries: filters answer for them without a block.
//!
//! # Hotness
//!
//! A record that the cache answers is read all the same. Placement has to know of it, or the
//! hottest records would lose their place on the fast tier. `cache/record_cache/accesses.rs`
//! gathers hits by time slices; here they are logged.

use crate::cache::{RecordCache, Sought};
use crate::engine::{Engine, Found, Tree};
use crate::error::Result;
use crate::key::{Kind, SeqNo};
use crate::memtable::Memtable;
use crate::metrics::{HitMetrics, RecordCacheMetrics};
use crate::points::point;
use crate::read::Superversion;
use crate::record::Record;

/// The moment that a read is of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Moment {
    /// Now: this sequence number was taken after the superversion.
    Latest(SeqNo),
    /// This sequence number, which may be an old one.
    Past(SeqNo),
}

impl Moment {
    pub(crate) fn seq(self) -> SeqNo {
        match self {
            Moment::Latest(seq) | Moment::Past(seq) => seq,
        }
    }
}

impl Engine {
    /// The record of `key`, which no memtable of `from` holds at `moment`. It comes from the cache,
    /// or else from `below`; what that finds is taken into the cache if it is asked for often.
    #[inline]
    pub(crate) fn get_cached(
        &self,
        cache: &RecordCache,
        tree: &Tree,
        from: &Superversion,
        key: &[u8],
        moment: Moment,
        below: impl FnOnce() -> Result<(Found, Option<Record>)>,
    ) -> Result<(Found, Option<Record>)> {
        let sought = cache.sought(tree.id, key);
        if let Some(record) = self.look_up(cache, from, &sought, moment.seq()) {
            return Ok((Found::RecordCache, Some(record)));
        }
        // Asked whatever `below` finds: the door counts what is missed.
        let is_wanted = matches!(moment, Moment::Latest(_)) && cache.is_wanted(&sought);
        let (found, record) = below()?;
        let fills = is_wanted && !from.shuns_record_cache;
        if let Some(record) = record.as_ref().filter(|r| fills && r.kind == Kind::Put) {
            self.fill_cache(cache, tree, from, &sought, record);
        }
        Ok((found, record))
    }

    /// The record of `key` in the cache, for a reader at `seq` that found none in the memtables of
    /// `from`.
    pub(crate) fn find_cached(
        &self,
        tree: &Tree,
        from: &Superversion,
        key: &[u8],
        seq: SeqNo,
    ) -> Option<Record> {
        let cache = self.caches.records.as_ref()?;
        self.look_up(cache, from, &cache.sought(tree.id, key), seq)
    }

    /// As [`Engine::find_cached`], for a look that is no read of its own: its access is not
    /// counted.
    pub(crate) fn peek_cached(
        &self,
        tree: &Tree,
        from: &Superversion,
        key: &[u8],
        seq: SeqNo,
    ) -> Option<Record> {
        let is_asked = from.has_tables && !from.shuns_record_cache;
        let cache = self.caches.records.as_ref().filter(|_| is_asked)?;
        let hit = cache.get(&cache.sought(tree.id, key), seq, || None)?;
        Some(hit.record)
    }

    #[inline]
    fn look_up(
        &self,
        cache: &RecordCache,
        from: &Superversion,
        sought: &Sought<'_>,
        seq: SeqNo,
    ) -> Option<Record> {
        if !from.has_tables || from.shuns_record_cache {
            return None;
        }
        let hit = cache.get(sought, seq, || self.slice())?;
        let value_len = hit.record.value.len();
        self.placement
            .on_cached_reads(self, sought.keyspace, sought.key, value_len, hit.to_log);
        Some(hit.record)
    }

    fn fill_cache(
        &self,
        cache: &RecordCache,
        tree: &Tree,
        from: &Superversion,
        sought: &Sought<'_>,
        record: &Record,
    ) {
        // A point that fails means nothing here: a read does not fail for lack of a cache.
        let _: Result<()> = point!(self.points, "record_cache.found");
        let is_current = || {
            let _: Result<()> = point!(self.points, "record_cache.reserved");
            let is_current = tree.is_current(from);
            let _: Result<()> = point!(self.points, "record_cache.checked");
            is_current
        };
        cache.fill(
            sought,
            record,
            self.slice(),
            is_current,
            &mut |keyspace, key, value_len, accesses| {
                self.placement
                    .on_cached_reads(self, keyspace, key, value_len, accesses);
            },
        );
    }

    /// Has the cache hold no older version of a key than `memtable` does, which is frozen, before
    /// its table is published. A record whose newest version there is a put is refreshed; what else
    /// the cache has of these keys goes.
    pub(crate) fn refresh_cached(&self, tree: &Tree, memtable: &Memtable) {
        let Some(cache) = &self.caches.records else {
            return;
        };
        memtable.for_each_newest(|newest, value| {
            let sought = cache.sought(tree.id, newest.user_key);
            let left = match newest.kind {
                Kind::Put => cache.refresh(&sought, newest.seq, value, || {
                    let _: Result<()> = point!(self.points, "record_cache.refreshing");
                }),
                _ => cache.invalidate(&sought),
            };
            if let Some((value_len, accesses)) = left {
                self.placement.on_cached_reads(
                    self,
                    sought.keyspace,
                    sought.key,
                    value_len,
                    accesses,
                );
            }
        });
        cache.hand_over();
    }

    /// The time by which reads are gathered, if placement is to hear of them.
    #[inline]
    fn slice(&self) -> Option<u64> {
        self.placement.slice()
    }

    /// What the cache counts, if there is one.
    pub(crate) fn record_cache_metrics(&self, hits: &HitMetrics) -> Option<RecordCacheMetrics> {
        let cache = self.caches.records.as_ref()?;
        Some(RecordCacheMetrics {
            hits: hits.record_cache,
            misses: hits.gets - hits.memtable - hits.record_cache,
            ..cache.metrics()
        })
    }
}

#[cfg(test)]
mod tests;
