//! One thread: every operation, of both kinds of map.

use std::sync::atomic::AtomicU32;

use super::resizing::SameHash;
use super::rig::still;
use super::ring::{KEYS, ring_of};
use super::{Living, Plain, Ring};
use crate::reclaim;
use crate::{BytesRing, CompareAndSwap, HotRing, InPlace, Options, StoreError, TableError};

#[test]
fn stores_replaces_and_removes() {
    let map = HotRing::new();
    let ring = map.pin();
    assert_eq!(ring.insert("a", 1), None);
    assert_eq!(ring.insert("a", 2), Some(&1));
    assert_eq!(ring.get("a"), Some(&2));
    assert_eq!(ring.update("b", 3), None);
    assert!(!ring.contains_key("b"));
    assert_eq!(ring.update("a", 3), Some(&2));
    assert_eq!(ring.try_insert("a", 4), Err((&3, "a", 4)));
    assert_eq!(ring.try_insert("b", 4), Ok(&4));
    assert_eq!(ring.get_or_insert_with("b", || 5), &4);
    assert_eq!(ring.get_or_insert_with("c", || 5), &5);
    assert_eq!(
        ring.compare_and_swap("c", &4, 6),
        CompareAndSwap::Differs(&5)
    );
    assert_eq!(
        ring.compare_and_swap("c", &5, 6),
        CompareAndSwap::Swapped(&5)
    );
    assert_eq!(ring.compare_and_swap("d", &5, 6), CompareAndSwap::Absent);
    assert_eq!(ring.remove_if("c", |&value| value == 5), None);
    assert_eq!(ring.remove_if("c", |&value| value == 6), Some(&6));
    assert_eq!(ring.remove("c"), None);
    let mut all: Vec<_> = ring.iter().collect();
    all.sort();
    assert_eq!(all, [(&"a", &3), (&"b", &4)]);
    assert_eq!(map.len(), 2);
    ring.clear();
    assert!(map.is_empty() && ring.iter().next().is_none());
    drop(ring);
    map.check();
}

#[test]
fn byte_strings_are_stored_replaced_and_removed() -> Result<(), StoreError> {
    let map = BytesRing::new();
    let empty = map.memory_used();
    let ring = map.pin();
    assert_eq!(ring.insert(b"", b"")?, None);
    assert_eq!(ring.insert(b"a", b"one")?, None);
    assert_eq!(ring.insert(b"a", b"two!")?, Some(&b"one"[..]));
    assert_eq!(ring.update(b"b", b"")?, None);
    assert_eq!(ring.update(b"", b"nothing")?, Some(&b""[..]));
    assert_eq!(ring.insert_if_absent(b"a", b"3")?, Some(&b"two!"[..]));
    assert_eq!(ring.insert_if_absent(b"b", b"3")?, None);
    assert_eq!(
        ring.compare_and_swap(b"b", b"4", b"5")?,
        CompareAndSwap::Differs(&b"3"[..])
    );
    assert_eq!(
        ring.compare_and_swap(b"b", b"3", b"5")?,
        CompareAndSwap::Swapped(&b"3"[..])
    );
    assert_eq!(
        ring.compare_and_swap(b"c", b"3", b"5")?,
        CompareAndSwap::Absent
    );
    assert_eq!(
        map.memory_used() - empty,
        3 * 32 + "nothing".len() + "a".len() + "two!".len() + 2
    );
    assert_eq!(
        ring.entries()
            .filter(|entry| entry.key() == entry.value())
            .count(),
        0
    );
    assert_eq!(ring.remove_if(b"a", |value| value.is_empty()), None);
    assert_eq!(ring.remove(b"a"), Some(&b"two!"[..]));
    assert_eq!(
        (ring.get(b"a"), ring.get(b"")),
        (None, Some(&b"nothing"[..]))
    );
    ring.clear();
    assert_eq!((map.len(), map.memory_used()), (0, empty));
    Ok(())
}

#[test]
fn a_walk_through_byte_strings_can_be_left_and_taken_up_again() -> Result<(), StoreError> {
    let map = BytesRing::new();
    let ring = map.pin();
    for n in 0..100u8 {
        ring.insert(&[n], &[n, n])?;
    }
    assert!(ring.iter().all(|(key, value)| value == [key, key].concat()));
    assert_eq!(ring.iter().count(), 100);
    let first: Vec<_> = ring.entries().take(60).collect();
    let next = first[59].hash().checked_add(2);
    let rest: Vec<_> = ring.entries_from(next.expect("a hash behind")).collect();
    let mut keys: Vec<&[u8]> = first.iter().chain(&rest).map(|entry| entry.key()).collect();
    keys.sort_unstable();
    assert!(keys.iter().map(|key| key[0]).eq(0..100));
    assert!(keys.iter().all(|key| ring.steps(key) > 0));
    Ok(())
}

