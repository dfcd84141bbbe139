//! A keyspace's LSM-tree: the superversion that readers pin, and what changes it.

use arc_swap::ArcSwap;
use bytes::Bytes;

use super::averages::Averages;
use super::engine::Engine;
use super::passed::LastPassed;
use super::reservations::Reservations;
use super::room::FastRooms;
use super::shares::Share;
use super::tally::Tally;
use crate::compaction::{BypassWorth, Hotness, LevelTargets, Picker, Plan, Running, TableSizes};
use crate::error::Result;
use crate::ids::KeyspaceId;
use crate::key::{Kind, SeqNo};
use crate::memtable::Memtable;
use crate::placement::Brought;
use crate::points::point;
use crate::promotion::{PromotionCache, PromotionGate, Taken};
use crate::ralt::Ralt;
use crate::read::{Superversion, newest_below};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};
use crate::version::edit::{KeyspaceMeta, Learned, VersionEdit};
use crate::version::{MAX_LEVELS, PastVersions, TableHandle, Version};

/// One keyspace.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) id: KeyspaceId,
    pub(crate) name: Bytes,
    /// *f*: the last level of the fast tier.
    pub(crate) last_fast_level: u8,
    /// What of the slow tier waits for its promotion.
    pub(crate) promotion: PromotionGate,
    /// What its jobs found of late.
    pub(crate) averages: Averages,
    /// Its part of the memory for promotion caches, 0 to 1: that of the fast tier, as of late.
    pub(crate) promotion_share: Share,
    /// What its hot records take of the fast tier, or would, as of late, in bytes.
    pub(crate) hot_bytes: AtomicU64,
    /// Whether a promotion by flush is queued or runs; there is never more than one.
    pub(crate) promoting: AtomicBool,
    /// What iterators passed of late without giving it.
    pub(crate) passed: LastPassed,
    /// Whether a freeze is queued because of that.
    pub(crate) freezes_soon: AtomicBool,
    /// Stored only under the lock of `state`, by [`Tree::publish`].
    superversion: ArcSwap<Superversion>,
    tally: Arc<Tally>,
    pub(crate) state: Mutex<TreeState>,
}

