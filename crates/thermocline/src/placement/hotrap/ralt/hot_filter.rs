//! Which keys of a range are hot, by filters alone, for a merge that goes along.

use super::record::{PREFIX_LEN, tracked_key};
use super::shared::Shared;
use super::version::Tracked;
use crate::error::Result;
use crate::ids::KeyspaceId;
use crate::key::KeyRange;
use crate::sync::Arc;

/// Answers as [`super::Ralt::is_hot`] did when this was made, for ascending keys: it moves from
/// table to table, where a single question looks for its table in each level.
pub(crate) struct HotFilter {
    shared: Arc<Shared>,
    /// The tables of the range alone: a job may take long, and the files that it holds take room on
    /// the fast tier (I8).
    runs: Vec<Run>,
    /// The key that is asked for, as tables hold it.
    key: Vec<u8>,
}

/// The tables of a sorted level; or one of level 0.
struct Run {
    level: usize,
    tables: Vec<Arc<Tracked>>,
    /// The first table that ends at the last key or behind.
    at: usize,
}

impl Run {
    fn may_be_hot(&mut self, key: &[u8]) -> Result<bool> {
        let ends_before = |table: &Arc<Tracked>| &table.meta.range.last[..] < key;
        while self.tables.get(self.at).is_some_and(ends_before) {
            self.at += 1;
        }
        let table = self.tables.get(self.at);
        table.map_or(Ok(false), |table| table.may_be_hot(key))
    }
}

impl HotFilter {
    /// What is hot of `range`, as of now.
    pub(super) fn new(shared: Arc<Shared>, keyspace: KeyspaceId, range: &KeyRange) -> Self {
        let first = tracked_key(keyspace, &range.first);
        let last = tracked_key(keyspace, &range.last);
        let mut runs: Vec<Run> = Vec::new();
        if shared.has_keyspace(keyspace) {
            for (level, table) in shared.version.load().within(&first, &last) {
                match runs
                    .last_mut()
                    .filter(|run| level > 0 && run.level == level)
                {
                    Some(run) => run.tables.push(table),
                    None => runs.push(Run {
                        level,
                        tables: vec![table],
                        at: 0,
                    }),
                }
            }
        }
        Self {
            shared,
            runs,
            key: first,
        }
    }

    /// Whether `key` is hot. Called with ascending keys. Errs towards yes, rarely.
    pub(crate) fn is_hot(&mut self, key: &[u8]) -> bool {
        self.key.truncate(PREFIX_LEN);
        self.key.extend_from_slice(key);
        for run in &mut self.runs {
            match run.may_be_hot(&self.key) {
                Ok(true) => return true,
                Ok(false) => {}
                Err(error) => {
                    self.shared.note_damage(&error);
                    self.runs.clear();
                    return false;
                }
            }
        }
        false
    }
}

impl Drop for HotFilter {
    fn drop(&mut self) {
        // Files that only this used may go.
        self.runs.clear();
        self.shared.sweep();
    }
}
