//! Checkpoints beside flushes.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;

use thermocline::{Batch, Db, Options};
use thermocline_torture::stores::{memory, open_on, small_options};

use super::support::{A_MOMENT, LONG, Slot, begin, open_with_points};

/// Makes a checkpoint. Returns the options that open it.
fn checkpoint(db: &Db) -> Options {
    let mut options = small_options();
    let paths = ["/copy/fast", "/copy/slow"].map(PathBuf::from);
    for (tier, path) in options.tiers.iter_mut().zip(&paths) {
        tier.path.clone_from(path);
    }
    db.checkpoint(&paths).unwrap();
    options
}

fn write_both(db: &Db, value: &str) {
    let mut batch = Batch::new();
    batch.put("key", value);
    batch.put_in(&db.keyspace("second").unwrap(), "key", value);
    db.write(batch).unwrap();
}

/// Regression: a flush that a user asked for froze memtables while a checkpoint was being taken. If
/// one keyspace's part of a batch was in a table by then and the other's was not, the checkpoint
/// held half a batch.
#[test]
fn a_flush_beside_a_checkpoint_tears_no_batch() {
    let medium = memory();
    let (db, points) = open_with_points(&small_options(), &medium);
    db.create_keyspace("second").unwrap();
    write_both(&db, "before");
    let slot = Slot::default();
    slot.set(db.clone()).unwrap();
    // As soon as the checkpoint's own flushes begin, another batch and another flush come along.
    let flushes = AtomicUsize::new(0);
    points.set("flush.start", move || {
        if flushes.fetch_add(1, Ordering::SeqCst) == 0 {
            let db = slot.get().unwrap().clone();
            let (frozen, freezes) = mpsc::channel();
            write_both(&db, "after");
            begin(move || {
                db.flush().unwrap();
                let _ = frozen.send(());
            });
            // There is time enough for it to freeze both memtables, if it may.
            let _ = freezes.recv_timeout(A_MOMENT);
        }
        Ok(())
    });
    // The fourth flush, which brings the second half of that batch, waits for the checkpoint.
    let (linked, links) = mpsc::channel();
    let (edits, links) = (AtomicUsize::new(0), Mutex::new(links));
    points.set("flush.before_edit", move || {
        if edits.fetch_add(1, Ordering::SeqCst) == 3 {
            let _ = links.lock().unwrap().recv_timeout(LONG);
        }
        Ok(())
    });
    points.set("checkpoint.before_manifest", move || {
        let _ = linked.send(());
        Ok(())
    });
    let copy = checkpoint(&db);
    for name in [
        "flush.start",
        "flush.before_edit",
        "checkpoint.before_manifest",
    ] {
        points.clear(name);
    }
    let copy = open_on(&copy, &medium).unwrap();
    let one = copy.get("key").unwrap();
    let two = copy.keyspace("second").unwrap().get("key").unwrap();
    assert!(one.is_some());
    assert_eq!(one, two, "half a batch is in the checkpoint");
    db.flush().unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"after"[..]));
}

/// Regression: where tables are copied and not linked, a checkpoint takes minutes. It held the
/// manifest's lock all that time, and writers stood still behind memtables that could not be
/// flushed.
#[test]
fn neither_flushes_nor_compactions_wait_for_tables_to_be_copied() {
    let medium = memory();
    let (db, points) = open_with_points(&small_options(), &medium);
    // More than the fast tier has room for.
    let fill = |db: &Db, value: u8| {
        for n in 0..1500 {
            db.put(format!("key{n:04}"), vec![value; 4000]).unwrap();
        }
        db.flush().unwrap();
        db.wait_idle().unwrap();
    };
    fill(&db, 1);
    assert!(db.metrics().tiers[1].table_bytes > 0);
    let slot = Slot::default();
    slot.set(db.clone()).unwrap();
    // The fast tier's tables are linked by now. Those of the slow tier are replaced before they are
    // linked.
    points.set("checkpoint.linked", move || {
        let db = slot.get().unwrap().clone();
        let (done, filled) = mpsc::channel();
        thread::spawn(move || {
            fill(&db, 2);
            let _ = done.send(());
        });
        filled.recv_timeout(LONG).expect("nothing waits");
        Ok(())
    });
    let copy = checkpoint(&db);
    points.clear("checkpoint.linked");
    let copy = open_on(&copy, &medium).unwrap();
    for (db, value) in [(copy, 1), (db, 2)] {
        for n in 0..1500 {
            let read = db.get(format!("key{n:04}")).unwrap().unwrap();
            assert!(read.iter().all(|byte| *byte == value), "{n}: {}", read[0]);
        }
    }
}
