//! One thread: every operation, every position of the head, how heads move.

use std::sync::atomic::AtomicU32;

use super::rig::{still, with};
use super::{Living, Plain, Ring};
use crate::link::order_of;
use crate::reclaim;
use crate::{BytesRing, CompareAndSwap, HotRing, Movement, Options, StoreError, TableError};

/// Keys of four orders in one bucket of a table of any size up to 2^32, all in its first part; 4 and 5 have one
/// order.
const KEYS: [u64; 5] = [2, 4, 5, 8, 12];

/// The eighth part of a table's only bucket.
const PART: u64 = 1 << 61;

fn ring_of(keys: &[u64]) -> Ring {
    let map = still(1);
    for &key in keys {
        assert_eq!(map.pin().insert(key, key.wrapping_mul(10)), None);
    }
    map
}

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
fn searches_end_in_rings_of_no_and_of_one_item() {
    let map = ring_of(&[]);
    assert_eq!(map.visits(4), (0, false));
    let map = ring_of(&[4]);
    for head in [false, true] {
        assert!(!head || map.point_at(4));
        assert_eq!(map.visits(4), (1, true));
        assert_eq!(
            map.visits(5),
            (1 + u32::from(head), false),
            "of the same order"
        );
        assert_eq!(map.visits(2), (u32::from(head), false), "before it");
        assert_eq!(map.visits(8), (1, false), "behind it");
    }
}

#[test]
fn every_search_is_right_from_every_head_and_costs_what_the_formula_says() {
    let spread = [2, PART + 4, PART + 5, PART + 8, 6 * PART + 12];
    for (keys, (head, at)) in [KEYS, spread]
        .into_iter()
        .flat_map(|keys| keys.into_iter().enumerate().map(move |head| (keys, head)))
    {
        let map = ring_of(&keys);
        assert!(map.point_at(at));
        for (item, &key) in keys.iter().enumerate() {
            let (visits, found) = map.visits(key);
            assert!(found, "{key} from {}", at);
            // Items of equal order are looked for from the anchor.
            let expected = if item == head {
                1
            } else if order_of(key) > order_of(at) {
                item - head + 1
            } else {
                // In another part than the head's, the head is not looked at.
                item + 1 + usize::from(key / PART == at / PART)
            };
            assert_eq!(visits as usize, expected, "{key} from {}", at);
        }
        let between = keys.map(|key| key ^ 1).map(|key| key + 2 * (key & 1));
        for absent in between.into_iter().filter(|key| !keys.contains(key)) {
            assert!(!map.visits(absent).1, "{absent} from {}", at);
        }
        // Writers begin at the head too.
        let others = [0, 3, 6, 9, 13, PART + 6, 3 * PART, 7 * PART];
        for key in others {
            assert_eq!(map.pin().insert(key, 0), None);
            assert_eq!(map.pin().insert(key, 1), Some(&0));
        }
        map.check();
        for key in others.iter().chain(&keys) {
            assert!(map.pin().remove(key).is_some());
            map.check();
        }
        assert_eq!(map.len(), 0);
    }
}

#[test]
fn keys_of_equal_hash_stand_in_the_order_they_came_and_keep_their_place() {
    let map = ring_of(&[5, 4]);
    assert_eq!(map.pin().update(5, 1), Some(&50));
    let keys: Vec<u64> = map.pin().iter().map(|(&key, _)| key).collect();
    assert_eq!(keys, [5, 4]);
}

#[test]
fn a_new_version_inherits_the_head() {
    let map = ring_of(&KEYS);
    assert!(map.point_at(5));
    map.pin().update(5, 1);
    assert_eq!(map.head_near(5), Some(5));
    assert_eq!(map.visits(5), (1, true));
    map.check();
}

#[test]
fn the_next_item_inherits_the_head_of_a_removed_one_and_none_that_of_the_last() {
    let map = ring_of(&KEYS);
    assert!(map.point_at(8));
    map.pin().remove(&8);
    assert_eq!(map.head_near(8), Some(12));
    map.pin().remove(&12);
    assert_eq!(map.head_near(8), None);
    map.check();
    // The next item of the list, but of another bucket.
    let map: Ring = still(2);
    for key in [2, u64::MAX] {
        map.pin().insert(key, 0);
    }
    assert!(map.point_at(2));
    map.pin().remove(&2);
    assert_eq!(map.head_near(2), None);
    map.check();
}

