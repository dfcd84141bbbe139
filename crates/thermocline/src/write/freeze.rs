//! Freezing: memtables become immutable, and the log segment that holds their newest records ends.

use super::{Commit, Log};
use crate::engine::{Engine, Tree};
use crate::error::{Error, Result};
use crate::key::SeqNo;
use crate::sync::atomic::Ordering;
use crate::sync::{Arc, MutexGuard};

impl Engine {
    /// When all memtables together are over the limit, freezes those that keep too much of the log,
    /// and then the largest until half of the limit is left. When one alone is a memtable's worth,
    /// freezes that one.
    pub(crate) fn freeze_if_full(&self, log: &mut Log) -> Result<()> {
        let active = self.commit.active_bytes.load(Ordering::Relaxed);
        if active < self.sizes.memtable_size {
            return Ok(());
        }
        let left = if self.log_wants_room() {
            self.sizes.memtable_size / 2
        } else if active >= self.active_limit() {
            self.active_limit() / 2
        } else if self.commit.one_is_full.load(Ordering::Relaxed) {
            active - 1
        } else {
            return Ok(());
        };
        if self.commit.freezes_held() || !self.has_room_to_freeze() {
            return Ok(());
        }
        self.freeze_what_keeps_the_log(log)?;
        if !self.has_room_to_freeze() {
            return Ok(());
        }
        self.freeze_largest(log, left)
    }

    /// Freezes the largest memtables, until what is left is `left` at most; or lets all of them
    /// grow, where those are small. Each freeze has its price: a segment, and a look at all
    /// keyspaces.
    fn freeze_largest(&self, log: &mut Log, left: u64) -> Result<()> {
        let sizes = self.all_trees().into_iter();
        let mut sizes: Vec<_> = sizes
            .map(|tree| (tree.peek().active.bytes(), tree))
            .collect();
        sizes.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        let active = self.commit.active_bytes.load(Ordering::Relaxed);
        let mut frozen = 0;
        let is_needed = |(bytes, _): &(u64, _)| {
            let is_needed = *bytes > 0 && active.saturating_sub(frozen) > left;
            frozen += if is_needed { *bytes } else { 0 };
            is_needed
        };
        let largest: Vec<_> = sizes.into_iter().take_while(is_needed).collect();
        // Not where the limit is taken by what nobody will flush: only a new segment gives it back.
        let is_theirs = active.saturating_sub(frozen) <= left;
        if is_theirs && !self.log_wants_room() && self.grows_instead(log, largest.len(), frozen) {
            return Ok(());
        }
        self.commit.one_is_full.store(false, Ordering::Relaxed);
        self.freeze_each(log, largest.iter().map(|(_, tree)| tree))
    }

    /// Freezes the active memtables of `trees`.
    fn freeze_each<'a>(
        &self,
        log: &mut Log,
        mut trees: impl Iterator<Item = &'a Arc<Tree>>,
    ) -> Result<()> {
        let frozen = trees.try_for_each(|tree| self.freeze_one(log, tree));
        self.lower_limit(log);
        // Once: it looks at every keyspace, and writers wait.
        self.update_pressure();
        frozen
    }

    /// Freezes memtables whose records keep more of the log than there is room planned for (I8),
    /// the oldest first. The memtable of a keyspace that is seldom written to is never the largest.
    fn freeze_what_keeps_the_log(&self, log: &mut Log) -> Result<()> {
        let Some(through) = self.commit.log_sync.surplus_through(self.log_limit()) else {
            return Ok(());
        };
        let trees = self.all_trees().into_iter();
        // What is frozen already is on its way.
        let is_idle = |tree: &Arc<Tree>| tree.peek().immutables.is_empty();
        let oldest = |tree: Arc<Tree>| Some((tree.oldest_unflushed()?, tree));
        let mut keep: Vec<_> = trees.filter(is_idle).filter_map(oldest).collect();
        keep.retain(|(seq, _)| *seq <= through);
        keep.sort_unstable_by_key(|(seq, _)| *seq);
        if keep.is_empty() {
            return Ok(());
        }
        let trees = keep.iter().map(|(_, tree)| tree);
        self.freeze_each(log, trees.take_while(|_| self.has_room_to_freeze()))
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
        self.freeze_each(&mut log, self.all_trees().iter())?;
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
        self.freeze_each(log, std::iter::once(tree))
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
