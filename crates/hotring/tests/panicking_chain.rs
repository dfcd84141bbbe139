//! A destructor retires something that panics, while a table changes its size. This is a process of
//! its own: another test's thread would free what one thread retires.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use hotring::{HotRing, Options};

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

/// A map whose values panic when they are freed.
static BOMBS: LazyLock<HotRing<u64, Value>> = LazyLock::new(HotRing::new);

/// One that retires such a value when it is freed itself.
struct Fuse {
    burns: bool,
}

impl Drop for Fuse {
    fn drop(&mut self) {
        if self.burns {
            let ring = BOMBS.pin();
            ring.insert(BOMB, Value { panics: true });
            assert!(ring.remove(&BOMB).is_some());
        }
    }
}

/// Regression: a growth handed over what its thread had retired before, and so ran a destructor.
/// What that retired lay before the end of the grace period in the same bag. When it was freed it
/// panicked, the end was lost with it, and the table never changed again.
#[test]
fn what_a_destructor_retires_does_not_end_growth() {
    for (bags, turns) in (0..=24).flat_map(|bags| (0..6).map(move |turns| (bags, turns))) {
        let grown = std::thread::spawn(move || {
            let options = Options::default().buckets(2).grow_above(f64::INFINITY);
            let map: HotRing<u64, Fuse> = HotRing::with_options(options).expect("a table");
            let ring = map.pin();
            for key in 0..=bags {
                let burns = key == bags;
                ring.insert(key, Fuse { burns });
            }
            for key in 0..=bags {
                assert!(ring.remove(&key).is_some());
                if bags > 0 {
                    ring.flush();
                }
            }
            drop(ring);
            for _ in 0..turns {
                let _ = catch_unwind(AssertUnwindSafe(|| map.pin().flush()));
            }
            while catch_unwind(AssertUnwindSafe(|| map.grow().expect("memory"))).is_err() {}
            for turn in 0.. {
                let settled = catch_unwind(AssertUnwindSafe(|| map.settle()));
                if settled.is_ok_and(|is_over| is_over) {
                    break;
                }
                assert!(
                    turn < 1000,
                    "behind {bags}, {turns}: the change does not end"
                );
            }
            // What is left must not meet the next map.
            for _ in 0..300 {
                let _ = catch_unwind(AssertUnwindSafe(|| BOMBS.pin().flush()));
            }
            map.buckets()
        });
        assert_eq!(grown.join().unwrap(), 4, "behind {bags}, {turns}");
    }
}