#[test]
fn a_head_that_is_moved_to_a_deleted_node_is_taken_off() {
    let map = ring_of(&KEYS);
    let guard = reclaim::pin();
    let spot = map.core.spot(order_of(8), &guard);
    let at = map
        .core
        .search(spot, order_of(8), |_| true)
        .at
        .expect("it is there");
    assert!(at.mark(at.next().as_ptr()));
    assert!(map.core.swing(spot, None, at));
    assert!(
        spot.bucket
            .head
            .load(std::sync::atomic::Ordering::Relaxed)
            .is_null()
    );
    assert_eq!(at.node().map(|node| node.state()), Some((true, 0)));
    // A search for another key unlinks it.
    map.core
        .tally
        .went(size_of::<crate::map::item::Item<u64, u64>>());
    map.pin().insert(9, 9);
    assert_eq!(at.node().map(|node| node.state()), Some((false, 0)));
    assert!(!map.core.swing(spot, None, at), "a head at what is retired");
    map.check();
}

#[test]
fn a_search_past_a_marked_link_compares_keys_of_its_own_order_only() {
    let map = ring_of(&KEYS);
    let guard = reclaim::pin();
    let spot = map.core.spot(order_of(8), &guard);
    let at = map.core.search(spot, order_of(4), |_| true).at;
    let marked = at.expect("it is there");
    assert!(marked.mark(marked.next().as_ptr()));
    let compared = std::cell::Cell::new(0);
    let seen = map.core.search(spot, order_of(8), |_| {
        compared.set(compared.get() + 1);
        true
    });
    assert_eq!(seen.at.map(|at| at.order()), Some(order_of(8)));
    assert_eq!(compared.get(), 1);
    // An insertion unlinks what was marked.
    map.core
        .tally
        .went(size_of::<crate::map::item::Item<u64, u64>>());
    map.pin().insert(9, 9);
    map.check();
}

#[test]
fn random_movement_turns_the_ring_to_the_item_that_was_asked_for() {
    let map = with(
        Options::default()
            .buckets(1)
            .movement(Movement::Random)
            .period(2),
    );
    for key in KEYS {
        map.pin().insert(key, key);
    }
    let ring = map.pin();
    // Whatever this thread's counter stands at, one of two requests ends a period.
    for key in [8, 2, 12, 5] {
        ring.get(&key);
        ring.get(&key);
        assert_eq!(map.head_near(key), Some(key));
    }
    // Misses move nothing.
    ring.get(&9);
    ring.get(&9);
    assert_eq!(map.head_near(5), Some(5));
    // An update wants the predecessor at the head.
    ring.update(8, 1);
    ring.update(8, 1);
    assert_eq!(map.head_near(8), Some(5));
    drop(ring);
    map.check();
}

#[test]
fn sampling_takes_as_many_samples_as_the_ring_has_items_and_turns_it_to_the_best() {
    let map = with(Options::default().buckets(1).period(1));
    for key in KEYS {
        map.pin().insert(key, key);
    }
    map.make_restless(2);
    let ring = map.pin();
    ring.get(&2);
    assert_eq!(map.head_near(2), None, "the first item needs no head");
    ring.get(&4);
    assert_eq!(
        map.head_near(2),
        Some(4),
        "without a head the item that was asked for gets it"
    );
    let left = || {
        let guard = reclaim::pin();
        map.core
            .spot(1, &guard)
            .bucket
            .sampling
            .load(std::sync::atomic::Ordering::Relaxed)
    };
    ring.get(&12);
    assert_eq!(left(), 5, "one sample an item");
    for (key, expected) in [(12, 4), (8, 3), (12, 2), (2, 1)] {
        ring.get(&key);
        assert_eq!(left(), expected);
    }
    let counts: Vec<_> = ring
        .entries()
        .map(|entry| (*entry.key(), entry.count()))
        .collect();
    assert_eq!(counts, [(2, 1), (4, 0), (5, 0), (8, 1), (12, 2)]);
    assert_eq!(map.head_near(2), Some(4));
    ring.get(&8);
    // 2: once, 8: twice, 12: twice. From 8 they cost 2 + 2·1 + 2·2, from 12 they would cost 2 + 2·5 + 2: all are in
    // one part, so that the head is read in vain for an item before it.
    assert_eq!((left(), map.head_near(2)), (0, Some(8)));
    for entry in ring.entries() {
        entry.clear_count();
    }
    assert!(ring.entries().all(|entry| entry.count() == 0));
    drop(ring);
    map.check();
}

