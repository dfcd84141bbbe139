//! RALT, the Recent Access Lookup Table: which keys were read lately, and which of them are hot
//! (HotRAP, §3.2 and §3.7).
//!
//! Hotness is advice (I7): whatever happens to RALT costs speed, never an answer.
//!
//! An access goes to a [`buffer`]. Full buffers become tables of level 0 ([`worker`]), which a
//! [`pass`] over the key range merges down; a pass that evicts goes by thresholds that [`limits`]
//! takes from the tables' [`histogram`]s. A [`record`] is in a form that time does not change
//! ([`scoring`]). Readers take a [`version`]; a log of edits keeps the newest on disk
//! ([`state_log`]).

#[cfg(feature = "experiments")]
mod alone;
mod buffer;
mod close;
mod copy;
mod cursor;
mod files;
mod flush;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod heat;
mod histogram;
mod hot_filter;
mod hot_keys;
mod inspection;
mod levels;
mod limits;
mod mass;
mod open;
mod outlook;
mod pass;
mod record;
mod removal;
mod reuse;
mod scoring;
mod shared;
mod sizes;
mod state;
mod state_file;
mod state_log;
#[cfg(test)]
mod tests;
mod version;
mod worker;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[cfg(feature = "experiments")]
pub use alone::{RaltAlone, RaltWork};
pub(crate) use hot_filter::HotFilter;
pub(crate) use hot_keys::HotKeys;
pub use inspection::AccessRecords;
pub(crate) use mass::Mass;
pub(crate) use removal::discard;
pub(crate) use state_log::NAME as STATE;

use self::record::tracked_key;
use self::shared::Shared;
use self::version::Version;
use crate::error::{Damaged, Error, Result};
use crate::ids::KeyspaceId;
use crate::key::KeyRange;
use crate::metrics::{HeatReport, IoMetrics, RaltMetrics};
use crate::options::HotRapOptions;
use crate::points::Points;
use crate::storage::{LogStore, Medium};
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::tier::Tier;
use crate::version::edit::PlacedBy;

/// What RALT is made of.
pub(crate) struct RaltParts {
    pub(crate) database: u128,
    pub(crate) options: HotRapOptions,
    /// The fast tier: its space is shared (I8).
    pub(crate) fast: Arc<Tier>,
    pub(crate) medium: Arc<dyn Medium>,
    /// RALT's own directory.
    pub(crate) path: PathBuf,
    pub(crate) points: Points,
    /// The keyspaces there are.
    pub(crate) keyspaces: BTreeSet<KeyspaceId>,
    /// What placed the records until now. If by hotness, RALT has a state there, and if there is
    /// none, it was lost. If by level, what is left there was being removed.
    pub(crate) before: Option<PlacedBy>,
    /// Whether no file is to change.
    pub(crate) reads_only: bool,
}

/// The table of recent accesses.
#[derive(Debug)]
pub(crate) struct Ralt {
    shared: Arc<Shared>,
}

impl Ralt {
    /// Opens what an earlier process left; whatever is damaged or missing means an empty RALT (I7).
    pub(crate) fn open(parts: RaltParts) -> Self {
        Self {
            shared: Arc::new(Shared::open(parts)),
        }
    }