/// What an edit that is installed came from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Installed<'a> {
    /// This memtable became a table.
    Flush(&'a Arc<Memtable>),
    /// A compaction on one side of level f.
    Compaction,
    /// The compaction of this number, to a level below f from f or the one above, which brought these up.
    Crossing(u64, &'a Brought),
    /// This promotion cache became a table.
    Promotion(&'a FrozenPromotion),
}

/// A frozen promotion cache on its way to L0.
#[derive(Debug)]
pub(crate) struct FrozenPromotion {
    pub(crate) cache: Arc<PromotionCache>,
    /// The epoch reserved for its table (I2).
    pub(crate) epoch: u64,
    /// The state at the moment of the freeze.
    pub(crate) pinned: Arc<Superversion>,
}

/// What changes a tree, and what runs on it.
#[derive(Debug)]
pub(crate) struct TreeState {
    pub(crate) running: Running,
    /// The epoch that the next frozen memtable gets (I2).
    next_epoch: u64,
    /// Places in L0 that promotions by flush hold (I2).
    pub(crate) reservations: Reservations,
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
        last_fast_level: u8,
        version: Version,
        flushed_through: SeqNo,
        learned: Learned,
        tally: Arc<Tally>,
    ) -> Self {
        let newest = version.tables().map(|table| table.meta.epoch).max();
        let promotion = PromotionGate::default();
        let superversion = Superversion {
            active: Arc::default(),
            immutables: Vec::new(),
            newest_below: newest_below(&version, last_fast_level),
            has_tables: version.last_level().is_some(),
            version: Arc::new(version),
            promotion: promotion.view(),
        };
        tally.count(None, &superversion);
        Self {
            id,
            name,
            last_fast_level,
            superversion: ArcSwap::from_pointee(superversion),
            tally,
            promotion,
            averages: Averages::new(learned),
            promotion_share: Share::default(),
            hot_bytes: AtomicU64::new(0),
            promoting: AtomicBool::new(false),
            passed: LastPassed::default(),
            freezes_soon: AtomicBool::new(false),
            state: Mutex::new(TreeState {
                running: Running::default(),
                next_epoch: newest.map_or(1, |epoch| epoch + 1),
                reservations: Reservations::default(),
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

    /// The tables of the present state, whose files stay for as long as the result lives. For what takes long and reads
    /// nothing else.
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

    /// Whether `seen` is the present state. Of two that are pinned no two are one.
    pub(crate) fn is_current(&self, seen: &Superversion) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.peek()), seen)
    }

    /// Sequence number of the oldest record that is only in memory and the log; none when
    /// everything is in tables. Without the log's lock one that is just being inserted may be missed. It is newer than what was visible
    /// before the call (I10), so that the log through that can go all the same (I5). What is frozen is complete.
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
        let mut immutables = Vec::with_capacity(now.immutables.len() + 1);
        immutables.push(Arc::clone(&now.active));
        immutables.extend(now.immutables.iter().cloned());
        // I10: published here, under the log's lock, before the new memtable takes a write.
        self.publish(Superversion {
            active: Arc::default(),
            immutables,
            ..(*now).clone()
        });
        Ok(())
    }

    /// Freezes the promotion cache, reserves a place in L0 for what is in it, and pins the present
    /// state, in one step: by I10 every version of a key is then in what was pinned, or in the
    /// active memtable, whose epoch will be higher than the one reserved.
    pub(crate) fn freeze_promotion(&self) -> FrozenPromotion {
        let mut state = self.state.lock();
        let epoch = state.next_epoch;
        state.next_epoch += 1;
        state.reservations.reserve(epoch);
        let now = self.pin();
        let cache = self.promotion.freeze(|promotion| {
            self.publish(Superversion {
                promotion,
                ..(*now).clone()
            });
        });
        FrozenPromotion {
            cache,
            epoch,
            pinned: now,
        }
    }

    /// Lets a frozen promotion cache go that comes to nothing, and its place in L0.
    pub(crate) fn abandon_promotion(&self, frozen: &FrozenPromotion) {
        let mut state = self.state.lock();
        state.reservations.release(frozen.epoch);
        self.promotion.drop_frozen(&frozen.cache);
        let now = self.pin();
        self.publish(Superversion {
            promotion: self.promotion.view(),
            ..(*now).clone()
        });
    }

    /// Replaces tables, and what became tables. The edit that says so is durable (I4). Called with
    /// the manifest's lock held, so that versions follow the manifest's order. Records that a crossing takes out of
    /// the promotion caches come back, to be counted as read.
    pub(crate) fn install(
        &self,
        engine: &Engine,
        state: &mut TreeState,
        edit: &VersionEdit,
        added: Vec<Arc<TableHandle>>,
        what: Installed<'_>,
    ) -> Taken {
        let mut taken = Taken::new();
        let now = self.pin();
        let removed: Vec<_> = edit.removed.iter().map(|&(_, id)| id).collect();
        let version = now.version.with(&removed, added);
        let is_flushed = |m: &&Arc<Memtable>| match what {
            Installed::Flush(flushed) => Arc::ptr_eq(flushed, m),
            _ => false,
        };
        let immutables = now.immutables.iter().filter(|m| !is_flushed(m)).cloned();
        let immutables = immutables.collect();
        let publish = |promotion| {
            self.publish(Superversion {
                active: Arc::clone(&now.active),
                immutables,
                newest_below: newest_below(&version, self.last_fast_level),
                has_tables: version.last_level().is_some(),
                version: Arc::new(version),
                promotion,
            });
        };
        match what {
            // I6: from running to installed under the gate's lock.
            Installed::Crossing(job, brought) => {
                taken = self.promotion.install(job, brought, publish);
            }
            Installed::Promotion(frozen) => {
                state.reservations.release(frozen.epoch);
                self.promotion.drop_frozen(&frozen.cache);
                publish(self.promotion.view());
            }
            Installed::Flush(_) | Installed::Compaction => publish(now.promotion.clone()),
        }
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
                last_fast_level: self.last_fast_level,
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

    /// Lets go of everything, for a keyspace that was dropped; gives back its last version.
    pub(crate) fn empty(&self) -> Arc<Version> {
        let _state = self.state.lock();
        let before = self.pin();
        self.promotion.empty(|promotion| {
            self.publish(Superversion {
                active: Arc::default(),
                immutables: Vec::new(),
                version: Arc::default(),
                newest_below: 0,
                has_tables: false,
                promotion,
            });
        });
        Arc::clone(&before.version)
    }

    /// Takes in a record of the log that is not in tables yet.
    pub(crate) fn replay(&self, key: Bytes, seq: SeqNo, kind: Kind, value: Bytes) -> u64 {
        self.peek().active.insert(key, seq, kind, value)
    }

    /// Target sizes of the levels now.
    pub(crate) fn targets(&self, engine: &Engine, version: &Version) -> LevelTargets {
        self.targets_in(&engine.fast_rooms(), engine, version)
    }

    /// As [`Tree::targets`], with the room that was worked out for all keyspaces.
    pub(crate) fn targets_in(
        &self,
        rooms: &FastRooms,
        engine: &Engine,
        version: &Version,
    ) -> LevelTargets {
        LevelTargets::new(
            &engine.options,
            &engine.sizes,
            version,
            self.last_fast_level,
            rooms.of(self),
        )
    }

    /// Bytes of each level's tables that lie on tier `tier`.
    pub(crate) fn bytes_on(&self, tier: u8) -> [u64; MAX_LEVELS] {
        let pinned = self.peek();
        let levels = &pinned.version.levels;
        std::array::from_fn(|number| levels[number].bytes_on[usize::from(tier)])
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

    /// The part of what comes down from the level above f that may pass level f by.
    pub(crate) fn fresh(&self, engine: &Engine) -> f64 {
        if engine.ralt.is_some() && engine.switches().bypass {
            self.averages.fresh()
        } else {
            0.0
        }
    }

    /// Whether a record of `key` that lies above f would stay there on a way past level f.
    pub(crate) fn would_stay(&self, engine: &Engine, key: &[u8]) -> bool {
        let is_hot = |ralt: &Arc<Ralt>| ralt.is_hot(self.id, key);
        engine.switches().retention && engine.ralt.as_ref().is_some_and(is_hot)
    }

    /// What passing level f by is worth, if it may be done: where there is placement by hotness, and no room on the fast
    /// tier waits to be filled.
    fn bypass_worth(&self, engine: &Engine) -> Option<BypassWorth> {
        let fresh = self.fresh(engine);
        let may = fresh > 0.0 && !engine.has_spare_room.load(Ordering::Relaxed);
        may.then(|| BypassWorth {
            fresh,
            cold: self.averages.cold(),
        })
    }

    /// Runs `choose` with a picker for the present version. The caller holds `state`. What is
    /// `urgent` does not wait for promotions.
    pub(crate) fn with_picker<T>(
        &self,
        engine: &Engine,
        state: &TreeState,
        urgent: bool,
        choose: impl FnOnce(&Picker<'_>) -> T,
    ) -> T {
        self.with_picker_in(&engine.fast_rooms(), engine, state, urgent, choose)
    }

    /// As [`Tree::with_picker`], with the room that was worked out for all keyspaces.
    pub(crate) fn with_picker_in<T>(
        &self,
        rooms: &FastRooms,
        engine: &Engine,
        state: &TreeState,
        urgent: bool,
        choose: impl FnOnce(&Picker<'_>) -> T,
    ) -> T {
        let superversion = self.pin();
        let targets = self.targets_in(rooms, engine, &superversion.version);
        let l0 = superversion.version.levels[0].tables.len();
        let is_urgent = urgent || l0 >= engine.options.l0_slowdown;
        let level_f = &superversion.version.levels[usize::from(self.last_fast_level)];
        let hotness = engine.ralt.as_ref().map(|ralt| HotTables {
            ralt,
            keyspace: self.id,
            stale: level_f.tables.len() as u64 / ESTIMATES_A_CHANGE,
        });
        let passed = self.passed.get();
        choose(&Picker {
            version: &superversion.version,
            targets: &targets,
            running: &state.running,
            l0_trigger: engine.sizes.l0_trigger,
            tiers: engine.level_tiers(),
            l0_limit: state.reservations.limit(is_urgent),
            oldest_reader: engine.snapshots.oldest().unwrap_or(SeqNo::MAX),
            hotness: hotness.as_ref().map(|hotness| hotness as &dyn Hotness),
            bypass: self.bypass_worth(engine),
            part_above_f: rooms.above_f(self),
            table_sizes: TableSizes::new(
                &engine.options,
                &engine.sizes,
                engine.fast().capacity(),
                self.last_fast_level,
            ),
            passed: passed.as_ref(),
        })
    }

    /// Whether a compaction could start now that brings records to where they belong.
    pub(crate) fn wants_compaction(&self, rooms: &FastRooms, engine: &Engine) -> bool {
        let state = self.state.lock();
        self.with_picker_in(rooms, engine, &state, false, |picker| {
            picker.candidates().any(|(_, plan)| !plan.can_wait())
        })
    }

    /// Enters a compaction that begins; the number given back ends it.
    pub(crate) fn start_compaction(state: &mut TreeState, plan: &Plan) -> u64 {
        if let Some(newest) = plan.newest_of_l0() {
            state.reservations.picked(newest);
        }
        state.running.start(plan)
    }

    /// Ends a job's hold on its inputs and ranges, and on the promotion caches.
    pub(crate) fn end_compaction(&self, number: u64, plan: &Plan) {
        self.state.lock().running.end(number, plan);
        if plan.is_crossing {
            self.promotion.release(number);
        }
    }
}

/// For about so many of level f's tables at most it is found anew how much of them is hot, each time that RALT has changed.
const ESTIMATES_A_CHANGE: u64 = 64;

/// Hotness of one keyspace's tables, by RALT.
struct HotTables<'a> {
    ralt: &'a Ralt,
    keyspace: KeyspaceId,
    /// After how many changes of RALT at least it is found anew.
    stale: u64,
}

impl Hotness for HotTables<'_> {
    fn hot_bytes(&self, table: &TableHandle) -> u64 {
        // RALT counts keys and values as they are, the picker bytes of files.
        let raw = table.raw_bytes().max(1);
        let find = || self.ralt.hot_bytes(self.keyspace, &table.meta.range);
        // Each has a patience of its own: estimates that were made together would all be made anew together.
        let stale = self.stale + table.meta.id % (self.stale + 1);
        let hot = table.hot.bytes(self.ralt.changes(), stale, find);
        (table.meta.len as f64 * (hot.min(raw) as f64 / raw as f64)) as u64
    }
}