/// Regression: the documentation showed that a walk is taken up at the last hash plus two. At the
/// end of the hashes that overflowed: it panicked, or the walk began again.
#[test]
fn a_walk_that_is_taken_up_after_each_entry_ends_behind_the_last_hash() {
    let map = ring_of(&[2, 4, u64::MAX]);
    let ring = map.pin();
    let (mut keys, mut from) = (Vec::new(), Some(0));
    while let Some(hash) = from {
        let entry = ring.entries_from(hash).next();
        keys.extend(entry.as_ref().map(|entry| *entry.key()));
        from = entry.and_then(|entry| entry.hash().checked_add(2));
    }
    assert_eq!(keys, [2, 4, u64::MAX]);
}

/// Regression: after each key that was removed, all remaining keys of its hash were read. Clearing
/// a map of a hundred thousand keys of one hash took five billion steps.
#[test]
fn keys_of_one_hash_are_cleared_in_few_steps_each() {
    let keys = if cfg!(miri) { 100 } else { 2000 };
    let options = Options::default().grow_above(f64::INFINITY);
    let map: HotRing<u64, u64, SameHash> =
        HotRing::with_options_and_hasher(options, SameHash).expect("a table");
    for key in 0..keys {
        map.pin().insert(key, key);
    }
    let read = map.core.clear(&reclaim::pin());
    assert!(read <= 3 * keys, "{read} links for {keys} keys");
    assert!(map.is_empty());
    map.check();
}

#[test]
fn small_values_change_in_place() {
    let map: HotRing<u64, AtomicU32> = HotRing::new();
    let ring = map.pin();
    assert_eq!((ring.put(1, 10), ring.read(&1)), (None, Some(10)));
    let used = map.memory_used();
    let before = std::ptr::from_ref(ring.get(&1).expect("stored"));
    assert_eq!((ring.put(1, 11), ring.put(1, 12)), (Some(10), Some(11)));
    assert_eq!(ring.exchange(&1, 11, 13), Some(Err(12)));
    assert_eq!(ring.exchange(&1, 12, 13), Some(Ok(12)));
    assert_eq!(ring.exchange(&2, 12, 13), None);
    assert_eq!(
        ring.get(&1).map(std::ptr::from_ref),
        Some(before),
        "the same node"
    );
    assert_eq!(map.memory_used(), used);
    assert!(ring.remove(&1).is_some());
    assert_eq!(ring.read(&1), None);
}

/// Regression: removals and replacements that depend on the value were said to be one step even for
/// values that change in place. They are two steps: a change after the value was looked at, here
/// while it is being looked at, goes with it. Only a value that nobody changes any more is what it
/// was seen to be.
#[test]
fn a_value_that_changes_after_it_was_looked_at_is_removed_all_the_same() {
    const CLOSED: u32 = u32::MAX;
    let map: HotRing<u64, AtomicU32> = HotRing::new();
    let ring = map.pin();
    // Says whether the value is `free`, and then another comes in.
    let is_and_changes = |value: &AtomicU32, free: u32| {
        let is_free = value.read() == free;
        (is_free, ring.exchange(&1, 0, 1))
    };
    ring.put(1, 0);
    let removed = ring.remove_if(&1, |value| is_and_changes(value, 0).0);
    assert_eq!((removed.map(InPlace::read), ring.read(&1)), (Some(1), None));
    ring.put(1, 0);
    match ring.update_if(1, AtomicU32::new(7), |value| is_and_changes(value, 0).0) {
        CompareAndSwap::Swapped(old) => assert_eq!((old.read(), ring.read(&1)), (1, Some(7))),
        other => panic!("{other:?}"),
    }
    ring.put(1, 0);
    assert_eq!(ring.exchange(&1, 0, CLOSED), Some(Ok(0)));
    let removed = ring.remove_if(&1, |value| {
        let (is_closed, changed) = is_and_changes(value, CLOSED);
        assert_eq!(changed, Some(Err(CLOSED)), "nobody comes in");
        is_closed
    });
    assert_eq!(
        (removed.map(InPlace::read), ring.read(&1)),
        (Some(CLOSED), None)
    );
}

