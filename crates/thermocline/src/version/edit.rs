//! What one manifest record changes.

use std::fmt;

use bytes::Bytes;

use crate::ids::{FileId, KeyspaceId};
use crate::key::SeqNo;
use crate::options::Target;
use crate::table::{Heat, TableMeta};
use crate::wal::FoundLog;

/// A keyspace as it was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyspaceMeta {
    pub(crate) id: KeyspaceId,
    pub(crate) name: Bytes,
    /// *f*: the last level that belongs to the fast tier.
    pub(crate) last_fast_level: u8,
}

/// Who decides where a store's records live, as the store's manifest remembers it. Whatever has to
/// know this without being told (a tool, the next opening) goes by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacedBy {
    /// Their level ([`crate::Placement::ByLevel`]).
    Level,
    /// Their hotness ([`crate::Placement::HotRap`]); the access records have been written.
    Hotness,
    /// The heat of the table they are in ([`crate::Placement::ByTable`]).
    Tables,
}

impl fmt::Display for PlacedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PlacedBy::Level => "level",
            PlacedBy::Hotness => "hotness",
            PlacedBy::Tables => "the heat of their tables",
        })
    }
}

/// What a keyspace's compactions learned, in parts of [`Learned::WHOLE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Learned {
    /// The part of their input from Lf that crossings brought down.
    pub(crate) cold: u16,
    /// Of the input of jobs from the level above: the part that Lf had no version of, and that was
    /// not hot.
    pub(crate) fresh: u16,
}

impl Learned {
    pub(crate) const WHOLE: u16 = 10_000;
}

impl Default for Learned {
    /// Before any job, nothing is hot, and nothing is known to be fresh.
    fn default() -> Self {
        Self {
            cold: Self::WHOLE,
            fresh: 0,
        }
    }
}

/// A target, and the prices that it was set with.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SetTarget {
    pub(crate) target: Target,
    /// Of each tier, in dollars per GB and month.
    pub(crate) prices: Vec<f64>,
}

/// No number in it is NaN: neither a caller nor a manifest can set one.
impl Eq for SetTarget {}

/// One atomic change of the store's shape.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct VersionEdit {
    pub(crate) created: Vec<KeyspaceMeta>,
    pub(crate) dropped: Vec<KeyspaceId>,
    /// Tables that are no longer part of a keyspace; applied before `added`.
    pub(crate) removed: Vec<(KeyspaceId, FileId)>,
    pub(crate) added: Vec<TableMeta>,
    /// Every record of the keyspace up to this sequence number is in tables (I5).
    pub(crate) flushed_through: Vec<(KeyspaceId, SeqNo)>,
    /// What a keyspace's compactions learned.
    pub(crate) learned: Vec<(KeyspaceId, Learned)>,
    /// How hot tables are. Of tables that are gone it says nothing.
    pub(crate) heats: Vec<(FileId, Heat)>,
    /// Numbers below this one may be in use by files.
    pub(crate) next_file: Option<FileId>,
    /// The log was synced through this sequence number, and may be gone up to it where no keyspace
    /// needs it. It never falls, not even when the keyspace whose flush raised it is dropped.
    pub(crate) log_floor: Option<SeqNo>,
    /// Log segments with lower numbers are obsolete. Most of them are gone. If a removal was lost
    /// in a failed sync, the segment may come back after a loss of power (I9).
    pub(crate) log_start: Option<FileId>,
    /// The part of the log that the opening that began the manifest took over.
    pub(crate) found_log: Option<FoundLog>,
    /// No record of the store has a higher number than this or than those in the log.
    pub(crate) last_seq: Option<SeqNo>,
    /// How records were placed when the manifest was begun. By hotness only if RALT's state was
    /// durable by then: if the state is missing later, it was lost.
    pub(crate) placed_by: Option<PlacedBy>,
    /// What the store is to cost from here on, or how fast it is to be.
    pub(crate) target: Option<SetTarget>,
    /// In the first edit of a manifest: how many edits, including itself, the manifest had when it
    /// was put in force. None of them may be missing.
    pub(crate) snapshot: Option<u64>,
}

impl VersionEdit {
    /// Whether it is the edit that a clean close appends last.
    pub(crate) fn is_closing(&self) -> bool {
        let learned = Self {
            learned: self.learned.clone(),
            heats: self.heats.clone(),
            ..Self::default()
        };
        !self.learned.is_empty() && *self == learned
    }
}
