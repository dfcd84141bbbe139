//! Checkpoints beside flushes.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;

use thermocline::{Batch, Db};

use crate::support::{A_MOMENT, LONG, Slot, open_with_points};
use thermocline_torture::stores::{memory, open_on, small_options};

fn write_both(db: &Db, value: &str) {
    let mut batch = Batch::new();
    batch.put("key", value);
    batch.put_in(&db.keyspace("second").unwrap(), "key", value);
    db.write(batch).unwrap();
}

/// Once, a flush that a user asked for froze memtables while a checkpoint was being taken. When
/// one keyspace's part of a batch was in a table and the other's was not yet, the checkpoint
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
            thread::spawn(move || {
                write_both(&db, "after");
                db.flush().unwrap();
                let _ = frozen.send(());
            });
            // Long enough for it to freeze both memtables, if it may.
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
    let mut options = small_options();
    let paths = ["/copy/fast", "/copy/slow"].map(PathBuf::from);
    for (tier, path) in options.tiers.iter_mut().zip(&paths) {
        tier.path.clone_from(path);
    }
    db.checkpoint(&paths).unwrap();
    for name in [
        "flush.start",
        "flush.before_edit",
        "checkpoint.before_manifest",
    ] {
        points.clear(name);
    }
    let copy = open_on(&options, &medium).unwrap();
    let one = copy.get("key").unwrap();
    let two = copy.keyspace("second").unwrap().get("key").unwrap();
    assert!(one.is_some());
    assert_eq!(one, two, "half a batch is in the checkpoint");
    db.flush().unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"after"[..]));
}
