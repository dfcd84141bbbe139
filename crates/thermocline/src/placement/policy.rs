//! The seam for placement: what the engine asks whoever decides where records live.
//!
//! The engine knows one policy, by this trait. Each question has the answer of placement by level,
//! so that a policy says only what it does otherwise. A policy gets the engine with each call and
//! keeps none: its jobs hold one for as long as they run.

use super::{Joining, Moved, Router, Shares, Taken};
use crate::engine::{Engine, Found, Tree};
use crate::error::Result;
use crate::ids::KeyspaceId;
use crate::key::SeqNo;
use crate::levels::{BypassWorth, Hotness, Plan};
use crate::metrics::{HeatReport, HotRapMetrics, IoMetrics};
use crate::read::Superversion;
use crate::record::Record;
use crate::storage::Medium;
use crate::table::ReadTrace;
use crate::tier::Tier;
use crate::version::Version;
use crate::version::edit::PlacedBy;

/// A point read, once it has ended.
pub(crate) struct Read<'a> {
    pub(crate) tree: &'a Tree,
    /// What it searched, and as of when.
    pub(crate) seen: &'a Superversion,
    pub(crate) seq: SeqNo,
    pub(crate) key: &'a [u8],
    pub(crate) found: Found,
    /// What it found, a delete perhaps.
    pub(crate) record: Option<&'a Record>,
    pub(crate) trace: &'a ReadTrace,
}

/// Where a table goes that lies on the last tier though its level belongs on the first: there was
/// no room when it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spilled {
    /// To the first tier, written anew.
    Up,
    /// A level down.
    Down,
}

/// Decides where records live.
pub(crate) trait PlacementPolicy: Send + Sync {
    // Where tables and records go.

    /// The tiers on which new tables of the levels up to f belong, and those of the levels below,
    /// of a store with so many `tiers`.
    fn level_tiers(&self, tiers: usize) -> [u8; 2] {
        [0, tiers as u8 - 1]
    }

    /// How much of the tables of `tree`, as `version` has them, is hot; none where nothing is. With
    /// an answer, each crossing may leave records on the fast tier ([`PlacementPolicy::router`]).
    fn hotness<'a>(&'a self, tree: &'a Tree, version: &Version) -> Option<Box<dyn Hotness + 'a>> {
        let _ = (tree, version);
        None
    }

    /// What passing level f by is worth, if it may be done.
    fn bypass_worth(&self, tree: &Tree) -> Option<BypassWorth> {
        let _ = tree;
        None
    }

    /// Whether a record of `key` that lies above f would stay there on a way past level f.
    fn would_stay(&self, tree: &Tree, key: &[u8]) -> bool {
        let _ = (tree, key);
        false
    }

    /// What the last fast levels of all keyspaces may take now, in bytes; none where that is what
    /// is planned for them.
    fn room_of_last_levels(&self, engine: &Engine, shares: &Shares) -> Option<u64> {
        let _ = (engine, shares);
        None
    }

    /// Where spilled tables go; none where they stay until what is written takes them along.
    fn spilled_go(&self) -> Option<Spilled> {
        None
    }

    // Reads.

    /// Takes note of a point read. On the way of every one of them.
    fn on_read(&self, engine: &Engine, read: &Read<'_>) {
        let _ = (engine, read);
    }

    /// Takes note of `times` reads that a cache of records has answered.
    fn on_cached_reads(
        &self,
        engine: &Engine,
        keyspace: KeyspaceId,
        key: &[u8],
        value_len: usize,
        times: u32,
    ) {
        let _ = (engine, keyspace, key, value_len, times);
    }

    /// The time by which a cache of records gathers its reads; none where nobody wants to hear of
    /// them.
    fn slice(&self) -> Option<u64> {
        None
    }

    // Crossings: from their start to their installation.

    /// Begins the crossing `plan`, whose number is `job`, before it reads or moves anything (I6).
    /// Records of its keys that lay beside the levels come back, to join the merge.
    fn claim(&self, engine: &Engine, tree: &Tree, plan: &Plan, job: u64) -> Option<Joining> {
        let _ = (engine, tree, plan, job);
        None
    }

