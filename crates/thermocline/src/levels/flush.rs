//! Flush: a frozen memtable becomes a table of L0.

use super::beside::Beside;
use super::{Origin, Pass, Sink, Upper, VersionFilter, Watch};
use crate::engine::{Engine, Tree, Work};
use crate::error::{Error, Result};
use crate::executor::{Job, Step};
use crate::memtable::Memtable;
use crate::metrics::Purpose;
use crate::placement::{Installed, NoChoice};
use crate::points::point;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::table::{ScanOptions, TableHeat, TableMeta};
use crate::tier::Reservation;
use crate::version::AfterRemoval;
use crate::version::edit::VersionEdit;

/// Flushes the memtables of one keyspace in freeze order (I2), one a step.
#[derive(Debug)]
pub(crate) struct FlushJob {
    engine: Arc<Engine>,
    tree: Arc<Tree>,
    /// What follows the flush before, and is done beside the next.
    behind: Option<Beside>,
    /// Set once this job has given up the flag: from then on it is another job's.
    has_ended: bool,
}

impl FlushJob {
    pub(crate) fn new(engine: Arc<Engine>, tree: Arc<Tree>) -> Self {
        Self {
            engine,
            tree,
            behind: None,
            has_ended: false,
        }
    }

    /// Whether `memtable` is still the one to be flushed.
    fn is_oldest(&self, memtable: &Arc<Memtable>) -> bool {
        let oldest = self.tree.pin().immutables.last().cloned();
        oldest.is_some_and(|oldest| Arc::ptr_eq(&oldest, memtable))
    }

    /// Flushes `memtable`, and waits for what follows the flush before.
    fn flush(&mut self, memtable: &Arc<Memtable>) -> Result<()> {
        let flushed = self.engine.flush_memtable(&self.tree, memtable);
        let followed = self.wait_behind();
        // Of two failures one is told; that writing has ended (I9) must not be the other.
        if let Err(error) = &followed {
            self.engine.background.note_poison(error);
        }
        flushed.and(followed)?;
        let engine = Arc::clone(&self.engine);
        let waits = engine.commit.log_sync.waits_for_a_device();
        self.behind = Some(Beside::begin(waits, move || engine.follow_flush())?);
        Ok(())
    }

    fn wait_behind(&mut self) -> Result<()> {
        self.behind.take().map_or(Ok(()), Beside::wait)
    }

    /// Lets another job have the flag.
    fn end(&mut self) {
        if !self.has_ended {
            self.has_ended = true;
            self.tree.state.lock().flushing = false;
        }
    }
}

impl Job for FlushJob {
    fn step(&mut self) -> Step {
        let oldest = self.tree.pin().immutables.last().cloned();
        if let Some(memtable) = oldest {
            let seen = self.engine.background.compactions.look();
            let given_up = self.engine.fast().copies_given_up();
            let trims = self.behind.as_ref().is_some_and(Beside::is_under_way);
            let flushed = self.flush(&memtable);
            if flushed.is_err() && !self.is_oldest(&memtable) {
                // What failed came after the table: L0 has the table, and may have work for
                // compactions.
                self.engine.after_change();
            }
            match flushed {
                Ok(()) => {
                    self.engine.background.clear(Work::Flush);
                    self.engine.after_change();
                    self.engine.placement.room_was_made(&self.engine);
                    return Step::Again;
                }
                // Copies took the device's room, and are gone now. Or the log did, and has been
                // trimmed meanwhile.
                Err(error)
                    if error.is_no_space()
                        && (trims || self.engine.fast().copies_given_up() != given_up) =>
                {
                    return Step::Again;
                }
                // Not a failure: a compaction is making room, and queues this flush again when it
                // ends. If a compaction has failed, this does not count: the two might try for
                // ever.
                Err(error) if error.is_no_space() && self.engine.may_make_room(seen) => {
                    self.end();
                    // A compaction that ended between the look and the release of the flag found it
                    // set.
                    if !self.engine.is_compacting() {
                        self.engine.schedule_flush(&self.tree);
                    }
                    self.engine.executor.notify();
                    return Step::Done;
                }
                Err(error) => {
                    // Why a compaction cannot make room says more than that there is none.
                    let failed = self.engine.background.failure(Work::Compaction);
                    let cause =
                        failed.filter(|_| error.is_no_space() && self.engine.makes_room(seen));
                    let error = cause.unwrap_or(error);
                    self.engine.background.note(Work::Flush, &error);
                }
            }
        }
        if let Err(error) = self.wait_behind() {
            self.engine.after_change();
            self.engine.background.note(Work::Flush, &error);
        }
        self.end();
        // A memtable that froze between the look and the release of the flag found it set.
        if self.engine.background.failure(Work::Flush).is_none() {
            self.engine.schedule_flush(&self.tree);
        }
        self.engine.executor.notify();
        Step::Done
    }
}

