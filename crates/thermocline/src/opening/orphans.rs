//! The tables that lie on the tiers against those that edits name.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::Shape;
use crate::error::{Error, Result};
use crate::ids::{FileId, table_file_name, table_number};
use crate::key::SeqNo;
use crate::sync::Arc;
use crate::table::SelfDescribed;
use crate::tier::{Tier, copy_number};
use crate::wal::Recovered;

/// The manifest in force.
#[derive(Debug)]
pub(crate) struct FoundManifest {
    pub(crate) path: PathBuf,
    pub(crate) number: FileId,
    /// Where its edits end.
    pub(crate) end: u64,
    /// Whether it ends in bytes that are no edit.
    pub(crate) torn: bool,
    /// Whether its last edit is the one that a clean close leaves.
    pub(crate) is_closed: bool,
}

/// How far ahead of the store's next number a table that cannot be read may be for a crash to have
/// left it: no job writes more tables before the edit that says so.
const MOST_AHEAD: u64 = 10_000;

/// A table that no edit names.
#[derive(Debug)]
struct Orphan {
    tier: usize,
    id: FileId,
    described: Result<SelfDescribed>,
    is_stray: bool,
}

/// Whether no job of store `database`, whose next number is about `next`, has left table `id`: it
/// says that it is another store's, or it says nothing and its number is far ahead. Somebody has
/// put it there.
pub(crate) fn is_stray(
    described: Option<&SelfDescribed>,
    id: FileId,
    database: u128,
    next: FileId,
) -> bool {
    match described {
        Some(table) => table.identity.database != database,
        None => id > next.saturating_add(MOST_AHEAD),
    }
}

/// Tables that no edit names: outputs that a crash cut short, tables whose removal did, and
/// [strays](is_stray).
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    tables: Vec<Orphan>,
}

impl Orphans {
    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Reads what tables, each behind the number of its tier, say of themselves. One with the
    /// number of another is a stray, too, whosever it is.
    ///
    /// # Errors
    /// As [`SelfDescribed::read`], but for damage.
    fn read(
        tiers: &[Arc<Tier>],
        tables: Vec<(usize, FileId)>,
        database: u128,
        next: FileId,
    ) -> Result<Self> {
        let mut orphans = Self::default();
        for (tier, id) in tables {
            let described = match SelfDescribed::read(&tiers[tier], id) {
                Err(error @ Error::Corruption { .. }) => Err(error),
                read => Ok(read?),
            };
            let is_stray = is_stray(described.as_ref().ok(), id, database, next)
                || described.is_err() && SelfDescribed::is_misnamed(&tiers[tier], id)?;
            orphans.tables.push(Orphan {
                tier,
                id,
                described,
                is_stray,
            });
        }
        Ok(orphans)
    }

    /// The highest number that the store has drawn for one of them (I4). A stray's is not counted
    /// on from: its name is free before the store draws a number for a table, and after the
    /// [sweep](Self::sweep) no loss of power brings it back.
    fn highest(&self) -> FileId {
        let own = self.tables.iter().filter(|orphan| !orphan.is_stray);
        own.map(|orphan| orphan.id).max().unwrap_or(0)
    }

    /// Refuses where one of them [was named](was_named) by an edit that is lost: it was in
    /// `manifest`. Gives back what is to be set aside: strays, and those that cannot be read and
    /// [may have been named](may_have_been_named).
    pub(crate) fn check(
        &self,
        shape: &Shape,
        log: &Recovered,
        manifest: &FoundManifest,
    ) -> Result<Vec<(usize, String)>> {
        let is_doubtful = may_have_been_named(shape, manifest.torn, log);
        let mut aside = Vec::new();
        for orphan in &self.tables {
            let goes_aside = match &orphan.described {
                _ if orphan.is_stray => true,
                Ok(table) if was_named(table, shape, manifest.number, log) => {
                    let what = format!("the edit that names table {} is gone", orphan.id);
                    return Err(Error::corruption(&manifest.path, manifest.end, what));
                }
                Ok(_) => false,
                Err(_) => is_doubtful && !shape.knows(orphan.id),
            };
            if goes_aside {
                aside.push((orphan.tier, table_file_name(orphan.id)));
            }
        }
        Ok(aside)
    }

