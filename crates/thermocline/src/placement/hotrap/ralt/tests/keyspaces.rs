//! Keyspaces that are dropped: nothing is tracked of them any more.

use super::eviction::{VALUE, check_limits, of};
use super::reopening::{closed, reopen_expecting};
use super::*;
use xxhash_rust::xxh3::xxh3_64;

use crate::coding::put_varint;
use crate::placement::hotrap::ralt::scoring::Model;
use crate::placement::hotrap::ralt::state_log::NAME;

#[test]
fn forgotten_keyspaces_are_cold_at_once_and_gone_after_a_merge() {
    let fixture = Fixture::new();
    for number in 0..200 {
        fixture.read(1, number, 10);
        fixture.read(2, number, 10);
    }
    fixture.flush();
    fixture.ralt.forget(1);
    assert!(!fixture.ralt.is_hot(1, &key(5)) && fixture.ralt.is_hot(2, &key(5)));
    assert_eq!(fixture.hot(1, 0..200).len(), 0);
    assert_eq!(fixture.hot(2, 0..200).len(), 200);
    assert_eq!(fixture.ralt.hot_bytes(1, &range(&key(0), &key(200))), 0);
    fixture.merge_all();
    assert_eq!(fixture.ralt.metrics().records, 200);
}

/// Records of a dropped keyspace were hot to an eviction, which let living ones go in their place.
/// Then the dropped ones went themselves. That left a hot set well below its limit, and a cut in
/// force through records that had room.
#[test]
fn an_eviction_lets_nothing_go_in_the_place_of_a_dropped_keyspace() {
    let early = of(0.26);
    for is_reopened in [false, true] {
        let medium: Arc<dyn Medium> = Arc::new(Memory::new());
        let options = HotRapOptions::default();
        let mut parts = parts(DATABASE, None, medium.clone(), CAPACITY, options.clone());
        let mut fixture = Fixture::on(medium, CAPACITY, options);
        // Nothing is read again here, which must not make it count as worthless.
        fixture.ralt.set_data(0);
        // Those of keyspace 1 are better, as they are read later.
        for (keyspace, count) in [(2, early), (1, of(0.42))] {
            for number in 0..count {
                (0..3).for_each(|_| fixture.read(keyspace, number, VALUE));
            }
        }
        fixture.flush();
        fixture.merge_all();
        if is_reopened {
            fixture.ralt.close();
            parts.keyspaces.remove(&1);
            fixture = Fixture::open(parts);
            fixture.ralt.set_data(0);
        } else {
            fixture.ralt.forget(1);
        }
        // Together with the dropped ones this is more than may be hot.
        (early..early + of(0.1)).for_each(|number| fixture.read(2, number, VALUE));
        let metrics = fixture.ralt.metrics();
        assert_eq!(metrics.evictions, 0);
        assert!(metrics.hot_set_bytes * 2 < CAPACITY, "{metrics:?}");
        assert_eq!(fixture.hot(2, 0..early).len() as u64, early);
        check_limits(&fixture);
    }
}

/// A merge left out what was dropped before it. If anything was dropped meanwhile, read or not,
/// another merge followed. Where keyspaces came and went, nothing was evicted any more, and
/// everything was written again and again.
#[test]
fn keyspaces_that_come_and_go_keep_nothing_from_being_evicted() {
    let fixture = Fixture::new();
    // Nothing is read again here, which must not make it count as worthless.
    fixture.ralt.set_data(0);
    (0..200).for_each(|number| fixture.read(2, number, VALUE));
    fixture.flush();
    fixture.merge_all();
    let other = Ralt {
        shared: Arc::clone(&fixture.ralt.shared),
    };
    fixture.points.set("ralt.step", move || {
        other.track(1000);
        other.forget(1000);
        Ok(())
    });
    fixture.ralt.forget(1);
    let room = fixture.ralt.metrics().hot_set_bytes / 2;
    fixture.ralt.set_room(room);
    let steps = (0..50).take_while(|_| fixture.ralt.work()).count();
    fixture.points.clear("ralt.step");
    assert!(steps < 50, "the work does not end");
    let metrics = fixture.ralt.metrics();
    assert_eq!(metrics.evictions, 1);
    assert!(metrics.hot_set_bytes <= room, "{metrics:?}");
    assert!(!fixture.hot(2, 0..200).is_empty());
}

/// A merge of a dropped keyspace's records showed that nobody read them, as if their class were
/// worth nothing.
#[test]
fn records_of_a_dropped_keyspace_are_no_evidence() {
    let measured = |dropped: u64| {
        let fixture = Fixture::new();
        fixture.ralt.set_data(0);
        (0..100).for_each(|number| fixture.read(2, number, VALUE));
        (0..dropped).for_each(|number| fixture.read(1, number, 0));
        fixture.flush();
        fixture.merge_all();
        (0..50).for_each(|number| fixture.read(2, number, VALUE));
        fixture.flush();
        fixture.ralt.forget(1);
        fixture.ralt.set_data(10 * CAPACITY);
        fixture.merge_all();
        fixture.ralt.shared.worker.lock().reuse
    };
    assert!(measured(0).is_measured());
    assert_eq!(measured(100), measured(0));
}

