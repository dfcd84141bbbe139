//! Hot keys in order, read lazily beside a merge of the store.

use super::cursor::Merged;
use super::record::{PREFIX_LEN, tracked_key};
use super::shared::Shared;
use super::version::Version;
use crate::error::Result;
use crate::ids::KeyspaceId;
use crate::key::KeyRange;
use crate::sync::Arc;

/// Bytes read from a run in one I/O.
const READAHEAD: usize = 128 << 10;

/// The hot keys of a range in order, as of when this was made, for a merge that goes along.
pub(crate) struct HotKeys {
    shared: Arc<Shared>,
    /// Holds the tables of the range alone: a job may take long, and the files that it holds take
    /// room on the fast tier (I8). Missing when nothing more is hot.
    version: Option<Version>,
    keyspace: KeyspaceId,
    last: Vec<u8>,
    merged: Option<Merged>,
    /// The hot key that comes next.
    next: Option<Vec<u8>>,
}

impl HotKeys {
    /// The hot keys of `range`, as of now; nothing is read yet.
    pub(super) fn new(shared: Arc<Shared>, keyspace: KeyspaceId, range: &KeyRange) -> Self {
        let is_there = shared.has_keyspace(keyspace);
        let first = tracked_key(keyspace, &range.first);
        let last = tracked_key(keyspace, &range.last);
        let version = is_there.then(|| shared.version.load().within(&first, &last));
        Self {
            shared,
            version,
            keyspace,
            last,
            merged: None,
            next: None,
        }
    }

    /// Whether `key` is hot. Called with ascending keys.
    pub(crate) fn is_hot(&mut self, key: &[u8]) -> bool {
        match self.advance_to(key) {
            Ok(()) => self.next.as_deref() == Some(key),
            Err(error) => {
                self.shared.note_damage(&error);
                self.merged = None;
                self.version = None;
                self.next = None;
                false
            }
        }
    }

    /// Moves to the first hot key at or after `key`.
    fn advance_to(&mut self, key: &[u8]) -> Result<()> {
        let Some(version) = &self.version else {
            return Ok(());
        };
        let merged = match &mut self.merged {
            Some(merged) => merged,
            none => {
                let first = tracked_key(self.keyspace, key);
                let meets = |_, table: &super::version::Tracked| table.meets(&first, &self.last);
                let (model, keyspaces) = (self.shared.model, self.shared.keyspaces.load_full());
                let merged = Merged::new(version, keyspaces, model, READAHEAD, &first, meets)?;
                let merged = none.insert(merged);
                self.next = next_hot(merged, &self.shared, version, &self.last)?;
                merged
            }
        };
        while self.next.as_deref().is_some_and(|next| next < key) {
            self.next = next_hot(merged, &self.shared, version, &self.last)?;
        }
        Ok(())
    }
}

fn next_hot(
    merged: &mut Merged,
    shared: &Shared,
    version: &Version,
    last: &[u8],
) -> Result<Option<Vec<u8>>> {
    while let Some((key, record)) = merged.next(Some(last))? {
        let stable_before = shared.model.stable_before(&record);
        let rank = shared.model.rank(&record, key);
        if version.limits.hot.admits(stable_before, rank) {
            return Ok(Some(key.get(PREFIX_LEN..).unwrap_or_default().to_vec()));
        }
    }
    Ok(None)
}

impl Drop for HotKeys {
    fn drop(&mut self) {
        // Files that only this cursor used may go.
        self.merged = None;
        self.version = None;
        self.shared.sweep();
    }
}
