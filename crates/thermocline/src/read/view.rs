//! What a reader pins, and the order in which it is searched: here and nowhere else (I1).
//!
//! The first version of a key that is met in this order is the newest:
//!
//! 1. memtables: the active one, then the frozen ones, newest first;
//! 2. tables down to level f: of L0 one by one, newest first, then level by level;
//! 3. the promotion caches: no older than what lies below them (I6);
//! 4. the levels below f.

use std::iter::once;

use crate::key::SeqNo;
use crate::memtable::Memtable;
use crate::placement::PromotionCache;
use crate::record::Record;
use crate::sync::Arc;
use crate::version::{Level, MAX_LEVELS, TableHandle, Version};

/// The state of a keyspace at one moment. A reader that holds it sees every write that was
/// published before it took it, wherever that write has moved since.
#[derive(Debug, Clone)]
pub(crate) struct Superversion {
    pub(crate) active: Arc<Memtable>,
    /// Frozen memtables, newest first (I1).
    pub(crate) immutables: Vec<Arc<Memtable>>,
    pub(crate) version: Arc<Version>,
    /// What waits between level f and what is below.
    pub(crate) waiting: PromotionView,
    /// *f*: the last level of the fast tier.
    last_fast_level: usize,
    /// No record below level f has a higher sequence number.
    pub(crate) newest_below: SeqNo,
    /// Whether there are tables. If there are none, the record cache knows nothing: what it may
    /// still hold is of a keyspace that was dropped.
    pub(crate) has_tables: bool,
    /// Whether readers neither ask the record cache nor fill it: an ingestion is about to make its
    /// entries old.
    pub(crate) shuns_record_cache: bool,
}

/// A place of the search order below the memtables.
pub(crate) enum Place<'a> {
    Tables(Run<'a>),
    Promoted(&'a PromotionView),
}

/// Tables of which at most one may hold a given key.
#[derive(Clone, Copy)]
pub(crate) enum Run<'a> {
    /// One of L0.
    Table(&'a Arc<TableHandle>),
    /// All of a level below.
    Level(&'a Level),
}

impl<'a> Run<'a> {
    /// The table that may hold `key`.
    #[inline]
    pub(crate) fn find(self, key: &[u8]) -> Option<&'a Arc<TableHandle>> {
        match self {
            Run::Table(table) => table.meta.range.contains(key).then_some(table),
            Run::Level(level) => level.find(key),
        }
    }
}

impl Superversion {
    /// The state of a keyspace with the tables of `version`, and nothing in memory.
    pub(crate) fn new(version: Version, last_fast_level: u8, waiting: PromotionView) -> Self {
        let empty = Self {
            active: Arc::default(),
            immutables: Vec::new(),
            version: Arc::default(),
            waiting: waiting.clone(),
            last_fast_level: usize::from(last_fast_level),
            newest_below: 0,
            has_tables: false,
            shuns_record_cache: false,
        };
        empty.with(version, Vec::new(), waiting)
    }

    /// This state with other tables, frozen memtables and promotion caches.
    pub(crate) fn with(
        &self,
        version: Version,
        immutables: Vec<Arc<Memtable>>,
        waiting: PromotionView,
    ) -> Self {
        Self {
            active: Arc::clone(&self.active),
            immutables,
            newest_below: newest_below(&version, self.last_fast_level),
            has_tables: version.last_level().is_some(),
            shuns_record_cache: self.shuns_record_cache,
            version: Arc::new(version),
            waiting,
            last_fast_level: self.last_fast_level,
        }
    }

    /// This state with the active memtable frozen, and an empty one in its place.
    pub(crate) fn with_active_frozen(&self) -> Self {
        Self {
            active: Arc::default(),
            immutables: self.memtables().cloned().collect(),
            ..self.clone()
        }
    }

    /// This state with other promotion caches.
    pub(crate) fn with_view(&self, waiting: PromotionView) -> Self {
        Self {
            waiting,
            ..self.clone()
        }
    }

    /// This state for readers that use the record cache, or that do not.
    pub(crate) fn with_record_cache(&self, uses: bool) -> Self {
        Self {
            shuns_record_cache: !uses,
            ..self.clone()
        }
    }

    /// The memtables, in search order.
    #[inline]
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        once(&self.active).chain(&self.immutables)
    }

    /// What lies below the memtables, in search order.
    #[inline]
    pub(crate) fn below_memtables(&self) -> impl Iterator<Item = Place<'_>> {
        let down_to_f = self.down_to_f().map(Place::Tables);
        let promoted = once(Place::Promoted(&self.waiting));
        down_to_f
            .chain(promoted)
            .chain(self.below_f().map(Place::Tables))
    }

    /// All tables, in search order.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        self.down_to_f().chain(self.below_f())
    }

    /// Tables down to level f, in search order: what lies above the promotion caches.
    #[inline]
    pub(crate) fn down_to_f(&self) -> impl Iterator<Item = Run<'_>> {
        let [l0, below @ ..] = &self.version.levels;
        let l0 = l0.tables.iter().map(Run::Table);
        l0.chain(below.iter().take(self.last_fast_level).map(Run::Level))
    }

    #[inline]
    fn below_f(&self) -> impl Iterator<Item = Run<'_>> {
        let below = self.version.levels.iter().skip(self.last_fast_level + 1);
        below.map(Run::Level)
    }

    /// The newest version of `key` at or before `seq` in a memtable.
    #[inline]
    pub(crate) fn find_in_memtables(&self, key: &[u8], seq: SeqNo) -> Option<Record> {
        self.memtables().find_map(|memtable| memtable.get(key, seq))
    }
}

/// The promotion caches of a keyspace as a reader sees them: between level f and what lies below.
#[derive(Debug, Clone)]
pub(crate) struct PromotionView {
    /// The mutable one first. What lies behind another one is no newer (I6).
    pub(crate) caches: Vec<Arc<PromotionCache>>,
    /// Crossings installed when the view was published.
    pub(crate) crossings: u64,
}

impl PromotionView {
    /// The record of `key` that a reader at `seq` may see, of the newest cache that has it.
    pub(crate) fn get(&self, key: &[u8], seq: SeqNo) -> Option<Record> {
        self.caches.iter().find_map(|cache| cache.get(key, seq))
    }

    /// As [`PromotionView::get`], for a look that is no read of its own.
    pub(crate) fn peek(&self, key: &[u8], seq: SeqNo) -> Option<Record> {
        self.caches.iter().find_map(|cache| cache.peek(key, seq))
    }
}

/// The highest sequence number below level `f` of `version`; 0 when nothing lies there.
fn newest_below(version: &Version, f: usize) -> SeqNo {
    let below = &version.levels[MAX_LEVELS.min(f + 1)..];
    let tables = below.iter().flat_map(|level| level.tables.iter());
    tables.map(|table| table.meta.max_seq).max().unwrap_or(0)
}
