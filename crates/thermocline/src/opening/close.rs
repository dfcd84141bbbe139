//! Closing a store.

use crate::engine::Engine;
use crate::error::Result;
use crate::points::point;
use crate::sync::atomic::Ordering;
use crate::version::edit::VersionEdit;

impl Engine {
    /// Flushes, stops background work, and lets go of the tiers.
    pub(crate) fn close(&self) -> Result<()> {
        // One caller at a time: the second one waits until the store is closed, and gets the
        // outcome that the first one got.
        let mut closing = self.closing.outcome.lock();
        if let Some(outcome) = &*closing {
            return outcome.clone();
        }
        if self.background.reads_only() {
            self.closing.is_closed.store(true, Ordering::Release);
            self.executor.notify();
            self.executor.shutdown();
            self.tiers.iter().for_each(|tier| tier.end());
            self.closing.locks.lock().clear();
            *closing = Some(Ok(()));
            return Ok(());
        }
        let flushed = self.flush_all();
        let flushed = flushed.and_then(|_| point!(self.points, "close.flushed"));
        let ended = {
            // Under this lock no writer gets between the end of the log and the flag. Its write
            // would be acknowledged and, if it asked for no durability, lost.
            let mut log = self.commit.log.lock();
            // The log is closed even if the flush failed, perhaps for want of space on a tier: it
            // may still keep what was only in the process buffer.
            let ended = log.wal.close();
            let ended = ended.and_then(|()| point!(self.points, "close.log_ended"));
            self.closing.is_closed.store(true, Ordering::Release);
            ended
        };
        self.executor.notify();
        self.executor.shutdown();
        // Before the manifest ends: the one that is being installed appends an edit.
        self.ingestions.end();
        let _: Result<()> = point!(self.points, "close.work_ended");
        let ended = ended.and_then(|()| self.end_manifest());
        // An error of the log comes first: what the log lacks is lost. If it lacks nothing, it has
        // all that was not flushed.
        let outcome = ended.and(flushed);
        *closing = Some(outcome.clone());
        // While the tiers are locked: the next store that opens them may have copies of its own.
        self.fast().remove_all_copies();
        self.fast().end_copies();
        self.placement.close(self);
        let _: Result<()> = point!(self.points, "close.hotness_kept");
        self.graveyard.sweep();
        self.graveyard.close();
        self.commit.log_sync.end_removal();
        self.tiers.iter().for_each(|tier| tier.end());
        self.closing.locks.lock().clear();
        outcome
    }

