//! What opening a store finds on its tiers, made into keyspaces again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use bytes::Bytes;

use super::engine::Engine;
use super::tree::Tree;
use crate::error::{Error, Result};
use crate::key::{MAX_SEQ, SeqNo};
use crate::sync::Arc;
use crate::table::SelfDescribed;
use crate::tier::Tier;
use crate::version::edit::{
    FileId, FoundLog, KeyspaceId, KeyspaceMeta, MAX_NUMBER, PlacedBy, TableMeta, VersionEdit,
    table_number,
};
use crate::version::{TableHandle, Version};
use crate::wal::{Bounds, Cut, Recovered};

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
            damaged: recovered.cut.as_ref().is_some_and(|cut| cut.damaged),
            orphans,
            hotness: None,
        }
    }
}

/// The state that the manifest's edits add up to.
#[derive(Debug, Default, Clone)]
pub(crate) struct Shape {
    pub(crate) keyspaces: BTreeMap<KeyspaceId, KeyspaceMeta>,
    pub(crate) tables: BTreeMap<FileId, TableMeta>,
    pub(crate) flushed_through: BTreeMap<KeyspaceId, SeqNo>,
    pub(crate) next_file: FileId,
    pub(crate) last_seq: SeqNo,
    /// The highest sequence number that any flush named, dropped keyspaces included.
    pub(crate) log_floor: SeqNo,
    /// Log segments with lower numbers are obsolete.
    pub(crate) log_start: FileId,
    /// What the latest opening took over of the log; unknown where none was yet, or one of an older build.
    pub(crate) found_log: Option<FoundLog>,
    /// How records were placed when the store was opened last, if that is known.
    pub(crate) placed_by: Option<PlacedBy>,
}

impl Shape {
    /// Adds up `edits`; `Err` says which of them cannot follow from those before it.
    pub(super) fn from_edits(edits: Vec<VersionEdit>) -> Result<Self, String> {
        let mut shape = Shape::default();
        for edit in edits {
            shape.apply(edit)?;
        }
        Ok(shape)
    }

    /// What is known of the log.
    pub(crate) fn log_bounds(&self) -> Bounds {
        Bounds {
            start: self.log_start,
            floor: self.log_floor,
            found: self.found_log.clone(),
        }
    }

    /// Adds one edit; `Err` says why it cannot follow from those before it.
    pub(crate) fn apply(&mut self, edit: VersionEdit) -> Result<(), String> {
        check_numbers(&edit)?;
        for keyspace in edit.created {
            let f = keyspace.last_fast_level;
            if !(1..crate::version::MAX_LEVELS).contains(&usize::from(f)) {
                let id = keyspace.id;
                return Err(format!("keyspace {id} has L{f} as its last fast level"));
            }
            // An entry from the start: replay takes a keyspace without one for a dropped one.
            self.flushed_through.entry(keyspace.id).or_insert(0);
            self.keyspaces.insert(keyspace.id, keyspace);
        }
        for (_, table) in edit.removed {
            if self.tables.remove(&table).is_none() {
                return Err(format!("an edit removes table {table}, which is not there"));
            }
        }
        for table in edit.added {
            if !self.keyspaces.contains_key(&table.keyspace) {
                let (id, keyspace) = (table.id, table.keyspace);
                return Err(format!(
                    "table {id} belongs to keyspace {keyspace}, which is not there"
                ));
            }
            if usize::from(table.level) >= crate::version::MAX_LEVELS {
                return Err(format!("table {} is of level {}", table.id, table.level));
            }
            self.next_file = self.next_file.max(table.id + 1);
            self.last_seq = self.last_seq.max(table.max_seq);
            self.tables.insert(table.id, table);
        }
        for (keyspace, through) in edit.flushed_through {
            let flushed = self.flushed_through.entry(keyspace).or_insert(0);
            *flushed = (*flushed).max(through);
            self.last_seq = self.last_seq.max(through);
            self.log_floor = self.log_floor.max(through);
        }
        for keyspace in edit.dropped {
            self.keyspaces.remove(&keyspace);
            self.flushed_through.remove(&keyspace);
            self.tables.retain(|_, table| table.keyspace != keyspace);
        }
        self.next_file = self.next_file.max(edit.next_file.unwrap_or(0));
        self.last_seq = self.last_seq.max(edit.last_seq.unwrap_or(0));
        self.log_floor = self.log_floor.max(edit.log_floor.unwrap_or(0));
        self.log_start = self.log_start.max(edit.log_start.unwrap_or(0));
        self.placed_by = edit.placed_by.or(self.placed_by);
        if let Some(found) = edit.found_log {
            // What it leaves out must not come to be named again.
            self.next_file = self.next_file.max(found.next);
            self.found_log = Some(found);
        }
        Ok(())
    }
}

/// Counting on from a number of an edit must not overflow.
fn check_numbers(edit: &VersionEdit) -> Result<(), String> {
    let tables = edit.added.iter().flat_map(|t| [t.id, t.epoch]);
    let found = edit.found_log.as_ref();
    let found = found.map(|log| log.next);
    let mut files = tables.chain(edit.next_file).chain(found);
    let files = files.find(|n| *n > MAX_NUMBER);
    let flushed = edit.flushed_through.iter().map(|(_, seq)| *seq);
    let seqs = edit.added.iter().flat_map(|t| [t.min_seq, t.max_seq]);
    let mut seqs = seqs
        .chain(flushed)
        .chain(edit.last_seq)
        .chain(edit.log_floor);
    match files.or_else(|| seqs.find(|seq| *seq > MAX_SEQ)) {
        Some(number) => Err(format!(
            "an edit holds the number {number}, which is out of range"
        )),
        None => Ok(()),
    }
}

