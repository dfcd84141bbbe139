//! Closing while others work.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Instant;

use thermocline::{Batch, Durability, Error};
use thermocline_torture::stores::{memory, open_on, small_options};

use super::support::{A_MOMENT, LONG, Slot, begin, open_with_points};

fn key(n: u32) -> String {
    format!("key{n:06}")
}

#[test]
fn a_compaction_that_is_running_ends_early_and_leaves_nothing_behind() {
    let medium = memory();
    let (db, points) = open_with_points(&small_options(), &medium);
    let slot = Slot::default();
    slot.set(db.clone()).unwrap();
    let (closed, closing) = mpsc::channel();
    let first = AtomicBool::new(true);
    points.set("compaction.table_written", move || {
        if !first.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        let db = slot.get().unwrap().clone();
        let (closed, closer) = (closed.clone(), db.clone());
        thread::spawn(move || closed.send(closer.close()).unwrap());
        // The job goes on only once the store is closed.
        let started = Instant::now();
        while !matches!(db.get("any"), Err(Error::Closed)) {
            assert!(started.elapsed() < LONG, "close waits for the compaction");
            thread::yield_now();
        }
        Ok(())
    });
    let mut acknowledged = 0;
    while db.put(key(acknowledged), [7; 400]).is_ok() {
        acknowledged += 1;
        assert!(acknowledged < 100_000, "no compaction has started");
    }
    closing.recv_timeout(LONG).unwrap().unwrap();
    points.clear("compaction.table_written");
    drop(db);
    let db = open_on(&small_options(), &medium).unwrap();
    assert_eq!(db.recovery().orphans, 0, "the job removed its output");
    assert_eq!(db.iter().count() as u32, acknowledged);
    assert!(db.verify(&mut |_| {}).unwrap().problems.is_empty());
}

#[test]
fn readers_across_a_close_get_records_or_an_error() {
    let medium = memory();
    let db = open_on(&small_options(), &medium).unwrap();
    for n in 0..3000 {
        db.put(key(n), [1; 300]).unwrap();
    }
    db.flush().unwrap();
    let snapshot = db.snapshot();
    let mut range = db.iter();
    let mut back = snapshot.iter().rev();
    for n in 0..700 {
        assert_eq!(range.next().unwrap().unwrap().0, key(n));
        assert_eq!(back.next().unwrap().unwrap().0, key(2999 - n));
    }
    db.close().unwrap();
    db.close().unwrap();
    assert!(matches!(db.get(key(1)), Err(Error::Closed)));
    assert!(matches!(db.multi_get(&[key(1)]), Err(Error::Closed)));
    assert!(matches!(db.put("k", "v"), Err(Error::Closed)));
    assert!(matches!(db.write(Batch::new()), Err(Error::Closed)));
    assert!(matches!(db.flush(), Err(Error::Closed)));
    assert!(matches!(snapshot.get(key(1)), Err(Error::Closed)));
    // Regression: iterators that were made on a closed store gave what it had held, whatever others
    // had written since.
    let made_late = [db.iter().next(), db.iter().next_back()];
    for record in made_late.into_iter().chain([snapshot.iter().next()]) {
        assert!(matches!(record, Some(Err(Error::Closed))), "{record:?}");
    }
    // The store is free for others, who may compact what the old iterators read.
    let again = open_on(&small_options(), &medium).unwrap();
    again.compact_range::<&str>(..).unwrap();
    for (n, record) in (700..).zip(range) {
        let Ok((found, _)) = record else { break };
        assert_eq!(found, key(n));
    }
    for (record, n) in back.zip((0..2300).rev()) {
        let Ok((found, _)) = record else { break };
        assert_eq!(found, key(n));
    }
    drop((db, snapshot));
    assert_eq!(again.iter().count(), 3000);
}

/// Regression: a write could get between the last record of the log and the flag that says that the
/// store is closed. It was acknowledged, stayed in the process and was lost.
#[test]
fn no_write_is_acknowledged_behind_the_end_of_the_log() {
    let medium = memory();
    let (db, points) = open_with_points(&small_options(), &medium);
    let slot = Slot::default();
    slot.set(db.clone()).unwrap();
    let (answer, answers) = mpsc::channel();
    let (answers, early) = (Arc::new(Mutex::new(answers)), Arc::new(Mutex::new(None)));
    let (asked, asks) = (Arc::clone(&answers), Arc::clone(&early));
    points.set("close.log_ended", move || {
        let (db, answer) = (slot.get().unwrap().clone(), answer.clone());
        begin(move || {
            let _ = answer.send(db.put_with("late", "v", Durability::None));
        });
        let first = asked.lock().unwrap().recv_timeout(A_MOMENT);
        *asks.lock().unwrap() = first.ok();
        Ok(())
    });
    db.close().unwrap();
    points.clear("close.log_ended");
    let early = early.lock().unwrap().take();
    let answer = early.unwrap_or_else(|| answers.lock().unwrap().recv_timeout(LONG).unwrap());
    drop(db);
    let db = open_on(&small_options(), &medium).unwrap();
    let found = db.get("late").unwrap().is_some();
    assert_eq!(answer.is_ok(), found, "{answer:?}, and found: {found}");
    assert!(matches!(answer, Err(Error::Closed)), "{answer:?}");
}

