//! How an ingestion becomes visible: alone among the writers, by one record of the log and one
//! edit.

use std::sync::OnceLock;

use super::levels::{at, plan_for};
use crate::engine::{Engine, Tree};
use crate::error::{Error, Result};
use crate::key::{MAX_SEQ, SeqNo};
use crate::levels::Plan;
use crate::placement::Installed;
use crate::points::point;
use crate::sync::atomic::Ordering;
use crate::sync::{Arc, MutexGuard};
use crate::table::{LazyTable, TableHeat, TableMeta};
use crate::version::TableHandle;
use crate::version::edit::VersionEdit;
use crate::wal::Ingestion;
use crate::write::Log;

/// Tables that are to be installed, all at once.
#[derive(Debug)]
pub(crate) struct Request {
    tree: Arc<Tree>,
    /// In key order.
    tables: Vec<TableMeta>,
    pub(crate) records: u64,
    /// Of keys and values.
    pub(crate) bytes: u64,
    /// The level of each table, once they are installed.
    levels: OnceLock<Vec<u8>>,
}

impl Request {
    /// For `tables` of `tree`; none if there are none.
    pub(super) fn new(
        tree: &Arc<Tree>,
        tables: Vec<TableMeta>,
        records: u64,
        bytes: u64,
    ) -> Option<Self> {
        (!tables.is_empty()).then(|| Self {
            tree: Arc::clone(tree),
            tables,
            records,
            bytes,
            levels: OnceLock::new(),
        })
    }

    /// The tables, and the level of each once they are installed.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (&TableMeta, u8)> {
        let levels = self.levels.get().map_or(&[][..], Vec::as_slice);
        self.tables.iter().zip(levels.iter().copied())
    }
}

/// Tables at their levels, and what keeps their keys from others until they are installed.
struct Placed {
    added: Vec<Arc<TableHandle>>,
    /// The plans of those that come below L0, each with its number among the running jobs.
    plans: Vec<(u64, Plan)>,
}

impl Engine {
    /// Installs the tables of `request`, and returns the number that its records have. The caller
    /// leads the writers, so that nothing is written meanwhile. If it comes to nothing, the tables
    /// are removed.
    ///
    /// # Errors
    /// What keeps the store from being written to; [`Error::UnknownKeyspace`]; those of a flush;
    /// [`Error::TooLarge`] when all sequence numbers are used up; I/O errors;
    /// [`Error::Poisoned`].
    pub(crate) fn install_ingestion(&self, request: &Request) -> Result<SeqNo> {
        let installed = self.log_ingestion(request);
        if let Err(error) = &installed {
            self.background.note_poison(error);
        }
        self.after_change();
        if installed.is_ok()
            && let Err(error) = self.roll_manifest()
        {
            self.background.note_poison(&error);
        }
        installed
    }

    /// Gives the tables their number, in the log, and installs them.
    fn log_ingestion(&self, request: &Request) -> Result<SeqNo> {
        let refused = |error: Error| {
            self.discard_outputs(&request.tables, &error);
            error
        };
        let mut log = self.lock_flushed_log(&request.tree).map_err(refused)?;
        let seq = log.last_seq + 1;
        self.append_ingestion(&mut log, request, seq)
            .map_err(refused)?;
        // From here on the number is used, whatever becomes of the tables.
        log.last_seq = seq;
        let levels = self.install_logged(request, seq);
        // The tables are in place, or none of them ever will be.
        self.sequence.visible.store(seq, Ordering::Release);
        let levels = levels.map_err(|error| self.undo_logged(request, error))?;
        self.stats.count_write(request.records, request.bytes);
        let _ = request.levels.set(levels);
        Ok(seq)
    }

    /// Removes tables that the log names and no edit. They must not come back after a loss of
    /// power: with later writes in the log, an opening would take them for tables whose edit is
    /// lost.
    fn undo_logged(&self, request: &Request, error: Error) -> Error {
        self.discard_outputs(&request.tables, &error);
        let tier = request.tables.first().map(|meta| usize::from(meta.tier));
        let tier = tier.and_then(|tier| self.tiers.get(tier));
        let synced = tier.map_or(Ok(()), |tier| tier.sync_names(|| tier.tables.sync_dir()));
        match (error, synced) {
            (error, Ok(())) | (error @ Error::Poisoned { .. }, _) => error,
            (_, Err(lost @ Error::Poisoned { .. })) => lost,
            (_, Err(other)) => Error::Poisoned {
                cause: other.to_string().into(),
            },
        }
    }

