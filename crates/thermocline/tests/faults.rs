//! Calls of the disk fail at every place of a store's life, once or from then on. Nothing is
//! answered wrongly, nothing waits for ever, and what was acknowledged is there after reopening.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::sync::atomic::{AtomicBool, Ordering};

use thermocline::storage::{CrashStyle, Fault, Operation};
use thermocline::{Durability, Error};
use thermocline_torture::life::history::contents;
use thermocline_torture::life::{LIFE, Step, Trial};

const FAULTS: [Fault; 4] = [
    Fault::Io,
    Fault::NoSpace,
    Fault::SyncFails,
    Fault::ShortWrite,
];

/// Lives on after errors. `passing` says that a fault does not last, so that trying again works.
fn live_through(trial: &mut Trial, passing: bool) {
    for &step in LIFE {
        let Err(stop) = trial.step(step) else {
            continue;
        };
        let error = stop.error().unwrap();
        check_error(trial, step, &error);
        // What a failed checkpoint left must be removed by hand first.
        let again = passing && !matches!(step, Step::Checkpoint);
        if again
            && !matches!(error, Error::Poisoned { .. })
            && let Err(again) = trial.step(step)
        {
            panic!(
                "{}: {step:?} failed: {error}; and again: {again:?}",
                trial.name
            );
        }
    }
}

/// An error is one that was planted; a store that is open still answers rightly; after a failed
/// sync it takes no write (I9).
fn check_error(trial: &mut Trial, step: Step, error: &Error) {
    let name = trial.name.clone();
    assert!(
        matches!(
            error,
            Error::Io { .. } | Error::NoSpace { .. } | Error::Poisoned { .. }
        ),
        "{name}: {step:?} gives {error:?}"
    );
    let Some(db) = trial.db.clone() else { return };
    match contents(&db) {
        Ok(found) => assert!(found == trial.history.visible(), "{name}: wrong answers"),
        Err(error) => assert!(matches!(error, Error::Io { .. }), "{name}: {error}"),
    }
    if matches!(error, Error::Poisoned { .. }) && !matches!(step, Step::Checkpoint) {
        for durability in [Durability::None, Durability::Buffered, Durability::Sync] {
            let refused = db.put_with("key", "value", durability);
            assert!(
                matches!(refused, Err(Error::Poisoned { .. })),
                "{name}: after {step:?} failed with {error}, a write gives {refused:?}"
            );
        }
    }
}

/// What is left after the faults is opened again, in one of three ways.
fn come_back(trial: &mut Trial, way: u64) {
    trial.disk.heal();
    match way % 3 {
        0 => trial.survive(CrashStyle::LoseAll).unwrap(),
        1 => trial.come_back().unwrap(),
        _ => {
            // What is readable now may be lost with the power; once opened it may not.
            trial.db = None;
            trial.db().unwrap();
            trial.survive(CrashStyle::LoseAll).unwrap();
        }
    }
}

fn calls_of_a_life() -> u64 {
    let mut trial = Trial::new(1);
    trial.run(LIFE).unwrap();
    trial.disk.calls()
}

#[test]
fn a_call_that_fails_once_costs_nothing_that_was_acknowledged() {
    let calls = calls_of_a_life();
    let mut hit = 0;
    for (index, fault) in FAULTS.into_iter().enumerate() {
        for n in (1 + index as u64..=calls).step_by(13) {
            let mut trial = Trial::new(n);
            trial.name = format!("{fault:?} once at call {n} of {calls}");
            trial.disk.fail_nth(n, fault);
            live_through(&mut trial, true);
            hit += trial.disk.triggered();
            come_back(&mut trial, n / 13);
        }
    }
    assert!(hit > 300, "{hit} calls failed");
}

#[test]
fn a_disk_that_fails_from_some_call_on_costs_nothing_that_was_acknowledged() {
    let calls = calls_of_a_life();
    let mut hit = 0;
    for (index, fault) in FAULTS.into_iter().enumerate() {
        for n in (1 + index as u64..=calls).step_by(29) {
            let mut trial = Trial::new(n);
            trial.name = format!("{fault:?} from call {n} of {calls} on");
            trial.disk.fail_from(n, fault);
            live_through(&mut trial, false);
            hit += trial.disk.triggered().min(1);
            come_back(&mut trial, n / 29);
        }
    }
    assert!(hit > 250, "{hit} disks failed");
}

/// I9: the sync that fails is one, the next would report success; what the first one lost is
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
