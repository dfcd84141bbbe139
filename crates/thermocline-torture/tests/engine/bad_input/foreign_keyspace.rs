//! Batches that name keyspaces of another store.

use thermocline::storage::{CrashStyle, Faulty};
use thermocline::{Batch, Error, Expect};

use super::{FAST, SLOW, open, tiny_options, with_paths};

/// Regression: a keyspace is a number to the log. A batch that named one of another store was
/// acknowledged, and what it wrote was nowhere. If the number was a high one, the store did not
/// open again, because the log wrote to a keyspace that no edit had made.
#[test]
fn a_batch_that_names_a_keyspace_of_another_store_is_refused() {
    let disk = Faulty::new(1);
    let other = open(&disk, &with_paths(["/other-fast", "/other-slow"])).unwrap();
    // Numbers below and above those of the other store's keyspaces.
    let low = other.create_keyspace("low").unwrap();
    for n in 0..20 {
        other.create_keyspace(&format!("between-{n}")).unwrap();
    }
    let high = other.create_keyspace("high").unwrap();

    let db = open(&disk, &with_paths([FAST, SLOW])).unwrap();
    db.put("before", "").unwrap();
    // So that the next number is not the one of `low`.
    db.flush().unwrap();
    let own = db.create_keyspace("own").unwrap();
    let write = |foreign| {
        let mut batch = Batch::new();
        batch.put_in(foreign, "key", "of another store");
        batch.put_in(&own, "key", "value");
        batch.put("key", "value");
        batch
    };
    let condition = |foreign| {
        let mut batch = Batch::new();
        batch.require(foreign, "key", Expect::Absent);
        batch.put("key", "value");
        batch
    };
    for foreign in [&low, &high] {
        for batch in [write(foreign), condition(foreign)] {
            let refused = db.write(batch);
            assert!(
                matches!(refused, Err(Error::ForeignKeyspace { .. })),
                "{}: {refused:?}",
                foreign.name()
            );
        }
    }
    assert!(db.get("key").unwrap().is_none() && own.get("key").unwrap().is_none());
    db.put("after", "").unwrap();

    // A keyspace that was dropped meanwhile is not one of another store. It takes no more writes.
    let dropped = db.create_keyspace("dropped").unwrap();
    db.drop_keyspace("dropped").unwrap();
    let mut batch = write(&dropped);
    batch.put("last", "");
    db.write(batch).unwrap();
    drop((db, own, dropped, other, low, high));
    let db = open(&disk.crash(CrashStyle::KeepAll), &tiny_options()).unwrap();
    let own = db.keyspace("own").unwrap();
    assert_eq!(own.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(db.iter().count(), 4);
}

/// Regression: keyspaces take their numbers from those of files, so stores that were founded alike
/// give their first keyspaces the same ones. A batch for one store was acknowledged by the other,
/// and lay in a keyspace that its writer did not name.
#[test]
fn a_keyspace_of_another_store_is_foreign_whatever_its_number() {
    let disk = Faulty::new(1);
    let mut of_other = with_paths(["/other-fast", "/other-slow"]);
    // The identity of a store is drawn. Tests with the same seed draw the same one.
    of_other.seed = Some(7);
    let other = open(&disk, &of_other).unwrap();
    let db = open(&disk, &with_paths([FAST, SLOW])).unwrap();
    let theirs = other.create_keyspace("theirs").unwrap();
    let own = db.create_keyspace("own").unwrap();
    // Their store is ahead: what the snapshot sees of this one would be any state of it.
    for n in 0..10 {
        theirs.put("key", format!("{n}")).unwrap();
    }
    own.put("key", "own").unwrap();
    let is_foreign = |error: &Error| matches!(error, Error::ForeignKeyspace { .. });

    let mut batch = Batch::new();
    batch.put("key", "value");
    batch.put_in(&theirs, "key", "of another store");
    assert!(is_foreign(&db.write(batch.clone()).unwrap_err()));
    // A batch that names a keyspace of each does not belong to their store either.
    batch.delete_in(&own, "key");
    for store in [&db, &other] {
        assert!(is_foreign(&store.write(batch.clone()).unwrap_err()));
    }
    batch.clear();
    batch.require(&theirs, "key", Expect::Present);
    assert!(is_foreign(&db.write(batch).unwrap_err()));
    assert!(db.get("key").unwrap().is_none());
    assert_eq!(own.get("key").unwrap().as_deref(), Some(&b"own"[..]));

    for (snapshot, foreign) in [(db.snapshot(), &theirs), (other.snapshot(), &own)] {
        assert!(is_foreign(&snapshot.get_in(foreign, "key").unwrap_err()));
        let many = snapshot.multi_get_in(foreign, &["key"]);
        assert!(is_foreign(&many.unwrap_err()));
        for mut range in [
            snapshot.range_in::<&str>(foreign, ..),
            snapshot.prefix_in(foreign, "k"),
            snapshot.iter_in(foreign),
        ] {
            assert!(is_foreign(&range.next().unwrap().unwrap_err()));
            assert!(range.next().is_none() && range.next_back().is_none());
        }
    }
    let ours = db.snapshot();
    assert!(ours.get_in(&own, "key").unwrap().is_some());
}

/// Regression: a checkpoint is the same database, and goes on with the same numbers. The original
/// and the checkpoint each gave the next number to a keyspace of its own. A batch for one was taken
/// by the other, and lay in a keyspace that its writer did not name.
#[test]
fn a_keyspace_of_the_original_is_foreign_to_its_checkpoint() {
    let disk = Faulty::new(1);
    let original = open(&disk, &with_paths([FAST, SLOW])).unwrap();
    original.put("key", "value").unwrap();
    let copy = ["/copy-fast", "/copy-slow"];
    original.checkpoint(&copy.map(Into::into)).unwrap();
    let copy = open(&disk, &with_paths(copy)).unwrap();
    // Both make keyspaces until one has the number of one of the other's.
    let theirs: Vec<_> = (0..40)
        .map(|n| original.create_keyspace(&format!("theirs-{n}")).unwrap())
        .collect();
    let own: Vec<_> = (0..40)
        .map(|n| copy.create_keyspace(&format!("own-{n}")).unwrap())
        .collect();
    for foreign in &theirs {
        let mut batch = Batch::new();
        batch.put_in(foreign, "key", "of the original");
        let refused = copy.write(batch);
        assert!(
            matches!(refused, Err(Error::ForeignKeyspace { .. })),
            "{}: {refused:?}",
            foreign.name()
        );
    }
    for own in &own {
        assert!(own.get("key").unwrap().is_none(), "{}", own.name());
    }
}
