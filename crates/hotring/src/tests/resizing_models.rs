//! Larger models under many seeded schedules: tables that change size while everything goes on.
//!
//! Each thread owns some keys, and expects of them what one thread may expect; it reads the others'
//! too. Reclamation is the checked one, as in [`super::models`].

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

use super::{Counted, Living, Plain, Ring};
use crate::reclaim;
use crate::{CompareAndSwap, HotRing, Movement, Options};

const THREADS: u64 = 3;

/// Keys of both halves of the range of hashes, some of equal order, a third of them this thread's.
fn key(owner: u64, i: u64) -> u64 {
    (i << 62) | (owner << 1) | (i >> 1)
}

fn map(buckets: usize, movement: Movement) -> Arc<Ring<Counted>> {
    let options = Options::default()
        .buckets(buckets)
        .movement(movement)
        .period(1)
        .grow_above(f64::INFINITY);
    Arc::new(HotRing::with_options_and_hasher(options, Plain).expect("a table"))
}

/// Random operations on the thread's own keys, checked against what they have to be.
fn work(map: &Ring<Counted>, living: &Living, owner: u64, operations: u64) {
    let mut own: [Option<u64>; 4] = [None; 4];
    for operation in 0..operations {
        let i = thread_rng().gen_range(0..4);
        let key = key(owner, i);
        let value = owner << 32 | operation;
        let now = &mut own[i as usize];
        let mut ring = map.pin();
        match thread_rng().gen_range(0..8) {
            0 | 1 => {
                let old = ring.insert(key, living.value(value)).map(|old| old.value);
                assert_eq!(old, now.replace(value), "insert");
            }
            2 => {
                assert_eq!(ring.remove(&key).map(|old| old.value), now.take(), "remove");
            }
            3 => {
                let swapped = ring.update_if(key, living.value(value), |old| old.value % 2 == 0);
                match (swapped, *now) {
                    (CompareAndSwap::Swapped(old), Some(was)) if was % 2 == 0 => {
                        assert_eq!(old.value, was);
                        *now = Some(value);
                    }
                    (CompareAndSwap::Differs(old), Some(was)) if was % 2 == 1 => {
                        assert_eq!(old.value, was);
                    }
                    (CompareAndSwap::Absent, None) => {}
                    (other, was) => panic!("{other:?} of {was:?}"),
                }
            }
            4 => {
                let mine: Vec<_> = ring
                    .iter()
                    .filter(|(key, _)| (**key >> 1) & 3 == owner)
                    .map(|(_, counted)| counted.value)
                    .collect();
                let expected = own.iter().flatten().count();
                assert_eq!(mine.len(), expected, "own entries of a walk");
            }
            5 => {
                let other = self::key((owner + 1) % THREADS, i);
                if let Some(counted) = ring.get(&other) {
                    assert_eq!(
                        counted.value >> 32,
                        (owner + 1) % THREADS,
                        "another's value"
                    );
                }
                ring.repin();
            }
            _ => assert_eq!(ring.get(&key).map(|counted| counted.value), *now, "get"),
        }
    }
}

/// Runs random operations beside a thread that changes the table's size to each of `sizes`.
fn resize_under_work(sizes: &'static [usize], movement: Movement) {
    // Proof that the runs get where they should: changes that were begun and ended under the work.
    let ended = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ended);
    shuttle::check_random(
        move || {
            reclaim::begin();
            let living = Living::default();
            {
                let map = map(2, movement);
                let mut threads: Vec<_> = (0..THREADS)
                    .map(|owner| {
                        let (map, living) = (Arc::clone(&map), living.clone());
                        thread::spawn(move || work(&map, &living, owner, 12))
                    })
                    .collect();
                let (resizer, count) = (Arc::clone(&map), Arc::clone(&count));
                threads.push(thread::spawn(move || {
                    for &size in sizes {
                        if resizer.begin_change(size).is_ok() {
                            for _ in 0..5 {
                                resizer.core.work(&reclaim::pin());
                                thread::yield_now();
                            }
                        }
                        if resizer.buckets() == size && resizer.settle() {
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }));
                for thread in threads {
                    thread.join().expect("the thread's own checks");
                }
                assert!(map.settle(), "no handle is left");
                map.check();
            }
            reclaim::end();
            assert_eq!(living.count(), 0, "values that were never dropped");
        },
        1500,
    );
    let ended = ended.load(Ordering::Relaxed);
    assert!(ended > 1000, "{ended} changes of size");
}

#[test]
fn tables_grow_and_shrink_under_work_with_sampling() {
    resize_under_work(&[4, 1, 8, 2], Movement::Sampling);
}

#[test]
fn tables_grow_and_shrink_under_work_with_random_movement() {
    resize_under_work(&[1, 8, 2, 4], Movement::Random);
}
