//! What a reader pins: memtables, version and promotion caches, consistent with each other.

use crate::key::SeqNo;
use crate::memtable::Memtable;
use crate::promotion::PromotionCache;
use crate::record::Record;
use crate::sync::Arc;
use crate::version::{MAX_LEVELS, Version};

/// The state of a keyspace at one moment. A reader that holds it sees every write that was
/// published before it took it, wherever that write has moved since.
#[derive(Debug, Clone)]
pub(crate) struct Superversion {
    pub(crate) active: Arc<Memtable>,
    /// Frozen memtables, newest first (I1).
    pub(crate) immutables: Vec<Arc<Memtable>>,
    pub(crate) version: Arc<Version>,
    pub(crate) promotion: PromotionView,
    /// No record below level f has a higher sequence number.
    pub(crate) newest_below: SeqNo,
    /// Whether there are tables. Where there are none the record cache knows nothing: what it still may
    /// hold is of a keyspace that was dropped.
    pub(crate) has_tables: bool,
}

/// The promotion caches of a keyspace as a reader sees them: between level f and what lies below.
#[derive(Debug, Clone)]
pub(crate) struct PromotionView {
    /// The mutable one first; what it lies before is no newer (I6).
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
pub(crate) fn newest_below(version: &Version, f: u8) -> SeqNo {
    let below = &version.levels[MAX_LEVELS.min(usize::from(f) + 1)..];
    let tables = below.iter().flat_map(|level| level.tables.iter());
    tables.map(|table| table.meta.max_seq).max().unwrap_or(0)
}
