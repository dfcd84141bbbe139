//! What is known of a table without opening it.

use crate::ids::{FileId, KeyspaceId, table_file_name};
use crate::key::{KeyRange, SeqNo};

/// What the manifest knows of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableMeta {
    pub(crate) id: FileId,
    pub(crate) keyspace: KeyspaceId,
    pub(crate) level: u8,
    /// The tier that the table is on: a fact, never derived from the level (I3).
    pub(crate) tier: u8,
    /// Order among L0 tables (I2). Tables below L0 carry the highest epoch of their inputs.
    pub(crate) epoch: u64,
    /// File length in bytes.
    pub(crate) len: u64,
    pub(crate) entries: u64,
    pub(crate) deletes: u64,
    pub(crate) min_seq: SeqNo,
    pub(crate) max_seq: SeqNo,
    /// Whether it came by an ingestion. All of its records then have the sequence number
    /// `max_seq`, whatever number is stored with them: it was not known when they were written.
    pub(crate) ingested: bool,
    /// First and last user key.
    pub(crate) range: KeyRange,
    /// What the table's own properties say of its bytes. A manifest of version 0.1.0 does not have
    /// it: opening then reads it from the tables, and from then on it is always there.
    pub(crate) content: Option<TableContent>,
}

/// Bytes of a table by kind.
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

    /// The number that all of its records have, if they are stored without one.
    #[inline]
    pub(crate) fn assigned(&self) -> Option<SeqNo> {
        self.ingested.then_some(self.max_seq)
    }
}
