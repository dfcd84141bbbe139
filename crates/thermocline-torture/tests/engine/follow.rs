//! A follower that reads the log ends in the state of the store it follows.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use thermocline::storage::{CrashStyle, Fault, Faulty, Medium, Operation};
use thermocline::{Db, Durability, Error, Kind, Points};
use thermocline_torture::stores::{memory, open_on, small_options};

type Records = Vec<(String, Vec<(Vec<u8>, Vec<u8>)>)>;

fn contents(db: &Db) -> Records {
    let keyspace = |name: String| {
        let records = db.keyspace(&name).unwrap().iter();
        let records = records.map(|r| r.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap());
        (name, records.collect())
    };
    let mut all: Records = db.keyspaces().into_iter().map(keyspace).collect();
    all.sort();
    all
}

#[test]
fn a_follower_takes_over_every_batch_in_order_across_keyspaces() {
    let mut options = small_options();
    options.log_retention = 2 << 20;
    let (leader, follower) = (memory(), memory());
    let leader = open_on(&options, &leader).unwrap();
    let follower = open_on(&options, &follower).unwrap();
    // So that the same keyspace has another number there.
    follower.create_keyspace("in the way").unwrap();
    let mut next = 1;
    for round in 0u32..20 {
        let names = leader
            .create_keyspace(&format!("names{}", round % 3))
            .unwrap();
        for i in 0..50u32 {
            let mut batch = thermocline::Batch::new();
            batch.put(format!("{}", i * round % 70), format!("{round}"));
            batch.put_in(&names, format!("{i}"), vec![round as u8; 300]);
            batch.delete(format!("{}", i * 3));
            batch.delete_in(&names, format!("{}", i / 2));
            leader.write(batch).unwrap();
        }
        for batch in leader.log_since(next).unwrap() {
            let batch = batch.unwrap();
            assert_eq!(batch.first_seq, next, "batches follow without a gap");
            assert_eq!(batch.ops.len(), 4);
            assert_eq!(batch.ops[2].kind, Kind::Delete);
            next = batch.last_seq() + 1;
            follower.write(batch.to_batch(&follower).unwrap()).unwrap();
        }
        assert_eq!(next, leader.snapshot().seq() + 1);
    }
    follower.drop_keyspace("in the way").unwrap();
    assert_eq!(contents(&follower), contents(&leader));
    assert!(!contents(&leader)[1].1.is_empty());
}

#[test]
fn writes_into_a_dropped_keyspace_are_named_as_such_and_left_out() {
    let options = small_options();
    let medium = memory();
    let db = open_on(&options, &medium).unwrap();
    let gone = db.create_keyspace("gone").unwrap();
    let mut batch = thermocline::Batch::new();
    batch.put_in(&gone, "a", "1");
    batch.put("b", "2");
    db.write(batch).unwrap();
    db.drop_keyspace("gone").unwrap();
    let batch = db.log_since(1).unwrap().next().unwrap().unwrap();
    assert_eq!(batch.ops[0].keyspace, None);
    assert_eq!(batch.ops[1].keyspace.as_deref(), Some("default"));
    assert_eq!(batch.to_batch(&db).unwrap().len(), 1);
    assert_eq!(db.keyspaces(), ["default"]);
}

#[test]
fn a_log_that_is_gone_is_an_error_that_names_where_it_starts() {
    let options = small_options();
    let medium = memory();
    let db = open_on(&options, &medium).unwrap();
    for i in 0..3 {
        db.put(format!("{i}"), "x").unwrap();
        db.flush().unwrap();
    }
    let error = db.log_since(1).unwrap_err();
    assert!(
        matches!(error, Error::LogGone { asked: 1, oldest } if oldest > 1),
        "{error}"
    );
    assert_eq!(db.log_since(4).unwrap().count(), 0);
}

/// Takes over what `leader` has written from `next` on. Returns where to go on.
fn take_over(leader: &Db, follower: &Db, mut next: u64) -> u64 {
    for batch in leader.log_since(next).unwrap() {
        let batch = batch.unwrap();
        follower.write(batch.to_batch(follower).unwrap()).unwrap();
        next = batch.last_seq() + 1;
    }
    next
}

fn open_faulty(disk: &Faulty) -> Db {
    let medium: Arc<dyn Medium> = Arc::new(disk.clone());
    open_on(&small_options(), &medium).unwrap()
}

