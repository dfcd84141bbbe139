//! Closing a store.

use crate::engine::Engine;
use crate::error::Result;
use crate::points::point;
use crate::sync::atomic::Ordering;
use crate::version::edit::VersionEdit;

impl Engine {
    /// Flushes, stops background work, and lets go of the tiers.
    pub(crate) fn close(&self) -> Result<()> {
        // One at a time: whoever comes second finds the store closed, and not only about to be, and
        // hears what the first heard.
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
            // No writer gets between the log's end and the flag: its write would be acknowledged
            // and, when it asked for no durability, lost.
            let mut log = self.commit.log.lock();
            // Even when the flush failed, for want of space on a tier perhaps: the log may still
            // keep what was only in the process buffer.
            let ended = log.wal.close();
            let ended = ended.and_then(|()| point!(self.points, "close.log_ended"));
            self.closing.is_closed.store(true, Ordering::Release);
            ended
        };
        self.executor.notify();
        self.executor.shutdown();
        let _: Result<()> = point!(self.points, "close.work_ended");
        let ended = ended.and_then(|()| self.end_manifest());
        // What the log lacks is lost; where it lacks nothing, it has all that was not flushed.
        let outcome = ended.and(flushed);
        *closing = Some(outcome.clone());
        // While the tiers are locked: the next that opens them may have copies of its own.
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

    /// Writes an edit that changes no table: behind it, damage of the last one that does is no torn
    /// end. So it has to be the manifest's last: the caller has waited for the jobs, each of which
    /// may end with an edit of its own, and once the flag is set nobody else begins one.
    fn end_manifest(&self) -> Result<()> {
        let mut manifest = self.files.manifest.lock();
        let trees = self.all_trees();
        let closed = VersionEdit {
            learned: trees.iter().map(|t| (t.id, t.averages.learned())).collect(),
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

    /// To wait until a closed store is idle was well, and removed what its readers had let go of.
    /// The directories were nobody's by then, or another store's: of one that a backup had been
    /// restored to, tables of the same numbers went (I4).
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
        // As a writer does that found no room, and that closing has overtaken.
        assert_eq!(db.engine().graveyard.sweep(), 0);
        assert_eq!(disk.list_raw("/fast".as_ref()), before);
    }

    /// A keyspace was being dropped when another thread closed the store. What of the log nobody
    /// needed any more was removed then, without the locks: of another store in the same directory
    /// segments of the same numbers went.
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
    /// closing one. Damage of that passed for a torn end, and the tables that the compaction had
    /// replaced were said to be missing.
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

    /// Who closed the store for the second time, another thread or a hook that shuts a program
    /// down, was told that all was well: what the first had not got durable passed for kept.
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

    /// Where the last flush found no room, and then the log could not be synced, closing told of
    /// the want of room alone, after which the log has everything: what the sync had lost passed
    /// for kept.
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

    /// Want of room was said to leave everything in the log. Where it is the log that has none,
    /// what was in the process only is gone: the error's path tells the two apart.
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