impl Drop for FlushJob {
    fn drop(&mut self) {
        // A job dropped by a shutdown must not leave the flag set.
        self.end();
    }
}

/// What a flush has written.
#[derive(Default)]
struct Flushed {
    table: Option<TableMeta>,
}

impl Watch for Flushed {
    /// L0 is never the bottom: tombstones stay.
    fn is_bottom(&self, _key: &[u8]) -> bool {
        false
    }

    fn written(&mut self, table: TableMeta, _output: usize) -> Result<()> {
        self.table = Some(table);
        Ok(())
    }
}

impl Engine {
    fn flush_memtable(&self, tree: &Arc<Tree>, memtable: &Arc<Memtable>) -> Result<()> {
        self.background.check_writable()?;
        point!(self.points, "flush.start")?;
        let (log, seq) = (self.commit.log_sync.clone(), memtable.last_seq());
        let waits = log.waits_for_a_device();
        let synced = Beside::begin(waits, move || log.sync_through(seq))?;
        let written = self
            .reserve_for_flush(memtable.table_len())
            .and_then(|space| self.write_l0_table(tree, memtable, space));
        // I5: what the edit will call flushed must not be ahead of the log of other keyspaces.
        let (table, _space) = match (synced.wait(), written) {
            (Ok(()), written) => written?,
            (Err(error), written) => {
                let table = written.ok().and_then(|(table, _)| table);
                self.discard_outputs(table.as_slice(), &error);
                return Err(error);
            }
        };
        point!(self.points, "flush.written")?;
        let edit = VersionEdit {
            added: table.iter().cloned().collect(),
            flushed_through: vec![(tree.id, memtable.last_seq())],
            next_file: Some(self.files.next.load(Ordering::Relaxed)),
            last_seq: Some(memtable.last_seq()),
            ..VersionEdit::default()
        };
        if let Err(error) = self.install_flush(tree, memtable, &edit) {
            self.discard_outputs(&edit.added, &error);
            return Err(error);
        }
        self.stats.count_flush();
        point!(self.points, "flush.installed")
    }

    /// What follows a flush, and gives back what its records took in the log.
    fn follow_flush(&self) -> Result<()> {
        // Trimmed first, as this needs no space and gives some.
        self.trim_log()?;
        point!(self.points, "flush.trimmed")?;
        self.roll_manifest()
    }

    fn install_flush(
        &self,
        tree: &Arc<Tree>,
        memtable: &Arc<Memtable>,
        edit: &VersionEdit,
    ) -> Result<()> {
        let now = self.clock.now();
        let open = |meta: &TableMeta| self.open_table(meta.clone(), TableHeat::flushed(now));
        let tables = edit.added.iter().map(open);
        let tables = tables.collect::<Result<Vec<_>>>()?;
        point!(self.points, "flush.before_edit")?;
        // Before any reader can miss the memtable: see `read/cached`.
        self.refresh_cached(tree, memtable);
        point!(self.points, "flush.refreshed")?;
        let mut manifest = self.files.manifest.lock();
        self.check_not_dropped(tree)?;
        manifest.append(edit)?;
        let mut state = tree.state.lock();
        tree.install(self, &mut state, edit, tables, Installed::Flush(memtable));
        self.sequence
            .log_floor
            .fetch_max(memtable.last_seq(), Ordering::Release);
        Ok(())
    }

    /// Reserves space for an L0 table on the fast tier. If there is none, and nothing runs that
    /// could make room there, or what runs has failed before, reserves it on the last tier (I8).
    fn reserve_for_flush(&self, bytes: u64) -> Result<Reservation> {
        let first = &self.tiers[usize::from(self.level_tiers()[0])];
        if first.index > 0 {
            return first.reserve(bytes);
        }
        let refused = match self.fast().reserve(bytes) {
            Ok(space) => return Ok(space),
            Err(error) => error,
        };
        self.schedule();
        // A compaction that was begun again after it had failed makes no room.
        let has_failed = self.background.failure(Work::Compaction).is_some();
        match self.tiers.last() {
            Some(last) if self.tiers.len() > 1 && (has_failed || !self.is_compacting()) => {
                last.reserve(bytes)
            }
            _ => {
                point!(self.points, "flush.refused")?;
                Err(refused)
            }
        }
    }

