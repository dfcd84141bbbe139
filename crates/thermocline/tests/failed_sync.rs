//! A sync that fails is final (I9).
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::sync::atomic::{AtomicBool, Ordering};

use thermocline::storage::{CrashStyle, Fault, Operation};
use thermocline::{Durability, Error};
use thermocline_torture::life::history::contents;
use thermocline_torture::life::{Step, Trial};

/// The sync that fails is one, the next would report success; what the first one lost is
/// lost all the same. So nothing is acknowledged after it until the store was opened again.
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
