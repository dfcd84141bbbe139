//! Iteration over a range of user keys, from both ends.

use std::ops::Bound;

use bytes::Bytes;

use super::passed::Passing;
use crate::engine::{Engine, Tree};
use crate::error::{Error, Result};
use crate::ids::KeyspaceId;
use crate::iter::InternalIterator;
use crate::key::{InternalKey, Kind, MAX_SEQ, SeqNo};
use crate::memtable::MemtableIter;
use crate::merge::MergingIter;
use crate::metrics::Purpose;
use crate::read::{Run, Superversion};
use crate::sync::Arc;
use crate::table::ScanOptions;
use crate::value::Value;
use crate::version::{LevelIter, TableHandle};

/// Most bytes read ahead for a scan that goes on.
const READAHEAD: usize = 256 << 10;

/// The records of a range of keys, as they were when the iterator was made.
///
/// Holding it keeps the files and memtables alive that it reads, and old versions of records.
/// [`crate::metrics::TierMetrics::pinned_obsolete_bytes`] and
/// [`crate::metrics::MemoryMetrics::pinned_memtables`] tell what that costs.
pub struct Range {
    pub(crate) engine: Arc<Engine>,
    keyspace: KeyspaceId,
    superversion: Arc<Superversion>,
    pub(crate) seq: SeqNo,
    bounds: Bounds,
    fills_cache: bool,
    front: Option<Front>,
    back: Option<Back>,
    /// Why there is nothing to iterate over.
    refused: Option<Error>,
    /// Set once the ends have met, or after an error.
    finished: bool,
}

#[derive(Debug, Clone)]
struct Bounds {
    lower: Bound<Bytes>,
    upper: Bound<Bytes>,
}

impl Bounds {
    fn is_below(&self, key: &[u8]) -> bool {
        match &self.lower {
            Bound::Included(lower) => key < &lower[..],
            Bound::Excluded(lower) => key <= &lower[..],
            Bound::Unbounded => false,
        }
    }

    fn is_above(&self, key: &[u8]) -> bool {
        match &self.upper {
            Bound::Included(upper) => key > &upper[..],
            Bound::Excluded(upper) => key >= &upper[..],
            Bound::Unbounded => false,
        }
    }

    /// Whether a table of the range `first..=last` may hold a key within the bounds.
    fn meets(&self, table: &TableHandle) -> bool {
        let range = &table.meta.range;
        !self.is_below(&range.last) && !self.is_above(&range.first)
    }

    /// Which of `tables`, of a level below L0, may hold a key within the bounds. They are
    /// neighbours.
    fn met(&self, tables: &[Arc<TableHandle>]) -> std::ops::Range<usize> {
        let first = tables.partition_point(|table| self.is_below(&table.meta.range.last));
        let met = tables[first..].partition_point(|table| !self.is_above(&table.meta.range.first));
        first..first + met
    }
}

impl Range {
    pub(crate) fn new(
        engine: Arc<Engine>,
        tree: &Tree,
        bounds: (Bound<Bytes>, Bound<Bytes>),
        at: Option<SeqNo>,
    ) -> Self {
        // Registered before the superversion is pinned: compactions installed in between
        // keep what this reader sees.
        let seq = engine
            .snapshots
            .register(|| at.unwrap_or_else(|| engine.visible()));
        Self {
            superversion: tree.pin(),
            keyspace: tree.id,
            engine,
            seq,
            bounds: Bounds {
                lower: bounds.0,
                upper: bounds.1,
            },
            fills_cache: true,
            front: None,
            back: None,
            refused: None,
            finished: false,
        }
    }

    /// Whether blocks that are read from a disk stay in the block cache; by default they do. With
    /// `false`, a scan of much that is not wanted again soon, for an export say, leaves the cache
    /// to other readers. It still uses what is cached already. The setting counts for an end that
    /// was not begun yet.
    ///
    /// ```
    /// # fn main() -> thermocline::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a temporary directory");
    /// # let db = thermocline::Db::open(thermocline::Options::one_tier(dir.path()))?;
    /// # db.put("ash", "tree")?;
    /// for record in db.iter().fill_cache(false) {
    ///     let (key, value) = record?;
    ///     # let _ = (key, value);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "the iterator is what comes back"]
    pub fn fill_cache(mut self, fill: bool) -> Self {
        self.fills_cache = fill;
        self
    }

    /// Makes the iterator return `error`, and nothing else.
    pub(crate) fn refuse(&mut self, error: Error) {
        self.refused = Some(error);
    }

