//! The tables that a manifest's edits add up to.

use std::fmt;

use bytes::Bytes;

use super::Key;
use crate::key::SeqNo;
use crate::table::TableMeta;

/// What the manifest says of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableEntry {
    /// Its number; its file is called `{number:08}.sst`.
    pub number: u64,
    /// Number of its keyspace.
    pub keyspace: u32,
    /// Its level, from 0.
    pub level: u8,
    /// The tier it lies on, 0 being the fastest.
    pub tier: u8,
    /// Its place among the tables of level 0: higher is newer.
    pub epoch: u64,
    /// Length of its file in bytes.
    pub bytes: u64,
    /// Records, deletes included.
    pub entries: u64,
    /// Deletes.
    pub deletes: u64,
    /// Smallest sequence number.
    pub first_seq: SeqNo,
    /// Largest sequence number.
    pub last_seq: SeqNo,
    /// Smallest key.
    pub first_key: Bytes,
    /// Largest key.
    pub last_key: Bytes,
}

impl TableEntry {
    pub(super) fn new(meta: &TableMeta) -> Self {
        Self {
            number: meta.id,
            keyspace: meta.keyspace,
            level: meta.level,
            tier: meta.tier,
            epoch: meta.epoch,
            bytes: meta.len,
            entries: meta.entries,
            deletes: meta.deletes,
            first_seq: meta.min_seq,
            last_seq: meta.max_seq,
            first_key: meta.range.first.clone(),
            last_key: meta.range.last.clone(),
        }
    }
}

impl fmt::Display for TableEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "table {} of keyspace {}: L{}, tier {}, epoch {}, {} bytes, {} records ({} deletes), \
             sequence {} to {}, {} to {}",
            self.number,
            self.keyspace,
            self.level,
            self.tier,
            self.epoch,
            self.bytes,
            self.entries,
            self.deletes,
            self.first_seq,
            self.last_seq,
            Key(&self.first_key),
            Key(&self.last_key)
        )
    }
}
