//! Hot keys in order, read lazily beside a merge of the store.

use super::cursor::Merged;
use super::limits::Cut;
use super::record::{PREFIX_LEN, tracked_key};
use super::shared::Shared;
use super::version::Tracked;
use crate::error::Result;
use crate::ids::KeyspaceId;
use crate::key::KeyRange;
use crate::sync::Arc;

/// Bytes read from a run in one I/O.
const READAHEAD: usize = 128 << 10;

/// The hot keys of a range in order, as of when this was made, for a merge that goes along.
pub(crate) struct HotKeys {
    shared: Arc<Shared>,
    /// Missing when nothing more is hot.
    known: Option<Known>,
    keyspace: KeyspaceId,
    last: Vec<u8>,
    merged: Option<Merged>,
    /// The hot key that comes next.
    next: Option<Vec<u8>>,
}

/// What says what is hot.
struct Known {
    /// The tables of the range alone, with their levels: a job may take long, and the files that it
    /// holds take room on the fast tier (I8).
    tables: Vec<(usize, Arc<Tracked>)>,
    hot: Cut,
}

impl HotKeys {
    /// The hot keys of `range`, as of now; nothing is read yet.
    pub(super) fn new(shared: Arc<Shared>, keyspace: KeyspaceId, range: &KeyRange) -> Self {
        let is_there = shared.has_keyspace(keyspace);
        let first = tracked_key(keyspace, &range.first);
        let last = tracked_key(keyspace, &range.last);
        let known = is_there.then(|| {
            let version = shared.version.load();
            Known {
                tables: version.within(&first, &last),
                hot: version.limits.hot,
            }
        });
        Self {
            shared,
            known,
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
                self.known = None;
                self.next = None;
                false
            }
        }
    }

    /// Moves to the first hot key at or after `key`.
    fn advance_to(&mut self, key: &[u8]) -> Result<()> {
        let Some(known) = &self.known else {
            return Ok(());
        };
        let merged = match &mut self.merged {
            Some(merged) => merged,
            none => {
                let first = tracked_key(self.keyspace, key);
                let (model, keyspaces) = (self.shared.model, self.shared.keyspaces.load_full());
                let meets = |(_, table): &&(usize, Arc<Tracked>)| table.meets(&first, &self.last);
                let tables = known.tables.iter().filter(meets).cloned().collect();
                let merged = Merged::new(tables, keyspaces, model, READAHEAD, &first)?;
                let merged = none.insert(merged);
                self.next = next_hot(merged, &self.shared, &known.hot, &self.last)?;
                merged
            }
        };
        while self.next.as_deref().is_some_and(|next| next < key) {
            self.next = next_hot(merged, &self.shared, &known.hot, &self.last)?;
        }
        Ok(())
    }
}

fn next_hot(
    merged: &mut Merged,
    shared: &Shared,
    hot: &Cut,
    last: &[u8],
) -> Result<Option<Vec<u8>>> {
    while let Some((key, record)) = merged.next(Some(last))? {
        let stable_before = shared.model.stable_before(&record);
        let rank = shared.model.rank(&record, key);
        if hot.admits(stable_before, rank) {
            return Ok(Some(key.get(PREFIX_LEN..).unwrap_or_default().to_vec()));
        }
    }
    Ok(None)
}

impl Drop for HotKeys {
    fn drop(&mut self) {
        // Files that only this cursor used may go.
        self.merged = None;
        self.known = None;
        self.shared.sweep();
    }
}
