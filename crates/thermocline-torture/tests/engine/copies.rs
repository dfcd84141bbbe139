//! What a checkpoint or a backup is good for: it is a store like any other, as the original was at
//! one moment.

use std::sync::atomic::{AtomicBool, Ordering};

use thermocline::{Db, Durability, Error};
use thermocline_torture::life::{SIDE, Trial};

const COPY: [&str; 2] = ["/c-fast", "/c-slow"];

fn checkpoint(db: &Db) {
    db.checkpoint(&COPY.map(Into::into)).unwrap();
}

/// Regression: the manifest of the copy named the sequence number that was visible when it was
/// written. The copy's tables end where memtables were frozen, and there is no log in between.
/// Commits counted on from the former, the log from the latter. So the copy could be read, but it
/// refused its first write and every later one.
#[test]
fn a_copy_takes_writes_though_others_were_made_meanwhile() {
    let mut trial = Trial::new(1);
    let db = trial.db().unwrap();
    db.put("before", "1").unwrap();
    let (writer, wrote) = (db.clone(), AtomicBool::new(false));
    trial.points.set("checkpoint.flushed", move || {
        if !wrote.swap(true, Ordering::SeqCst) {
            writer.put("meanwhile", "2").unwrap();
        }
        Ok(())
    });
    checkpoint(&db);
    trial.points.clear("checkpoint.flushed");
    let copy = trial.open_at(COPY).unwrap();
    assert!(copy.get("meanwhile").unwrap().is_none());
    assert_eq!(
        copy.snapshot().seq(),
        1,
        "followers ask for what comes after it"
    );
    copy.put_with("after", "3", Durability::Sync).unwrap();
    drop(copy);
    let copy = trial.open_at(COPY).unwrap();
    assert!(copy.get("before").unwrap().is_some() && copy.get("after").unwrap().is_some());
}

/// As above, but the last writes before it went to a keyspace that was dropped.
#[test]
fn a_copy_takes_writes_though_the_last_ones_were_dropped() {
    let mut trial = Trial::new(1);
    let db = trial.db().unwrap();
    db.put("kept", "1").unwrap();
    let side = db.create_keyspace(SIDE).unwrap();
    side.put("gone", "2").unwrap();
    db.drop_keyspace(SIDE).unwrap();
    checkpoint(&db);
    let copy = trial.open_at(COPY).unwrap();
    copy.put("after", "3").unwrap();
    drop(copy);
    let copy = trial.open_at(COPY).unwrap();
    assert!(copy.get("kept").unwrap().is_some() && copy.get("after").unwrap().is_some());
}

/// Regression: while a checkpoint was being made, records were moved to another keyspace, and then
/// the old one was dropped. The drop, which came last, was in the copy. The records, which came
/// before it, were not. So they were in neither keyspace.
#[test]
fn a_drop_during_a_checkpoint_does_not_come_before_earlier_writes() {
    let mut trial = Trial::new(1);
    let db = trial.db().unwrap();
    let side = db.create_keyspace(SIDE).unwrap();
    side.put("key", "value").unwrap();
    let (mover, moved) = (db.clone(), AtomicBool::new(false));
    trial.points.set("checkpoint.flushed", move || {
        if !moved.swap(true, Ordering::SeqCst) {
            mover.put("key", "value").unwrap();
            // The drop would wait for this very checkpoint.
            let dropped = mover.drop_keyspace(SIDE);
            assert!(matches!(dropped, Err(Error::Closed)), "{dropped:?}");
            assert_eq!(mover.keyspaces(), ["default", SIDE]);
        }
        Ok(())
    });
    checkpoint(&db);
    trial.points.clear("checkpoint.flushed");
    let copy = trial.open_at(COPY).unwrap();
    let old = copy.keyspace(SIDE).ok();
    let in_old = old.is_some_and(|old| old.get("key").unwrap().is_some());
    assert!(in_old || copy.get("key").unwrap().is_some());
    // The drop was only put off.
    db.drop_keyspace(SIDE).unwrap();
    assert_eq!(db.keyspaces(), ["default"]);
}