/// Only the state that was written next told that a keyspace had been dropped. A process that was
/// killed before that left records of a keyspace that was gone, which were hot for as long as
/// nothing was evicted in their place.
#[test]
fn a_keyspace_that_is_gone_counts_for_nothing_though_no_state_says_so() {
    let (memory, _) = closed();
    let medium = Arc::new(memory);
    let mut parts = parts(DATABASE, None, medium, CAPACITY, HotRapOptions::default());
    parts.keyspaces.remove(&3);
    let fixture = Fixture::open(parts);
    assert_eq!(fixture.ralt.trouble(), None);
    assert!(!fixture.ralt.is_hot(3, &key(5)));
    assert!(fixture.hot(3, 0..6000).is_empty());
    let all = range(&key(0), &key(6000));
    assert_eq!(fixture.ralt.hot_bytes(3, &all), 0);
    let heat = fixture.ralt.heat(5, &|_| Some("gone".into())).unwrap();
    assert!(heat.hottest.is_empty() && heat.curve.is_empty());
    (0..50).for_each(|number| fixture.read(4, number, 200));
    fixture.flush();
    fixture.merge_all();
    assert_eq!(fixture.ralt.metrics().records, 50);
}

/// Every state held the number of each keyspace that had ever been dropped, and so did memory.
#[test]
fn keyspaces_that_come_and_go_leave_nothing_behind() {
    let (memory, fixture) = closed();
    let state_len = || {
        let log = memory.log_store(&dir(), true).unwrap();
        log.read(NAME).unwrap().len()
    };
    let before = state_len();
    for keyspace in 1000..2000 {
        fixture.ralt.track(keyspace);
        fixture.ralt.forget(keyspace);
    }
    fixture.ralt.close();
    assert_eq!(state_len(), before);
    let keyspaces = fixture.ralt.shared.keyspaces.load_full();
    assert!(keyspaces.iter().copied().eq(KEYSPACES), "{keyspaces:?}");
}

/// Earlier builds wrote down which keyspaces had been dropped. For a time they took living ones for
/// dropped.
#[test]
fn a_state_that_names_dropped_keyspaces_is_read_and_they_are_not_missed() {
    let mut bytes = b"TCLNRALT\x02\0\0\0".to_vec();
    bytes.extend_from_slice(&DATABASE.to_le_bytes());
    let model = Model::new(&HotRapOptions::default());
    for float in [model.decay, model.epochs_per_tick] {
        bytes.extend_from_slice(&float.to_le_bytes());
    }
    // Where the last eviction ended, the share of duplicates, and eight ranks.
    for _ in 0..10 {
        bytes.extend_from_slice(&0f64.to_le_bytes());
    }
    // Scoring, limits, evictions, epoch, slice and next table; two keyspaces; no table.
    for number in [0, 1000, 1000, 0, 0, 7, 1, 2, 3, 300, 0] {
        put_varint(&mut bytes, number);
    }
    bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
    let memory = Memory::new();
    let log = memory.log_store(&dir(), true).unwrap();
    log.create(NAME).unwrap().append(&bytes).unwrap();
    let fixture = reopen_expecting(&memory);
    assert_eq!(fixture.ralt.trouble(), None);
    assert_eq!(fixture.ralt.metrics().tick, 7);
    (0..50).for_each(|number| fixture.read(3, number, 200));
    fixture.flush();
    assert_eq!(fixture.hot(3, 0..100).len(), 50);
}

/// If several keyspaces share a block, it is not known to which of them its hot records belong.
#[test]
fn each_keyspaces_part_of_the_hot_set_is_its_own() {
    let fixture = Fixture::new();
    let value_len = |keyspace| 100 * (keyspace as usize + 1);
    for number in 0..25 {
        KEYSPACES.for_each(|keyspace| fixture.read(keyspace, number, value_len(keyspace)));
    }
    fixture.flush();
    fixture.merge_all();
    let mut all = 0;
    for keyspace in KEYSPACES {
        let expected = 25 * (key(0).len() + value_len(keyspace)) as u64;
        assert_eq!(fixture.ralt.hot_set_of(keyspace), expected, "{keyspace}");
        all += expected;
    }
    assert_eq!(fixture.ralt.metrics().hot_set_bytes, all);
    assert_eq!(fixture.ralt.hot_set_of(KEYSPACES.end), 0);
}
