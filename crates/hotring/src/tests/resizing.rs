//! One thread: tables that grow and shrink, in every stage.

use std::ops::Range;

use super::rig::{still, with};
use super::{Living, Plain, Ring};
use crate::head::Word;
use crate::link::{At, order_of};
use crate::reclaim;
use crate::rehash::{Rehash, Size};
use crate::{HotRing, Movement, Options, TableError};

/// Spread over the whole range of hashes.
fn key(i: u64) -> u64 {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn filled<V: Send + Sync + 'static>(buckets: usize, value: impl Fn(u64) -> V) -> Ring<V> {
    let map = still(buckets);
    for i in 0..64 {
        map.pin().insert(key(i), value(i));
    }
    map
}

/// Other tests' guards hold up the epochs.
fn settle<V: Send + Sync + 'static>(map: &Ring<V>) {
    while !map.settle() {
        std::thread::yield_now();
    }
}

#[test]
fn a_table_grows_and_shrinks_to_any_power_of_two() {
    let map = filled(4, |i| i);
    for i in 0..8 {
        assert!(map.point_at(key(i)));
    }
    for buckets in [8, 512, 1, 2, 256, 32] {
        let changed = if buckets > map.buckets() {
            map.reserve(buckets)
        } else {
            map.shrink_to(buckets)
        };
        assert_eq!((changed, map.buckets()), (Ok(()), buckets));
        settle(&map);
        map.check();
        let ring = map.pin();
        for i in 0..64 {
            assert_eq!(ring.get(&key(i)), Some(&i));
        }
    }
    assert_eq!(
        (map.reserve(3), map.shrink_to(64), map.buckets()),
        (Ok(()), Ok(()), 32)
    );
}

/// Regression: whether a table was to grow or to shrink was decided before the lock was taken.
/// Under the lock it was only checked whether the sizes differed. So `reserve` shrank a table that
/// another thread had made larger meanwhile, and `shrink_to` enlarged one that had been made
/// smaller.
#[test]
fn a_change_that_comes_late_does_not_go_the_other_way() {
    let map = filled(16, |i| i);
    for late in [
        Size::AtLeast(8),
        Size::AtLeast(9),
        Size::AtMost(32),
        Size::AtMost(9),
        Size::AtMost(usize::MAX),
    ] {
        assert_eq!(map.core.begin_rehash(late, &reclaim::pin()), Ok(()));
        assert_eq!((stage(&map), map.buckets()), ("idle", 16), "{late:?}");
    }
    map.core
        .begin_rehash(Size::AtMost(0), &reclaim::pin())
        .expect("memory");
    settle(&map);
    assert_eq!(map.buckets(), 1);
    map.check();
}

/// Regression: `shrink_to` asked only whether the present table was small enough. While a larger
/// one was being made, it changed nothing and said that all was well, and the next requests doubled
/// the table.
#[test]
fn a_table_that_is_to_be_small_is_so_though_it_was_about_to_grow() {
    let map = filled(4, |i| i);
    map.grow().expect("memory");
    assert_eq!((stage(&map), map.buckets()), ("split", 4));
    let shrunk = loop {
        match map.shrink_to(4) {
            // Other tests' guards hold up the epochs.
            Err(TableError::Busy) => std::thread::yield_now(),
            other => break other,
        }
    };
    assert_eq!(shrunk, Ok(()));
    settle(&map);
    assert_eq!(map.buckets(), 4);
    map.check();
}

#[test]
fn new_buckets_take_over_the_heads_that_lie_in_them() {
    let map = filled(1, |i| i);
    assert!(map.point_at(key(5)));
    map.reserve(8).expect("memory");
    assert_eq!(map.head_near(key(5)), Some(key(5)));
    settle(&map);
    for i in 0..64 {
        assert!(map.point_at(key(i)));
    }
    let heads: Vec<_> = (0..4).map(|i| map.head_near(i << 61)).collect();
    map.shrink_to(4).expect("memory");
    settle(&map);
    assert_eq!(
        (0..4)
            .map(|i| map.head_near(i << 62))
            .filter(Option::is_some)
            .count(),
        4
    );
    assert_eq!(map.head_near(0), heads[0]);
    map.check();
}

#[test]
fn new_buckets_that_can_take_over_no_head_get_one_at_their_second_item() {
    for (from, to) in [(1, 4), (16, 4)] {
        for movement in [Movement::Random, Movement::Off] {
            let options = Options::default().buckets(from).movement(movement);
            let map = with(options.period(u32::MAX));
            // Of four buckets two have one item and the others several; of sixteen each has one at
            // most, and of one the head is at the second that came.
            let sixteenth = |i: u64| i << 60 | 2;
            let keys = [1, 4, 8, 9, 12, 13, 14, 15].map(sixteenth);
            for key in keys {
                map.pin().insert(key, 0);
            }
            let changed = if from < to {
                map.reserve(to)
            } else {
                map.shrink_to(to)
            };
            assert_eq!(changed, Ok(()));
            let expected = match movement {
                Movement::Off => [None::<u64>; 4],
                _ => [None, (from == 1).then_some(4), Some(9), Some(13)],
            };
            let expected = expected.map(|i| i.map(sixteenth));
            let heads = [0, 4, 8, 12].map(|i| map.head_near(sixteenth(i)));
            assert_eq!(heads, expected, "from {from}, {movement:?}");
            settle(&map);
            map.check();
        }
    }
}

