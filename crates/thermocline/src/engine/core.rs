//! What all handles of an open store share.

use std::collections::BTreeMap;
use std::sync::Weak;
use std::time::Duration;

use arc_swap::ArcSwap;

use super::dropped::Dropped;
use super::stats::Stats;
use super::{Background, Tally, Tree};
use crate::cache::{BlockCache, PinBudget, RecordCache};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::executor::Executor;
use crate::ids::{FileId, KeyspaceId};
use crate::key::SeqNo;
use crate::metrics::CpuTimes;
use crate::options::{Options, Resolved};
use crate::placement::{PlacementPolicy, Targeting};
use crate::points::Points;
use crate::read::Snapshots;
use crate::storage::{Medium, StoreLock};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};
use crate::table::{LazyTable, TableHeat, TableMeta};
use crate::tier::Tier;
use crate::version::{FileGuard, Graveyard, HotEstimate, Manifest, TableHandle};
use crate::wal::FoundLog;
use crate::write::{Commit, Ingestions, Refusals, Stall};

/// An open store: what its parts share. Each part adds its own methods, in its own files.
pub(crate) struct Engine {
    /// For jobs, which keep the engine alive while they run.
    pub(crate) me: Weak<Engine>,
    pub(crate) options: Options,
    pub(crate) sizes: Resolved,
    pub(crate) identity: Identity,
    pub(crate) tiers: Vec<Arc<Tier>>,
    /// What each tier is made of: a checkpoint lands on the same kind of medium.
    pub(crate) media: Vec<Arc<dyn Medium>>,
    pub(crate) caches: Caches,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) points: Points,
    pub(crate) graveyard: Arc<Graveyard>,
    pub(crate) keyspaces: Keyspaces,
    pub(crate) commit: Commit,
    /// What is being ingested.
    pub(crate) ingestions: Ingestions,
    pub(crate) sequence: Sequence,
    pub(crate) snapshots: Snapshots,
    pub(crate) files: Files,
    pub(crate) background: Background,
    pub(crate) stall: Stall,
    pub(crate) refusals: Refusals,
    /// Who decides where records live.
    pub(crate) placement: Arc<dyn PlacementPolicy>,
    /// What the store may cost.
    pub(crate) target: Targeting,
    pub(crate) stats: Stats,
    /// Processor time of background work.
    pub(crate) cpu: Arc<CpuTimes>,
    pub(crate) closing: Closing,
}

/// Which store it is, and which opening of it.
pub(crate) struct Identity {
    /// The store; a checkpoint or a restored backup of it is the same one.
    pub(crate) database: u128,
    /// Which opening it is, among those of all stores in this process.
    pub(crate) opening: u64,
    /// When that was, by the store's clock.
    pub(crate) opened: Duration,
}

/// What is kept in memory of the tables.
pub(crate) struct Caches {
    pub(crate) blocks: Arc<BlockCache>,
    /// The record cache, if one is wanted: newest versions below the memtables, record by record.
    pub(crate) records: Option<RecordCache>,
    pub(crate) pins: Arc<PinBudget>,
}

/// The keyspaces of a store.
pub(crate) struct Keyspaces {
    pub(crate) trees: ArcSwap<BTreeMap<KeyspaceId, Arc<Tree>>>,
    /// Keyspaces that were dropped and that somebody still holds.
    pub(crate) dropped: Mutex<Dropped>,
    /// Counts over all keyspaces.
    pub(crate) tally: Arc<Tally>,
}

/// How far the store has come, in sequence numbers.
pub(crate) struct Sequence {
    /// The last that readers may see; everything up to it is in place.
    pub(crate) visible: AtomicU64,
    /// The highest that any flush or drop named: the log is never trimmed beyond it, and recovery
    /// expects the log to reach it (I5).
    pub(crate) log_floor: AtomicU64,
    /// What the opening took over from the log.
    pub(crate) found_log: FoundLog,
}

/// Which files there are.
pub(crate) struct Files {
    pub(crate) manifest: Mutex<Manifest>,
    /// The number of the next one (I4).
    pub(crate) next: AtomicU64,
}

/// How the store ends.
pub(crate) struct Closing {
    pub(crate) is_closed: AtomicBool,
    /// Whoever closes the store holds this lock, and leaves the result here.
    pub(crate) outcome: Mutex<Option<Result<()>>>,
    /// Held until the store is closed; dropped last.
    pub(crate) locks: Mutex<Vec<Box<dyn StoreLock>>>,
}

impl Engine {
    /// The engine as jobs hold it; none while it is being torn down.
    pub(crate) fn me(&self) -> Option<Arc<Engine>> {
        self.me.upgrade()
    }

    pub(crate) fn visible(&self) -> SeqNo {
        self.sequence.visible.load(Ordering::Acquire)
    }

    /// A file number that no file of the store has or had (I4).
    pub(crate) fn new_file(&self) -> FileId {
        self.files.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The keyspace numbered `id`.
    pub(crate) fn tree(&self, id: KeyspaceId) -> Option<Arc<Tree>> {
        self.keyspaces.trees.load().get(&id).cloned()
    }

    /// Every keyspace.
    pub(crate) fn all_trees(&self) -> Vec<Arc<Tree>> {
        self.keyspaces.trees.load().values().cloned().collect()
    }

    pub(crate) fn fast(&self) -> &Arc<Tier> {
        &self.tiers[0]
    }

    /// The tiers where new tables belong: those of the levels down to f, and those of the levels
    /// below.
    pub(crate) fn level_tiers(&self) -> [u8; 2] {
        self.placement.level_tiers(self.tiers.len())
    }

    /// Refuses what a closed store cannot do.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closing.is_closed.load(Ordering::Acquire) {
            Err(Error::Closed)
        } else {
            Ok(())
        }
    }

    /// Refuses what a store cannot do when it is closed, poisoned (I9), or open for reading only.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        self.background.check_writable()
    }

    /// Refuses to install into a keyspace that was dropped meanwhile. The caller holds the
    /// manifest's lock.
    pub(crate) fn check_not_dropped(&self, tree: &Tree) -> Result<()> {
        match self.tree(tree.id) {
            Some(_) => Ok(()),
            None => Err(Error::UnknownKeyspace {
                name: String::from_utf8_lossy(&tree.name).into_owned(),
            }),
        }
    }

    /// Opens a table that was just written. Its filters and index are looked at before the tables
    /// that it replaces go.
    pub(crate) fn open_table(&self, meta: TableMeta, heat: TableHeat) -> Result<Arc<TableHandle>> {
        let tier = &self.tiers[usize::from(meta.tier)];
        let (cache, pins) = (
            Arc::clone(&self.caches.blocks),
            Arc::clone(&self.caches.pins),
        );
        let table = LazyTable::new(tier, meta, heat, self.identity.database, cache, pins);
        table.open()?.load()?;
        Ok(self.handle_of(table))
    }

    /// A table as part of a version.
    pub(crate) fn handle_of(&self, lazy: LazyTable) -> Arc<TableHandle> {
        let meta = lazy.meta().clone();
        let graveyard = Arc::clone(&self.graveyard);
        let file = FileGuard::new(meta.id, Arc::clone(lazy.tier()), meta.len, graveyard);
        Arc::new(TableHandle {
            meta,
            lazy: Arc::new(lazy),
            file: Arc::new(file),
            hot: HotEstimate::default(),
            hides_little_of: Arc::default(),
            looks: Arc::default(),
        })
    }
}