/// Tables that no edit names: outputs that a crash cut short, and tables whose removal did.
#[derive(Debug, Default)]
pub(super) struct Orphans(Vec<(usize, String)>);

impl Orphans {
    /// Refuses where one of them [was named](was_named) by an edit that is lost; `manifest` is where
    /// that edit was.
    pub(super) fn check(
        &self,
        tiers: &[Arc<Tier>],
        database: u128,
        shape: &Shape,
        log: &Recovered,
        (manifest, end): &(PathBuf, u64),
    ) -> Result<()> {
        for (tier, name) in &self.0 {
            let Some(id) = table_number(name) else {
                continue;
            };
            match SelfDescribed::read(&tiers[*tier], id) {
                Ok(table) if table.identity.database != database => {}
                Ok(table) if was_named(&table, shape, log) => {
                    let what = format!("the edit that names table {id} is gone");
                    return Err(Error::corruption(manifest, *end, what));
                }
                Ok(_) => {}
                // Half a table is what a crash leaves of a job.
                Err(Error::Corruption { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes them and gives back how many there were. Called once the log agrees with the
    /// manifest: under a damaged one, tables that belong to the store would look like orphans.
    pub(super) fn sweep(self, tiers: &[Arc<Tier>]) -> Result<u64> {
        for (tier, name) in &self.0 {
            tiers[*tier].tables.remove(name)?;
        }
        Ok(self.0.len() as u64)
    }
}

/// Whether a table that no edit names was once named by one: what it holds is neither in the tables
/// that are named nor in the log. An edit at the end of the manifest is lost then, and by the
/// manifest's bytes alone that looks like one which a crash cut short.
///
/// A flush writes its table once the log is synced through it (I5), and the log goes only behind the
/// edit. A compaction takes over tables that are named.
pub(crate) fn was_named(table: &SelfDescribed, shape: &Shape, log: &Recovered) -> bool {
    let meta = &table.meta;
    let Some(through) = shape.flushed_through.get(&meta.keyspace) else {
        // Of a keyspace that was dropped, or of one whose making is lost.
        return u64::from(meta.keyspace) >= shape.next_file;
    };
    let log_begins = log
        .segments
        .first()
        .map_or(log.last_seq, |first| first.base_seq);
    let is_flush = table.identity.replaces.is_empty() && meta.min_seq > *through;
    let is_logged = meta.max_seq > log_begins
        && meta.max_seq <= log.last_seq
        && (!is_flush || meta.min_seq > log_begins);
    meta.max_seq > *through && !is_logged
}

/// Checks that the tables that edits name are there and counts their bytes; gives back the orphans
/// and the highest file number seen (I4).
pub(super) fn survey_tables(tiers: &[Arc<Tier>], shape: &Shape) -> Result<(Orphans, FileId)> {
    let mut orphans = Orphans::default();
    let mut highest = 0;
    let mut found = BTreeSet::new();
    for tier in tiers {
        for file in tier.tables.list()? {
            let Some(id) = table_number(&file.name) else {
                continue;
            };
            highest = highest.max(id);
            let named = shape.tables.get(&id).filter(|t| t.tier == tier.index);
            let Some(meta) = named else {
                orphans.0.push((usize::from(tier.index), file.name));
                continue;
            };
            if file.len != meta.len {
                let path = tier.tables.path().join(&file.name);
                let what = format!(
                    "the table is {} bytes long and should be {}",
                    file.len, meta.len
                );
                return Err(Error::corruption(path, file.len.min(meta.len), what));
            }
            tier.add_file_bytes(file.len);
            found.insert(id);
        }
    }
    let missing = shape
        .tables
        .values()
        .find(|table| !found.contains(&table.id));
    match missing {
        Some(meta) => {
            let tier = &tiers[usize::from(meta.tier)];
            let path = tier.tables.path().join(meta.file_name());
            Err(Error::corruption(
                path,
                0,
                "the manifest names this table, but the file is missing",
            ))
        }
        None => Ok((orphans, highest)),
    }
}

/// Opens the tables of every keyspace and builds its version.
pub(super) fn build_trees(
    engine: &Engine,
    shape: &Shape,
) -> Result<BTreeMap<KeyspaceId, Arc<Tree>>> {
    let mut tables: BTreeMap<KeyspaceId, Vec<Arc<TableHandle>>> = BTreeMap::new();
    for meta in shape.tables.values() {
        let table = engine.open_table(meta.clone())?;
        tables.entry(meta.keyspace).or_default().push(table);
    }
    let mut trees = BTreeMap::new();
    for keyspace in shape.keyspaces.values() {
        let added = tables.remove(&keyspace.id).unwrap_or_default();
        let version = Version::default().with(&[], added);
        if let Some(problem) = version.disorder() {
            let path = &engine.tiers[0].options.path;
            return Err(Error::corruption(path.join("CURRENT"), 0, problem));
        }
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
        );
        trees.insert(keyspace.id, Arc::new(tree));
    }
    Ok(trees)
}