/// Regression: `check` demanded fresh heads of a table that had just become the present one. So one
/// in a hundred runs of a recorded history that ended during a change failed.
#[test]
fn a_head_that_a_removal_by_the_old_table_left_is_taken_off_before_the_change_ends() {
    let map = filled(1, |i| i);
    assert!(map.point_at(key(5)));
    let ring = map.pin();
    // The new table takes its heads over and becomes the present one while the removal looks at the
    // old one's.
    let removed = ring.remove_if(&key(5), |_| map.reserve(2).is_ok());
    assert_eq!((removed, map.buckets()), (Some(&5), 2));
    let stale = |map: &Ring<u64>| {
        let guard = reclaim::pin();
        let spot = map.core.spot(order_of(key(5)), &guard);
        // SAFETY: the head counts in its node; only its mark is looked at.
        let head = Word::of(spot.bucket)
            .link()
            .map(|head| unsafe { At::new(head, &guard) });
        head.is_some_and(At::is_marked_now)
    };
    assert_eq!((stage(&map), stale(&map)), ("drain", true));
    map.check();
    drop(ring);
    settle(&map);
    assert!(!stale(&map));
    map.check();
}

#[test]
fn while_a_handle_is_held_the_old_table_stays_and_no_second_change_begins() {
    let map = filled(2, |i| i);
    let ring = map.pin();
    assert!(map.point_at(key(3)));
    map.reserve(4).expect("memory");
    assert_eq!(map.buckets(), 4);
    assert!(!map.settle());
    assert_eq!(map.reserve(8), Err(TableError::Busy));
    // Everything goes on meanwhile.
    for i in 0..64 {
        assert_eq!(ring.insert(key(i), i + 1), Some(&i));
        assert_eq!(map.pin().get(&key(i)), Some(&(i + 1)));
    }
    assert_eq!(ring.remove(&key(3)), Some(&4));
    map.check();
    drop(ring);
    settle(&map);
    map.check();
    assert_eq!(map.reserve(8), Ok(()));
}

#[test]
fn everything_works_in_every_stage() {
    let changes = [(4, 128), (128, 4)];
    let movements = [Movement::Off, Movement::Random];
    for ((from, to), movement) in changes.into_iter().flat_map(|c| movements.map(|m| (c, m))) {
        let options = Options::default().buckets(from).movement(movement);
        let map = with(options.period(u32::MAX));
        for i in 0..64 {
            map.pin().insert(key(i), i);
        }
        for i in (0..64).step_by(5) {
            assert!(map.point_at(key(i)));
        }
        map.begin_change(to).expect("memory");
        let mut stages = Vec::new();
        let mut value = 0;
        loop {
            for i in 0..64 {
                let ring = map.pin();
                assert_eq!(ring.get(&key(i)), Some(&(value + i)));
                if i % 3 == 0 {
                    assert_eq!(ring.remove(&key(i)), Some(&(value + i)));
                    assert_eq!(ring.get(&key(i)), None);
                    assert_eq!(ring.insert(key(i), value + i + 1), None);
                } else {
                    assert_eq!(ring.insert(key(i), value + i + 1), Some(&(value + i)));
                }
            }
            value += 1;
            map.check();
            let stage = stage(&map);
            if stages.last() != Some(&stage) {
                stages.push(stage);
            }
            if stage == "idle" {
                break;
            }
            map.core.work(&reclaim::pin());
        }
        assert_eq!(stages, ["split", "drain", "unlink", "recheck", "idle"]);
        assert_eq!(map.buckets(), to);
    }
}

fn stage(map: &Ring) -> &'static str {
    match *map.core.rehash.try_lock().expect("one thread") {
        Rehash::Idle => "idle",
        Rehash::Split { .. } => "split",
        Rehash::Drain { .. } => "drain",
        Rehash::Unlink { .. } => "unlink",
        Rehash::Recheck { .. } => "recheck",
    }
}

/// Keys, and buckets of the larger table.
const MANY: usize = if cfg!(miri) { 256 } else { 4096 };

fn with_many_keys(buckets: usize) -> Ring {
    let map = still(buckets);
    for i in 0..MANY as u64 {
        map.pin().insert(key(i), i);
    }
    map
}

/// Has `treat` do the work of a change, and yield how many links it read for each chunk of buckets.
fn assert_a_chunk_reads_a_ring_once(treat: impl Fn(Range<usize>) -> u64) {
    // Every item and every anchor is read once, and each of the chunk's searches reads the link at
    // which it begins.
    let most = (2 * MANY + 64) as u64;
    for first in (0..MANY).step_by(64) {
        let read = treat(first..first + 64);
        assert!(read <= most, "{read} links for 64 buckets from {first}");
    }
}

