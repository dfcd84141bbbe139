//! Freezing: memtables become immutable, and the log segment that holds their newest records ends.

use super::{Commit, Log};
use crate::engine::{Engine, Tree};
use crate::error::{Error, Result};
use crate::key::SeqNo;
use crate::placement::planned_log;
use crate::sync::atomic::Ordering;
use crate::sync::{Arc, MutexGuard};

impl Engine {
    /// When all memtables together are over the limit, freezes those that keep too much of the log,
    /// and then the largest.
    pub(crate) fn freeze_if_full(&self, log: &mut Log) -> Result<()> {
        let full = self.commit.active_bytes.load(Ordering::Relaxed) >= self.sizes.memtable_size;
        let has_room = || self.keyspaces.tally.frozen() < self.max_immutables();
        if !full || self.commit.freezes_held() || !has_room() {
            return Ok(());
        }
        self.freeze_what_keeps_the_log(log)?;
        if !has_room() {
            return Ok(());
        }
        let largest = self
            .all_trees()
            .into_iter()
            .max_by_key(|tree| tree.peek().active.bytes());
        largest.map_or(Ok(()), |tree| self.freeze(log, &tree))
    }

    /// Freezes memtables whose records keep more of the log than there is room planned for (I8),
    /// the oldest first. The memtable of a keyspace that is seldom written to is never the largest.
    fn freeze_what_keeps_the_log(&self, log: &mut Log) -> Result<()> {
        let planned = planned_log(&self.sizes).saturating_add(self.options.log_retention);
        let Some(through) = self.commit.log_sync.surplus_through(planned) else {
            return Ok(());
        };
        let trees = self.all_trees().into_iter();
        // What is frozen already is on its way.
        let is_idle = |tree: &Arc<Tree>| tree.peek().immutables.is_empty();
        let oldest = |tree: Arc<Tree>| Some((tree.oldest_unflushed()?, tree));
        let mut keep: Vec<_> = trees.filter(is_idle).filter_map(oldest).collect();
        keep.retain(|(seq, _)| *seq <= through);
        keep.sort_unstable_by_key(|(seq, _)| *seq);
        for (_, tree) in keep {
            if self.keyspaces.tally.frozen() >= self.max_immutables() {
                break;
            }
            self.freeze(log, &tree)?;
        }
        Ok(())
    }

    /// Ends the current segment of the log if nobody will flush some of its records, so that the
    /// segment can go once nobody else needs it.
    ///
    /// # Errors
    /// As [`Wal::rotate`]; what is left counts until the next freeze.
    pub(crate) fn end_unowned_log(&self, log: &mut Log) -> Result<()> {
        if log.unowned > 0 {
            self.rotate(log)?;
        }
        // Where keyspaces come and go, it may be that no memtable ever gets full.
        self.freeze_what_keeps_the_log(log)
    }

    /// Starts the next log segment, unless the current one has no record.
    fn rotate(&self, log: &mut Log) -> Result<()> {
        log.wal
            .rotate(self.new_file())
            .inspect_err(|error| self.background.note_poison(error))?;
        let unowned = std::mem::take(&mut log.unowned);
        self.commit
            .active_bytes
            .fetch_sub(unowned, Ordering::Relaxed);
        Ok(())
    }

    /// Freezes every memtable that holds something, at one point of the write order. Waits while
    /// a checkpoint holds freezes off.
    pub(crate) fn freeze_all(&self) -> Result<SeqNo> {
        self.freeze_all_then(|| ())
    }

    /// As [`Engine::freeze_all`]; runs `then` before any other memtable can freeze.
    pub(crate) fn freeze_all_then(&self, then: impl FnOnce()) -> Result<SeqNo> {
        let mut log = self.lock_unheld_log()?;
        for tree in self.all_trees() {
            self.freeze_one(&mut log, &tree)?;
        }
        // Once: it looks at every keyspace, and writers wait.
        self.update_pressure();
        then();
        Ok(log.last_seq)
    }

