//! I10: a memtable freezes only when every insert into it is complete and published, and the
//! superversion that names the new memtable is published before it takes writes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use thermocline::{Batch, Db};
use thermocline_torture::stores::{memory, open_on, small_options};

use super::support::{A_MOMENT, LONG, Slot, begin, open_with_points};

fn batch_of_three(value: &str) -> Batch {
    let mut batch = Batch::new();
    for key in ["one", "three", "two"] {
        batch.put(key, value);
    }
    batch
}

fn seen(db: &Db) -> [Vec<String>; 3] {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let keys = ["one", "three", "two"];
    let many = db.multi_get(&keys).unwrap();
    let gets = keys.map(|key| db.get(key).unwrap());
    [
        many.into_iter().flatten().map(|v| text(&v)).collect(),
        gets.into_iter().flatten().map(|v| text(&v)).collect(),
        db.iter().map(|record| text(&record.unwrap().1)).collect(),
    ]
}

#[test]
fn between_the_inserts_of_a_batch_nobody_sees_any_of_it_then_or_later() {
    let (db, points) = open_with_points(&small_options(), &memory());
    db.write(batch_of_three("old")).unwrap();
    let slot = Slot::default();
    slot.set(db.clone()).unwrap();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&kept);
    points.set("commit.inserting", move || {
        let db = slot.get().unwrap();
        for values in seen(db) {
            assert_eq!(values, ["old"; 3]);
        }
        keep.lock().unwrap().push((db.snapshot(), db.iter()));
        Ok(())
    });
    db.write(batch_of_three("new")).unwrap();
    points.clear("commit.inserting");
    for values in seen(&db) {
        assert_eq!(values, ["new"; 3]);
    }
    let kept = std::mem::take(&mut *kept.lock().unwrap());
    assert_eq!(kept.len(), 3, "the point was reached at every insert");
    for (snapshot, range) in kept {
        assert!(range.map(|r| r.unwrap().1).all(|value| value == b"old"[..]));
        assert_eq!(snapshot.get("two").unwrap().as_deref(), Some(&b"old"[..]));
    }
}

#[test]
fn a_memtable_does_not_freeze_between_the_inserts_of_a_batch() {
    let medium = memory();
    let (db, points) = open_with_points(&small_options(), &medium);
    let (freezes, frozen) = mpsc::channel();
    points.set("freeze.before_publish", move || {
        // When the store closes, nobody listens to its freeze any more.
        let _ = freezes.send(());
        Ok(())
    });
    let slot = Slot::default();
    slot.set(db.clone()).unwrap();
    let frozen = Mutex::new(frozen);
    let hits = AtomicUsize::new(0);
    points.set("commit.inserting", move || {
        if hits.fetch_add(1, Ordering::SeqCst) == 0 {
            let db = slot.get().unwrap().clone();
            begin(move || {
                let _ = db.flush();
            });
            let early = frozen.lock().unwrap().recv_timeout(A_MOMENT);
            assert!(early.is_err(), "frozen with a batch half inserted");
        }
        Ok(())
    });
    db.write(batch_of_three("value")).unwrap();
    points.clear("commit.inserting");
    db.flush().unwrap();
    for values in seen(&db) {
        assert_eq!(values, ["value"; 3]);
    }
    points.clear("freeze.before_publish");
    db.close().unwrap();
    let db = open_on(&small_options(), &medium).unwrap();
    assert_eq!(
        db.recovery().replayed,
        0,
        "all of the batch went to one table"
    );
    assert_eq!(seen(&db)[0], ["value"; 3]);
}

#[test]
fn the_new_memtable_takes_no_write_before_it_is_published() {
    let (db, points) = open_with_points(&small_options(), &memory());
    db.write(batch_of_three("old")).unwrap();
    let slot = Slot::default();
    slot.set(db.clone()).unwrap();
    let (acknowledged, writes) = mpsc::channel();
    let writes = Arc::new(Mutex::new(writes));
    let early = Arc::clone(&writes);
    points.set("freeze.before_publish", move || {
        let db = slot.get().unwrap().clone();
        let acknowledged = acknowledged.clone();
        begin(move || {
            let result = db.write(batch_of_three("new"));
            let values = seen(&db);
            let _ = acknowledged.send((result.map(|_| ()), values));
        });
        let early = early.lock().unwrap().recv_timeout(A_MOMENT);
        assert!(early.is_err(), "a write got in while the memtable froze");
        Ok(())
    });
    db.flush().unwrap();
    points.clear("freeze.before_publish");
    let (result, values) = writes.lock().unwrap().recv_timeout(LONG).unwrap();
    result.unwrap();
    for values in values {
        assert_eq!(values, ["new"; 3], "the writer sees its write");
    }
    db.flush().unwrap();
    assert_eq!(seen(&db)[1], ["new"; 3]);
}
