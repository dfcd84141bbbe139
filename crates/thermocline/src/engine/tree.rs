//! A keyspace's LSM-tree: the superversion that readers pin, and what changes it.

use arc_swap::ArcSwap;
use bytes::Bytes;

use super::{Engine, Tally};
use crate::error::Result;
use crate::ids::KeyspaceId;
use crate::key::{Kind, SeqNo};
use crate::levels::{Averages, L0Places, Looked, Running};
use crate::memtable::Memtable;
use crate::placement::{Installed, OfKeyspace, Taken};
use crate::points::point;
use crate::read::{LastPassed, OftenLooked, PromotionView, Superversion};
use crate::sync::atomic::AtomicBool;
use crate::sync::{Arc, Mutex};
use crate::version::edit::{KeyspaceMeta, Learned, VersionEdit};
use crate::version::{MAX_LEVELS, PastVersions, TableHandle, Version};

/// One keyspace.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) id: KeyspaceId,
    pub(crate) name: Bytes,
    /// *f*: the last level of the fast tier, as placement has it.
    pub(crate) last_fast_level: u8,
    /// The same, as the manifest has it.
    founded_f: u8,
    /// What placement keeps about the keyspace.
    pub(crate) placed: OfKeyspace,
    /// What its jobs found of late.
    pub(crate) averages: Averages,
    /// What iterators lately passed without returning it.
    pub(crate) passed: LastPassed,
    /// What scans look into often.
    pub(crate) often_looked: OftenLooked,
    /// Whether a freeze is queued because of that.
    pub(crate) freezes_soon: AtomicBool,
    /// The last look for hidden records and small tables that found none.
    pub(crate) looked: Mutex<Option<Looked>>,
    /// Stored only under the lock of `state`, by [`Tree::publish`].
    superversion: ArcSwap<Superversion>,
    tally: Arc<Tally>,
    pub(crate) state: Mutex<TreeState>,
}

/// What changes a tree, and what runs on it.
#[derive(Debug)]
pub(crate) struct TreeState {
    pub(crate) running: Running,
    /// The epoch that the next frozen memtable gets (I2).
    next_epoch: u64,
    /// Places in L0 that are held for older records (I2).
    pub(crate) l0_places: L0Places,
    /// Versions that readers may still hold.
    pub(crate) past: PastVersions,
    /// Every record up to here is in tables (I5).
    pub(crate) flushed_through: SeqNo,
    /// A flush job is queued or runs; there is never more than one, so that memtables
    /// install in freeze order (I2).
    pub(crate) flushing: bool,
}

impl Tree {
    pub(crate) fn new(
        id: KeyspaceId,
        name: Bytes,
        [last_fast_level, founded_f]: [u8; 2],
        version: Version,
        flushed_through: SeqNo,
        learned: Learned,
        tally: Arc<Tally>,
    ) -> Self {
        let newest = version.tables().map(|table| table.meta.epoch).max();
        let placed = OfKeyspace::default();
        let superversion = Superversion::new(version, last_fast_level, placed.view());
        tally.count(None, &superversion);
        Self {
            id,
            name,
            last_fast_level,
            founded_f,
            superversion: ArcSwap::from_pointee(superversion),
            tally,
            placed,
            averages: Averages::new(learned),
            passed: LastPassed::default(),
            often_looked: OftenLooked::default(),
            freezes_soon: AtomicBool::new(false),
            looked: Mutex::new(None),
            state: Mutex::new(TreeState {
                running: Running::default(),
                next_epoch: newest.map_or(1, |epoch| epoch + 1),
                l0_places: L0Places::default(),
                past: PastVersions::default(),
                flushed_through,
                flushing: false,
            }),
        }
    }

    /// The present state, held for as long as the result lives.
    pub(crate) fn pin(&self) -> Arc<Superversion> {
        self.superversion.load_full()
    }

    /// The tables of the present state. Their files stay for as long as the result lives. For work
    /// that takes long and reads nothing but tables.
    pub(crate) fn version(&self) -> Arc<Version> {
        Arc::clone(&self.peek().version)
    }

    /// As [`Tree::pin`], for a short read: no shared counter is touched.
    pub(crate) fn peek(&self) -> arc_swap::Guard<Arc<Superversion>> {
        self.superversion.load()
    }

    /// Makes `next` the present state. The caller holds `state`.
    fn publish(&self, next: Superversion) {
        self.tally.count(Some(&self.peek()), &next);
        self.superversion.store(Arc::new(next));
    }

