//! A follower that reads the log ends in the state of the store it follows.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use thermocline::{Db, Error, Kind};
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
