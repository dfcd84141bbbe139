//! A map ends while something that another map has retired panics. This is a process of its own:
//! another test's thread would free what one thread retires.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use hotring::HotRing;

struct Value {
    panics: bool,
}

impl Drop for Value {
    fn drop(&mut self) {
        assert!(!self.panics, "a destructor that panics");
    }
}

/// Values that live.
static LIVING: AtomicUsize = AtomicUsize::new(0);

struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        LIVING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Regression: the end of a map takes a guard, and so may free what another map has retired. When a
/// destructor panicked there, nothing of the map that ended was freed.
#[test]
fn the_end_of_a_map_leaks_nothing_for_another_ones_destructor() {
    let mut panics = 0;
    for before in 0..64 {
        let ended = std::thread::spawn(move || {
            let map: HotRing<u64, Counted> = HotRing::new();
            for key in 0..100 {
                LIVING.fetch_add(1, Ordering::Relaxed);
                map.pin().insert(key, Counted);
            }
            let other: HotRing<u64, Value> = HotRing::new();
            let ring = other.pin();
            for key in 0..200 {
                let panics = key == before;
                ring.insert(key, Value { panics });
                ring.remove(&key);
            }
            drop(ring);
            let panicked = catch_unwind(AssertUnwindSafe(|| drop(map))).is_err();
            let _ = catch_unwind(AssertUnwindSafe(|| drop(other)));
            panicked
        });
        panics += usize::from(ended.join().unwrap());
        assert_eq!(LIVING.load(Ordering::Relaxed), 0, "the {before}. of 200");
    }
    assert!(panics > 0, "no destructor ran at the end of a map");
}
