//! A keyspace's LSM-tree: the superversion that readers pin, and what changes it.

use arc_swap::ArcSwap;
use bytes::Bytes;

use super::engine::Engine;
use crate::compaction::{LevelTargets, Picker, Plan, Running};
use crate::error::Result;
use crate::key::{Kind, SeqNo};
use crate::memtable::Memtable;
use crate::points::point;
use crate::sync::{Arc, Mutex};
use crate::version::edit::{KeyspaceId, KeyspaceMeta, VersionEdit};
use crate::version::{Superversion, TableHandle, Version};

/// One keyspace.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) id: KeyspaceId,
    pub(crate) name: Bytes,
    /// *f*: the last level of the fast tier.
    pub(crate) last_fast_level: u8,
    /// Stored only under the lock of `state`.
    superversion: ArcSwap<Superversion>,
    pub(crate) state: Mutex<TreeState>,
}

/// What changes a tree, and what runs on it.
#[derive(Debug)]
pub(crate) struct TreeState {
    pub(crate) running: Running,
    /// The epoch that the next frozen memtable gets (I2).
    next_epoch: u64,
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
    ) -> Self {
        let newest = version.tables().map(|table| table.meta.epoch).max();
        Self {
            id,
            name,
            last_fast_level,
            superversion: ArcSwap::from_pointee(Superversion {
                active: Arc::default(),
                immutables: Vec::new(),
                version: Arc::new(version),
            }),
            state: Mutex::new(TreeState {
                running: Running::default(),
                next_epoch: newest.map_or(1, |epoch| epoch + 1),
                flushed_through,
                flushing: false,
            }),
        }
    }

    /// The present state, held for as long as the result lives.
    pub(crate) fn pin(&self) -> Arc<Superversion> {
        self.superversion.load_full()
    }

    /// As [`Tree::pin`], for a short read: no shared counter is touched.
    pub(crate) fn peek(&self) -> arc_swap::Guard<Arc<Superversion>> {
        self.superversion.load()
    }

    /// Sequence number of the oldest record that is only in memory and the log; none when
    /// everything is in tables.
    pub(crate) fn oldest_unflushed(&self) -> Option<SeqNo> {
        let superversion = self.peek();
        let oldest = superversion
            .immutables
            .last()
            .unwrap_or(&superversion.active);
        let first = if oldest.is_empty() {
            &superversion.active
        } else {
            oldest
        };
        (!first.is_empty()).then(|| first.first_seq())
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
        self.superversion.store(Arc::new(Superversion {
            active: Arc::default(),
            immutables,
            version: Arc::clone(&now.version),
        }));
        Ok(())
    }

    /// Replaces tables, and memtables that became tables. The edit that says so is durable
    /// (I4). Called with the manifest's lock held, so that versions follow the manifest's order.
    pub(crate) fn install(
        &self,
        state: &mut TreeState,
        edit: &VersionEdit,
        added: Vec<Arc<TableHandle>>,
        flushed: Option<&Arc<Memtable>>,
    ) {
        let now = self.pin();
        let removed: Vec<_> = edit.removed.iter().map(|&(_, id)| id).collect();
        let version = now.version.with(&removed, added);
        let is_flushed = |m: &&Arc<Memtable>| flushed.is_some_and(|f| Arc::ptr_eq(f, m));
        let immutables = now.immutables.iter().filter(|m| !is_flushed(m)).cloned();
        self.superversion.store(Arc::new(Superversion {
            active: Arc::clone(&now.active),
            immutables: immutables.collect(),
            version: Arc::new(version),
        }));
        for &(_, through) in &edit.flushed_through {
            state.flushed_through = state.flushed_through.max(through);
        }
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
            ..VersionEdit::default()
        }
    }

    /// Lets go of everything, for a keyspace that was dropped; gives back its last version.
    pub(crate) fn empty(&self) -> Arc<Version> {
        let _state = self.state.lock();
        let before = self.pin();
        self.superversion.store(Arc::new(Superversion {
            active: Arc::default(),
            immutables: Vec::new(),
            version: Arc::default(),
        }));
        Arc::clone(&before.version)
    }

    /// Takes in a record of the log that is not in tables yet.
    pub(crate) fn replay(&self, key: Bytes, seq: SeqNo, kind: Kind, value: Bytes) -> u64 {
        self.peek().active.insert(key, seq, kind, value)
    }

    /// Target sizes of the levels now.
    pub(crate) fn targets(&self, engine: &Engine, version: &Version) -> LevelTargets {
        LevelTargets::new(
            &engine.options,
            &engine.sizes,
            version,
            self.last_fast_level,
            engine.fast_share(self),
        )
    }

    /// Runs `choose` with a picker for the present version. The caller holds `state`.
    pub(crate) fn with_picker<T>(
        &self,
        engine: &Engine,
        state: &TreeState,
        choose: impl FnOnce(&Picker<'_>) -> T,
    ) -> T {
        let superversion = self.pin();
        let targets = self.targets(engine, &superversion.version);
        choose(&Picker {
            version: &superversion.version,
            targets: &targets,
            running: &state.running,
            l0_trigger: engine.options.l0_trigger,
            tiers: engine.tiers.len(),
        })
    }

    /// Whether a compaction could start now.
    pub(crate) fn wants_compaction(&self, engine: &Engine) -> bool {
        let state = self.state.lock();
        self.with_picker(engine, &state, |picker| {
            picker.candidates().next().is_some()
        })
    }

    /// Ends a job's hold on its inputs and ranges.
    pub(crate) fn end_compaction(&self, number: u64, plan: &Plan) {
        self.state.lock().running.end(number, plan);
    }
}
