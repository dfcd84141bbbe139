//! A sync that fails is final (I9).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use thermocline::storage::{CrashStyle, Fault, Operation};
use thermocline::{Durability, Error};
use thermocline_torture::life::history::contents;
use thermocline_torture::life::{SIDE, Step, Trial};

/// If a sync fails once, the next one would report success, but what the first one lost stays lost.
/// So nothing is acknowledged after it until the store was opened again.
#[test]
fn after_one_failed_sync_nothing_is_acknowledged_until_the_store_is_reopened() {
    for kind in [".wal", ".sst", "MANIFEST"] {
        let mut trial = Trial::new(1);
        trial.name = kind.to_owned();
        trial.run(&[Step::Write(33)]).unwrap();
        let db = trial.db().unwrap();
        let failed = AtomicBool::new(false);
        let once = move |operation, name: &str| {
            operation == Operation::Sync
                && name.contains(kind)
                && !failed.swap(true, Ordering::SeqCst)
        };
        trial.disk.fail_where(once, Fault::SyncFails);
        let first = db.sync().and_then(|()| db.flush());
        assert!(
            matches!(first, Err(Error::Poisoned { .. })),
            "{kind}: {first:?}"
        );
        for durability in [Durability::None, Durability::Buffered, Durability::Sync] {
            let refused = db.put_with("key", "value", durability).map(|_| ());
            assert!(
                matches!(refused, Err(Error::Poisoned { .. })),
                "{kind}: {refused:?}"
            );
        }
        let refused = [
            db.sync(),
            db.flush(),
            db.compact_range::<&[u8]>(..),
            db.create_keyspace("new").map(|_| ()),
            db.checkpoint(&["/copy-1".into(), "/copy-2".into()]),
        ];
        for outcome in refused {
            assert!(
                matches!(outcome, Err(Error::Poisoned { .. })),
                "{kind}: {outcome:?}"
            );
        }
        assert!(
            contents(&db).unwrap() == trial.history.visible(),
            "{kind}: reads go on"
        );
        assert!(db.metrics().background_error.is_some());
        assert!(matches!(db.close(), Err(Error::Poisoned { .. })));
        drop(db);
        trial.come_back().unwrap();
        trial.survive(CrashStyle::LoseAll).unwrap();
    }
}

/// Regression, found by the simulation: the sync of the directory behind a new table failed, and
/// the name of a new segment of the log was lost with it. The log synced the directory once more,
/// heard of success, and recorded that the segment was durable. So opening the store once more did
/// not write it anew. After a loss of power the next segment counted as damage.
#[test]
fn names_that_a_failed_sync_has_lost_are_told_durable_by_nobody() {
    for nth in 1.. {
        let mut trial = Trial::new(1);
        trial.name = format!("the sync number {nth} of names");
        // Closing leaves, among others, an empty segment of the log: each keyspace begins one.
        let begin = [Step::CreateKeyspace(SIDE), Step::Write(9), Step::Sync];
        trial.run(&begin).unwrap();
        let db = trial.db().unwrap();
        let calls = AtomicU64::new(0);
        let once = move |operation, _: &str| {
            operation == Operation::SyncDir && calls.fetch_add(1, Ordering::SeqCst) + 1 == nth
        };
        trial.disk.fail_where(once, Fault::SyncFails);
        let _ = db.flush();
        let _ = db.close();
        drop(db);
        if trial.disk.triggered() == 0 {
            assert!(nth > 4, "a flush and a closing sync more names than that");
            break;
        }
        // The system did not go down. Until it does, it still shows all names.
        trial.wake(trial.disk.clone());
        trial.run(&[Step::Write(3), Step::Sync]).unwrap();
        trial.survive(CrashStyle::LoseAll).unwrap();
    }
}

/// Regression, found by the simulation: the sync of a compaction's edit failed. The store was
/// opened again and still read the edit, from the system's cache. Before it had written a manifest
/// of its own, it removed the tables that the edit makes obsolete. Then the power went, and the
/// edit with it: the tables that counted were gone.
#[test]
fn nothing_goes_for_an_edit_that_may_be_lost_before_it_is_written_anew() {
    for call in 1.. {
        let mut trial = Trial::new(1);
        trial.name = format!("power goes at call {call} of the opening");
        trial.run(&[Step::Write(60), Step::Flush]).unwrap();
        let db = trial.db().unwrap();
        let edit =
            |operation, name: &str| operation == Operation::Sync && name.contains("MANIFEST");
        trial.disk.fail_where(edit, Fault::SyncFails);
        let compacted = db.compact_range::<&[u8]>(..);
        assert!(
            matches!(compacted, Err(Error::Poisoned { .. })),
            "{compacted:?}"
        );
        let _ = db.close();
        drop(db);
        trial.disk.heal();
        trial.wake(trial.disk.clone());
        let before = trial.disk.triggered();
        trial.disk.fail_nth(call, Fault::PowerLoss);
        let _ = trial.db();
        let is_over = trial.disk.triggered() == before;
        trial.survive(CrashStyle::KeepAll).unwrap();
        if is_over {
            assert!(call > 20, "an opening makes more calls than that");
            break;
        }
    }
}