    /// Removes the tables and gives back how many there were. Called once the log agrees with the
    /// manifest: under a damaged one, tables that belong to the store would look like orphans.
    pub(crate) fn sweep(self, tiers: &[Arc<Tier>]) -> Result<u64> {
        let mut with_strays = BTreeSet::new();
        for orphan in &self.tables {
            tiers[orphan.tier]
                .tables
                .remove(&table_file_name(orphan.id))?;
            if orphan.is_stray {
                with_strays.insert(orphan.tier);
            }
        }
        // Back after a loss of power, its number could be a table's of the store by then (I4).
        for tier in with_strays.into_iter().map(|index| &tiers[index]) {
            tier.sync_names(|| tier.tables.sync_dir())?;
        }
        Ok(self.tables.len() as u64)
    }
}

/// Last sequence number before the first that the log holds.
pub(crate) fn log_begins(log: &Recovered) -> SeqNo {
    let first = log.segments.first();
    first.map_or(log.last_seq, |first| first.base_seq)
}

/// Whether a table that no edit names was once named by one: what it holds is neither in the tables
/// that are named nor in the log. An edit at the end of the manifest is lost then, and by the
/// manifest's bytes alone that looks like one which a crash cut short.
///
/// A flush writes its table once the log is synced through it (I5), and the log goes only behind
/// the edit: that of a drop lets nothing go that is in memory only. A compaction takes over tables
/// that are named: one that took over others proves that their edits are lost. `shape` is what
/// manifest number `manifest` says.
pub(crate) fn was_named(
    table: &SelfDescribed,
    shape: &Shape,
    manifest: FileId,
    log: &Recovered,
) -> bool {
    let meta = &table.meta;
    let Some(through) = shape.flushed_through.get(&meta.keyspace) else {
        // Of a keyspace that was dropped, or of one whose making is lost.
        return u64::from(meta.keyspace) >= shape.next_file;
    };
    // Begun under this manifest: what it was to replace was named when it began, by the edits that
    // the manifest was put in force with or by later ones, and stayed so until one removed it. What
    // lies there from before may have replaced tables that were gone when the manifest was begun.
    if meta.id > manifest && !table.identity.replaces.iter().all(|id| shape.knows(*id)) {
        return true;
    }
    let log_begins = log_begins(log);
    let is_flush = table.identity.replaces.is_empty() && meta.min_seq > *through;
    let is_logged = meta.max_seq > log_begins
        && meta.max_seq <= log.last_seq
        && (!is_flush || meta.min_seq > log_begins);
    meta.max_seq > *through && !is_logged
}

/// Whether a table that no edit names and that cannot be read may have been named, the edit of its
/// flush be lost and what it held not be in the log: that has lost records, or it begins behind
/// what was flushed of a keyspace and the manifest is `torn`. Else it is what a crash leaves of a
/// job: half a table.
pub(crate) fn may_have_been_named(shape: &Shape, torn: bool, log: &Recovered) -> bool {
    let mut flushed = shape.flushed_through.values();
    log.is_damaged() || torn && flushed.any(|through| *through < log_begins(log))
}

/// Checks that the tables that edits name are there and counts their bytes; gives back the orphans
/// and the highest number that the store `database` has given to a file, as far as their names tell
/// (I4). Its next is about `next`.
pub(crate) fn survey_tables(
    tiers: &[Arc<Tier>],
    shape: &Shape,
    database: u128,
    next: FileId,
) -> Result<(Orphans, FileId)> {
    let mut unnamed = Vec::new();
    let mut highest = 0;
    let mut found = BTreeSet::new();
    for tier in tiers {
        for file in tier.tables.list()? {
            let Some(id) = table_number(&file.name) else {
                // Its number has been used.
                highest = highest.max(copy_number(&file.name).unwrap_or(0));
                continue;
            };
            let named = shape.tables.get(&id).filter(|t| t.tier == tier.index);
            let Some(meta) = named else {
                unnamed.push((usize::from(tier.index), id));
                continue;
            };
            highest = highest.max(id);
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
        None => {
            let orphans = Orphans::read(tiers, unnamed, database, next)?;
            highest = highest.max(orphans.highest());
            Ok((orphans, highest))
        }
    }
}
