//! Group commit with many threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;

use thermocline::{Batch, Bytes, Db, Durability, Error, Expect};
use thermocline_torture::stores::{memory, open_on, small_options};

use super::support::{A_MOMENT, LONG, open_with_points};

const WRITERS: u64 = 8;
const WRITES: u64 = 300;

/// The keys of a writer's batches: all of one batch get the same value, in two keyspaces.
fn keys(writer: u64) -> [String; 3] {
    ["a", "m", "z"].map(|part| format!("{part}/{writer}"))
}

fn write_batches(db: &Db, writer: u64) -> Vec<(u64, u64)> {
    let second = db.keyspace("second").unwrap();
    let durabilities = [Durability::None, Durability::Buffered, Durability::Sync];
    (1..=WRITES)
        .map(|n| {
            let mut batch = Batch::new();
            let value = Bytes::from(format!("{n:08}").repeat(40));
            for key in &keys(writer)[..1 + n as usize % 3] {
                batch.put(key, &value);
                batch.put_in(&second, key, &value);
            }
            // The first key of each keyspace is in every batch, so it always has the newest value.
            let count = batch.len() as u64;
            let durability = durabilities[(n % 3) as usize];
            let seq = db.write_with(batch, durability).unwrap();
            let read = db.get(&keys(writer)[0]).unwrap();
            assert_eq!(read.as_deref(), Some(&value[..]), "a writer sees its write");
            (seq, count)
        })
        .collect()
}

/// Every batch gives the same value to the first key of both keyspaces.
fn check_not_torn(db: &Db, round: u64) {
    let second = db.keyspace("second").unwrap();
    let writer = round % WRITERS;
    let [first, ..] = keys(writer);
    let snapshot = db.snapshot();
    let by_get = snapshot.get(&first).unwrap();
    assert_eq!(
        by_get,
        snapshot.get_in(&second, &first).unwrap(),
        "torn across keyspaces"
    );
    let of = |name: Option<Bytes>| name.map(|v| v[..8].to_vec());
    let one = snapshot.multi_get_in(&second, &keys(writer)).unwrap();
    let two = snapshot
        .multi_get_in(&db.keyspace("default").unwrap(), &keys(writer))
        .unwrap();
    assert_eq!(one, two, "torn across keys");
    let values = db.multi_get(&keys(writer)).unwrap();
    let numbers: Vec<u64> = values
        .into_iter()
        .flatten()
        .map(|v| String::from_utf8_lossy(&v[..8]).parse().unwrap())
        .collect();
    // A batch n holds 1 + n % 3 keys, so the value of the first key decides what the others may be.
    if let [newest, rest @ ..] = &numbers[..] {
        for (index, found) in rest.iter().enumerate() {
            let index = index as u64 + 1;
            let wanted = (1..=*newest).rev().find(|n| n % 3 >= index);
            assert_eq!(Some(*found), wanted, "key {index} with {newest}");
        }
    }
    let ranged = snapshot.range(first.clone()..=first).next();
    let ranged = ranged.map(|record| record.unwrap().1.into_bytes());
    assert_eq!(of(ranged), of(by_get.map(|v| v.into_bytes())));
}

#[test]
fn acknowledged_writes_are_seen_whole_and_sequence_numbers_have_no_gap() {
    let db = open_on(&small_options(), &memory()).unwrap();
    db.create_keyspace("second").unwrap();
    let stop = AtomicBool::new(false);
    let mut written: Vec<(u64, u64)> = thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|reader| {
                let (db, stop) = (&db, &stop);
                scope.spawn(move || {
                    let mut rounds = 0;
                    while !stop.load(Ordering::Relaxed) || rounds < 20 {
                        check_not_torn(db, reader + rounds);
                        rounds += 1;
                    }
                })
            })
            .collect();
        let db = &db;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || write_batches(db, writer)))
            .collect();
        let written = writers
            .into_iter()
            .flat_map(|w| w.join().unwrap())
            .collect();
        stop.store(true, Ordering::Relaxed);
        readers
            .into_iter()
            .for_each(|reader| reader.join().unwrap());
        written
    });
    written.sort_unstable();
    let mut before = 0;
    for (last, count) in written {
        assert_eq!(
            last,
            before + count,
            "sequence numbers follow without a gap"
        );
        before = last;
    }
    assert_eq!(db.metrics().last_seq, before);
    assert!(
        db.metrics().flushes > 2,
        "memtables were replaced meanwhile"
    );
}

#[test]
fn a_counter_loses_no_increment() {
    let db = open_on(&small_options(), &memory()).unwrap();
    db.put("counter", 0u64.to_le_bytes()).unwrap();
    let increments = 100;
    let add_one = || {
        let mut refused = 0u64;
        loop {
            let old = db.get("counter").unwrap().unwrap();
            let new = u64::from_le_bytes(old[..8].try_into().unwrap()) + 1;
            let mut batch = Batch::new();
            batch.require(&db, "counter", Expect::Equals(old.into_bytes()));
            batch.put("counter", new.to_le_bytes());
            match db.write(batch) {
                Ok(_) => return refused,
                Err(Error::ConditionFailed { index: 0 }) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
    };
    let refused: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..WRITERS)
            .map(|_| scope.spawn(|| (0..increments).map(|_| add_one()).sum::<u64>()))
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    let total = db.get("counter").unwrap().unwrap();
    assert_eq!(total, (WRITERS * increments).to_le_bytes()[..]);
    assert_eq!(
        db.metrics().last_seq,
        1 + WRITERS * increments,
        "refused: {refused}"
    );
}

/// A batch with a condition that stands behind others in its group must see their writes. If many
/// batches ask for the key to be absent, one may win.
#[test]
fn of_many_claims_in_one_group_one_wins() {
    let (db, points) = open_with_points(&small_options(), &memory());
    let (leading, leads) = mpsc::channel();
    let (queued, all_queued) = mpsc::channel::<()>();
    let (first, all_queued) = (AtomicBool::new(true), Mutex::new(all_queued));
    // The first write stays in its group's commit until the others have queued up behind it.
    points.set("commit.inserting", move || {
        if first.swap(false, Ordering::SeqCst) {
            leading.send(()).unwrap();
            let queued = all_queued.lock().unwrap();
            for _ in 0..WRITERS {
                queued.recv_timeout(LONG).unwrap();
            }
            // Each has said so just before it writes.
            let _ = queued.recv_timeout(A_MOMENT);
        }
        Ok(())
    });
    let db = &db;
    let wins: usize = thread::scope(|scope| {
        scope.spawn(|| db.put("other", "v").unwrap());
        leads.recv_timeout(LONG).unwrap();
        let threads: Vec<_> = (0..WRITERS)
            .map(|me| {
                let queued = queued.clone();
                scope.spawn(move || {
                    let mut batch = Batch::new();
                    batch.require(db, "claim", Expect::Absent);
                    batch.put("claim", me.to_le_bytes());
                    queued.send(()).unwrap();
                    match db.write(batch) {
                        Ok(_) => 1,
                        Err(Error::ConditionFailed { index: 0 }) => 0,
                        Err(error) => panic!("{error}"),
                    }
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    points.clear("commit.inserting");
    assert_eq!(wins, 1);
}