/// Regression: a write that was handed over and not synced went to the follower. The power cut took
/// it from the leader, which gave its number to another write. The follower was past that number
/// and never heard of that write.
#[test]
fn a_follower_is_never_ahead_of_what_a_power_cut_leaves() {
    for durability in [Durability::None, Durability::Buffered] {
        let disk = Faulty::new(1);
        let leader = open_faulty(&disk);
        let follower = open_on(&small_options(), &memory()).unwrap();
        leader.put_with("synced", "1", Durability::Sync).unwrap();
        leader.put_with("not synced", "1", durability).unwrap();
        let next = take_over(&leader, &follower, 1);
        assert_eq!(next, 3, "{durability:?}");
        let disk = disk.crash(CrashStyle::LoseAll);
        drop(leader);
        let leader = open_faulty(&disk);
        leader.put("other", "2").unwrap();
        leader.put("last", "2").unwrap();
        take_over(&leader, &follower, next);
        assert_eq!(contents(&follower), contents(&leader), "{durability:?}");
    }
}

/// After a failed sync it is unknown what the device holds. So nothing is handed to a follower, and
/// nothing is written any more (I9).
#[test]
fn a_sync_that_fails_for_a_follower_stops_the_store() {
    let disk = Faulty::new(1);
    let leader = open_faulty(&disk);
    leader.put("key", "value").unwrap();
    let is_sync = |operation, name: &str| operation == Operation::Sync && name.ends_with(".wal");
    disk.fail_where(is_sync, Fault::SyncFails);
    let followed = leader.log_since(1).map(|_| ());
    assert!(
        matches!(followed, Err(Error::Poisoned { .. })),
        "{followed:?}"
    );
    disk.heal();
    let written = leader.put("key", "new");
    assert!(
        matches!(written, Err(Error::Poisoned { .. })),
        "{written:?}"
    );
}

/// Regression: a leader that was restored from an older backup has fewer numbers than its follower
/// knows. It said that nothing was new until it had caught up, and the follower never heard of what
/// it had written until then.
#[test]
fn a_follower_that_is_ahead_is_told() {
    let leader = open_on(&small_options(), &memory()).unwrap();
    leader.put("key", "value").unwrap();
    let next = leader.snapshot().seq() + 1;
    assert_eq!(leader.log_since(next).unwrap().count(), 0, "nothing is new");
    match leader.log_since(next + 1) {
        Err(Error::LogAhead { asked, newest }) => {
            assert_eq!((asked, newest), (next + 1, next - 1));
        }
        other => panic!("{:?}", other.map(|_| ())),
    }
}

/// Regression: the name of a keyspace does not tell that it was dropped and made again: a follower
/// went on in the old one.
#[test]
fn a_keyspace_that_was_made_again_has_another_number() {
    let mut options = small_options();
    options.log_retention = 2 << 20;
    let leader = open_on(&options, &memory()).unwrap();
    let number_of = |next| {
        let mut batches = leader.log_since(next).unwrap();
        let batch = batches.next().unwrap().unwrap();
        (batch.ops[0].keyspace_number, batch.last_seq() + 1)
    };
    let write = || {
        let keyspace = leader.create_keyspace("a").unwrap();
        keyspace.put("key", "value").unwrap();
    };
    write();
    let (first, next) = number_of(1);
    write();
    let (same, next) = number_of(next);
    assert_eq!(same, first);
    leader.drop_keyspace("a").unwrap();
    write();
    assert_ne!(number_of(next).0, first);
}

/// Regression: nothing said where a follower goes on that begins with a checkpoint. It asked the
/// store before, and wrote again what had been written until the checkpoint's moment. But the copy
/// knows, whatever is written while it is made.
#[test]
fn a_follower_goes_on_behind_the_last_write_of_its_copy() {
    let (medium, points) = (memory(), Points::default());
    let mut options = small_options();
    let builder = Db::builder(options.clone()).points(points.clone());
    let builder = builder.medium(0, Arc::clone(&medium));
    let leader = builder.medium(1, Arc::clone(&medium)).open().unwrap();
    let side = leader.create_keyspace("side").unwrap();
    leader.put("before", "1").unwrap();
    side.put("before", "1").unwrap();
    let (writer, wrote) = (leader.clone(), AtomicBool::new(false));
    points.set("checkpoint.frozen", move || {
        if !wrote.swap(true, Ordering::SeqCst) {
            writer.put("meanwhile", "2").unwrap();
        }
        Ok(())
    });
    let copy = ["/copy/fast", "/copy/slow"].map(PathBuf::from);
    leader.checkpoint(&copy).unwrap();
    points.clear("checkpoint.frozen");
    side.put("after", "3").unwrap();
    for (tier, path) in options.tiers.iter_mut().zip(copy) {
        tier.path = path;
    }
    let follower = open_on(&options, &medium).unwrap();
    let next = follower.snapshot().seq() + 1;
    let batches = leader.log_since(next).unwrap().map(Result::unwrap);
    let ops = batches.flat_map(|batch| batch.ops);
    let keys: Vec<_> = ops.map(|op| op.key).collect();
    assert_eq!(keys, ["meanwhile", "after"]);
    take_over(&leader, &follower, next);
    assert_eq!(contents(&follower), contents(&leader));
}
