//! What an opening recovers: keyspaces with their tables, and a report.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;

use super::Shape;
use crate::cache::{BlockCache, PinBudget};
use crate::engine::{Engine, Tree};
use crate::error::Result;
use crate::ids::KeyspaceId;
use crate::sync::Arc;
use crate::table::{LazyTable, TableHeat, TableMeta};
use crate::tier::Tier;
use crate::version::{TableHandle, Version};
use crate::wal::{Cut, Recovered};

/// What recovery found in the write-ahead log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// Records of the log that were not yet in tables.
    pub replayed: u64,
    /// Where the log ended early, if it did: `(file, offset, bytes given up)`. In strict mode only
    /// a tail torn by a crash is given up.
    pub cut: Option<(PathBuf, u64, u64)>,
    /// Whether what was given up had been durable (tolerant mode only).
    pub damaged: bool,
    /// Files that no edit names, left by a crash and removed.
    pub orphans: u64,
    /// Those of them that are in the directory `lost` of their tier now: tables of another store,
    /// unreadable tables whose number is far ahead of the store's, and unreadable tables that a
    /// lost edit may have named and whose records the log may lack. To be removed once nothing is
    /// missed.
    pub set_aside: Vec<PathBuf>,
    /// Why the table of recent accesses could not be used as it was left, if so: the store then
    /// learns anew what is hot. Where records live by level now: why it could not be removed.
    pub hotness: Option<String>,
    /// What became of the [target](crate::Target) that was set, if it cannot be kept as it was: the
    /// prices are others now, or the options do not allow it.
    pub target: Option<String>,
}

impl RecoveryReport {
    pub(crate) fn new(replayed: u64, recovered: &Recovered, orphans: u64) -> Self {
        let cut = |cut: &Cut| (cut.path.clone(), cut.offset, cut.bytes);
        Self {
            replayed,
            cut: recovered.cut.as_ref().map(cut),
            damaged: recovered.is_damaged(),
            orphans,
            set_aside: Vec::new(),
            hotness: None,
            target: None,
        }
    }
}

/// The tables that `shape` names. Their ends are read at their first use, or now if `ends` says so.
/// Filters and index hold no records: damage of them is an error of the reads that meet it, and
/// does not keep the store from opening.
///
/// What a manifest of version 0.1.0 does not say of a table is read from the table and added to
/// `shape`.
///
/// # Errors
/// Those of [`crate::table::Table::open`] for the ends that are read.
pub(crate) fn open_tables(
    shape: &mut Shape,
    tiers: &[Arc<Tier>],
    database: u128,
    cache: &Arc<BlockCache>,
    pins: &Arc<PinBudget>,
    ends: bool,
) -> Result<Vec<LazyTable>> {
    let heats = &shape.heats;
    let new = |meta: &TableMeta| {
        let tier = &tiers[usize::from(meta.tier)];
        let (cache, pins) = (Arc::clone(cache), Arc::clone(pins));
        let heat = heats.get(&meta.id).copied().unwrap_or_default();
        LazyTable::new(
            tier,
            meta.clone(),
            TableHeat::new(heat),
            database,
            cache,
            pins,
        )
    };
    let open = |meta: &mut TableMeta| {
        let mut table = new(&*meta);
        if meta.content.is_none() {
            meta.content = Some(table.open()?.properties().content());
            table = new(&*meta);
        }
        if ends {
            table.open()?;
        }
        Ok(table)
    };
    shape.tables.values_mut().map(open).collect()
}

/// Builds every keyspace's version of its tables.
pub(crate) fn build_trees(
    engine: &Engine,
    shape: &Shape,
    opened: Vec<LazyTable>,
) -> BTreeMap<KeyspaceId, Arc<Tree>> {
    let mut tables: BTreeMap<KeyspaceId, Vec<Arc<TableHandle>>> = BTreeMap::new();
    for table in opened {
        let of_keyspace = tables.entry(table.meta().keyspace).or_default();
        of_keyspace.push(engine.handle_of(table));
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
            engine.levels_of(keyspace.last_fast_level),
            version,
            through,
            shape.learned.get(&keyspace.id).copied().unwrap_or_default(),
            Arc::clone(&engine.keyspaces.tally),
        );
        trees.insert(keyspace.id, Arc::new(tree));
    }
    trees
}