    /// Writes a table of what somebody may still see of `memtable`; none if that is nothing.
    fn write_l0_table(
        &self,
        tree: &Tree,
        memtable: &Arc<Memtable>,
        space: Reservation,
    ) -> Result<(Option<TableMeta>, Vec<Reservation>)> {
        let origin = Origin {
            purpose: Purpose::Flush,
            epoch: memtable.epoch(),
            replaces: Vec::new(),
        };
        let sink = Sink::of_one(0, origin, space, memtable.bytes());
        let filter = VersionFilter::new(self.snapshots.boundaries(|| self.visible()));
        let upper = Upper::Memtable(Arc::clone(memtable));
        let how = ScanOptions {
            purpose: Purpose::Flush,
            readahead: 0,
            fill_cache: false,
            to_end: true,
        };
        let children = upper.cursors(0, how, None);
        let mut pass = Pass::new(children, 1, filter, Box::new(NoChoice), vec![sink])?;
        let mut flushed = Flushed::default();
        while pass.advance(self, tree, &mut flushed)? {}
        Ok((flushed.table, pass.into_space()))
    }

    /// Removes tables that were written but are not going to be installed. If the edit's sync
    /// failed, the manifest on the device may or may not name them, so they stay (I4, I9).
    pub(crate) fn discard_outputs(&self, outputs: &[TableMeta], why: &Error) {
        if matches!(why, Error::Poisoned { .. }) {
            return;
        }
        for meta in outputs {
            let tier = &self.tiers[usize::from(meta.tier)];
            if tier.tables.remove(&meta.file_name()).is_ok() {
                tier.remove_file_bytes(meta.len);
            }
        }
    }

    /// Removes log segments whose every record is in tables or of a keyspace that is gone, oldest
    /// first (I5).
    pub(crate) fn trim_log(&self) -> Result<()> {
        // Read first: what is published later is newer than this, and what was published
        // before is found in a memtable or in tables.
        let visible = self.visible();
        let oldest = self
            .all_trees()
            .iter()
            .filter_map(|t| t.oldest_unflushed())
            .min();
        let through = oldest.map_or(visible, |seq| visible.min(seq - 1));
        let through = through.min(self.sequence.log_floor.load(Ordering::Acquire));
        self.commit.log_sync.remove_obsolete(through)?;
        Ok(())
    }

    /// Does what follows a change of a tree: adapts writers' speed, starts further work, and wakes
    /// those who wait.
    pub(crate) fn after_change(&self) {
        self.update_pressure();
        self.placement.after_change(self);
        self.schedule();
        self.executor.notify();
    }

    /// Removes obsolete files that nobody holds any more. Returns whether there were any.
    pub(crate) fn sweep(&self) -> bool {
        let has_removed = self.graveyard.sweep() > 0;
        if has_removed {
            self.update_pressure();
        }
        has_removed
    }
}

