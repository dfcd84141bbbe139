//! What an opening recovers: keyspaces with their tables, and a report.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;

use super::engine::Engine;
use super::shape::Shape;
use super::tree::Tree;
use crate::cache::{BlockCache, PinBudget};
use crate::error::Result;
use crate::sync::Arc;
use crate::table::Table;
use crate::tier::Tier;
use crate::version::edit::{KeyspaceId, TableMeta};
use crate::version::{TableHandle, Version};
use crate::wal::{Cut, Recovered};

/// What recovery found in the write-ahead log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// Records of the log that were not yet in tables.
    pub replayed: u64,
    /// Where the log ended early, if it did: `(file, offset, bytes given up)`. In strict mode
    /// only a tail torn by a crash is.
    pub cut: Option<(PathBuf, u64, u64)>,
    /// Whether what was given up had been durable (tolerant mode only).
    pub damaged: bool,
    /// Files that no edit names, left by a crash and removed.
    pub orphans: u64,
    /// Those of them that cannot be read, where an edit that is lost may have named them and the log may lack what they held:
    /// they are in the directory `lost` of their tier. To be removed once nothing is missed.
    pub set_aside: Vec<PathBuf>,
    /// Why the table of recent accesses could not be used as it was left, if so: the store then
    /// learns anew what is hot. Or why it could not be removed, where records live by level now.
    pub hotness: Option<String>,
}

impl RecoveryReport {
    pub(super) fn new(replayed: u64, recovered: &Recovered, orphans: u64) -> Self {
        let cut = |cut: &Cut| (cut.path.clone(), cut.offset, cut.bytes);
        Self {
            replayed,
            cut: recovered.cut.as_ref().map(cut),
            damaged: recovered.is_damaged(),
            orphans,
            set_aside: Vec::new(),
            hotness: None,
        }
    }
}

/// A table that the manifest names, open.
pub(super) type Opened = (TableMeta, Table);

/// Opens every table that `shape` names. Filters and index hold no record: damage of them is an error of the reads that
/// meet it, and keeps no store from opening.
pub(super) fn open_tables(
    shape: &Shape,
    tiers: &[Arc<Tier>],
    database: u128,
    cache: &Arc<BlockCache>,
    pins: &Arc<PinBudget>,
) -> Result<Vec<Opened>> {
    let open = |meta: &TableMeta| {
        let tier = &tiers[usize::from(meta.tier)];
        let (cache, pins) = (Arc::clone(cache), Arc::clone(pins));
        let table = Table::open(tier, meta.clone(), database, cache, pins)?;
        Ok((meta.clone(), table))
    };
    shape.tables.values().map(open).collect()
}

/// Builds every keyspace's version of its tables.
pub(super) fn build_trees(
    engine: &Engine,
    shape: &Shape,
    opened: Vec<Opened>,
) -> BTreeMap<KeyspaceId, Arc<Tree>> {
    let mut tables: BTreeMap<KeyspaceId, Vec<Arc<TableHandle>>> = BTreeMap::new();
    for (meta, table) in opened {
        let of_keyspace = tables.entry(meta.keyspace).or_default();
        of_keyspace.push(engine.handle_of(meta, table));
    }
    let mut trees = BTreeMap::new();
    for keyspace in shape.keyspaces.values() {
        let added = tables.remove(&keyspace.id).unwrap_or_default();
        let version = Version::default().with(&[], added);
        let through = shape
            .flushed_through
            .get(&keyspace.id)
            .copied()
            .unwrap_or(0);
        let name = Bytes::clone(&keyspace.name);
        let tree = Tree::new(
            keyspace.id,
            name,
            keyspace.last_fast_level,
            version,
            through,
            shape.learned.get(&keyspace.id).copied().unwrap_or_default(),
            Arc::clone(&engine.tally),
        );
        trees.insert(keyspace.id, Arc::new(tree));
    }
    trees
}