    /// A cursor over everything that may hold keys of the range.
    fn cursor(&self) -> Result<MergingIter> {
        let how = ScanOptions {
            purpose: Purpose::UserRead,
            readahead: READAHEAD,
            fill_cache: self.fills_cache,
            to_end: false,
        };
        let mut children: Vec<Box<dyn InternalIterator>> = Vec::new();
        let memtables = self.superversion.memtables();
        for memtable in memtables.filter(|memtable| !memtable.is_empty()) {
            children.push(Box::new(MemtableIter::new(Arc::clone(memtable))));
        }
        // What waits beside the levels is left out: it lies below them, too (I6).
        for run in self.superversion.runs() {
            // A table outside the bounds is not even opened: its damage is no concern of this scan.
            match run {
                Run::Table(table) if self.bounds.meets(table) => {
                    children.push(Box::new(table.table()?.iter(how)));
                }
                Run::Table(_) => {}
                Run::Level(level) => {
                    let met = self.bounds.met(&level.tables);
                    if !met.is_empty() {
                        let tables = Arc::clone(&level.tables);
                        children.push(Box::new(LevelIter::within(tables, met, how)));
                    }
                }
            }
        }
        Ok(MergingIter::new(children))
    }

    fn take_next(&mut self) -> Result<Option<(Bytes, Value)>> {
        let mut front = match self.front.take() {
            Some(front) => front,
            None => {
                let front = self.open(Front::new)?;
                self.count_looks(&front.cursor);
                front
            }
        };
        let record = front.next(self.seq, &self.bounds)?;
        let last = front.last.as_deref().unwrap_or_default();
        front
            .passing
            .end(&self.engine, self.keyspace, &self.superversion, last);
        self.front = Some(front);
        let met = |key: &[u8]| self.back.as_ref().is_some_and(|back| back.has_given(key));
        Ok(record.filter(|(key, _)| !met(key)))
    }

    fn take_next_back(&mut self) -> Result<Option<(Bytes, Value)>> {
        let mut back = match self.back.take() {
            Some(back) => back,
            None => {
                let back = self.open(Back::new)?;
                self.count_looks(&back.cursor);
                back
            }
        };
        let record = back.next(self.seq, &self.bounds)?;
        let last = back.last.as_deref().unwrap_or_default();
        back.passing
            .end(&self.engine, self.keyspace, &self.superversion, last);
        self.back = Some(back);
        let met = |key: &[u8]| {
            self.front
                .as_ref()
                .is_some_and(|front| front.has_given(key))
        };
        Ok(record.filter(|(key, _)| !met(key)))
    }

    fn open<T>(&mut self, new: impl FnOnce(MergingIter, &Bounds) -> Result<T>) -> Result<T> {
        if let Some(error) = self.refused.take() {
            return Err(error);
        }
        // What a closed store has open is out of date as soon as others open it.
        self.engine.check_open()?;
        let started = self.engine.clock.now();
        let opened = new(self.cursor()?, &self.bounds);
        let took = self.engine.clock.now().saturating_sub(started);
        self.engine.stats.seek_latency.record(took);
        opened
    }

    /// Counts the looks that it has taken to place `cursor`.
    fn count_looks(&self, cursor: &MergingIter) {
        if cursor.valid() {
            let key = cursor.key().user_key;
            self.engine
                .count_looks(self.keyspace, &self.superversion, key);
        }
    }

    fn settle(&mut self, record: Result<Option<(Bytes, Value)>>) -> Option<Result<(Bytes, Value)>> {
        self.finished = !matches!(record, Ok(Some(_)));
        record.transpose()
    }
}

impl Iterator for Range {
    type Item = Result<(Bytes, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let record = self.take_next();
        self.settle(record)
    }
}

impl DoubleEndedIterator for Range {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let record = self.take_next_back();
        self.settle(record)
    }
}

impl std::iter::FusedIterator for Range {}

impl Drop for Range {
    fn drop(&mut self) {
        self.engine.snapshots.release(self.seq);
    }
}

/// The end that moves forward.
struct Front {
    cursor: MergingIter,
    /// The key looked at last, given or found deleted.
    last: Option<Vec<u8>>,
    /// Whether the cursor stands on the record that was given last.
    is_on_given: bool,
    passing: Passing,
}

impl Front {
    fn new(mut cursor: MergingIter, bounds: &Bounds) -> Result<Self> {
        match &bounds.lower {
            Bound::Included(key) | Bound::Excluded(key) => {
                cursor.seek(InternalKey::seek_to(key, MAX_SEQ))?;
            }
            Bound::Unbounded => cursor.seek_to_first()?,
        }
        Ok(Self {
            cursor,
            last: None,
            is_on_given: false,
            passing: Passing::default(),
        })
    }

