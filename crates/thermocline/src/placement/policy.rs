//! The seam for placement: what the engine asks whoever decides where records live.
//!
//! The engine knows its one policy by this trait. Each method's default is the answer of placement
//! by level, so that a policy says only what it does differently; only
//! [`PlacementPolicy::placed_by`] has none. A policy gets the engine with each call and does not
//! keep it: its jobs hold the engine for as long as they run.
//!
//! A policy of one's own starts as `placement/toy.rs` does. For users it also takes a name in
//! [`Placement`](crate::options::Placement), and a line in `placement/opening.rs`.

use std::time::Duration;

use super::{Choice, Joining, Moved, Output, Shares, Taken};
use crate::engine::{Engine, Found, Tree};
use crate::error::Result;
use crate::ids::KeyspaceId;
use crate::key::{KeyRange, SeqNo};
use crate::levels::{BypassWorth, Hotness, Plan, Spread};
use crate::metrics::{CostReport, HeatReport, HotRapMetrics, IoMetrics};
use crate::options::Target;
use crate::read::Superversion;
use crate::record::Record;
use crate::storage::Medium;
use crate::sync::Arc;
use crate::table::{ReadTrace, TableMeta};
use crate::tier::Tier;
use crate::version::edit::PlacedBy;
use crate::version::{TableHandle, Version};

/// Tells of ascending keys whether a bypass would leave their records above level f.
pub(crate) type Stayers = Box<dyn FnMut(&[u8]) -> bool + Send>;

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