    /// The log's lock, at a time when no checkpoint holds freezes off.
    pub(crate) fn lock_unheld_log(&self) -> Result<MutexGuard<'_, Log>> {
        loop {
            let log = self.commit.log.lock();
            self.check_writable()?;
            if !self.commit.freezes_held() {
                return Ok(log);
            }
            drop(log);
            let free = || !self.commit.freezes_held() || self.check_writable().is_err();
            if !self.executor.wait_until(&mut { free }) {
                return Err(Error::Closed);
            }
        }
    }

    /// Freezes the active memtable of `tree` and ends the log segment that its newest records are
    /// in (I10: the caller holds the log).
    pub(crate) fn freeze(&self, log: &mut Log, tree: &Arc<Tree>) -> Result<()> {
        self.freeze_one(log, tree)?;
        self.update_pressure();
        Ok(())
    }

    /// As [`Engine::freeze`], without a look at how far behind the store is.
    fn freeze_one(&self, log: &mut Log, tree: &Arc<Tree>) -> Result<()> {
        let bytes = tree.peek().active.bytes();
        if bytes == 0 {
            return Ok(());
        }
        self.rotate(log)?;
        tree.freeze(self)?;
        self.commit.active_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.schedule_flush(tree);
        Ok(())
    }
}

impl Commit {
    pub(crate) fn freezes_held(&self) -> bool {
        self.freeze_holds.load(Ordering::Relaxed) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Db;
    use crate::executor::Stepped;
    use crate::options::{Durability, Options};
    use crate::storage::{Fault, Faulty, Medium, Memory, Operation};
    use crate::sync::atomic::AtomicUsize;

    /// Freezing the memtables of many keyspaces began a segment for each of them, all but the first
    /// empty. With a thousand keyspaces a process had no file left to open, and the next write that
    /// asked for a sync synced each of the segments, with the log held.
    #[test]
    fn freezing_many_keyspaces_begins_one_segment() {
        let disk = Faulty::new(1);
        let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(disk.clone()));
        let db = builder.executor(Arc::new(Stepped::new(1))).open().unwrap();
        for n in 0..50 {
            let keyspace = db.create_keyspace(&format!("{n}")).unwrap();
            keyspace.put("key", "value").unwrap();
        }
        db.engine().freeze_all().unwrap();
        let files = disk.list_raw("/fast".as_ref()).into_iter();
        let segments = files.filter(|file| file.name.ends_with(".wal"));
        assert_eq!(segments.count(), 2);
        let syncs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&syncs);
        let count = move |operation, name: &str| {
            if operation == Operation::Sync && name.ends_with(".wal") {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            false
        };
        disk.fail_where(count, Fault::Io);
        db.put_with("key", "value", Durability::Sync).unwrap();
        assert_eq!(syncs.load(Ordering::Relaxed), 2);
    }

    /// Segments that one quiet record kept were counted only by their bytes. Where keyspaces came
    /// and went there were hundreds of thousands of them, each a file of a few hundred bytes,
    /// before the record's memtable was frozen.
    #[test]
    fn short_segments_do_not_heap_up_behind_a_quiet_record() {
        let memory = Memory::new();
        let stepped = Arc::new(Stepped::new(1));
        let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(memory.clone()));
        let db = builder.executor(stepped.clone()).open().unwrap();
        db.put("quiet", "value").unwrap();
        for _ in 0..1000 {
            let task = db.create_keyspace("task").unwrap();
            task.put("key", "value").unwrap();
            db.drop_keyspace("task").unwrap();
        }
        stepped.drain();
        let log = memory.log_store("/fast".as_ref(), false).unwrap();
        let files = log.list().unwrap().into_iter();
        let segments = files.filter(|file| file.name.ends_with(".wal")).count();
        assert!(segments <= 300, "{segments} segments");
        let quiet = db.get("quiet").unwrap();
        assert_eq!(quiet.as_deref(), Some(&b"value"[..]));
    }
}