    /// Writes an edit that changes no table. Once it is there, damage of the last edit that does
    /// change one does not look like a torn end. So it has to be the manifest's last edit: the
    /// caller has waited for the jobs, each of which may end with an edit of its own, and once the
    /// flag is set nobody begins another job.
    fn end_manifest(&self) -> Result<()> {
        let mut manifest = self.files.manifest.lock();
        let trees = self.all_trees();
        let closed = VersionEdit {
            learned: trees.iter().map(|t| (t.id, t.averages.learned())).collect(),
            heats: self.heats(),
            ..VersionEdit::default()
        };
        manifest.append(&closed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use crate::Db;
    use crate::error::Error;
    use crate::executor::Stepped;
    use crate::options::{Durability, Options};
    use crate::points::Points;
    use crate::storage::{Fault, Faulty, Operation};
    use crate::sync::{Arc, Mutex, yield_now};
    use crate::testing::scene::{Scene, options};
    use crate::version::{Manifest, manifest_file_name};

    /// Waiting until a closed store was idle succeeded, and removed the files that its readers had
    /// let go of. By then the directories were nobody's, or another store's: if a backup had been
    /// restored to them, its tables of the same numbers were removed (I4).
    #[test]
    fn a_store_that_is_closed_removes_no_file() {
        let disk = Faulty::new(1);
        let mut options = Options::one_tier("/fast");
        options.l0_trigger = 8;
        let builder = Db::builder(options).medium(0, Arc::new(disk.clone()));
        let db = builder.executor(Arc::new(Stepped::new(1))).open().unwrap();
        for value in ["old", "new"] {
            db.put("key", value).unwrap();
            db.flush().unwrap();
        }
        let mut reader = db.iter();
        assert!(reader.next().is_some());
        db.compact_range::<&[u8]>(..).unwrap();
        db.close().unwrap();
        drop(reader);
        let before = disk.list_raw("/fast".as_ref());
        assert!(!db.engine().graveyard.dead().is_empty());
        let waited = db.wait_idle();
        assert!(matches!(waited, Err(Error::Closed)), "{waited:?}");
        assert_eq!(disk.list_raw("/fast".as_ref()), before);
        // As does a writer that found no room and that closing has overtaken.
        assert_eq!(db.engine().graveyard.sweep(), 0);
        assert_eq!(disk.list_raw("/fast".as_ref()), before);
    }

    /// A keyspace was being dropped when another thread closed the store. The drop then removed log
    /// segments that nobody needed any more, without the locks: if another store was in the
    /// directory, its segments of the same numbers were removed.
    #[test]
    fn a_call_that_closing_overtakes_removes_no_segment() {
        let disk = Faulty::new(1);
        let scene = Scene::on(Arc::new(disk.clone()), options());
        let side = scene.db.create_keyspace("side").unwrap();
        side.put("key", "value").unwrap();
        let closed = Arc::new(Mutex::new(None));
        let (notes, dir) = (Arc::clone(&closed), disk.clone());
        let hook = scene.at("keyspace.emptied", move |scene| {
            scene.db.close()?;
            *notes.lock() = Some(dir.list_raw("/fast".as_ref()));
            Ok(())
        });
        scene.db.drop_keyspace("side").unwrap();
        assert!(hook.has_run());
        let before = closed.lock().take().expect("it was closed");
        assert_eq!(disk.list_raw("/fast".as_ref()), before);
    }

    /// A compaction that was in its last step when the store was closed wrote its edit behind the
    /// closing one. Damage of the compaction's edit passed for a torn end, and the tables that it
    /// had replaced were said to be missing.
    #[test]
    fn no_edit_of_a_job_comes_behind_the_closing_one() {
        let (disk, points) = (Faulty::new(1), Points::default());
        let mut options = Options::one_tier("/fast");
        options.l0_trigger = 8;
        // With threads of its own: an executor that is stepped cannot wait for a step below it.
        let open = || {
            let builder = Db::builder(options.clone()).medium(0, Arc::new(disk.clone()));
            builder.points(points.clone()).open()
        };
        let db = open().unwrap();
        for value in ["old", "new"] {
            db.put("key", value).unwrap();
            db.flush().unwrap();
        }
        let (arrives, has_arrived) = mpsc::channel();
        let closing = Arc::clone(db.engine());
        points.set("compaction.before_edit", move || {
            arrives.send(()).unwrap();
            // Until closing waits for nothing but jobs.
            while closing.check_open().is_ok() {
                yield_now();
            }
            Ok(())
        });
        let by_hand = db.clone();
        let by_hand = thread::spawn(move || by_hand.compact_range::<&[u8]>(..));
        has_arrived.recv_timeout(Duration::from_secs(20)).unwrap();
        db.close().unwrap();
        points.clear("compaction.before_edit");
        let compacted = by_hand.join().unwrap();
        assert!(
            matches!(compacted, Ok(()) | Err(Error::Closed)),
            "{compacted:?}"
        );

        let manifest = Manifest::recover(db.engine().fast()).unwrap().unwrap();
        let edits = &manifest.edits;
        let replaced = edits.iter().rposition(|edit| !edit.removed.is_empty());
        let replaced = replaced.expect("the edit of the compaction");
        assert_eq!(edits.len(), replaced + 2, "the closing one is the last");
        let end = manifest.offsets[replaced + 1];
        let name = manifest_file_name(manifest.number);
        disk.corrupt("/fast".as_ref(), &name, end - 1, 4).unwrap();
        match open().map(|_| ()) {
            Err(Error::Corruption {
                path, offset, what, ..
            }) => {
                assert!(path.ends_with(&name), "{path:?}: {what}");
                assert_eq!(offset, manifest.offsets[replaced], "{what}");
            }
            opened => panic!("{opened:?}"),
        }
    }

    /// A second caller that closed the store, another thread or a hook that shuts a program down,
    /// was told that all was well. What the first call had not made durable passed for kept.
    #[test]
    fn who_closes_a_store_again_hears_the_same() {
        let disk = Faulty::new(1);
        let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(disk.clone()));
        let db = builder.executor(Arc::new(Stepped::new(1))).open().unwrap();
        db.put("key", "value").unwrap();
        disk.fail_where(
            |operation, name| operation == Operation::Sync && name.ends_with(".wal"),
            Fault::SyncFails,
        );
        for call in ["first", "second"] {
            let closed = db.close();
            assert!(
                matches!(closed, Err(Error::Poisoned { .. })),
                "{call}: {closed:?}"
            );
        }
    }

    /// The last flush found no room, and then the log could not be synced. Closing told only of the
    /// want of room, after which the log has everything: what the failed sync had lost passed for
    /// kept.
    #[test]
    fn what_the_log_lacks_is_told_before_what_tables_lack() {
        let (disk, points) = (Faulty::new(1), Points::default());
        let builder = Db::builder(Options::one_tier("/fast")).medium(0, Arc::new(disk.clone()));
        let builder = builder.executor(Arc::new(Stepped::new(1)));
        let db = builder.points(points.clone()).open().unwrap();
        db.put("key", "value").unwrap();
        points.set("flush.start", || {
            Err(Error::NoSpace {
                operation: "write",
                path: "/fast".into(),
            })
        });
        disk.fail_where(
            |operation, name| operation == Operation::Sync && name.ends_with(".wal"),
            Fault::SyncFails,
        );
        let closed = db.close();
        assert!(matches!(closed, Err(Error::Poisoned { .. })), "{closed:?}");
    }

    /// Want of room was said to leave everything in the log. If the log itself has no room, what
    /// was only in the process is gone. The error's path tells the two apart.
    #[test]
    fn want_of_room_in_the_log_is_told_with_its_path() {
        let disk = Faulty::new(1);
        let open = || {
            let builder = Db::builder(Options::one_tier("/fast"));
            let builder = builder.medium(0, Arc::new(disk.clone()));
            builder.executor(Arc::new(Stepped::new(1))).open().unwrap()
        };
        let db = open();
        db.put("key", "value").unwrap();
        db.put_with("late", "value", Durability::None).unwrap();
        disk.fail_where(
            |operation, name| operation == Operation::Append && name.ends_with(".wal"),
            Fault::NoSpace,
        );
        match db.close() {
            Err(Error::NoSpace { path, .. }) => {
                assert!(path.extension().is_some_and(|e| e == "wal"), "{path:?}");
            }
            closed => panic!("{closed:?}"),
        }
        disk.heal();
        let db = open();
        assert!(db.get("key").unwrap().is_some());
        assert!(db.get("late").unwrap().is_none());
    }
}