/// Where to move a table that lies on the last tier although its level belongs on the first,
/// because there was no room when it was written.
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

    /// The tier for new tables of the levels up to f, and the tier for those of the levels below,
    /// in a store with so many `tiers`. Both are below `tiers`, and the second is not faster than
    /// the first. The number f itself is no policy's choice: it is fixed when a keyspace is
    /// created.
    fn level_tiers(&self, tiers: usize) -> [u8; 2] {
        [0, tiers as u8 - 1]
    }

    /// The level up to which sizes are those of the fast tier, in a keyspace whose manifest says
    /// `founded`. The last level of all where levels have nothing to do with tiers.
    fn last_fast_level(&self, founded: u8) -> u8 {
        founded
    }

    /// The last level whose tables are at home on the first of these tiers, where f is
    /// `last_fast_level`.
    fn last_fast_home(&self, last_fast_level: u8) -> u8 {
        last_fast_level
    }

    /// How much of the tables of `tree`, as `version` has them, is hot; none if nothing is. With an
    /// answer, each crossing may leave records on the fast tier ([`PlacementPolicy::choice`]), and
    /// the picker takes tables with few hot bytes first: of each table's file bytes those that are
    /// hot count as bytes that stay. Called with the tree's state locked.
    fn hotness<'a>(&'a self, tree: &'a Tree, version: &Version) -> Option<Box<dyn Hotness + 'a>> {
        let _ = (tree, version);
        None
    }

    /// Which of the tables that `plan` writes at `output` lie on faster tiers than that; none if
    /// none do.
    fn spread(&self, engine: &Engine, plan: &Plan, output: Output) -> Option<Spread> {
        let _ = (engine, plan, output);
        None
    }

    /// How many reads a second and byte a table counts for in a merge if nothing is known of its
    /// heat.
    fn unknown_density(&self) -> f64 {
        0.0
    }

    /// What a bypass of level f is worth, if one may be done.
    fn bypass_worth(&self, tree: &Tree) -> Option<BypassWorth> {
        let _ = tree;
        None
    }

    /// What tells of ascending keys in `range` whether a bypass would leave a record that lies
    /// above level f where it is; none if it would leave none.
    fn stayers(&self, tree: &Tree, range: &KeyRange) -> Option<Stayers> {
        let _ = (tree, range);
        None
    }

    /// Bytes that the last fast levels of all keyspaces may take now if `planned` are planned for
    /// the fast tier; none if that is what is planned for them. Less than a quarter of what is
    /// planned counts as that quarter.
    fn room_of_last_levels(&self, engine: &Engine, shares: &Shares, planned: u64) -> Option<u64> {
        let _ = (engine, shares, planned);
        None
    }

    /// Where to move spilled tables; none if they stay until a compaction of what is written takes
    /// them along.
    fn spilled_go(&self) -> Option<Spilled> {
        None
    }

    /// The next table that is to be written anew on another tier, if no such work runs.
    fn migration(&self, engine: &Engine) -> Option<(Arc<Tree>, Plan)> {
        let _ = engine;
        None
    }

    /// Whether that is to start before any compaction.
    fn migration_is_overdue(&self) -> bool {
        false
    }

    /// A job has begun.
    fn job_began(&self, plan: &Plan) {
        let _ = plan;
    }

    /// A job of `plan` has written `tables`, and they are installed.
    fn written(&self, plan: &Plan, tables: &[TableMeta]) {
        let _ = (plan, tables);
    }

    /// Tables that `may` go to make room on the fast tier, the first first; none if levels say
    /// which.
    fn gives_way(
        &self,
        engine: &Engine,
        may: &dyn Fn(&TableHandle) -> bool,
    ) -> Option<Vec<(Arc<Tree>, Plan)>> {
        let _ = (engine, may);
        None
    }

    // Reads.

    /// It is `now`. Called once in a while when somebody reads.
    fn tick(&self, engine: &Engine, now: Duration) {
        let _ = (engine, now);
    }

    /// Takes note of a point read. Every point read passes through here, also one that the record
    /// cache answered ([`Found::RecordCache`]).
    fn on_read(&self, engine: &Engine, read: &Read<'_>) {
        let _ = (engine, read);
    }

    /// Takes note of `times` reads, 0 perhaps, that the record cache has answered and gathered
    /// since it last told of this key. Each has passed through [`PlacementPolicy::on_read`], too: a
    /// policy that counts reads takes those of the record cache from here only.
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

    /// The time slice by which a cache of records gathers its reads; none if nobody wants to hear
    /// of them.
    fn slice(&self) -> Option<u64> {
        None
    }

    // Crossings: from their start to their installation.

    /// Begins the crossing `plan`, whose number is `job`, before it reads or moves anything (I6).
    /// Returns the records of its keys that lay beside the levels, so that they join the merge.
    fn claim(&self, engine: &Engine, tree: &Tree, plan: &Plan, job: u64) -> Option<Joining> {
        let _ = (engine, tree, plan, job);
        None
    }

    /// Which records of the crossing `plan`, in which `joining` take part, stay on the fast tier or
    /// come up to it; none if there is no choice. At least a tenth of the input from above goes
    /// down, whatever is chosen: a crossing may be what makes room on a tier that is full. What a
    /// policy may not choose, as an older version than one that has gone down, it is not asked for.
    fn choice(
        &self,
        tree: &Tree,
        plan: &Plan,
        joining: Option<&Joining>,
    ) -> Option<Box<dyn Choice>> {
        let _ = (tree, plan, joining);
        None
    }

    /// Takes note of what a job of `tree` has moved, once it is installed.
    fn moved(&self, engine: &Engine, moved: Moved) {
        let _ = (engine, moved);
    }

    /// Takes over the records that came to lie beside the levels while a crossing ran and that the
    /// crossing has itself brought up.
    fn taken(&self, engine: &Engine, tree: &Tree, taken: &Taken) {
        let _ = (engine, tree, taken);
    }

    // What changes around it.

    /// The store's target has changed.
    fn target_set(&self, engine: &Engine) {
        let _ = engine;
    }

    /// Takes stock once the tables of a keyspace have changed.
    fn after_change(&self, engine: &Engine) {
        let _ = engine;
    }

    /// A flush or a compaction has ended, and may have made room on the fast tier.
    fn room_was_made(&self, engine: &Engine) {
        let _ = engine;
    }

    /// A compaction that was to make room has failed.
    fn room_was_not_made(&self, engine: &Engine) {
        let _ = engine;
    }

    /// How much the backlog of writes costs, from 0 to 1. At 1 writers are all but stopped.
    fn pressure(&self, engine: &Engine) -> f64 {
        let _ = engine;
        0.0
    }

    /// Whether work of the policy's own that may change tables is queued or runs.
    fn is_moving(&self, engine: &Engine) -> bool {
        let _ = engine;
        false
    }

    /// Whether other work of the policy's own is queued or runs.
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

    /// What a manifest that begins now has to say about placement; none if it says nothing. By it
    /// tools that open the store with default options take over the policy.
    fn placed_by(&self) -> Option<PlacedBy>;

    /// The manifest has begun, so what another policy has left on the fast tier may go. Returns
    /// what is wrong, if anything.
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

    /// Copies what it keeps on disk to the fast tier `target` of a checkpoint. Returns what the
    /// copy's manifest has to say about placement.
    fn copy_to(&self, engine: &Engine, target: &Tier) -> Option<PlacedBy> {
        let _ = (engine, target);
        self.placed_by()
    }

    /// The store is being closed, and no job runs any more.
    fn close(&self, engine: &Engine) {
        let _ = engine;
    }

    // What it counts.

    /// Whether the heat of tables is to be kept when the store is closed.
    fn keeps_heat(&self, engine: &Engine) -> bool {
        engine.target.get() != Target::None
    }

    /// Bytes of files on the fast tier that stay there whatever is written.
    fn file_bytes(&self) -> u64 {
        0
    }

    /// I/O on the fast tier that its tier does not count.
    fn io(&self) -> Option<IoMetrics> {
        None
    }

    /// Adds to a report on the store's cost, which has the bill, what this placement could do
    /// about it; `with_curve` what other targets would buy, too.
    fn add_outlook(&self, engine: &Engine, report: &mut CostReport, with_curve: bool) {
        let _ = (engine, report, with_curve);
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

    /// Bytes of keys and values of the hot records that lie on the first tier; none if nothing is
    /// known of hotness. Reads all tables of that tier.
    ///
    /// # Errors
    /// I/O errors; damage.
    fn hot_bytes_on_fast(&self, engine: &Engine) -> Result<Option<u64>> {
        let _ = engine;
        Ok(None)
    }

    /// Placement by hotness, for tests of it.
    #[cfg(test)]
    fn as_hotrap(&self) -> Option<&super::HotRap> {
        None
    }
}
