//! How long a ring is left alone after a round of sampling that gained little.
//!
//! A round costs three walks round the ring and a write to every item. When accesses are even, or the head is already right
//! and the rest of the accesses go elsewhere, one after the other would be begun for nothing. So after a round
//! that gained little, half as many of the requests that could begin one do so as after the one before; after one that
//! gained much, all.
//!
//! Which ones do is decided by the thread's count of periods, not by a count in the bucket: a request that begins nothing
//! writes nothing. Its bucket's cache line would have to go back to memory for that.

use crate::sync::counting::{AtomicU8, Ordering};

/// The fewest that begin one are one of two to this power. A hotspot that comes to a calm ring waits for so many periods whose
/// last request goes to this ring and is not served by its head, on average; with the default
/// period that is some 600 accesses.
const MOST: u8 = 7;

/// Where a ring begins, whose accesses nobody knows yet: most rings are cold, and would be sampled for nothing; a hot one
/// has its first round some forty accesses later.
const FIRST: u8 = 3;

/// See the module.
#[derive(Debug)]
pub(crate) struct Calm(AtomicU8);

impl Default for Calm {
    fn default() -> Self {
        Self(AtomicU8::new(FIRST))
    }
}

impl Calm {
    /// Whether the request that ends a thread's `period`, of which this is the number, begins no round.
    pub(crate) fn passes(&self, period: u32) -> bool {
        let level = self.0.load(Ordering::Relaxed);
        period & ((1 << level) - 1) != 0
    }

    /// Notes what a round gained, of what its samples cost before.
    pub(crate) fn gained(&self, gain: i128, cost: i128) {
        let level = if gain.saturating_mul(4) >= cost {
            0
        } else {
            MOST.min(self.0.load(Ordering::Relaxed) + 1)
        };
        self.0.store(level, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;

    #[test]
    fn rounds_that_gain_little_are_begun_by_half_as_many_requests_each_time_down_to_a_fewest() {
        let calm = Calm::default();
        let begun = |calm: &Calm| (1..=512).filter(|period| !calm.passes(*period)).count();
        assert_eq!(begun(&calm), 64, "who knows yet");
        calm.gained(1, 4);
        assert_eq!(begun(&calm), 512);
        let begun_after = [1, 2, 3, 4, 5, 6, 7, 8].map(|_| {
            calm.gained(1, 5);
            begun(&calm)
        });
        assert_eq!(begun_after, [256, 128, 64, 32, 16, 8, 4, 4]);
        calm.gained(1, 4);
        assert_eq!(begun(&calm), 512);
        calm.gained(0, 4);
        assert_eq!(begun(&calm), 256);
    }
}