    fn has_given(&self, key: &[u8]) -> bool {
        self.last.as_ref().is_some_and(|last| key <= &last[..])
    }

    /// The next key's newest version at or before `seq`.
    fn next(&mut self, seq: SeqNo, bounds: &Bounds) -> Result<Option<(Bytes, Value)>> {
        if std::mem::take(&mut self.is_on_given) {
            self.cursor.next()?;
        }
        while self.cursor.valid() {
            let key = self.cursor.key();
            if bounds.is_above(key.user_key) {
                break;
            }
            let older = self.last.as_deref() == Some(key.user_key);
            if older || key.seq > seq || bounds.is_below(key.user_key) {
                self.passing.count(&self.cursor);
                self.cursor.next()?;
                continue;
            }
            let last = self.last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key.user_key);
            let record = (key.kind == Kind::Put).then(|| {
                let value = Value::new(self.cursor.value_bytes());
                (Bytes::copy_from_slice(key.user_key), value)
            });
            if record.is_some() {
                // The cursor moves on only when more is wanted. The next record may be in another
                // block: its damage is not this record's, and perhaps nobody asks for it.
                self.is_on_given = true;
                return Ok(record);
            }
            self.passing.count(&self.cursor);
            self.cursor.next()?;
        }
        Ok(None)
    }
}

/// The end that moves backward.
struct Back {
    cursor: MergingIter,
    last: Option<Bytes>,
    passing: Passing,
}

impl Back {
    fn new(mut cursor: MergingIter, bounds: &Bounds) -> Result<Self> {
        match &bounds.upper {
            // Behind the oldest version of the key.
            Bound::Included(key) => cursor.seek_for_prev(InternalKey::new(key, 0, Kind::Delete))?,
            // Before its newest.
            Bound::Excluded(key) => cursor.seek_for_prev(InternalKey::seek_to(key, MAX_SEQ))?,
            Bound::Unbounded => cursor.seek_to_last()?,
        }
        Ok(Self {
            cursor,
            last: None,
            passing: Passing::default(),
        })
    }

    fn has_given(&self, key: &[u8]) -> bool {
        self.last.as_ref().is_some_and(|last| key >= &last[..])
    }

    /// The previous key's newest version at or before `seq`. Going backward, the versions of a
    /// key come oldest first, so the last visible one counts.
    fn next(&mut self, seq: SeqNo, bounds: &Bounds) -> Result<Option<(Bytes, Value)>> {
        while self.cursor.valid() {
            let user_key = self.cursor.key().user_key;
            if bounds.is_below(user_key) {
                break;
            }
            if bounds.is_above(user_key) {
                self.cursor.prev()?;
                continue;
            }
            let user_key = Bytes::copy_from_slice(user_key);
            let newest = self.newest_version(&user_key, seq)?;
            self.last = Some(user_key.clone());
            if let Some(value) = newest {
                self.passing.give_one();
                return Ok(Some((user_key, value)));
            }
        }
        Ok(None)
    }

    /// Consumes every version of `user_key`.
    fn newest_version(&mut self, user_key: &[u8], seq: SeqNo) -> Result<Option<Value>> {
        let mut newest = None;
        while self.cursor.valid() {
            let key = self.cursor.key();
            if key.user_key != user_key {
                break;
            }
            self.passing.count(&self.cursor);
            if key.seq <= seq {
                let put = key.kind == Kind::Put;
                newest = put.then(|| Value::new(self.cursor.value_bytes()));
            }
            self.cursor.prev()?;
        }
        Ok(newest)
    }
}

/// The first key behind every key that starts with `prefix`; none when there is no such key.
pub(crate) fn prefix_end(prefix: &[u8]) -> Bound<Bytes> {
    let Some(last) = prefix.iter().rposition(|byte| *byte < 0xff) else {
        return Bound::Unbounded;
    };
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Bound::Excluded(Bytes::from(end))
}

/// Owned bounds of any range of byte-like keys.
pub(crate) fn owned_bounds<K: AsRef<[u8]>>(
    range: impl std::ops::RangeBounds<K>,
) -> (Bound<Bytes>, Bound<Bytes>) {
    let owned = |bound: Bound<&K>| bound.map(|key| Bytes::copy_from_slice(key.as_ref()));
    (owned(range.start_bound()), owned(range.end_bound()))
}

#[cfg(test)]
mod tests;