#[test]
fn updates_turn_the_ring_to_the_predecessor() {
    let map = with(Options::default().buckets(1).period(1));
    for key in KEYS {
        map.pin().insert(key, key);
    }
    map.make_restless(2);
    let ring = map.pin();
    ring.get(&4);
    // Begins a round, and then five samples.
    for _ in 0..6 {
        ring.update(12, 0);
    }
    assert_eq!(map.head_near(2), Some(8));
    // The first item's predecessor is the anchor: from any head it costs the same, so none moves.
    for _ in 0..20 {
        ring.update(2, 0);
    }
    assert_eq!(map.head_near(2), Some(8));
    drop(ring);
    map.check();
}

#[test]
fn a_head_moves_at_once_until_the_first_round_has_ended() {
    let map = with(Options::default().buckets(1).period(1));
    for key in KEYS {
        map.pin().insert(key, key);
    }
    let ring = map.pin();
    // This thread's periods are too few for one of them to begin a round.
    for key in [4, 12, 8] {
        ring.get(&key);
        assert_eq!(map.head_near(2), Some(key));
    }
    map.make_calm(2);
    for key in [4, 12] {
        ring.get(&key);
        assert_eq!(map.head_near(2), Some(8));
    }
    drop(ring);
    map.check();
}

#[test]
fn even_accesses_begin_few_rounds() {
    let map = with(Options::default().buckets(1).period(1));
    let keys = [2, 4, 6, 8, 10, 12, 14, 16];
    for key in keys {
        map.pin().insert(key, key);
    }
    map.make_restless(2);
    let ring = map.pin();
    let guard = reclaim::pin();
    let spot = map.core.spot(1, &guard);
    let running = || {
        spot.bucket
            .sampling
            .load(std::sync::atomic::Ordering::Relaxed)
            > 0
    };
    let mut rounds = 0;
    for _ in 0..100 {
        for key in keys {
            let before = running();
            ring.get(&key);
            rounds += usize::from(!before && running());
        }
    }
    // One after the other there would be some ninety.
    assert!((5..40).contains(&rounds), "{rounds} rounds in 800 accesses");
}

#[test]
fn a_round_without_counts_moves_nothing() {
    let map = ring_of(&KEYS);
    assert!(map.point_at(5));
    let guard = reclaim::pin();
    map.core.adjust(map.core.spot(1, &guard));
    assert_eq!(map.head_near(5), Some(5));
}

#[test]
fn counts_stop_before_they_overflow() {
    let map = ring_of(&[2]);
    let ring = map.pin();
    let guard = reclaim::pin();
    let at = map.core.begin(&guard).next().at().expect("an item");
    let node = at.node().expect("no anchor");
    node.set_count(u32::MAX / 2 - 1);
    node.count_access();
    node.count_access();
    assert_eq!(
        ring.entries().next().map(|entry| entry.count()),
        Some(u32::MAX / 2)
    );
    assert_eq!(map.visits(2), (1, true));
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
            map.reserve(1 << 57),
            Err(TableError::OutOfMemory { bytes: 1 << 62 })
        );
        assert_eq!(
            new(1 << 57).err(),
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
        // 255 degrees of freedom, deviation 22.6: by chance beyond eight deviations never.
        assert!(chi < 255.0 + 8.0 * 22.6, "{name}: chi square {chi}");
    }
}

#[test]
fn a_head_in_a_later_part_costs_nothing() {
    let keys = [2, 2 * PART + 2, 5 * PART + 2];
    let map = with(Options::default().buckets(1).period(1));
    for key in keys {
        map.pin().insert(key, key);
    }
    let ring = map.pin();
    ring.get(&keys[2]);
    assert_eq!(map.head_near(2), Some(keys[2]));
    assert_eq!(keys.map(|key| ring.steps(&key)), [1, 2, 1]);
    // Absent, before the first and behind the head: the search ends at the next item, and at the list's end.
    assert_eq!((ring.steps(&0), ring.steps(&(5 * PART + 4))), (1, 2));
    // Two items at one step each: no round begins, wherever the head is.
    for _ in 0..20 {
        ring.get(&keys[0]);
        ring.get(&keys[2]);
        assert_eq!(map.head_near(2), Some(keys[2]));
    }
    let guard = reclaim::pin();
    let sampling = &map.core.spot(1, &guard).bucket.sampling;
    assert_eq!(sampling.load(std::sync::atomic::Ordering::Relaxed), 0);
    drop(ring);
    map.check();
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
