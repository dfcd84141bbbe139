//! How long a ring is left alone after a round of sampling that gained little.
//!
//! A round costs three walks round the ring and a write to every item. When accesses are even, or the head is already right
//! and the rest of the accesses go elsewhere, one after the other would be begun for nothing. So after a round
//! that gained little twice as many requests that could begin one are let go by as after the one before; after one that gained
//! much, none.
//!
//! Threads may count over each other: a request more or less is let go by then.

use crate::sync::counting::{AtomicU16, Ordering};

/// The most that are let go by. A hotspot that comes to a calm ring waits for so many periods whose last request
/// goes to this ring and is not served by its head; with the default period that is some 160
/// accesses.
const MOST: u16 = 32;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Calm {
    left: AtomicU16,
    last: AtomicU16,
}

impl Calm {
    /// Whether a request that could begin a round is let go by; counts it.
    pub(crate) fn passes(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(1), Ordering::Relaxed);
        left > 0
    }

    /// Notes what a round gained, of what its samples cost before.
    pub(crate) fn gained(&self, gain: i128, cost: i128) {
        let calm = if gain.saturating_mul(4) >= cost {
            0
        } else {
            (self.last.load(Ordering::Relaxed) * 2).clamp(1, MOST)
        };
        self.last.store(calm, Ordering::Relaxed);
        self.left.store(calm, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;

    #[test]
    fn rounds_that_gain_little_come_at_doubling_distances_up_to_a_most() {
        let calm = Calm::default();
        let distance = |calm: &Calm| std::iter::from_fn(|| calm.passes().then_some(())).count();
        assert_eq!(distance(&calm), 0);
        let distances = [1, 2, 3, 4, 5, 6, 7].map(|_| {
            calm.gained(1, 5);
            distance(&calm)
        });
        assert_eq!(distances, [1, 2, 4, 8, 16, 32, 32]);
        calm.gained(1, 4);
        assert_eq!(distance(&calm), 0);
        calm.gained(0, 4);
        assert_eq!(distance(&calm), 1);
    }
}
