//! Settings of one tier.

use std::path::PathBuf;

/// How data blocks are compressed. A block that does not shrink by an eighth is stored as
/// it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Compression {
    /// As written.
    #[default]
    None,
    /// LZ4: little CPU, modest gain.
    Lz4,
    /// Zstandard at the given level (1 to 19).
    Zstd(i32),
}

/// Which filter tables carry to answer "not here" without reading a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FilterPolicy {
    /// No filter: smaller tables, and a block read per table that may hold the key.
    None,
    /// 8-bit binary fuse filter: about 9 to 11 bits a key, 0.4 % false positives.
    #[default]
    Fuse8,
    /// 16-bit binary fuse filter: about 18 bits a key, 0.002 % false positives.
    Fuse16,
}

/// A medium: where it is, how much of it may be used, what it costs, and how tables on it
/// are built.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TierOptions {
    /// Its directory. No two tiers share one, and none is at `ralt` in the first tier's directory,
    /// which is for access records.
    pub path: PathBuf,
    /// Bytes that the store may occupy there, everything counted (I8).
    pub capacity: u64,
    /// What a GB (10⁹ bytes) on it costs in a month, in dollars. A [target](crate::Target) needs
    /// the price of each tier; nobody can guess it.
    pub price_per_gb_month: Option<f64>,
    /// Uncompressed size in bytes at which a data block is closed.
    pub block_size: usize,
    /// Compression of data blocks.
    pub compression: Compression,
    /// Filter of every table.
    pub filter: FilterPolicy,
    /// Whether table reads and writes go around the page cache where the filesystem can.
    pub direct_io: bool,
}

impl TierOptions {
    /// Defaults for a fast disk: 4 KiB blocks, no compression. No capacity: where there is a slower
    /// tier below, [give it one](TierOptions::capacity).
    pub fn fast(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            capacity: u64::MAX,
            price_per_gb_month: None,
            block_size: 4 << 10,
            compression: Compression::None,
            filter: FilterPolicy::Fuse8,
            direct_io: true,
        }
    }

    /// Defaults for a slow disk: 16 KiB blocks, compressed with LZ4.
    pub fn slow(path: impl Into<PathBuf>) -> Self {
        Self {
            block_size: 16 << 10,
            compression: Compression::Lz4,
            ..Self::fast(path)
        }
    }

    /// Sets the capacity in bytes.
    #[must_use]
    pub fn capacity(mut self, bytes: u64) -> Self {
        self.capacity = bytes;
        self
    }

    /// Sets the price in dollars per GB and month.
    #[must_use]
    pub fn price(mut self, dollars: f64) -> Self {
        self.price_per_gb_month = Some(dollars);
        self
    }

    /// Sets the block size in bytes.
    #[must_use]
    pub fn block_size(mut self, bytes: usize) -> Self {
        self.block_size = bytes;
        self
    }

    /// Sets the compression.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Sets the filter.
    #[must_use]
    pub fn filter(mut self, filter: FilterPolicy) -> Self {
        self.filter = filter;
        self
    }
}