    /// Who chooses among the outputs of the crossing `plan`, in which `joining` take part; none
    /// where there is no choice. Of what comes from above some part has to go down, whatever is
    /// hot: a crossing may be what makes room on a tier that is full.
    fn router(
        &self,
        tree: &Tree,
        plan: &Plan,
        joining: Option<&Joining>,
    ) -> Option<Box<dyn Router>> {
        let _ = (tree, plan, joining);
        None
    }

    /// Takes note of what a job of `tree` has moved, once it is installed.
    fn moved(&self, engine: &Engine, moved: Moved) {
        let _ = (engine, moved);
    }

    /// Takes back what came beside the levels while a crossing ran, and that it has brought up.
    fn taken(&self, engine: &Engine, tree: &Tree, taken: &Taken) {
        let _ = (engine, tree, taken);
    }

    // What changes around it.

    /// Takes stock once the tables of a keyspace have changed.
    fn after_change(&self, engine: &Engine) {
        let _ = engine;
    }

    /// Room may have been made on the fast tier, by a flush or a compaction that has ended.
    fn room_was_made(&self, engine: &Engine) {
        let _ = engine;
    }

    /// A compaction that was to make room has failed.
    fn room_was_not_made(&self, engine: &Engine) {
        let _ = engine;
    }

    /// How much what waits to be written costs, from 0 to 1, at which writers are all but stopped.
    fn pressure(&self, engine: &Engine) -> f64 {
        let _ = engine;
        0.0
    }

    /// Whether work of its own is queued or runs that may change tables.
    fn is_moving(&self, engine: &Engine) -> bool {
        let _ = engine;
        false
    }

    /// Whether other work of its own is queued or runs.
    fn is_copying(&self) -> bool {
        false
    }

    // Keyspaces, opening and closing.

    /// A keyspace has been made.
    fn track(&self, keyspace: KeyspaceId) {
        let _ = keyspace;
    }

    /// A keyspace is gone.
    fn forget(&self, keyspace: KeyspaceId) {
        let _ = keyspace;
    }

    /// What a manifest that is begun now is to say of placement.
    fn placed_by(&self) -> Option<PlacedBy>;

    /// The manifest is begun: what another policy has left on the fast tier may go. What is wrong
    /// comes back.
    fn begun(&self, medium: &dyn Medium, fast: &Tier) -> Option<String> {
        super::discard(medium, fast).err().map(|e| e.to_string())
    }

    /// What is wrong with what it keeps on disk.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// The store is open, and nothing runs yet.
    fn opened(&self, engine: &Engine) {
        let _ = engine;
    }

    /// Copies what it keeps on disk to the fast tier `target` of a checkpoint; gives back what the
    /// copy's manifest is to say of placement.
    fn copy_to(&self, engine: &Engine, target: &Tier) -> Option<PlacedBy> {
        let _ = (engine, target);
        self.placed_by()
    }

    /// The store is being closed, and no job runs any more.
    fn close(&self, engine: &Engine) {
        let _ = engine;
    }

    // What it counts.

    /// Bytes of files on the fast tier that stay there whatever is written.
    fn file_bytes(&self) -> u64 {
        0
    }

    /// I/O on the fast tier that its tier does not count.
    fn io(&self) -> Option<IoMetrics> {
        None
    }

    /// Bytes of keys and values of a keyspace that are hot.
    fn hot_bytes(&self, keyspace: KeyspaceId) -> Option<u64> {
        let _ = keyspace;
        None
    }

    /// The counters of placement by hotness.
    fn metrics(&self, engine: &Engine) -> Option<HotRapMetrics> {
        let _ = engine;
        None
    }

    /// The `most` hottest keys, and how the data's size falls with its hotness.
    ///
    /// # Errors
    /// I/O errors; damage of what it keeps on disk.
    fn heat(&self, engine: &Engine, most: usize) -> Result<HeatReport> {
        let _ = (engine, most);
        Ok(HeatReport::default())
    }

    /// Placement by hotness, for tests of it.
    #[cfg(test)]
    fn as_hotrap(&self) -> Option<&super::HotRap> {
        None
    }
}