/// Regression: the place of each anchor was searched for from the beginning of its ring. A chunk of
/// 64 anchors, in the middle of somebody's request, read a long ring 64 times.
#[test]
fn new_anchors_are_put_into_a_long_ring_by_reading_it_once_a_chunk() {
    let map = with_many_keys(1);
    map.begin_change(MANY).expect("memory");
    let guard = reclaim::pin();
    let mut rehash = map.core.rehash.try_lock().expect("one thread");
    let Rehash::Split { new, .. } = *rehash else {
        panic!("a change begins with the split");
    };
    // SAFETY: the table is the lock's until it is published.
    let table = unsafe { new.as_ref() };
    assert_a_chunk_reads_a_ring_once(|buckets| map.core.split_into(table, buckets, &guard));
    *rehash = Rehash::Split { new, done: MANY };
    drop((rehash, guard));
    settle(&map);
    map.check();
}

/// Regression: as for new anchors. Shrinking a table of a million buckets, with as many items, to
/// 64 buckets took eight billion steps.
#[test]
fn old_anchors_are_taken_out_of_a_long_ring_by_reading_it_once_a_chunk() {
    let map = with_many_keys(MANY);
    map.begin_change(1).expect("memory");
    // Other tests' guards hold up the epochs.
    while stage(&map) != "unlink" {
        map.core.work(&reclaim::pin());
        std::thread::yield_now();
    }
    let guard = reclaim::pin();
    let mut rehash = map.core.rehash.try_lock().expect("one thread");
    let Rehash::Unlink { old, .. } = *rehash else {
        panic!("the stage was looked at");
    };
    // SAFETY: not retired before the change is over.
    let table = unsafe { old.as_ref() };
    assert_a_chunk_reads_a_ring_once(|buckets| map.core.unlink_all(table, buckets, &guard));
    *rehash = Rehash::Unlink { old, done: MANY };
    drop((rehash, guard));
    settle(&map);
    map.check();
}

#[test]
fn a_map_may_be_dropped_in_every_stage() {
    let living = Living::default();
    for steps in 0..8 {
        for to in [128, 1] {
            let map = filled(4, |i| living.value(i));
            for i in 0..64 {
                assert!(map.point_at(key(i)));
            }
            map.begin_change(to).expect("memory");
            for _ in 0..steps {
                map.core.work(&reclaim::pin());
            }
            for i in 0..40 {
                map.pin().remove(&key(i));
            }
        }
    }
    while living.count() > 0 {
        reclaim::pin().flush();
        std::thread::yield_now();
    }
}

#[test]
fn a_table_grows_by_what_accesses_cost() {
    let options = Options::default()
        .buckets(1)
        .period(1)
        .window(64)
        .grow_above(2.0);
    let map: Ring = HotRing::with_options_and_hasher(options, Plain).expect("a table");
    let items = if cfg!(miri) { 64 } else { 4096 };
    // How many rounds a change takes depends on when the epochs pass, which other tests hold up.
    for round in 0..2000 {
        for i in 0..items {
            map.pin().insert(key(i), round);
        }
        if map.buckets() as u64 >= items / 8 {
            break;
        }
        std::thread::yield_now();
    }
    for _ in 0..4 * items {
        map.pin().get(&key(1));
    }
    while !map.settle() {
        std::thread::yield_now();
    }
    let buckets = map.buckets() as u64;
    assert!(
        (items / 8..=2 * items).contains(&buckets),
        "{buckets} buckets"
    );
    if !cfg!(miri) {
        assert!(
            map.mean_visits() > 0.5 && map.mean_visits() < 4.0,
            "{}",
            map.mean_visits()
        );
    }
    map.check();
}

/// Regression: a table that had fewer than two buckets an item was doubled. If the number of items
/// is no power of two, it then had up to four buckets an item, and two were promised.
#[test]
fn keys_of_one_hash_do_not_make_it_grow_without_bound() {
    let options = Options::default()
        .buckets(1)
        .period(1)
        .window(16)
        .grow_above(1.0);
    for keys in [32, 33, 63] {
        let map: HotRing<String, u64, SameHash> =
            HotRing::with_options_and_hasher(options, SameHash).expect("a table");
        for round in 0..20 {
            for i in 0..keys {
                map.pin().insert(i.to_string(), round);
            }
            while !map.settle() {
                std::thread::yield_now();
            }
        }
        let buckets = map.buckets();
        assert!(buckets <= 2 * keys, "{buckets} buckets for {keys} keys");
        assert_eq!(map.len(), keys);
        map.check();
    }
}

#[derive(Debug)]
pub(super) struct SameHash;

impl std::hash::BuildHasher for SameHash {
    type Hasher = Same;

    fn build_hasher(&self) -> Same {
        Same
    }
}

#[derive(Debug)]
pub(super) struct Same;

impl std::hash::Hasher for Same {
    fn finish(&self) -> u64 {
        0x1234_5678_9abc_def0
    }

    fn write(&mut self, _: &[u8]) {}
}