#[test]
fn every_value_is_dropped_once_its_last_handle_is_gone() {
    let living = Living::default();
    let map: Ring<super::Counted> = still(1);
    let ring = map.pin();
    for key in 0..100 {
        ring.insert(key, living.value(key));
    }
    assert!(map.point_at(60));
    let old = ring.insert(60, living.value(1)).expect("replaced");
    for key in 0..50 {
        ring.remove(&key);
    }
    assert_eq!(
        ring.try_insert(70, living.value(2))
            .err()
            .map(|(there, ..)| there.value),
        Some(70)
    );
    assert!(ring.update(1000, living.value(3)).is_none());
    assert_eq!(
        (old.value, living.count()),
        (60, 101),
        "kept for the handle"
    );
    drop(ring);
    drop(map);
    // What was retired goes when the epochs have passed, which other tests may hold up.
    while living.count() > 0 {
        reclaim::pin().flush();
        std::thread::yield_now();
    }
}

#[test]
fn an_entry_replaced_under_a_walk_comes_once() {
    let map = ring_of(&[2, 4, 5]);
    let ring = map.pin();
    let mut walk = ring.iter();
    assert_eq!(walk.next(), Some((&2, &20)));
    assert_eq!(walk.next(), Some((&4, &40)));
    ring.insert(4, 41);
    ring.insert(5, 51);
    ring.insert(5, 52);
    assert_eq!(walk.next(), Some((&5, &52)));
    assert_eq!(walk.next(), None);
}

#[test]
fn tables_that_cannot_be_are_refused() {
    let new = |buckets| {
        HotRing::<u64, u64, Plain>::with_options_and_hasher(
            Options::default().buckets(buckets),
            Plain,
        )
    };
    let too_large = |buckets| TableError::TooLarge { buckets };
    assert_eq!(new(usize::MAX).err(), Some(too_large(usize::MAX)));
    assert_eq!(new(1 << 60).err(), Some(too_large(1 << 60)));
    let map = ring_of(&KEYS);
    assert_eq!(map.reserve(1 << 60), Err(too_large(1 << 60)));
    // An interpreter ends at once when it has no memory.
    if !cfg!(miri) {
        assert_eq!(
            map.reserve(1 << 58),
            Err(TableError::OutOfMemory { bytes: 1 << 62 })
        );
        assert_eq!(
            new(1 << 58).err(),
            Some(TableError::OutOfMemory { bytes: 1 << 62 })
        );
    }
    assert_eq!(new(0).map(|map| map.buckets()), Ok(1));
    assert_eq!(new(5).map(|map| map.buckets()), Ok(8));
    map.check();
}

#[test]
fn a_record_of_four_gibibytes_is_refused() {
    if cfg!(miri) || size_of::<usize>() < 8 {
        return;
    }
    // Never touched, so it takes address space only.
    let huge = vec![0u8; 1 << 32];
    let map = BytesRing::new();
    let too_large = StoreError::TooLarge {
        key: 1,
        value: 1 << 32,
    };
    assert_eq!(map.pin().insert(b"k", &huge), Err(too_large));
    assert!(map.is_empty());
}

#[test]
fn rings_of_the_default_hasher_are_as_even_as_chance() {
    let buckets = 256;
    let options = Options::default()
        .buckets(buckets)
        .grow_above(f64::INFINITY);
    let numbers: HotRing<u64, ()> = HotRing::with_options(options).expect("a table");
    let strings: BytesRing = BytesRing::with_options(options).expect("a table");
    let items = if cfg!(miri) { 512 } else { 8 * buckets as u64 };
    for i in 0..items {
        numbers.pin().insert(i, ());
        strings
            .pin()
            .insert(format!("user:{i}").as_bytes(), b"")
            .expect("small");
    }
    for (name, sizes) in [
        ("numbers", numbers.core.ring_sizes()),
        ("strings", strings.core.ring_sizes()),
    ] {
        let mean = items as f64 / buckets as f64;
        let chi: f64 = sizes
            .iter()
            .map(|&size| (size as f64 - mean).powi(2) / mean)
            .sum();
        // 255 degrees of freedom, deviation 22.6: chance never goes beyond eight deviations.
        assert!(chi < 255.0 + 8.0 * 22.6, "{name}: chi square {chi}");
    }
}

#[test]
fn a_map_is_made_of_entries_and_extended() {
    let entries = (0..200u64).map(|key| (key % 100, key));
    let mut map: HotRing<u64, u64> = entries.collect();
    assert_eq!(map.len(), 100);
    assert!((0..100).all(|key| map.pin().get(&key) == Some(&(key + 100))));
    map.extend([(7, 0), (1000, 1)]);
    assert_eq!(map.len(), 101);
    assert_eq!(
        (map.pin().get(&7), map.pin().get(&1000)),
        (Some(&0), Some(&1))
    );
    map.check();
}
