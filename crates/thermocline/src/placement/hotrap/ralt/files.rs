//! RALT's files: its own tier over its own directory, with its space charged to the fast tier.

use bytes::Bytes;

use super::RaltParts;
use super::histogram::{Histogram, Sample};
use super::limits::Limits;
use super::outlook::Outlook;
use super::record::{Record, split_key, stored_size};
use super::scoring::Model;
use super::sizes::Sizes;
use super::version::Tracked;
use crate::cache::{BlockCache, PinBudget};
use crate::error::Result;
use crate::ids::{FileId, KeyspaceId};
use crate::key::{InternalKey, Kind};
use crate::metrics::Purpose;
use crate::options::{Compression, FilterPolicy, TierOptions};
use crate::points::Points;
use crate::storage::LogStore;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::table::{Table, TableBuilder, TableIdentity, TableMeta};
use crate::tier::{Reservation, Tier};

/// Where RALT's tables and its state lie.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) database: u128,
    /// Counts RALT's I/O apart from the store's.
    pub(super) tier: Arc<Tier>,
    /// Whose space is used (I8).
    pub(super) fast: Arc<Tier>,
    pub(super) log: Arc<dyn LogStore>,
    pub(super) points: Points,
    next_id: AtomicU64,
    cache: Arc<BlockCache>,
    pins: Arc<PinBudget>,
}

impl Files {
    /// RALT's directory, created if it is missing and the store is not only read.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn new(parts: &RaltParts, sizes: &Sizes) -> Result<Self> {
        let creates = !parts.reads_only;
        let tables = parts.medium.table_store(&parts.path, creates)?;
        let log = parts.medium.log_store(&parts.path, creates)?;
        let options = TierOptions {
            path: parts.path.clone(),
            // The fast tier's capacity is what limits it.
            capacity: u64::MAX,
            block_size: sizes.block,
            compression: Compression::None,
            filter: FilterPolicy::Fuse16,
            ..parts.fast.options.clone()
        };
        Ok(Self {
            database: parts.database,
            tier: Arc::new(Tier::new(parts.fast.index, options, tables, None)),
            fast: Arc::clone(&parts.fast),
            log,
            points: parts.points.clone(),
            next_id: AtomicU64::new(1),
            // Scans pass a cache by, and all filters and indexes are pinned.
            cache: Arc::new(BlockCache::new(0)),
            pins: Arc::new(PinBudget::new(u64::MAX)),
        })
    }

    /// Opens a table and loads its filters and index, so that no read waits for them.
    ///
    /// # Errors
    /// Damage; I/O errors.
    pub(super) fn open(&self, meta: &TableMeta) -> Result<Arc<Table>> {
        let (cache, pins) = (Arc::clone(&self.cache), Arc::clone(&self.pins));
        let table = Table::open(&self.tier, meta.clone(), self.database, cache, pins)?;
        table.load()?;
        table.weight_before(&meta.range.first)?;
        Ok(Arc::new(table))
    }

    /// Files from this number on do not exist.
    pub(super) fn next_id(&self) -> FileId {
        self.next_id.load(Ordering::Relaxed)
    }

    /// A number that no file has.
    pub(super) fn take_id(&self) -> FileId {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Skips the numbers below `id`: no number is used twice (I4).
    pub(super) fn skip_ids(&self, id: FileId) {
        self.next_id.fetch_max(id, Ordering::Relaxed);
    }

    /// Memory of filters and indexes.
    pub(super) fn pinned_bytes(&self) -> u64 {
        self.pins.taken()
    }

    /// Removes a file and gives its space back. Returns whether it is gone.
    pub(super) fn remove(&self, meta: &TableMeta) -> bool {
        let removed = self.tier.tables.remove(&meta.file_name()).is_ok();
        if removed {
            self.fast.remove_file_bytes(meta.len);
        }
        removed
    }
}

/// How much a [`Writer`] writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Space {
    /// Bytes after which a table ends.
    pub(super) table: u64,
    /// Bytes in all, reserved on the fast tier (I8).
    pub(super) expected: u64,
}

/// Writes sorted records into tables. Those not [kept](Writer::keep) are removed when it is
/// dropped.
pub(super) struct Writer<'a> {
    files: &'a Files,
    model: Model,
    limits: Limits,
    outlook: Outlook,
    /// The counters' epoch when writing began.
    epoch: u64,
    level: usize,
    table_size: u64,
    space: Reservation,
    /// The keyspace of the last record.
    keyspace: Option<KeyspaceId>,
    current: Option<(TableBuilder, Vec<Sample>)>,
    value: Vec<u8>,
    done: Vec<Arc<Tracked>>,
}

