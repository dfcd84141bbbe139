//! The tables of a store, as the manifest and as they themselves describe them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use super::{Content, TableEntry, damage, manifest, open_tiers};
use crate::cache::{BlockCache, PinBudget};
use crate::error::{Error, Result};
use crate::ids::{FileId, table_number};
use crate::opening::Shape;
use crate::options::Options;
use crate::sync::Arc;
use crate::table::{Table, TableMeta};
use crate::tier::Tier;

/// The tables of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TablesReport {
    /// Every table that the manifest names: by keyspace, level, and then key, in level 0 the
    /// newest first.
    pub tables: Vec<TableReport>,
    /// Table files that the manifest does not name: a crash left them, and the next opening
    /// removes them.
    pub unnamed: Vec<UnnamedFile>,
    /// What keeps the list from being complete: the manifest's damage.
    pub problems: Vec<String>,
}

impl TablesReport {
    /// Damaged and missing tables, and problems with the manifest.
    pub fn damaged(&self) -> usize {
        let damaged = |table: &&TableReport| table.contents.is_damaged();
        self.tables.iter().filter(damaged).count() + self.problems.len()
    }
}

/// A table that the manifest names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableReport {
    /// Its file.
    pub file: PathBuf,
    /// Name of its keyspace.
    pub keyspace: String,
    /// What the manifest says of it.
    pub meta: TableEntry,
    /// What its own properties and index say.
    pub contents: Content<Contents>,
}

/// What a table says of itself. Level and tier are those it was written for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contents {
    /// Level that it was written for.
    pub written_level: u8,
    /// Tier that it was written for.
    pub written_tier: u8,
    /// Tables that it replaced when it was written.
    pub replaces: Vec<u64>,
    /// Data blocks.
    pub data_blocks: u64,
    /// Partitions of the index, each with its filter.
    pub partitions: u64,
    /// Stored bytes of data blocks.
    pub data_bytes: u64,
    /// Stored bytes of the index partitions.
    pub index_bytes: u64,
    /// Stored bytes of the filters.
    pub filter_bytes: u64,
    /// Bytes of keys, as they came in.
    pub raw_key_bytes: u64,
    /// Bytes of values, as they came in.
    pub raw_value_bytes: u64,
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} data blocks of {} bytes in {} partitions, index {} bytes, filters {} bytes, keys \
             {} and values {} bytes as they came in; written for L{} on tier {}",
            self.data_blocks,
            self.data_bytes,
            self.partitions,
            self.index_bytes,
            self.filter_bytes,
            self.raw_key_bytes,
            self.raw_value_bytes,
            self.written_level,
            self.written_tier
        )
    }
}

/// A table file that the manifest does not name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnnamedFile {
    /// The file.
    pub file: PathBuf,
    /// Its tier, 0 being the fastest.
    pub tier: usize,
    /// Its length in bytes.
    pub bytes: u64,
}

/// The tables of the store that `options` describe. Reads the tail and the index of each; data
/// blocks are left to [`crate::Db::verify`].
///
/// # Errors
/// As [`super::manifest`], and when the directory of a tier is not there.
pub fn tables(options: &Options) -> Result<TablesReport> {
    look(&open_tiers(options)?)
}

/// The most times that the manifest is read anew while a program replaces tables that it named.
const LOOKS: usize = 100;

/// Where files are missing, looks again at what the manifest names by then. The edit that takes a
/// table out is there before the table's file goes (I4). So if a file is missing and the manifest
/// read since still names its table, the file is lost.
pub(super) fn look(tiers: &[Arc<Tier>]) -> Result<TablesReport> {
    let mut found = BTreeMap::new();
    let mut missing = BTreeSet::new();
    for _ in 1..LOOKS {
        let (report, missing_now) = look_once(tiers, &mut found)?;
        if missing_now.is_subset(&missing) {
            return Ok(report);
        }
        missing = missing_now;
    }
    Ok(look_once(tiers, &mut found)?.0)
}

