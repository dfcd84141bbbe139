//! What one keyspace consists of.

/// A keyspace at one moment, in counts that cost no read. Versions that newer ones replace, and
/// deletes, count until compactions have reached them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyspaceMetrics {
    /// Its name.
    pub name: String,
    /// Bytes that its records take in memtables.
    pub memtable_bytes: u64,
    /// Its tables.
    pub tables: u64,
    /// Bytes of the tables' files, by tier.
    pub table_bytes: Vec<u64>,
    /// Records in the tables, deletes among them.
    pub records: u64,
    /// The deletes.
    pub deletes: u64,
    /// Bytes of its keys and values that are hot, about. None where records live by level.
    pub hot_bytes: Option<u64>,
}
