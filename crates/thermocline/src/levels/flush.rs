//! Flush: frozen memtables become tables of L0, those of several keyspaces by one edit.

use super::beside::{Beside, all_beside};
use super::flush_queue::Due;
use super::{Origin, Pass, Sink, Upper, VersionFilter, Watch};
use crate::engine::{Engine, Work};
use crate::error::{Error, Result};
use crate::executor::{Job, Step};
use crate::metrics::Purpose;
use crate::placement::{Installed, NoChoice};
use crate::points::point;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::table::{ScanOptions, TableHeat, TableMeta};
use crate::tier::Reservation;
use crate::version::edit::VersionEdit;
use crate::version::{AfterRemoval, TableHandle};

/// Flushes the memtables that wait, those of each keyspace in freeze order (I2): several keyspaces'
/// a step.
#[derive(Debug)]
pub(crate) struct FlushJob {
    engine: Arc<Engine>,
    /// What is in its hands.
    group: Vec<Due>,
    /// What follows the flush before, and is done beside the next.
    behind: Option<Beside>,
    /// Set once it has left the queue to another job.
    has_ended: bool,
}

impl FlushJob {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self {
            engine,
            group: Vec::new(),
            behind: None,
            has_ended: false,
        }
    }

    /// Flushes what it holds, and waits for what follows the flush before.
    fn flush(&mut self) -> Result<()> {
        let flushed = self.engine.flush_memtables(&self.group);
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

    /// Gives back what it holds: what is not flushed waits again.
    fn give_back(&mut self) {
        // The last comes back first, so that they keep their order.
        for due in self.group.drain(..).rev() {
            self.engine.flushes.give_back(due.tree);
        }
    }

    /// Leaves the queue to another job, with nothing in it.
    fn end(&mut self) {
        if !self.has_ended {
            self.has_ended = true;
            self.engine.flushes.give_up(&self.group);
            self.group.clear();
        }
    }

    /// Does what is left once nothing waits.
    fn finish(&mut self) -> Step {
        if let Err(error) = self.wait_behind() {
            self.engine.after_change();
            self.engine.background.note(Work::Flush, &error);
        }
        if !self.engine.flushes.end_if_empty() {
            return Step::Again;
        }
        self.has_ended = true;
        self.engine.executor.notify();
        Step::Done
    }
}

impl Job for FlushJob {
    fn step(&mut self) -> Step {
        self.group = self.engine.flushes.take(self.engine.sizes.memtable_size);
        if self.group.is_empty() {
            return self.finish();
        }
        let seen = self.engine.background.compactions.look();
        let given_up = self.engine.fast().copies_given_up();
        let trims = self.behind.as_ref().is_some_and(Beside::is_under_way);
        let flushed = self.flush();
        if flushed.is_err() && !self.group.iter().all(Due::waits) {
            // What failed came after the tables: L0 has them, and may have work for compactions.
            self.engine.after_change();
        }
        match flushed {
            Ok(()) => {
                self.engine.background.clear(Work::Flush);
                self.give_back();
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
                self.give_back();
                return Step::Again;
            }
            // Not a failure: a compaction is making room, and queues these flushes again when it
            // ends. If a compaction has failed, this does not count: the two might try for ever.
            Err(error) if error.is_no_space() && self.engine.may_make_room(seen) => {
                self.end();
                // A compaction that ended between the look and the release of the flags found them
                // set.
                if !self.engine.is_compacting() {
                    self.engine.schedule_flushes();
                }
            }
            Err(error) => {
                // Why a compaction cannot make room says more than that there is none.
                let failed = self.engine.background.failure(Work::Compaction);
                let cause = failed.filter(|_| error.is_no_space() && self.engine.makes_room(seen));
                let error = cause.unwrap_or(error);
                self.engine.background.note(Work::Flush, &error);
                if let Err(error) = self.wait_behind() {
                    self.engine.after_change();
                    self.engine.background.note(Work::Flush, &error);
                }
                self.end();
                // A memtable that froze between the look and the release of the flags found them
                // set.
                if self.engine.background.failure(Work::Flush).is_none() {
                    self.engine.schedule_flushes();
                }
            }
        }
        self.engine.executor.notify();
        Step::Done
    }
}

impl Drop for FlushJob {
    fn drop(&mut self) {
        // A job dropped by a shutdown must not leave the flags set.
        self.end();
    }
}

/// What a group of flushes has written.
#[derive(Default)]
struct Written {
    flushed: Vec<Flushed>,
    /// Why none of it can be installed.
    failure: Option<Error>,
}

impl Written {
    fn tables(&self) -> Vec<TableMeta> {
        let tables = self
            .flushed
            .iter()
            .flat_map(|flushed| flushed.table.clone());
        tables.collect()
    }
}

/// A memtable that is written.
struct Flushed {
    due: Due,
    /// None if nobody sees anything of it.
    table: Option<TableMeta>,
    /// Held until the table is installed: until then it counts as in flight.
    _space: Vec<Reservation>,
}

/// The table that a pass has written.
struct Table(Option<TableMeta>);

impl Watch for Table {
    /// L0 is never the bottom: tombstones stay.
    fn is_bottom(&self, _key: &[u8]) -> bool {
        false
    }

    fn written(&mut self, table: TableMeta, _output: usize) -> Result<()> {
        self.0 = Some(table);
        Ok(())
    }
}

