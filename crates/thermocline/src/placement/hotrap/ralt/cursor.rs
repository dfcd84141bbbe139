//! Merged access records in key order, over tables of several levels.

use std::collections::BTreeSet;

use super::record::{Record, is_of};
use super::reuse::Census;
use super::scoring::Model;
use super::version::Tracked;
use crate::error::{Error, Result};
use crate::ids::KeyspaceId;
use crate::iter::InternalIterator;
use crate::key::{InternalKey, Kind, MAX_SEQ};
use crate::metrics::Purpose;
use crate::sync::Arc;
use crate::table::{ScanOptions, TableIter};

/// The tables of one sorted run, forward only. Unlike [`crate::version::LevelIter`], it begins a
/// trimmed table behind the records that were merged away.
pub(super) struct Run {
    level: usize,
    tables: Vec<Arc<Tracked>>,
    how: ScanOptions,
    at: usize,
    iter: Option<TableIter>,
}

impl Run {
    fn new(level: usize, tables: Vec<Arc<Tracked>>, readahead: usize) -> Self {
        let how = ScanOptions {
            purpose: Purpose::Hotness,
            readahead,
            fill_cache: false,
            to_end: false,
        };
        Self {
            level,
            tables,
            how,
            at: 0,
            iter: None,
        }
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        let before = |table: &Arc<Tracked>| &table.meta.range.last[..] < key;
        self.at = self.tables.partition_point(before);
        self.open(Some(key))?;
        self.skip_ended()
    }

    /// Opens the table at `at`, at the first record from `key` on that is not trimmed away.
    fn open(&mut self, key: Option<&[u8]>) -> Result<()> {
        self.iter = None;
        let Some(table) = self.tables.get(self.at) else {
            return Ok(());
        };
        let mut iter = table.table.iter(self.how);
        match (&table.trim, key) {
            // Access records are puts at sequence 0: a delete there sorts right behind.
            (Some(trim), key) if key.is_none_or(|key| key <= &trim[..]) => {
                iter.seek(InternalKey::new(trim, 0, Kind::Delete))?;
            }
            (_, Some(key)) => iter.seek(InternalKey::seek_to(key, MAX_SEQ))?,
            (_, None) => iter.seek_to_first()?,
        }
        self.iter = Some(iter);
        Ok(())
    }

    fn skip_ended(&mut self) -> Result<()> {
        while self.iter.as_ref().is_some_and(|iter| !iter.valid()) {
            self.at += 1;
            self.open(None)?;
        }
        Ok(())
    }

    fn key(&self) -> Option<&[u8]> {
        let iter = self.iter.as_ref()?;
        Some(iter.key().user_key)
    }

    fn record(&self) -> Result<Record> {
        let value = self.iter.as_ref().map_or(&[][..], |iter| iter.value());
        Record::decode(value).ok_or_else(|| {
            let table = self.tables.get(self.at);
            let name = table.map_or_else(String::new, |table| table.meta.file_name());
            Error::corruption(name, 0, "an access record is not sound")
        })
    }

    fn next(&mut self) -> Result<()> {
        if let Some(iter) = &mut self.iter {
            iter.next()?;
        }
        self.skip_ended()
    }
}

/// Records that cannot be read are lost like damaged ones, and what is known is begun anew (I7).
/// Any other I/O error ends learning until the store is opened again. The opening reads no records:
/// it would find all in order, and the first merge the same sector.
fn lost(error: Error) -> Error {
    match error {
        Error::Io { path, source, .. } => {
            Error::corruption(path, 0, format!("it cannot be read: {source}"))
        }
        other => other,
    }
}

/// One record for each key, with all that several runs know of it. Stands on no record until the
/// first [`Merged::next`].
pub(super) struct Merged {
    /// Newest first.
    runs: Vec<Run>,
    /// Keys of other keyspaces are passed over.
    keyspaces: Arc<BTreeSet<KeyspaceId>>,
    model: Model,
    key: Vec<u8>,
    /// The records of the current key, newest first, each with its level.
    found: Vec<(usize, Record)>,
    /// HotRAP size of the records that were merged into another.
    pub(super) merged_away: u64,
    /// What all keys so far have shown, if that is asked for.
    pub(super) census: Option<Census>,
}

impl Merged {
    /// Merges `tables`, each with its level, from the key `from` on. They are in the order of
    /// levels, and there in that of their version. Only keys of `keyspaces` come out.
    ///
    /// # Errors
    /// Damage. What cannot be read counts as damaged.
    pub(super) fn new(
        tables: Vec<(usize, Arc<Tracked>)>,
        keyspaces: Arc<BTreeSet<KeyspaceId>>,
        model: Model,
        readahead: usize,
        from: &[u8],
    ) -> Result<Self> {
        let mut runs: Vec<Run> = Vec::new();
        for (level, table) in tables {
            match runs
                .last_mut()
                .filter(|run| level > 0 && run.level == level)
            {
                Some(run) => run.tables.push(table),
                None => runs.push(Run::new(level, vec![table], readahead)),
            }
        }
        for run in &mut runs {
            run.seek(from).map_err(lost)?;
        }
        Ok(Self {
            runs,
            keyspaces,
            model,
            key: Vec::new(),
            found: Vec::new(),
            merged_away: 0,
            census: None,
        })
    }

    /// The next key, if there is one at or before `last`, and what is known of it.
    ///
    /// # Errors
    /// As [`Merged::new`].
    pub(super) fn next(&mut self, last: Option<&[u8]>) -> Result<Option<(&[u8], Record)>> {
        let record = loop {
            if !self.gather(last)? {
                return Ok(None);
            }
            let record = self.merge_found();
            if is_of(&self.keyspaces, &self.key) {
                break record;
            }
        };
        if let Some((census, record)) = self.census.as_mut().zip(record) {
            census.count(&self.found, record.hot_rap_size(&self.key), &self.model);
        }
        Ok(record.map(|record| (&self.key[..], record)))
    }

    /// Goes to the next key, of whatever keyspace, and finds its records. Returns whether there is
    /// one.
    fn gather(&mut self, last: Option<&[u8]>) -> Result<bool> {
        let least = self.runs.iter().filter_map(Run::key).min();
        let Some(key) = least.filter(|key| last.is_none_or(|last| *key <= last)) else {
            return Ok(false);
        };
        self.key.clear();
        self.key.extend_from_slice(key);
        self.found.clear();
        for run in &mut self.runs {
            if run.key() == Some(&self.key[..]) {
                self.found.push((run.level, run.record()?));
                run.next().map_err(lost)?;
            }
        }
        Ok(true)
    }

    /// What all records of the key say together.
    fn merge_found(&mut self) -> Option<Record> {
        // From the oldest on, as the accesses came.
        let mut record = None;
        for &(_, newer) in self.found.iter().rev() {
            record = Some(match record {
                None => newer,
                Some(older) => {
                    self.merged_away += newer.hot_rap_size(&self.key);
                    self.model.merge(older, newer)
                }
            });
        }
        record
    }
}
