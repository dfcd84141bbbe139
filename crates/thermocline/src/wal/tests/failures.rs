//! Devices that are full, and syncs that fail.

use super::super::test_store::Failing;
use super::*;

#[test]
fn a_full_device_fails_the_newest_group_only() {
    let store = TestStore::new();
    let mut wal = fresh(&store);
    put(&mut wal, [1]);
    wal.append(2, &[batch(2)]).unwrap(); // acknowledged without durability
    wal.append(3, &[batch(3)]).unwrap();
    let before = store.get(&name(1)).unwrap();
    let full = Failing {
        append: true,
        ..Failing::default()
    };
    store.fail(full);
    assert!(wal.hand_over().unwrap_err().is_no_space());
    assert_eq!(store.get(&name(1)).unwrap(), before, "truncated back");
    assert!(wal.rotate(2).unwrap_err().is_no_space());
    assert!(wal.sync_all().unwrap_err().is_no_space());
    store.fail(Failing::default());
    put(&mut wal, [3, 4]);
    wal.sync().unwrap();
    assert_eq!(seqs(&store), [1, 2, 3, 4]);
}

#[test]
fn a_large_group_that_does_not_fit_is_withdrawn_by_its_append() {
    let store = TestStore::new();
    let mut wal = fresh(&store);
    let mut large = Batch::new();
    large.put("key1", vec![0; 100_000]);
    store.fail(Failing {
        append: true,
        ..Failing::default()
    });
    let error = wal.append(1, &[large.into_bytes()]).unwrap_err();
    assert!(error.is_no_space());
    store.fail(Failing::default());
    put(&mut wal, [1]);
    assert_eq!(seqs(&store), [1]);
}

#[test]
fn failures_of_sync_and_of_truncation_are_final() {
    let sync = Failing {
        sync: true,
        ..Failing::default()
    };
    let truncate = Failing {
        append: true,
        truncate: true,
        ..Failing::default()
    };
    for failing in [sync, truncate] {
        let store = TestStore::new();
        let mut wal = fresh(&store);
        wal.append(1, &[batch(1)]).unwrap();
        store.fail(failing);
        assert!(matches!(wal.sync(), Err(Error::Poisoned { .. })));
        store.fail(Failing::default());
        let poisoned = |result: Result<()>| matches!(result, Err(Error::Poisoned { .. }));
        assert!(poisoned(wal.append(2, &[batch(2)])));
        assert!(poisoned(wal.hand_over()));
        assert!(poisoned(wal.sync()));
        assert!(poisoned(wal.rotate(2)));
        assert!(poisoned(wal.handle().sync_through(1)));
        assert!(poisoned(wal.remove_obsolete(9).map(|_| ())));
    }
}

#[test]
fn a_rotation_that_was_given_up_leaves_no_trace_in_the_replay() {
    for torn in [false, true] {
        let store = TestStore::new();
        let mut wal = fresh(&store);
        put(&mut wal, [1]);
        store.fail(Failing {
            append: true,
            remove: true,
            ..Failing::default()
        });
        assert!(wal.rotate(2).is_err());
        store.fail(Failing::default());
        if !torn {
            // A header that names the old end of segment 1.
            let other = store.copy();
            let mut twin = start(&other, 1, &Recovered::default());
            put(&mut twin, [1]);
            twin.rotate(2).unwrap();
            store.put(&name(2), other.get(&name(2)).unwrap());
        }
        put(&mut wal, [2]);
        wal.rotate(3).unwrap();
        put(&mut wal, [3]);
        wal.sync().unwrap();
        put(&mut wal, [4]);
        assert_eq!(seqs(&store), [1, 2, 3, 4]);
        assert!(!store.names().contains(&name(2)));
    }
}