impl<'a> Writer<'a> {
    /// Writes tables for `level` in the counters' epoch `epoch`. Records are hot by `limits`, or
    /// with one more read by `outlook`.
    ///
    /// # Errors
    /// [`crate::Error::NoSpace`] when the fast tier has no room.
    pub(super) fn new(
        files: &'a Files,
        model: Model,
        limits: Limits,
        outlook: Outlook,
        epoch: u64,
        level: usize,
        space: Space,
    ) -> Result<Self> {
        Ok(Self {
            files,
            model,
            limits,
            outlook,
            epoch,
            level,
            table_size: space.table,
            space: files.fast.reserve(space.expected)?,
            keyspace: None,
            current: None,
            value: Vec::new(),
            done: Vec::new(),
        })
    }

    /// Appends a record; keys ascend.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn add(&mut self, key: &[u8], record: &Record) -> Result<()> {
        let full =
            |(builder, _): &(TableBuilder, Vec<Sample>)| builder.estimated_len() >= self.table_size;
        if self.current.as_ref().is_some_and(full) {
            self.end_table()?;
        }
        let (builder, samples) = match &mut self.current {
            Some(current) => current,
            none => {
                let identity = TableIdentity {
                    database: self.files.database,
                    keyspace: 0,
                    id: self.files.take_id(),
                    level: u8::try_from(self.level).unwrap_or(u8::MAX),
                    tier: self.files.tier.index,
                    epoch: 0,
                    replaces: Vec::new(),
                    gone: Vec::new(),
                    keyspace_name: Bytes::new(),
                };
                let (tier, expected) = (&self.files.tier, self.table_size.min(self.space.left()));
                let builder = TableBuilder::new(tier, identity, expected, Purpose::Hotness)?;
                none.insert((builder.weighed(), Vec::new()))
            }
        };
        // A block ends with its keyspace: sums tell how much of a keyspace is hot, and are exact to
        // a block.
        let keyspace = split_key(key).map(|(keyspace, _)| keyspace);
        if std::mem::replace(&mut self.keyspace, keyspace) != keyspace {
            builder.end_block()?;
        }
        self.value.clear();
        record.encode(&mut self.value);
        let rank = self.model.rank(record, key);
        let hot_rap = record.hot_rap_size(key);
        let stable_before = self.model.stable_before(record);
        let is_hot = self.limits.hot.admits(stable_before, rank);
        let weight = match is_hot {
            // A record of no bytes is in the filter all the same.
            true => hot_rap.max(1),
            false => 0,
        };
        let stored = InternalKey::new(key, 0, Kind::Put);
        builder.add_weighing(stored, &self.value, weight)?;
        let hot = &self.limits.hot;
        if !is_hot && self.outlook.makes_hot(&self.model, hot, key, record) {
            builder.mark_last();
        }
        samples.push(Sample {
            rank,
            // It tells nothing since when a record is no longer stable: all such records are of one
            // class.
            stable_before: match stable_before {
                0 => 0,
                epoch => epoch.max(self.epoch),
            },
            hot_rap,
            stored: stored_size(key, &self.value),
        });
        Ok(())
    }

    fn end_table(&mut self) -> Result<()> {
        let Some((builder, mut samples)) = self.current.take() else {
            return Ok(());
        };
        let meta = builder.finish()?;
        self.space.use_for_file(meta.len);
        let histogram = Arc::new(Histogram::new(&mut samples, meta.len));
        let opened = self.files.open(&meta);
        let tracked = opened.and_then(|table| Tracked::new(meta.clone(), table, histogram, None));
        match tracked {
            Ok(tracked) => self.done.push(Arc::new(tracked)),
            Err(error) => {
                self.files.remove(&meta);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Ends the last table. Returns all of them, open.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn finish(&mut self) -> Result<Vec<Arc<Tracked>>> {
        self.end_table()?;
        Ok(self.done.clone())
    }

    /// Keeps the tables, as the state on disk may name them.
    pub(super) fn keep(mut self) {
        self.done.clear();
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        for table in self.done.drain(..) {
            self.files.remove(&table.meta);
        }
    }
}