impl AfterRemoval for Engine {
    /// What follows the removal of files when no job's end does. Because of the room that the files
    /// took, writers may be slowed, and compactions have been refused. Room that settles slowly
    /// ([`PlacementPolicy::after_change`](crate::placement::PlacementPolicy::after_change)) is
    /// measured only at changes of a tree.
    fn after_removal(&self) {
        if self.check_open().is_ok() {
            self.update_pressure();
            self.schedule();
        }
        self.executor.notify();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Db;
    use crate::executor::Stepped;
    use crate::options::Options;
    use crate::storage::{Fault, Faulty, Memory, Operation};
    use crate::wal::FoundLog;

    /// A flush that had ended took the flag of the next one away when it was dropped. While the
    /// next one waited or ran, a third could then be queued. The store's own threads flush one
    /// after the other. An executor that has two threads for flushes would have written one
    /// memtable twice, and installed first what was frozen later (I2).
    #[test]
    fn a_flush_that_has_ended_leaves_the_flag_to_the_next() {
        let stepped = Arc::new(Stepped::new(1));
        let db = Db::builder(Options::one_tier("/fast"))
            .medium(0, Arc::new(Memory::new()))
            .executor(stepped.clone())
            .open()
            .unwrap();
        let (engine, tree) = (db.engine(), db.tree());
        let is_flushing = || tree.state.lock().flushing;
        // As if a flush were queued.
        tree.state.lock().flushing = true;
        let mut first = FlushJob::new(Arc::clone(engine), Arc::clone(tree));
        assert_eq!(first.step(), Step::Done);
        assert!(!is_flushing(), "the first is over");

        db.put("key", "value").unwrap();
        engine.freeze_all().unwrap();
        assert!(is_flushing(), "the second is queued");
        drop(first);
        assert!(is_flushing(), "the second is queued still");
        stepped.drain();
        assert!(!is_flushing() && engine.keyspaces.tally.frozen() == 0);
    }

    /// A manifest that had grown long could not be replaced for lack of space. So flush after flush
    /// the log stayed, which would have given some.
    #[test]
    fn a_flush_trims_the_log_before_it_wants_space_for_a_manifest() {
        let disk = Faulty::new(1);
        let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(disk.clone()));
        let db = builder.executor(Arc::new(Stepped::new(1))).open().unwrap();
        let long = VersionEdit {
            found_log: Some(FoundLog {
                segments: (0..1 << 20).map(|number| (number, 1 << 20)).collect(),
                ..FoundLog::default()
            }),
            ..VersionEdit::default()
        };
        db.engine().files.manifest.lock().append(&long).unwrap();
        db.put("key", "value").unwrap();
        let is_new =
            |operation, name: &str| operation == Operation::Create && name.starts_with("MANIFEST");
        disk.fail_where(is_new, Fault::NoSpace);
        // The table is in force. What failed after it is tried again after the next one.
        db.flush().unwrap();
        assert!(disk.triggered() > 0);
        let files = disk.list_raw("/fast".as_ref()).into_iter();
        let logs: Vec<_> = files.filter(|file| file.name.ends_with(".wal")).collect();
        assert_eq!(logs.len(), 1, "{logs:?}");
        disk.heal();
        db.put("key", "value").unwrap();
        db.flush().unwrap();
    }

    /// When a flush failed after its table was in force, nobody was told of the table. Where the
    /// log could not be trimmed, L0 grew until writers were stopped, and no compaction had begun.
    #[test]
    fn a_flush_that_fails_behind_its_table_has_l0_compacted() {
        let disk = Faulty::new(1);
        let mut options = Options::one_tier("/fast");
        options.l0_trigger = 2;
        let stepped = Arc::new(Stepped::new(1));
        let builder = Db::builder(options).medium(0, Arc::new(disk.clone()));
        let db = builder.executor(stepped.clone()).open().unwrap();
        let is_trim =
            |operation, name: &str| operation == Operation::Remove && name.ends_with(".wal");
        disk.fail_where(is_trim, Fault::Io);
        for _ in 0..4 {
            db.put("key", "value").unwrap();
            db.engine().freeze_all().unwrap();
            stepped.drain();
        }
        assert!(disk.triggered() > 0);
        let tables = db.tree().pin().version.levels[0].tables.len();
        assert!(tables < 4, "{tables} tables in L0");
    }

    /// Keys as long as a block are in the data and in both levels of the index. A table of them was
    /// three times as long as the room reserved for it, and a full fast tier held more than its
    /// capacity (I8).
    #[test]
    fn what_is_set_aside_for_a_flush_is_enough_for_long_keys() {
        let mut options = Options::one_tier("/fast");
        options.memtable_size = Some(4 << 20);
        let builder = Db::builder(options).medium(0, Arc::new(Memory::new()));
        let db = builder.executor(Arc::new(Stepped::new(1))).open().unwrap();
        for n in 0..15u8 {
            let mut key = vec![b'k'; 65_000];
            key.push(n);
            db.put(key, "").unwrap();
        }
        let memtable = Arc::clone(&db.tree().peek().active);
        db.flush().unwrap();
        let table = db.tree().bytes_on(0)[0];
        assert!(table > 2 * memtable.bytes(), "{table} bytes");
        let aside = memtable.table_len();
        assert!(table <= aside, "{table} bytes, {aside} set aside");
    }

    #[test]
    fn a_flush_that_a_shutdown_drops_leaves_no_flag() {
        let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(Memory::new()));
        let db = builder.open().unwrap();
        let (engine, tree) = (db.engine(), db.tree());
        tree.state.lock().flushing = true;
        drop(FlushJob::new(Arc::clone(engine), Arc::clone(tree)));
        assert!(!tree.state.lock().flushing);
    }
}