impl Engine {
    /// Flushes the memtables of `group`, each of another keyspace. Those for which there is no room
    /// are left, unless that is all of them.
    fn flush_memtables(&self, group: &[Due]) -> Result<()> {
        self.background.check_writable()?;
        point!(self.points, "flush.start")?;
        let log = self.commit.log_sync.clone();
        let seq = group.iter().map(|due| due.memtable.last_seq()).max();
        let waits = log.waits_for_a_device();
        let synced = Beside::begin(waits, move || log.sync_through(seq.unwrap_or(0)))?;
        let written = self.write_l0_tables(group);
        // I5: what the edit will call flushed must not be ahead of the log of other keyspaces.
        let synced = synced.wait();
        let tables = written.tables();
        if let Some(error) = &written.failure {
            // Of two failures one is told; that writing has ended (I9) must not be the other.
            self.background.note_poison(error);
        }
        if let Some(error) = synced.err().or(written.failure) {
            self.discard_outputs(&tables, &error);
            return Err(error);
        }
        let installed = point!(self.points, "flush.written")
            .and_then(|()| self.install_flushed(&written.flushed));
        if let Err(error) = installed {
            self.discard_outputs(&tables, &error);
            return Err(error);
        }
        point!(self.points, "flush.installed")
    }

    /// What follows a flush, and gives back what its records took in the log.
    fn follow_flush(&self) -> Result<()> {
        // Trimmed first, as this needs no space and gives some.
        self.trim_log()?;
        point!(self.points, "flush.trimmed")?;
        self.roll_manifest()
    }

    /// Makes the tables of `flushed` part of their keyspaces, by one edit.
    ///
    /// # Errors
    /// If there are any, the edit is not in force.
    fn install_flushed(&self, flushed: &[Flushed]) -> Result<()> {
        let now = self.clock.now();
        let waits = self.commit.log_sync.waits_for_a_device();
        let tables = flushed.iter().flat_map(|flushed| flushed.table.clone());
        let opens = tables.filter_map(|meta| {
            let engine = self.me()?;
            Some(move || engine.open_table(meta, TableHeat::flushed(now)))
        });
        let opened = all_beside(waits, opens.collect());
        let mut opened = opened.into_iter().collect::<Result<Vec<_>>>()?;
        point!(self.points, "flush.before_edit")?;
        // Before any reader can miss the memtables: see `read/cached`.
        for Flushed { due, .. } in flushed {
            self.refresh_cached(&due.tree, &due.memtable);
        }
        point!(self.points, "flush.refreshed")?;
        let mut manifest = self.files.manifest.lock();
        let is_there = |flushed: &&Flushed| self.check_not_dropped(&flushed.due.tree).is_ok();
        let (there, gone): (Vec<_>, Vec<_>) = flushed.iter().partition(is_there);
        let through = there.iter().map(|f| f.due.memtable.last_seq()).max();
        if let Some(through) = through {
            let seqs = there
                .iter()
                .map(|f| (f.due.tree.id, f.due.memtable.last_seq()));
            let edit = VersionEdit {
                added: there.iter().flat_map(|f| f.table.clone()).collect(),
                flushed_through: seqs.collect(),
                next_file: Some(self.files.next.load(Ordering::Relaxed)),
                last_seq: Some(through),
                ..VersionEdit::default()
            };
            manifest.append(&edit)?;
            for Flushed { due, .. } in &there {
                let is_own = |table: &mut Arc<TableHandle>| table.meta.keyspace == due.tree.id;
                let own = opened.extract_if(.., is_own).collect();
                let mut state = due.tree.state.lock();
                let what = Installed::Flush(&due.memtable);
                due.tree.install(self, &mut state, &edit, own, what);
                self.stats.count_flush();
            }
            self.sequence
                .log_floor
                .fetch_max(through, Ordering::Release);
        }
        drop(manifest);
        let gone: Vec<_> = gone.iter().flat_map(|f| f.table.clone()).collect();
        self.discard_outputs(&gone, &Error::Closed);
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

    /// Writes the tables of `group`; they and their names are durable then (I4).
    fn write_l0_tables(&self, group: &[Due]) -> Written {
        let mut written = Written::default();
        let mut works = Vec::new();
        for due in group {
            let Some(engine) = self.me() else { break };
            match self.reserve_for_flush(due.memtable.table_len()) {
                Ok(space) => {
                    let due = due.clone();
                    works.push(move || engine.write_l0_table(due, space));
                }
                // The others wait for what these make room for.
                Err(_) if !works.is_empty() => break,
                Err(error) => written.failure = Some(error),
            }
            if written.failure.is_some() {
                return written;
            }
        }
        let mut failure = None;
        let waits = self.commit.log_sync.waits_for_a_device();
        for outcome in all_beside(waits, works) {
            match outcome {
                Ok(flushed) => written.flushed.push(flushed),
                Err(error @ Error::Poisoned { .. }) => written.failure = Some(error),
                Err(error) => failure = Some(error),
            }
        }
        if written.flushed.is_empty() {
            written.failure = written.failure.or(failure);
        }
        let tiers = self.tiers.iter().enumerate();
        let is_used = |tier: usize| {
            let mut tables = written.flushed.iter().flat_map(|flushed| &flushed.table);
            tables.any(|table| usize::from(table.tier) == tier)
        };
        let mut used = tiers.filter(|(number, _)| is_used(*number));
        let named = used.try_for_each(|(_, tier)| tier.sync_tables());
        written.failure = written.failure.take().or(named.err());
        written
    }

    /// Writes a table of what somebody may still see of `memtable`; none if that is nothing.
    fn write_l0_table(&self, due: Due, space: Reservation) -> Result<Flushed> {
        let (tree, memtable) = (&due.tree, &due.memtable);
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
        let mut table = Table(None);
        while pass.advance(self, tree, &mut table)? {}
        Ok(Flushed {
            table: table.0,
            _space: pass.into_space(),
            due,
        })
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
mod tests;