/// Regression: the store could be closed, and opened by others, while a keyspace was on its way
/// into the manifest. The keyspace was acknowledged, and written to a file whose name nobody has
/// any more.
#[test]
fn no_keyspace_is_acknowledged_behind_the_end_of_the_manifest() {
    let medium = memory();
    let (db, points) = open_with_points(&small_options(), &medium);
    let slot = Slot::default();
    slot.set(db.clone()).unwrap();
    points.set("keyspace.create", move || slot.get().unwrap().close());
    let created = db.create_keyspace("late");
    points.clear("keyspace.create");
    assert!(matches!(created, Err(Error::Closed)), "{created:?}");
    drop(db);
    let db = open_on(&small_options(), &medium).unwrap();
    assert!(db.keyspace("late").is_err());
}

#[test]
fn what_was_acknowledged_before_the_store_was_closed_is_there_afterwards() {
    for round in 0..20 {
        let medium = memory();
        let db = open_on(&small_options(), &medium).unwrap();
        let counts: [AtomicU64; 4] = Default::default();
        let wanted = 40 + round * 10;
        thread::scope(|scope| {
            for (writer, count) in counts.iter().enumerate() {
                let db = &db;
                scope.spawn(move || {
                    loop {
                        let n = count.load(Ordering::Relaxed);
                        match db.put_with(format!("{writer}/{n}"), "v", Durability::None) {
                            Ok(_) => count.store(n + 1, Ordering::Relaxed),
                            Err(Error::Closed) => return,
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
            while counts[0].load(Ordering::Relaxed) < wanted {
                thread::yield_now();
            }
            db.close().unwrap();
        });
        drop(db);
        let db = open_on(&small_options(), &medium).unwrap();
        for (writer, count) in counts.iter().enumerate() {
            for n in 0..count.load(Ordering::Relaxed) {
                let found = db.get(format!("{writer}/{n}")).unwrap();
                assert!(found.is_some(), "round {round}: {writer}/{n} is lost");
            }
        }
    }
}

/// Regression: two threads closed the store at once. The second found no background thread left to
/// wait for and released the store, while a compaction went on that the first still waited for.
/// Whoever opened the store then lost the tables that this compaction replaced.
#[test]
fn a_store_is_not_given_free_while_another_closes_it() {
    let medium = memory();
    let (db, points) = open_with_points(&small_options(), &medium);
    let (entered, entering) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let held = Mutex::new(Some((entered, released)));
    points.set("compaction.before_edit", move || {
        if let Some((entered, released)) = held.lock().unwrap().take() {
            entered.send(()).unwrap();
            let _ = released.recv();
        }
        Ok(())
    });
    let mut n = 0;
    while entering.try_recv().is_err() {
        db.put(key(n), [7; 400]).unwrap();
        n += 1;
        assert!(n < 100_000, "no compaction has started");
    }
    // Both go as far as they can before one of them continues.
    let (flushed, asked) = (AtomicU64::new(0), Arc::new(AtomicU64::new(0)));
    let asks = Arc::clone(&asked);
    points.set("close.flushed", move || {
        flushed.fetch_add(1, Ordering::SeqCst);
        let started = Instant::now();
        while asks.load(Ordering::SeqCst) < 2 && started.elapsed() < LONG {
            thread::yield_now();
        }
        let started = Instant::now();
        while flushed.load(Ordering::SeqCst) < 2 && started.elapsed() < A_MOMENT {
            thread::yield_now();
        }
        Ok(())
    });
    let (closed, closing) = mpsc::channel();
    for _ in 0..2 {
        let (db, closed, asked) = (db.clone(), closed.clone(), Arc::clone(&asked));
        begin(move || {
            asked.fetch_add(1, Ordering::SeqCst);
            closed.send(db.close()).unwrap();
        });
    }
    let early = closing.recv_timeout(4 * A_MOMENT);
    assert!(early.is_err(), "it is not closed yet");
    let opened = open_on(&small_options(), &medium);
    assert!(matches!(opened, Err(Error::Locked { .. })), "{opened:?}");
    release.send(()).unwrap();
    for _ in 0..2 {
        closing.recv_timeout(LONG).unwrap().unwrap();
    }
    points.clear("compaction.before_edit");
    points.clear("close.flushed");
    drop(db);
    let db = open_on(&small_options(), &medium).unwrap();
    assert_eq!(db.iter().count() as u32, n);
    assert!(db.verify(&mut |_| {}).unwrap().problems.is_empty());
}
