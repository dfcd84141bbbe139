//! One thread: when a head moves, and where to.

use super::rig::with;
use super::ring::{KEYS, PART, ring_of};
use crate::head::Word;
use crate::link::MOST;
use crate::period::Ended;
use crate::reclaim;
use crate::{Movement, Options};

/// Most rings are asked too seldom to be turned to anything. A ring whose items take one step each
/// needs it least.
#[test]
fn a_ring_gets_its_head_with_its_second_item_and_both_are_found_at_once() {
    let (low, high) = (PART + 2, 5 * PART + 2);
    for keys in [[low, high], [high, low]] {
        for movement in [Movement::Sampling, Movement::Random, Movement::Off] {
            let options = Options::default().buckets(1).movement(movement);
            let map = with(options.period(u32::MAX));
            map.pin().insert(keys[0], 0);
            assert_eq!(map.head_near(0), None, "an item alone is the first");
            map.pin().insert(keys[1], 0);
            let is_off = movement == Movement::Off;
            assert_eq!(map.head_near(0), (!is_off).then_some(high));
            let second = if is_off { (2, true) } else { (1, true) };
            assert_eq!([low, high].map(|key| map.visits(key)), [(1, true), second]);
            // It stays, wherever others come.
            for key in [0, 3 * PART, 7 * PART] {
                map.pin().insert(key, 0);
                assert_eq!(map.head_near(0), (!is_off).then_some(high));
            }
            map.check();
        }
    }
}

#[test]
fn items_of_two_buckets_give_neither_a_head() {
    let map = with(Options::default().buckets(2).period(u32::MAX));
    for key in [2, 4 * PART] {
        map.pin().insert(key, 0);
    }
    assert_eq!([0, 4 * PART].map(|key| map.head_near(key)), [None; 2]);
}

#[test]
fn random_movement_turns_the_ring_to_the_item_that_was_asked_for() {
    let map = with(
        Options::default()
            .buckets(1)
            .movement(Movement::Random)
            .period(1),
    );
    for key in KEYS {
        map.pin().insert(key, key);
    }
    let ring = map.pin();
    for key in [8, 2, 12, 5] {
        ring.get(&key);
        assert_eq!(map.head_near(key), Some(key));
    }
    // Misses move nothing.
    ring.get(&9);
    assert_eq!(map.head_near(5), Some(5));
    // An update wants the predecessor at the head.
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
    ring.get(&4);
    assert_eq!(map.head_near(2), Some(4), "served by its first head");
    let left = || {
        let guard = reclaim::pin();
        map.core.spot(1, &guard).lacking()
    };
    ring.get(&12);
    assert_eq!(left(), Some(5), "one sample an item");
    for (key, expected) in [(12, 4), (8, 3), (12, 2), (2, 1)] {
        ring.get(&key);
        assert_eq!(left(), Some(expected));
    }
    let counts: Vec<_> = ring
        .entries()
        .map(|entry| (*entry.key(), entry.count()))
        .collect();
    assert_eq!(counts, [(2, 1), (4, 0), (5, 0), (8, 1), (12, 2)]);
    assert_eq!(map.head_near(2), Some(4));
    ring.get(&8);
    // 2: once, 8: twice, 12: twice. From 8 they cost 2 + 2·1 + 2·2, from 12 they would cost 2 + 2·5
    // + 2: all are in one part, so that the head is read in vain for an item before it.
    assert_eq!((left(), map.head_near(2)), (None, Some(8)));
    for entry in ring.entries() {
        entry.clear_count();
    }
    assert!(ring.entries().all(|entry| entry.count() == 0));
    drop(ring);
    map.check();
}

/// A round must forget the samples of the one before. No mutant and no other test said so.
#[test]
fn a_round_begins_at_zero_and_turns_the_ring_by_its_own_samples() {
    let map = with(Options::default().buckets(1).period(1));
    for key in KEYS {
        map.pin().insert(key, key);
    }
    map.make_restless(2);
    let ring = map.pin();
    let counts = || {
        ring.entries()
            .map(|entry| entry.count())
            .collect::<Vec<_>>()
    };
    // The first begins a round of five samples.
    for key in [12; 6] {
        ring.get(&key);
    }
    assert_eq!(
        (map.head_near(2), counts()),
        (Some(12), vec![0, 0, 0, 0, 5])
    );
    for key in [4, 12, 4, 4, 4, 4] {
        ring.get(&key);
    }
    // From 4 they cost 4 + 4, from 12 they would cost 1 + 4·3. With the samples of both rounds it
    // would be 28 and 18.
    assert_eq!((map.head_near(2), counts()), (Some(4), vec![0, 4, 0, 0, 1]));
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
    // The first begins a round, and five samples follow.
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
fn a_ring_that_lost_its_head_turns_to_the_item_that_is_asked_for() {
    let map = with(Options::default().buckets(1).period(1));
    for key in KEYS {
        map.pin().insert(key, key);
    }
    let ring = map.pin();
    assert!(map.point_at(12));
    ring.remove(&12);
    assert_eq!(map.head_near(2), None, "the last item has no heir");
    ring.get(&2);
    assert_eq!(map.head_near(2), None, "the first item needs no head");
    ring.get(&8);
    assert_eq!(map.head_near(2), Some(8));
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
    let running = || spot.lacking().is_some();
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
    let spot = map.core.spot(1, &guard);
    // Which of ever rarer periods begin no round.
    let passed = || {
        let calm = Word::of(spot.bucket).calm();
        [0u32, 1, 2, 3, 4, 5, 6, 7].map(|level| calm.passes(Ended(u32::MAX >> level)))
    };
    let before = passed();
    map.core.adjust(spot);
    assert_eq!(map.head_near(5), Some(5));
    // A round that gained nothing of nothing is no reason to begin the next one sooner.
    assert_eq!(passed(), before);
}

#[test]
fn counts_stop_before_they_overflow() {
    let map = ring_of(&[2]);
    let ring = map.pin();
    let guard = reclaim::pin();
    let at = map.core.begin(&guard).next().at().expect("an item");
    let node = at.node().expect("no anchor");
    node.set_count(MOST - 1);
    node.count_access();
    node.count_access();
    assert_eq!(
        ring.entries().next().map(|entry| entry.count()),
        Some(MOST.into())
    );
    assert_eq!(map.visits(2), (1, true));
}
