//! Compares the tables that lie on the tiers with those that edits name.

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

/// How far the number of an unreadable table may be ahead of the store's next number if a crash has
/// left the table: no job writes more tables before the edit that names them.
const MOST_AHEAD: u64 = 10_000;

/// A table that no edit names.
#[derive(Debug)]
struct Orphan {
    tier: usize,
    id: FileId,
    described: Result<SelfDescribed>,
    is_stray: bool,
}

/// Whether somebody has put table `id` there, and no job of store `database`, whose next number is
/// about `next`, has left it. That is so if the table says that it is another store's, or if it
/// says nothing and its number is far ahead.
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

/// Tables that no edit names: outputs that a crash cut short, tables whose removal a crash cut
/// short, and [strays](is_stray).
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    tables: Vec<Orphan>,
}

impl Orphans {
    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Reads what the tables say of themselves. Each comes with the number of its tier. A table
    /// under the number of another is a stray too, whichever store it belongs to.
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

    /// The highest number that the store has drawn for one of them (I4). Numbers of strays do not
    /// count: a stray's name is free before the store draws a number for a table, and after the
    /// [sweep](Self::sweep) no loss of power brings the stray back.
    fn highest(&self) -> FileId {
        let own = self.tables.iter().filter(|orphan| !orphan.is_stray);
        own.map(|orphan| orphan.id).max().unwrap_or(0)
    }

    /// Refuses the store if one of them [was named](was_named) by an edit of `manifest` that is
    /// lost. Returns the tables to be set aside: strays, and unreadable ones that [may have been
    /// named](may_have_been_named).
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

    /// Removes the tables and returns how many there were. Called once the log agrees with the
    /// manifest: if the manifest were damaged, tables that belong to the store would look like
    /// orphans.
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
        // If a stray came back after a loss of power, a table of the store could have its number by
        // then (I4).
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

/// Whether a table that no edit names was once named by one. It was if its records are neither in
/// the tables that are named nor in the log. Then an edit at the end of the manifest is lost, and
/// the manifest's bytes alone look as if a crash had cut that edit short.
///
/// A flush writes its table once the log is synced up to it (I5), and the log is removed only after
/// the edit of the flush. The edit of a drop lets nothing go that is only in memory. A compaction
/// takes over tables that are named, so one that took over other tables proves that their edits are
/// lost. An ingestion is installed before anything else is logged: if the log goes on behind it,
/// and its keyspace is not flushed through it, its edit is lost. `shape` is what manifest number
/// `manifest` says.
pub(crate) fn was_named(
    table: &SelfDescribed,
    shape: &Shape,
    manifest: FileId,
    log: &Recovered,
) -> bool {
    let meta = &table.meta;
    let Some(through) = shape.flushed_through.get(&meta.keyspace) else {
        // The table's keyspace was dropped, or the edit that made it is lost.
        return u64::from(meta.keyspace) >= shape.next_file;
    };
    // The table was begun under this manifest. The tables that it was to replace were named when it
    // began, by the edits that the manifest was put in force with or by later ones, and stayed
    // named until an edit removed them. A table from before may have replaced tables that were gone
    // when the manifest was begun.
    if meta.id > manifest && !table.identity.replaces.iter().all(|id| shape.knows(*id)) {
        return true;
    }
    if meta.ingested {
        // What was logged behind it was logged when its edit was durable, or its tables were gone.
        let mut ingestions = log.ingestions.iter();
        return ingestions.any(|ingestion| {
            ingestion.tables.contains(&meta.id)
                && ingestion.seq > *through
                && ingestion.seq < log.last_seq
        });
    }
    let log_begins = log_begins(log);
    let is_flush = table.identity.replaces.is_empty() && meta.min_seq > *through;
    let is_logged = meta.max_seq > log_begins
        && meta.max_seq <= log.last_seq
        && (!is_flush || meta.min_seq > log_begins);
    meta.max_seq > *through && !is_logged
}

/// Whether an unreadable table that no edit names may have been named: the edit of its flush may be
/// lost, and its records may not be in the log. That is possible if the log has lost records, or if
/// it begins after what was flushed of a keyspace and the manifest is `torn`. Otherwise the table
/// is what a crash leaves of a job: half a table.
pub(crate) fn may_have_been_named(shape: &Shape, torn: bool, log: &Recovered) -> bool {
    let mut flushed = shape.flushed_through.values();
    log.is_damaged() || torn && flushed.any(|through| *through < log_begins(log))
}

/// Checks that the tables that edits name are there, and counts their bytes. Returns the orphans,
/// and the highest number that the store `database` has given to a file, as far as the names of
/// files tell (I4). The store's next number is about `next`.
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
                // The number of a copy has been used.
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
