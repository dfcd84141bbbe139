//! One thread: searches from every position of the head, and who inherits it.

use super::Ring;
use super::rig::{still, with};
use crate::Options;
use crate::head::Word;
use crate::link::order_of;
use crate::reclaim;

/// Keys of four orders in one bucket of a table of any size up to 2^32, all in its first part; 4
/// and 5 have one order.
pub(super) const KEYS: [u64; 5] = [2, 4, 5, 8, 12];

/// The eighth part of a table's only bucket.
pub(super) const PART: u64 = 1 << 61;

pub(super) fn ring_of(keys: &[u64]) -> Ring {
    let map = still(1);
    for &key in keys {
        assert_eq!(map.pin().insert(key, key.wrapping_mul(10)), None);
    }
    map
}

#[test]
fn searches_end_in_rings_of_no_and_of_one_item() {
    let map = ring_of(&[]);
    for key in [4, 7 * PART + 4] {
        assert_eq!(map.visits(key), (0, false));
    }
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
    // Absent, before the first and behind the head: the search ends at the next item, and at the
    // list's end.
    assert_eq!((ring.steps(&0), ring.steps(&(5 * PART + 4))), (1, 2));
    // Two items at one step each: no round begins, wherever the head is.
    for _ in 0..20 {
        ring.get(&keys[0]);
        ring.get(&keys[2]);
        assert_eq!(map.head_near(2), Some(keys[2]));
    }
    let guard = reclaim::pin();
    assert_eq!(map.core.spot(1, &guard).lacking(), None);
    drop(ring);
    map.check();
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
    assert!(map.core.swing(spot, Word::NONE, at));
    assert_eq!(Word::of(spot.bucket), Word::NONE);
    assert_eq!(at.node().map(|node| node.state()), Some((true, 0)));
    // A search for another key unlinks it.
    map.core
        .tally
        .went(size_of::<crate::map::item::Item<u64, u64>>());
    map.pin().insert(9, 9);
    assert_eq!(at.node().map(|node| node.state()), Some((false, 0)));
    assert!(
        !map.core.swing(spot, Word::NONE, at),
        "a head at what is retired"
    );
    map.check();
}

#[test]
fn a_head_that_was_moved_meanwhile_stays_and_the_other_item_is_not_counted() {
    let map = ring_of(&KEYS);
    assert!(map.point_at(8));
    let guard = reclaim::pin();
    let spot = map.core.spot(order_of(12), &guard);
    let seen = map.core.search(spot, order_of(12), |_| true);
    let at = seen.at.expect("it is there");
    assert!(!map.core.swing(spot, Word::NONE, at));
    assert_eq!(map.head_near(8), Some(8));
    assert_eq!(at.node().map(|node| node.state()), Some((true, 0)));
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