    /// The settings by which the access records in the directory `path` are scored and limited; all
    /// others are the defaults. None if there are no records, or none that can be read.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn settings(medium: &dyn Medium, path: &Path) -> Result<Option<HotRapOptions>> {
        let log = medium.log_store(path, false);
        match log.and_then(|log| log.read(STATE)) {
            Ok(bytes) => Ok(state_file::settings(&bytes)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether there is a state in the directory `path`, whole or not.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn has_left_a_state(medium: &dyn Medium, path: &Path) -> Result<bool> {
        let log = medium.log_store(path, false);
        match log.and_then(|log| log.list()) {
            Ok(files) => Ok(files.iter().any(|file| file.name == STATE)),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Why RALT could not be used as it was left, or what went wrong since, if anything did.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.shared.trouble()
    }

    /// Logs `times` accesses to a record, in one time slice. This is cheap: a copy into a buffer.
    /// Returns whether background work is due, for the caller to queue.
    pub(crate) fn log(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
        value_len: usize,
        times: u32,
    ) -> bool {
        if self.shared.stopped.load(Ordering::Relaxed) {
            self.shared.buffers.refuse(times);
            return false;
        }
        self.shared.buffers.push(keyspace, key, value_len, times)
    }

    /// The current time slice: accesses in one slice count once for a key's score.
    pub(crate) fn slice(&self) -> u64 {
        self.shared.slice()
    }

    /// Whether a record that was read once deserves the fast tier. It does if nothing was ever
    /// evicted, so that there was room for all, and it is not shown that all are read alike. It
    /// also does while a hotspot is being learnt. It does not when RALT has stopped.
    pub(crate) fn is_generous(&self) -> bool {
        self.shared.is_generous(&self.shared.version.load())
    }

    /// Whether `key` is hot. Filters only, no I/O; errs towards yes, rarely.
    pub(crate) fn is_hot(&self, keyspace: KeyspaceId, key: &[u8]) -> bool {
        self.ask(keyspace, key, Version::may_be_hot)
    }

    /// Whether `key` is hot, or would be with one more read: one that was not [logged](Ralt::log)
    /// yet, like that of a record in the promotion cache. Filters only, no I/O; errs towards yes,
    /// rarely.
    pub(crate) fn is_hot_with_a_read(&self, keyspace: KeyspaceId, key: &[u8]) -> bool {
        // The read would never be logged. The record would be promoted for it, go down again as
        // cold, and be promoted anew at the next read.
        if self.shared.stopped.load(Ordering::Relaxed) {
            return self.is_hot(keyspace, key);
        }
        self.ask(keyspace, key, Version::may_be_hot_with_a_read)
    }

    fn ask(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
        is_hot: impl Fn(&Version, &[u8]) -> Result<bool>,
    ) -> bool {
        if !self.shared.has_keyspace(keyspace) {
            return false;
        }
        let key = tracked_key(keyspace, key);
        let hot = is_hot(&self.shared.version.load(), &key);
        hot.unwrap_or_else(|error| {
            self.shared.note_damage(&error);
            false
        })
    }

    /// About how many bytes of records with keys in `range` are hot. Errs towards more.
    pub(crate) fn hot_bytes(&self, keyspace: KeyspaceId, range: &KeyRange) -> u64 {
        if !self.shared.has_keyspace(keyspace) {
            return 0;
        }
        let first = tracked_key(keyspace, &range.first);
        let last = tracked_key(keyspace, &range.last);
        let bytes = self.shared.version.load().hot_bytes(&first, &last);
        bytes.unwrap_or_else(|error| {
            self.shared.note_damage(&error);
            0
        })
    }

    /// How often what is hot has changed, counting the opening. Until this changes again, the same
    /// is hot.
    pub(crate) fn changes(&self) -> u64 {
        self.shared.changes.load(Ordering::Acquire)
    }

    /// About how many bytes of a keyspace's records are hot. The numbers of all keyspaces add up to
    /// the hot set.
    pub(crate) fn hot_set_of(&self, keyspace: KeyspaceId) -> u64 {
        let bytes = self.shared.version.load().hot_set_of(keyspace);
        bytes.unwrap_or_else(|error| {
            self.shared.note_damage(&error);
            0
        })
    }

    /// The hot keys in `range`, in order, as of now.
    pub(crate) fn hot_keys(&self, keyspace: KeyspaceId, range: &KeyRange) -> HotKeys {
        HotKeys::new(Arc::clone(&self.shared), keyspace, range)
    }

    /// Says of ascending keys in `range` whether they are hot, as [`Ralt::is_hot`] would now.
    pub(crate) fn hot_filter(&self, keyspace: KeyspaceId, range: &KeyRange) -> HotFilter {
        HotFilter::new(Arc::clone(&self.shared), keyspace, range)
    }

    /// Limits the hot set to `bytes` of keys and values, which the last fast level has room for,
    /// whatever else limits it. Makes work due if there is more than the limits allow: whoever
    /// tells of room may have made space that was missing.
    pub(crate) fn set_room(&self, bytes: u64) {
        self.shared.room.store(bytes, Ordering::Relaxed);
        if self.shared.is_over(&self.shared.version.load()) {
            self.shared.pending.store(true, Ordering::Release);
        }
    }

    /// Bytes of keys and values that are worth the fast tier, whether it has room for them or not.
    pub(crate) fn worth(&self) -> u64 {
        let version = self.shared.version.load();
        match version.limits.generation {
            0 => version.hot_set(),
            _ => version.limits.hot_set,
        }
    }

    /// Bytes of keys and values that may be worth the fast tier, as far as is known. As long as no
    /// eviction has measured anything, that is most of what the fast tier holds: were it what is
    /// tracked so far, the hot set would not get the room in which it is learnt.
    pub(crate) fn may_be_worth(&self) -> u64 {
        self.shared.version.load().limits.hot_set
    }

    /// Says about how many bytes of keys and values the store holds, including those that were not
    /// accessed and might have been.
    pub(crate) fn set_data(&self, bytes: u64) {
        self.shared.data.store(bytes, Ordering::Relaxed);
    }

    /// What [`Ralt::set_data`] said last.
    #[cfg(test)]
    pub(crate) fn data(&self) -> u64 {
        self.shared.data.load(Ordering::Relaxed)
    }

    /// Whether a step of the background work is due.
    pub(crate) fn has_work(&self) -> bool {
        let due = self.shared.pending.load(Ordering::Relaxed) || self.shared.buffers.is_flush_due();
        due && !self.shared.stopped.load(Ordering::Relaxed)
    }

    /// Whether a flush is due. If it still is after work, there is no space for it.
    pub(crate) fn is_flush_due(&self) -> bool {
        self.shared.buffers.is_flush_due()
    }

    /// Does a part of the background work that is due. Returns whether more is due.
    pub(crate) fn work(&self) -> bool {
        self.shared.work()
    }

    /// Tracks what is accessed in `keyspace`, which is new. To be called before the first access.
    pub(crate) fn track(&self, keyspace: KeyspaceId) {
        self.shared.track(keyspace);
    }

    /// Forgets what was accessed in `keyspace`, which is dropped: nothing of it is hot from now on,
    /// and its records are gone with the next merge of each table.
    pub(crate) fn forget(&self, keyspace: KeyspaceId) {
        self.shared.forget(keyspace);
    }

    /// Writes what is buffered. No work may run meanwhile, or follow.
    pub(crate) fn close(&self) {
        self.shared.close();
    }

    /// Whether there is a state on disk, which the next opening finds. Waits for nobody.
    pub(crate) fn has_state(&self) -> bool {
        self.shared.state_len.load(Ordering::Acquire) > 0
    }

    /// Copies what is known, including what is buffered, into the empty directory of `target`.
    /// Returns whether there was anything that may be relied on. May make work due. Copies nothing
    /// once RALT is closed.
    ///
    /// # Errors
    /// I/O errors; what `target` holds is then of no use.
    pub(crate) fn copy_to(&self, target: &dyn LogStore) -> Result<bool> {
        self.shared.copy_to(target)
    }

    /// What was read and written for access records.
    pub(crate) fn io(&self) -> IoMetrics {
        self.shared.io()
    }

    /// Bytes of its files on the fast tier.
    pub(crate) fn file_bytes(&self) -> u64 {
        let tables = self.shared.version.load().physical();
        tables + self.shared.state_len.load(Ordering::Acquire)
    }

    /// What RALT counts, as of now, except its processor time: that is counted where its work is
    /// queued.
    pub(crate) fn metrics(&self) -> RaltMetrics {
        self.shared.metrics()
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
        let heat = self.shared.heat(most, name);
        heat.map_err(|error| error.of(Damaged::AccessRecords))
    }
}
