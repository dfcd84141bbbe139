//! Destructors that panic while a table changes its size. This is a process of its own: another
//! test's thread would free what one thread retires.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hotring::{HotRing, Options};

/// Keys that stay.
fn kept() -> std::ops::Range<u64> {
    1000..1100
}

/// The key of the value that panics.
const BOMB: u64 = 999;

struct Value {
    panics: bool,
}

impl Drop for Value {
    fn drop(&mut self) {
        assert!(!self.panics, "a destructor that panics");
    }
}

/// Grows a table while a value is due whose destructor panics. It lies behind `bags` others, each
/// of which was handed over by itself. With no bags it was not handed over at all.
fn grow_behind(bags: u64) {
    let options = Options::default().buckets(2).grow_above(f64::INFINITY);
    let map: HotRing<u64, Value> = HotRing::with_options(options).expect("a table");
    let ring = map.pin();
    for key in (0..bags).chain(kept()) {
        ring.insert(key, Value { panics: false });
    }
    ring.insert(BOMB, Value { panics: true });
    for key in 0..bags {
        assert!(ring.remove(&key).is_some());
        ring.flush();
    }
    assert!(ring.remove(&BOMB).is_some());
    if bags > 0 {
        ring.flush();
    }
    drop(ring);
    if bags > 0 {
        // One more turn of the epochs, and the growth meets what is due.
        map.pin().flush();
    }
    map.grow().expect("memory");
    let (mut panics, mut turns) = (0, 0);
    loop {
        match catch_unwind(AssertUnwindSafe(|| map.settle())) {
            Ok(true) => break,
            Ok(false) => turns += 1,
            Err(_) => panics += 1,
        }
        assert!(turns < 1000, "behind {bags}: the change does not end");
    }
    assert_eq!((panics, map.buckets()), (1, 4), "behind {bags}");
    let ring = map.pin();
    assert!(kept().all(|key| ring.contains_key(&key)), "behind {bags}");
    assert_eq!(ring.iter().count(), 100, "behind {bags}");
}

/// Regression: the new table was published, and what was retired freed, before the change noted
/// that the new table was the present one. A destructor that panicked in between left a map that
/// took its table for one not yet in use: the next step drained the table that all used, and the
/// map's end freed it twice. And where the value lay in the hands of the thread that grew the
/// table, the end of the grace period was lost with it, and the table never changed again.
#[test]
fn a_destructor_that_panics_leaves_the_growing_table_whole() {
    // The epochs free eight bags at a time, so each step meets one of these.
    for bags in 0..=24 {
        // A thread of its own begins at the same place in the epochs' rounds.
        std::thread::spawn(move || grow_behind(bags))
            .join()
            .unwrap();
    }
}