    /// Locks the log at a time when `tree` has nothing in memory. What it had would lie above the
    /// tables, and be older (I1).
    fn lock_flushed_log(&self, tree: &Arc<Tree>) -> Result<MutexGuard<'_, Log>> {
        loop {
            let mut log = self.lock_unheld_log()?;
            self.check_not_dropped(tree)?;
            let (is_active, is_frozen) = {
                let now = tree.peek();
                (now.active.bytes() > 0, !now.immutables.is_empty())
            };
            if !is_active && !is_frozen {
                return Ok(log);
            }
            if is_active {
                self.freeze(&mut log, tree)?;
            }
            // Without the lock, as jobs may need it. Whoever leads the writers keeps them waiting.
            drop(log);
            self.flush_frozen_of(tree)?;
        }
    }

    /// Flushes most of what `tree` has in memory, before writers have to wait for the rest.
    pub(super) fn flush_ahead(&self, tree: &Arc<Tree>) -> Result<()> {
        let mut log = self.lock_unheld_log()?;
        self.freeze(&mut log, tree)?;
        drop(log);
        self.flush_frozen_of(tree)
    }

    /// Writes to the log that the tables of `request` have number `seq`, and makes that durable
    /// with all that comes before (I5).
    fn append_ingestion(&self, log: &mut Log, request: &Request, seq: SeqNo) -> Result<()> {
        if seq >= MAX_SEQ {
            return Err(Error::TooLarge {
                what: "sequence number",
                len: seq as usize,
                limit: MAX_SEQ as usize,
            });
        }
        point!(self.points, "ingest.flushed")?;
        let ingestion = Ingestion {
            seq,
            keyspace: request.tree.id,
            tables: request.tables.iter().map(|table| table.id).collect(),
        };
        log.wal.append(seq, &[ingestion.to_batch()])?;
        log.wal.sync()
    }

    /// Installs tables whose number the log has. Returns the level of each.
    fn install_logged(&self, request: &Request, seq: SeqNo) -> Result<Vec<u8>> {
        point!(self.points, "ingest.logged")?;
        let tree = &request.tree;
        self.forget_cached(tree);
        let numbered = request.tables.iter().map(|meta| self.numbered(meta, seq));
        let mut manifest = self.files.manifest.lock();
        // From here on nothing else is installed, so what the version says stays so.
        let placed = self.place_ingested(tree, numbered.collect());
        let edit = VersionEdit {
            added: placed.added.iter().map(|t| t.meta.clone()).collect(),
            // Nothing of the keyspace was left in memory, and the log is synced.
            flushed_through: vec![(tree.id, seq)],
            next_file: Some(self.files.next.load(Ordering::Relaxed)),
            last_seq: Some(seq),
            ..VersionEdit::default()
        };
        for (number, plan) in placed.plans.iter().filter(|(_, plan)| plan.is_crossing) {
            // I6: claimed before anything newer comes to lie below the promotion caches.
            self.placement.claim(self, tree, plan, *number);
        }
        let appended =
            point!(self.points, "ingest.before_edit").and_then(|()| manifest.append(&edit));
        let levels = edit.added.iter().map(|table| table.level).collect();
        let crossings = placed.plans.iter().filter(|(_, plan)| plan.is_crossing);
        let crossings: Vec<u64> = crossings.map(|(number, _)| *number).collect();
        if appended.is_ok() {
            let mut state = tree.state.lock();
            tree.void_places(&mut state);
            let what = Installed::Ingestion(&crossings);
            tree.install(self, &mut state, &edit, placed.added, what);
            self.sequence.log_floor.fetch_max(seq, Ordering::Release);
        } else {
            tree.shun_record_cache(false);
        }
        drop(manifest);
        for (number, plan) in &placed.plans {
            tree.end_compaction(*number, plan);
        }
        appended?;
        let _: Result<()> = point!(self.points, "ingest.installed");
        Ok(levels)
    }

    /// The table of `meta`, whose records have number `seq`; as one of L0.
    fn numbered(&self, meta: &TableMeta, seq: SeqNo) -> Arc<TableHandle> {
        let meta = TableMeta {
            min_seq: seq,
            max_seq: seq,
            level: 0,
            ..meta.clone()
        };
        let tier = &self.tiers[usize::from(meta.tier)];
        let heat = TableHeat::flushed(self.clock.now());
        let (cache, pins) = (
            Arc::clone(&self.caches.blocks),
            Arc::clone(&self.caches.pins),
        );
        self.handle_of(LazyTable::new(
            tier,
            meta,
            heat,
            self.identity.database,
            cache,
            pins,
        ))
    }

    /// Finds the level of each table, and keeps others from its keys there and on the way (I11).
    /// The caller holds the manifest's lock.
    fn place_ingested(&self, tree: &Arc<Tree>, tables: Vec<Arc<TableHandle>>) -> Placed {
        let mut state = tree.state.lock();
        let version = tree.version();
        let (mut added, mut plans) = (Vec::new(), Vec::new());
        for table in tables {
            // Each has an epoch of its own, as two tables of L0 must (I2).
            let mut own = TableHandle::clone(&table);
            own.meta.epoch = tree.draw_epoch(&mut state);
            let own = Arc::new(own);
            let plan = plan_for(&version, &state.running, &own, tree.last_fast_level);
            added.push(at(&own, plan.as_ref().map_or(0, |plan| plan.to)));
            plans.extend(plan);
        }
        // Only now, as they do not meet each other, and there may be thousands.
        let start = |plan: Plan| (state.running.start(&plan), plan);
        let plans = plans.into_iter().map(start).collect();
        Placed { added, plans }
    }

    /// Takes everything of `tree` out of the record cache, and keeps it out until the tables of an
    /// ingestion are installed: see `read/cached`.
    fn forget_cached(&self, tree: &Tree) {
        if let Some(records) = &self.caches.records {
            tree.shun_record_cache(true);
            records.forget(tree.id);
        }
    }
}
