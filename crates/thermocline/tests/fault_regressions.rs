//! Bugs that the crash and fault tests found, each by itself.

mod common;

use common::script::{FAST, SIDE, SLOW, Step, Trial};
use thermocline::storage::{CrashStyle, Fault, Operation};
use thermocline::{Db, Durability, Error};

/// Recovery skips log records at or below their keyspace's flushed-through sequence (I5), and
/// took a keyspace without one for a dropped keyspace. A new keyspace had none before its first
/// flush: everything written to it until then, synced or not, was gone after reopening.
#[test]
fn a_new_keyspace_keeps_what_was_written_before_its_first_flush() {
    let mut trial = Trial::new(1);
    let db = trial.db().unwrap();
    let side = db.create_keyspace(SIDE).unwrap();
    side.put_with("key", "value", Durability::Sync).unwrap();
    drop((db, side));
    let disk = trial.disk.crash(CrashStyle::LoseAll);
    trial.db = None;
    trial.disk = disk;
    let side = trial.open_at([FAST, SLOW]).unwrap().keyspace(SIDE).unwrap();
    assert_eq!(side.get("key").unwrap().as_deref(), Some(&b"value"[..]));
}

/// A failed sync of the manifest's edit reached the caller who created or dropped a keyspace, but
/// not the store, which went on acknowledging writes (I9).
#[test]
fn a_failed_sync_while_a_keyspace_is_created_or_dropped_stops_writing() {
    for drops in [false, true] {
        let mut trial = Trial::new(1);
        let db = trial.db().unwrap();
        db.create_keyspace("old").unwrap();
        let manifest =
            |operation, name: &str| operation == Operation::Sync && name.starts_with("MANIFEST");
        trial.disk.fail_where(manifest, Fault::SyncFails);
        let failed = if drops {
            db.drop_keyspace("old")
        } else {
            db.create_keyspace("new").map(|_| ())
        };
        assert!(matches!(failed, Err(Error::Poisoned { .. })), "{failed:?}");
        trial.disk.heal();
        let refused = db.put("key", "value");
        assert!(
            matches!(refused, Err(Error::Poisoned { .. })),
            "{refused:?}"
        );
        assert!(db.get("key").unwrap().is_none());
    }
}

/// A failed sync of the directory loses the removal of an obsolete log segment. Reopened, the
/// store trimmed its log further; then the power went, the old segment came back without those
/// that had followed it, and the store refused to open: a hole in the log reads as damage.
#[test]
fn a_log_segment_whose_removal_was_lost_is_no_damage() {
    let mut trial = Trial::new(1);
    let go_on = |trial: &mut Trial| {
        for step in [Step::Write(5), Step::Flush, Step::Write(5), Step::Flush] {
            trial.step(step)?;
        }
        Ok::<(), Error>(())
    };
    go_on(&mut trial).unwrap();
    let directory = |operation, name: &str| operation == Operation::SyncDir && name.is_empty();
    trial.disk.fail_where(directory, Fault::SyncFails);
    let failed = trial.step(Step::Flush).and_then(|()| go_on(&mut trial));
    assert!(matches!(failed, Err(Error::Poisoned { .. })), "{failed:?}");
    trial.disk.heal();
    trial.db = None;
    go_on(&mut trial).unwrap();
    trial.step(Step::Reopen).unwrap();
    trial.survive(CrashStyle::LoseAll);
}

/// A compaction asked for by hand wanted room on the fast tier for all of its output, and failed
/// for good where a compaction of the store's own would have gone to the slow tier (I8). Tables
/// of L0 with nothing below them it left where they were.
#[test]
fn a_compaction_by_hand_without_room_on_the_fast_tier_goes_to_the_slow_one() {
    let mut trial = Trial::new(1);
    trial.options.l0_trigger = 30;
    trial.options.l0_slowdown = 31;
    let db = trial.db().unwrap();
    let (free, mut n) = (
        |db: &Db| {
            let tier = &db.metrics().tiers[0];
            tier.capacity - tier.file_bytes - tier.reserved_bytes
        },
        0,
    );
    while free(&db) > 130 << 10 {
        db.put(format!("key{:06}", n * 7919 % 10_007), [7; 500])
            .unwrap();
        n += 1;
        if n % 30 == 0 {
            db.flush().unwrap();
        }
    }
    let before = &db.metrics().levels[0];
    assert!(before.bytes > free(&db), "{before:?}");
    db.compact_range::<&[u8]>(..).unwrap();
    let metrics = db.metrics();
    assert_eq!(metrics.levels[0].tables, 0);
    assert!(metrics.tiers[1].table_bytes > 0);
    assert!(metrics.tiers[0].file_bytes <= metrics.tiers[0].capacity);
    assert_eq!(db.iter().count(), n);
}