/// The report, and the numbers of tables whose files are missing. What a table says of itself is
/// taken from `found`, or else read and added to it: a table is never changed.
fn look_once(
    tiers: &[Arc<Tier>],
    found: &mut BTreeMap<FileId, Content<Contents>>,
) -> Result<(TablesReport, BTreeSet<FileId>)> {
    let (header, edits) = manifest::read(&tiers[0])?;
    let mut shape = Shape::default();
    let mut problems = Vec::new();
    for entry in edits {
        let applied = match entry.content {
            Content::Valid(edit) => shape.apply(edit),
            Content::Torn => Ok(()),
            Content::Damaged(what) => Err(what),
        };
        if let Err(what) = applied {
            let file = header.file.display();
            problems.push(format!("{file} at offset {}: {what}", entry.offset));
        }
    }
    let database = header.database.unwrap_or_default();
    let unnamed = unnamed(tiers, &shape)?;
    let mut named: Vec<TableMeta> = shape.tables.into_values().collect();
    named.sort_by(|a, b| {
        let place = |t: &TableMeta| (t.keyspace, t.level);
        let newer = || match a.level {
            0 => b.epoch.cmp(&a.epoch),
            _ => a.range.first.cmp(&b.range.first),
        };
        place(a).cmp(&place(b)).then_with(newer)
    });
    let names: BTreeMap<u32, String> = shape
        .keyspaces
        .into_values()
        .map(|k| (k.id, String::from_utf8_lossy(&k.name).into_owned()))
        .collect();
    let mut missing = BTreeSet::new();
    let mut tables = Vec::with_capacity(named.len());
    for meta in &named {
        let (file, described) = describe(tiers, meta, database, found)?;
        if described.is_none() {
            missing.insert(meta.id);
        }
        tables.push(TableReport {
            file,
            keyspace: names.get(&meta.keyspace).cloned().unwrap_or_default(),
            meta: TableEntry::new(meta),
            contents: described
                .unwrap_or_else(|| Content::Damaged("the file is missing".to_owned())),
        });
    }
    let report = TablesReport {
        tables,
        unnamed,
        problems,
    };
    Ok((report, missing))
}

/// The file of a table and what it says; none where it is missing.
fn describe(
    tiers: &[Arc<Tier>],
    meta: &TableMeta,
    database: u128,
    found: &mut BTreeMap<FileId, Content<Contents>>,
) -> Result<(PathBuf, Option<Content<Contents>>)> {
    let name = meta.file_name();
    let Some(tier) = tiers.get(usize::from(meta.tier)) else {
        let what = format!("it lies on tier {}, which was not given", meta.tier);
        return Ok((PathBuf::from(name), Some(Content::Damaged(what))));
    };
    let file = tier.tables.path().join(name);
    if let Some(known) = found.get(&meta.id) {
        return Ok((file, Some(known.clone())));
    }
    let described = match contents(tier, meta, database) {
        Ok(contents) => Content::Valid(contents),
        Err(Error::NotFound { .. }) => return Ok((file, None)),
        Err(error) => {
            let (offset, what) = damage(error, &file)?;
            Content::Damaged(format!("at offset {offset}: {what}"))
        }
    };
    found.insert(meta.id, described.clone());
    Ok((file, Some(described)))
}

fn contents(tier: &Arc<Tier>, meta: &TableMeta, database: u128) -> Result<Contents> {
    let cache = Arc::new(BlockCache::new(0));
    let pins = Arc::new(PinBudget::new(0));
    let table = Table::open(tier, meta.clone(), database, cache, pins)?;
    let properties = table.properties();
    Ok(Contents {
        written_level: properties.identity.level,
        written_tier: properties.identity.tier,
        replaces: properties.identity.replaces.clone(),
        data_blocks: table.count_data_blocks()?,
        partitions: table.partitions() as u64,
        data_bytes: properties.data_bytes,
        index_bytes: properties.index_bytes,
        filter_bytes: properties.filter_bytes,
        raw_key_bytes: properties.raw_key_bytes,
        raw_value_bytes: properties.raw_value_bytes,
    })
}

fn unnamed(tiers: &[Arc<Tier>], shape: &Shape) -> Result<Vec<UnnamedFile>> {
    let mut unnamed = Vec::new();
    for tier in tiers {
        for file in tier.tables.list()? {
            let Some(number) = table_number(&file.name) else {
                continue;
            };
            let named = shape.tables.get(&number);
            if named.is_none_or(|table| table.tier != tier.index) {
                unnamed.push(UnnamedFile {
                    file: tier.tables.path().join(&file.name),
                    tier: usize::from(tier.index),
                    bytes: file.len,
                });
            }
        }
    }
    unnamed.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(unnamed)
}
