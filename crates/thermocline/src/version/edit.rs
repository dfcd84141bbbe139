//! What one manifest record changes.

use std::fmt;

use bytes::Bytes;

use crate::key::{KeyRange, SeqNo};

/// Number of a keyspace; 0 is the default one.
pub(crate) type KeyspaceId = u32;

/// Number of a file, unique across all tiers of a store and never used twice (I4).
pub(crate) type FileId = u64;

/// Largest number of a file or an epoch: more than any store gets to use. A file whose name has a
/// larger one is not the store's; counting on from it would come to an end.
pub(crate) const MAX_NUMBER: u64 = u64::MAX >> 8;

/// What the manifest knows of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableMeta {
    pub(crate) id: FileId,
    pub(crate) keyspace: KeyspaceId,
    pub(crate) level: u8,
    /// The tier it lies on; a fact, never derived from the level (I3).
    pub(crate) tier: u8,
    /// Order among L0 tables (I2); tables below carry the highest epoch of their inputs.
    pub(crate) epoch: u64,
    /// File length in bytes.
    pub(crate) len: u64,
    pub(crate) entries: u64,
    pub(crate) deletes: u64,
    pub(crate) min_seq: SeqNo,
    pub(crate) max_seq: SeqNo,
    /// First and last user key.
    pub(crate) range: KeyRange,
    /// What the table's own properties say of its bytes. A manifest of version 0.1.0 does not have
    /// it; an opening then asks the tables, and from then on there is always one.
    pub(crate) content: Option<TableContent>,
}

/// Bytes of a table by what they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TableContent {
    /// User keys and values, as they came in.
    pub(crate) raw_key_bytes: u64,
    pub(crate) raw_value_bytes: u64,
    /// Data blocks, as they are stored.
    pub(crate) data_bytes: u64,
}

impl TableMeta {
    /// The file's name on its tier.
    pub(crate) fn file_name(&self) -> String {
        table_file_name(self.id)
    }
}

/// The name of table `id` on its tier.
pub(crate) fn table_file_name(id: FileId) -> String {
    format!("{id:08}.sst")
}

/// A keyspace as it was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyspaceMeta {
    pub(crate) id: KeyspaceId,
    pub(crate) name: Bytes,
    /// *f*: the last level that belongs to the fast tier.
    pub(crate) last_fast_level: u8,
}

/// Who decides where a store's records live, as its manifest remembers it: what has to know without
/// being told (a tool, the next opening) goes by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacedBy {
    /// Their level ([`crate::Placement::ByLevel`]).
    Level,
    /// Their hotness ([`crate::Placement::HotRap`]); the access records have been written.
    Hotness,
}

impl fmt::Display for PlacedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PlacedBy::Level => "level",
            PlacedBy::Hotness => "hotness",
        })
    }
}

/// What a keyspace's compactions learned, in parts of [`Learned::WHOLE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Learned {
    /// What crossings brought down of their input from Lf.
    pub(crate) cold: u16,
    /// What Lf had no version of, and was not hot, of the input of jobs from the level above.
    pub(crate) fresh: u16,
}

impl Learned {
    pub(crate) const WHOLE: u16 = 10_000;
}

impl Default for Learned {
    /// Before any job: nothing is hot, and nothing known to be fresh.
    fn default() -> Self {
        Self {
            cold: Self::WHOLE,
            fresh: 0,
        }
    }
}

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
    /// Numbers below this one may be in use by files.
    pub(crate) next_file: Option<FileId>,
    /// The log was synced through this sequence number, and may be gone up to it where no keyspace needs
    /// it; never falls, not even when the keyspace whose flush raised it is dropped.
    pub(crate) log_floor: Option<SeqNo>,
    /// Log segments with lower numbers are obsolete. Most are gone; one whose removal was lost with
    /// a failed sync may come back with a loss of power (I9).
    pub(crate) log_start: Option<FileId>,
    /// What the opening that began the manifest took over of the log.
    pub(crate) found_log: Option<FoundLog>,
    /// No record of the store has a higher number than this or than what the log holds.
    pub(crate) last_seq: Option<SeqNo>,
    /// How records were placed when the manifest was begun. By hotness only if RALT's state was
    /// durable by then: where it is missing later, it was lost.
    pub(crate) placed_by: Option<PlacedBy>,
    /// In the first edit of a manifest: how many edits, itself among them, were there when the manifest
    /// was put in force. None of them may be missing.
    pub(crate) snapshot: Option<u64>,
}

impl VersionEdit {
    /// Whether it is the edit that a clean close leaves behind all others.
    pub(crate) fn is_closing(&self) -> bool {
        let learned = Self {
            learned: self.learned.clone(),
            ..Self::default()
        };
        !self.learned.is_empty() && *self == learned
    }
}

/// What an opening took over of the log. A segment that is not named and has a lower number than
/// `next` is no part of the log: it was obsolete or given up, and a loss of power undid its
/// removal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FoundLog {
    /// Segments and their lengths in bytes, by number, which is their order. All of it was durable.
    pub(crate) segments: Vec<(FileId, u64)>,
    /// Segments that were begun since have this number or a higher one.
    pub(crate) next: FileId,
    /// Where the last segment ends before this sequence number: what is missing through it was given up,
    /// and the log goes on behind it. The next segment's base says so too, once there is one.
    pub(crate) reaches: Option<SeqNo>,
}

impl FoundLog {
    /// Whether the numbers of the segments rise.
    pub(crate) fn is_in_order(&self) -> bool {
        self.segments.is_sorted_by(|a, b| a.0 < b.0)
    }

    /// How long the segment was, if it was there. The segments are in order: there may be many.
    pub(crate) fn len_of(&self, number: FileId) -> Option<u64> {
        let at = self.segments.binary_search_by_key(&number, |s| s.0).ok()?;
        self.segments.get(at).map(|(_, len)| *len)
    }
}

/// The number of the table file called `name`, if it is one.
pub(crate) fn table_number(name: &str) -> Option<FileId> {
    let number = name.strip_suffix(".sst")?.parse().ok()?;
    (number <= MAX_NUMBER && table_file_name(number) == name).then_some(number)
}