    /// Whether `seen` is the present state. Two states that are pinned never have the same address.
    pub(crate) fn is_current(&self, seen: &Superversion) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.peek()), seen)
    }

    /// Sequence number of the oldest record that is only in memory and the log; none when
    /// everything is in tables. Without the log's lock, a record that is just being inserted may be
    /// missed. It is newer than what was visible before the call (I10), so the log through that can
    /// go all the same (I5). Frozen memtables are complete.
    pub(crate) fn oldest_unflushed(&self) -> Option<SeqNo> {
        let superversion = self.peek();
        let frozen = superversion.immutables.last();
        frozen
            .and_then(|memtable| memtable.oldest())
            .or_else(|| superversion.active.oldest())
    }

    /// Freezes the active memtable. The caller holds the log's lock, so that every insert into
    /// it is complete and published (I10).
    pub(crate) fn freeze(&self, engine: &Engine) -> Result<()> {
        let mut state = self.state.lock();
        let now = self.pin();
        let epoch = state.next_epoch;
        now.active.freeze(epoch);
        point!(engine.points, "freeze.before_publish")?;
        state.next_epoch += 1;
        // I10: published here, under the log's lock, before the new memtable takes a write.
        self.publish(now.with_active_frozen());
        Ok(())
    }

    /// Reserves the next place in L0 for older records, and pins the present state, in one step. By
    /// I10 every version of a key is then in what was pinned, or in the active memtable, whose
    /// epoch will be higher than the one reserved. `freeze` is given a function that publishes a
    /// change of what readers see beside the levels. Returns the result of `freeze`, the epoch, and
    /// what was pinned.
    pub(crate) fn reserve_place<T>(
        &self,
        freeze: impl FnOnce(&dyn Fn(PromotionView)) -> T,
    ) -> (T, u64, Arc<Superversion>) {
        let mut state = self.state.lock();
        let epoch = state.next_epoch;
        state.next_epoch += 1;
        state.l0_places.reserve(epoch);
        let now = self.pin();
        let frozen = freeze(&|view| self.publish(now.with_view(view)));
        (frozen, epoch, now)
    }

    /// The next epoch, for a table that comes to the tree without a memtable (I2).
    pub(crate) fn draw_epoch(&self, state: &mut TreeState) -> u64 {
        let epoch = state.next_epoch;
        state.next_epoch += 1;
        epoch
    }

    /// Ends every reservation of a place in L0: what comes in there may be older than what is about
    /// to lie below it, or at a lower place (I1).
    pub(crate) fn void_places(&self, state: &mut TreeState) {
        state.l0_places.picked(state.next_epoch - 1);
    }

    /// From now on, readers use the record cache or, if `shuns`, do not.
    pub(crate) fn shun_record_cache(&self, shuns: bool) {
        let _state = self.state.lock();
        self.publish(self.pin().with_record_cache(!shuns));
    }

    /// Gives back the place of `epoch`, to which nothing came. From then on readers see what `view`
    /// gives.
    pub(crate) fn give_up_place(&self, epoch: u64, view: impl FnOnce() -> PromotionView) {
        let mut state = self.state.lock();
        state.l0_places.release(epoch);
        self.publish(self.pin().with_view(view()));
    }

    /// Replaces tables, and what became tables. The edit that says so is durable already (I4). The
    /// caller holds the manifest's lock, so that versions follow the manifest's order. Returns the
    /// records that a crossing takes out of readers' sight, to be counted as read.
    pub(crate) fn install(
        &self,
        engine: &Engine,
        state: &mut TreeState,
        edit: &VersionEdit,
        added: Vec<Arc<TableHandle>>,
        what: Installed<'_>,
    ) -> Taken {
        let now = self.pin();
        let removed: Vec<_> = edit.removed.iter().map(|&(_, id)| id).collect();
        let version = now.version.with(&removed, added);
        let is_flushed = |m: &&Arc<Memtable>| match what {
            Installed::Flush(flushed) => Arc::ptr_eq(flushed, m),
            _ => false,
        };
        let immutables = now.immutables.iter().filter(|m| !is_flushed(m)).cloned();
        let immutables = immutables.collect();
        if let Some(epoch) = what.place() {
            state.l0_places.release(epoch);
        }
        let shuns = now.shuns_record_cache && !matches!(what, Installed::Ingestion(_));
        let publish = |view| {
            let next = now.with(version, immutables, view);
            self.publish(next.with_record_cache(!shuns));
        };
        let taken = self.placed.install(what, &now.waiting, publish);
        state.past.push(&now.version, engine.clock.now());
        for &(_, through) in &edit.flushed_through {
            state.flushed_through = state.flushed_through.max(through);
        }
        taken
    }

    /// One edit that adds up to the present state.
    pub(crate) fn snapshot_edit(&self) -> VersionEdit {
        let state = self.state.lock();
        let superversion = self.peek();
        VersionEdit {
            created: vec![KeyspaceMeta {
                id: self.id,
                name: self.name.clone(),
                last_fast_level: self.founded_f,
            }],
            added: superversion
                .version
                .tables()
                .map(|t| t.meta.clone())
                .collect(),
            flushed_through: vec![(self.id, state.flushed_through)],
            learned: vec![(self.id, self.averages.learned())],
            ..VersionEdit::default()
        }
    }

    /// Lets go of everything that a dropped keyspace holds. Returns its last version.
    pub(crate) fn empty(&self) -> Arc<Version> {
        let _state = self.state.lock();
        let before = self.pin();
        self.placed.empty(|view| {
            let nothing = Version::default();
            self.publish(Superversion::new(nothing, self.last_fast_level, view));
        });
        Arc::clone(&before.version)
    }

    /// Takes in a record of the log that is not in tables yet.
    pub(crate) fn replay(&self, key: Bytes, seq: SeqNo, kind: Kind, value: Bytes) -> u64 {
        self.peek().active.insert(key, seq, kind, value)
    }

    /// Bytes of each level's tables that lie on tier `tier`.
    pub(crate) fn bytes_on(&self, tier: u8) -> [u64; MAX_LEVELS] {
        let pinned = self.peek();
        let levels = &pinned.version.levels;
        std::array::from_fn(|number| levels[number].bytes_on[usize::from(tier)])
    }

    /// Bytes of keys and values in all tables.
    pub(crate) fn raw_bytes(&self) -> u64 {
        self.peek().version.raw_bytes()
    }

    /// Bytes of the tables of L0 to Lf that lie on the fast tier.
    pub(crate) fn bytes_down_to_f(&self) -> u64 {
        let by_level = self.bytes_on(0);
        by_level[..=usize::from(self.last_fast_level)].iter().sum()
    }

    /// Bytes of level f's tables that lie on the fast tier.
    pub(crate) fn bytes_of_f(&self) -> u64 {
        self.bytes_on(0)[usize::from(self.last_fast_level)]
    }
}
