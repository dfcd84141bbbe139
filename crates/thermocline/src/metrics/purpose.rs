//! What bytes are moved for.

/// Why bytes moved. Counters are kept per tier and purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Purpose {
    /// Write-ahead log.
    Wal,
    /// Manifest.
    Manifest,
    /// Memtable to L0.
    Flush,
    /// Compaction input and output.
    Compaction,
    /// Point reads and scans of the user.
    UserRead,
    /// Opening tables and recovering.
    Open,
    /// Verification, checkpoints and inspection.
    Maintenance,
    /// A promotion cache that became a table of L0.
    Promotion,
    /// Access records: what tracks which records are hot.
    Hotness,
    /// The flash cache on the first tier.
    FlashCache,
    /// Copies of slow tables in room of the fast tier that nothing uses.
    Copy,
    /// Tables that were written anew on another tier because of their heat.
    Migration,
    /// Tables of an ingestion.
    Ingest,
}

impl Purpose {
    /// Every purpose, in the order of the counters.
    pub const ALL: &[Purpose] = &[
        Purpose::Wal,
        Purpose::Manifest,
        Purpose::Flush,
        Purpose::Compaction,
        Purpose::UserRead,
        Purpose::Open,
        Purpose::Maintenance,
        Purpose::Promotion,
        Purpose::Hotness,
        Purpose::FlashCache,
        Purpose::Copy,
        Purpose::Migration,
        Purpose::Ingest,
    ];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Wal => "wal",
            Purpose::Manifest => "manifest",
            Purpose::Flush => "flush",
            Purpose::Compaction => "compaction",
            Purpose::UserRead => "user_read",
            Purpose::Open => "open",
            Purpose::Maintenance => "maintenance",
            Purpose::Promotion => "promotion",
            Purpose::Hotness => "hotness",
            Purpose::FlashCache => "flash_cache",
            Purpose::Copy => "copy",
            Purpose::Migration => "migration",
            Purpose::Ingest => "ingest",
        }
    }
}
