//! RALT, the Recent Access Lookup Table: which keys were read lately, and which of them are hot
//! (HotRAP, §3.2 and §3.7).
//!
//! Hotness is advice (I7): whatever happens to RALT costs speed, never an answer.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::clock::Clock;
use crate::error::Result;
use crate::key::KeyRange;
use crate::metrics::{HeatReport, RaltMetrics};
use crate::options::HotRapOptions;
use crate::points::Points;
use crate::storage::Medium;
use crate::sync::{Arc, Mutex};
use crate::tier::Tier;
use crate::version::edit::KeyspaceId;

/// What RALT is made of.
pub(crate) struct RaltParts {
    pub(crate) database: u128,
    pub(crate) options: HotRapOptions,
    /// The fast tier: its space is shared (I8).
    pub(crate) fast: Arc<Tier>,
    pub(crate) medium: Arc<dyn Medium>,
    /// RALT's own directory.
    pub(crate) path: PathBuf,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) points: Points,
}

/// The table of recent accesses.
#[derive(Debug)]
pub(crate) struct Ralt {
    tracked: Mutex<BTreeMap<(KeyspaceId, Vec<u8>), (u32, u64)>>,
}

impl Ralt {
    /// Opens what an earlier process left; whatever is damaged or missing means an empty RALT (I7).
    pub(crate) fn open(parts: RaltParts) -> Self {
        let _ = (
            parts.database,
            parts.options,
            parts.fast,
            parts.medium,
            parts.path,
            parts.clock,
            parts.points,
        );
        Self {
            tracked: Mutex::default(),
        }
    }

    /// Why RALT could not be used as it was left, if so.
    pub(crate) fn trouble(&self) -> Option<String> {
        None
    }

    /// Logs `times` accesses to a record. Cheap: a copy into a buffer. Whether background work
    /// is due, for the caller to queue.
    pub(crate) fn log(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
        value_len: usize,
        times: u32,
    ) -> bool {
        let mut tracked = self.tracked.lock();
        let entry = tracked.entry((keyspace, key.to_vec())).or_default();
        entry.0 += times;
        entry.1 = (key.len() + value_len) as u64;
        false
    }

    /// Whether nothing was ever evicted: there was room for every record read so far.
    pub(crate) fn is_young(&self) -> bool {
        false
    }

    /// Whether `key` is hot. Filters only, no I/O; errs towards yes, rarely.
    pub(crate) fn is_hot(&self, keyspace: KeyspaceId, key: &[u8]) -> bool {
        let key = (keyspace, key.to_vec());
        self.tracked.lock().contains_key(&key)
    }

    /// About how many bytes of records with keys in `range` are hot. Errs towards more.
    pub(crate) fn hot_bytes(&self, keyspace: KeyspaceId, range: &KeyRange) -> u64 {
        let bounds = (keyspace, range.first.to_vec())..=(keyspace, range.last.to_vec());
        self.tracked.lock().range(bounds).map(|(_, e)| e.1).sum()
    }

    /// The hot keys in `range`, in order, as of now.
    pub(crate) fn hot_keys(&self, keyspace: KeyspaceId, range: &KeyRange) -> HotKeys {
        let bounds = (keyspace, range.first.to_vec())..=(keyspace, range.last.to_vec());
        let tracked = self.tracked.lock();
        let keys = tracked.range(bounds).map(|(key, _)| key.1.clone());
        HotKeys {
            keys: keys.collect::<Vec<_>>().into_iter().peekable(),
        }
    }

    /// Limits the hot set to `bytes` of keys and values, whatever else limits it: what the last fast
    /// level has room for.
    pub(crate) fn set_room(&self, bytes: u64) {
        let _ = bytes;
    }

    /// Does a part of the background work that is due; whether more is.
    pub(crate) fn work(&self) -> bool {
        false
    }

    /// Whether background work is due.
    pub(crate) fn has_work(&self) -> bool {
        false
    }

    /// Forgets what was accessed in `keyspace`, with the next merge of each table at the latest.
    pub(crate) fn forget(&self, keyspace: KeyspaceId) {
        self.tracked.lock().retain(|key, _| key.0 != keyspace);
    }

    /// Writes what is buffered. No work may run meanwhile, or follow.
    pub(crate) fn close(&self) {}

    pub(crate) fn metrics(&self) -> RaltMetrics {
        RaltMetrics::default()
    }

    /// The `most` hottest keys, and the curve of size by hotness. `name` names a keyspace.
    ///
    /// # Errors
    /// I/O errors, and damage.
    pub(crate) fn heat(
        &self,
        most: usize,
        name: &dyn Fn(KeyspaceId) -> Option<String>,
    ) -> Result<HeatReport> {
        let _ = (most, name);
        Ok(HeatReport::default())
    }
}

/// Hot keys in order, for a merge that goes along.
pub(crate) struct HotKeys {
    keys: std::iter::Peekable<std::vec::IntoIter<Vec<u8>>>,
}

impl HotKeys {
    /// Whether `key` is hot. Called with ascending keys.
    pub(crate) fn is_hot(&mut self, key: &[u8]) -> bool {
        while self.keys.next_if(|hot| &hot[..] < key).is_some() {}
        self.keys.peek().is_some_and(|hot| hot == key)
    }
}
