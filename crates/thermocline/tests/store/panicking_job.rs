//! Work for others that panics is a bug of the store, or of a medium that it was given; nobody may
//! wait for it for ever.

use std::sync::mpsc;
use std::time::Duration;

use thermocline::storage::Memory;
use thermocline::{Db, Error, Options, Points, TierOptions};

/// A store in memory whose background work runs on threads of its own and panics at `point`.
fn store(point: &'static str) -> Db {
    let points = Points::default();
    points.set(point, || panic!("planted"));
    open(&std::sync::Arc::new(Memory::new()), points)
}

fn open(memory: &std::sync::Arc<Memory>, points: Points) -> Db {
    let mut options = Options::with_tiers(vec![
        TierOptions::fast("/fast").capacity(64 << 20),
        TierOptions::slow("/slow"),
    ]);
    options.memory = 8 << 20;
    let mut builder = Db::builder(options).points(points);
    for tier in 0..2 {
        builder = builder.medium(tier, std::sync::Arc::clone(memory) as _);
    }
    builder.open().unwrap()
}

/// A panic ended the thread that it came on, without a word to whoever waited for its work: they
/// waited for ever.
#[test]
fn a_panic_in_background_work_is_told_to_who_waits_and_stops_writing() {
    for point in ["flush.start", "compaction.start"] {
        let db = store(point);
        let (told, hears) = mpsc::channel();
        let waiting = db.clone();
        std::thread::spawn(move || {
            // Two tables that overlap: one alone moves down without being read.
            let write = || waiting.put("key", "value").and_then(|_| waiting.flush());
            let written = write().and_then(|()| write());
            let _ = told.send(written.and_then(|()| waiting.compact_range::<&[u8]>(..)));
        });
        let outcome = hears.recv_timeout(Duration::from_secs(60));
        let outcome = outcome.expect("who waits for a job that panicked waits for ever");
        let Err(Error::Poisoned { cause }) = outcome else {
            panic!("{point}: {outcome:?}");
        };
        assert!(cause.contains("planted"), "{point}: {cause}");
        assert!(matches!(db.put("key", "new"), Err(Error::Poisoned { .. })));
        assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
        assert!(matches!(db.close(), Err(Error::Poisoned { .. })));
    }
}

/// Whoever writes for a group of writers and panicked left the others waiting, those that came
/// later too, and `close` did not wake them.
#[test]
fn a_panic_of_who_commits_for_others_stops_writing_and_leaves_nobody_waiting() {
    let db = store("commit.inserting");
    let leader = db.clone();
    let led = std::thread::spawn(move || leader.put("key", "value"));
    assert!(led.join().is_err(), "the panic is its own");
    let (told, hears) = mpsc::channel();
    let later = db.clone();
    std::thread::spawn(move || told.send(later.put("key", "new")));
    let outcome = hears.recv_timeout(Duration::from_secs(60));
    let outcome = outcome.expect("who writes after a panic waits for ever");
    let Err(Error::Poisoned { cause }) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(cause.contains("planted"), "{cause}");
    assert!(db.get("key").unwrap().is_none(), "it was not published");
    assert!(matches!(db.close(), Err(Error::Poisoned { .. })));
}

/// A compaction that panicked once its edit was durable removed what it had written, which the
/// manifest names: the store did not open again.
#[test]
fn a_panic_after_a_durable_edit_leaves_the_tables_that_it_names() {
    let (memory, points) = (std::sync::Arc::new(Memory::new()), Points::default());
    let db = open(&memory, points.clone());
    let planted = points.clone();
    points.set("compaction.before_edit", move || {
        let once = planted.clone();
        planted.set("manifest.after_sync", move || {
            once.clear("manifest.after_sync");
            panic!("planted")
        });
        Ok(())
    });
    // Two tables that overlap: one alone moves down without being read.
    for round in ["old", "new"] {
        db.put("key", round).unwrap();
        db.put(round, "value").unwrap();
        db.flush().unwrap();
    }
    let outcome = db.compact_range::<&[u8]>(..);
    assert!(
        matches!(outcome, Err(Error::Poisoned { .. })),
        "{outcome:?}"
    );
    assert!(matches!(db.close(), Err(Error::Poisoned { .. })));
    drop(db);
    let db = open(&memory, Points::default());
    for (key, value) in [("key", "new"), ("old", "value"), ("new", "value")] {
        assert_eq!(
            db.get(key).unwrap().as_deref(),
            Some(value.as_bytes()),
            "{key}"
        );
    }
}
