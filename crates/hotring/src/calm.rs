//! How long a ring is left alone after a round of sampling that gained little.
//!
//! A round costs three walks round the ring and a write to every item. When accesses are even, or
//! when the head is already right and the rest of the accesses go elsewhere, one round after the
//! other would be begun for nothing. So after a round that gained little, only half as many of the
//! requests that could begin a round do so as before. After a round that gained much, four times as
//! many do. Half of the cost is much: the samples of a ring with even accesses are few, so some
//! place always looks better than the present one.
//!
//! The thread's count of periods decides which requests begin a round, not a count in the bucket.
//! So a request that begins nothing writes nothing. If it wrote, its bucket's cache line would have
//! to go back to memory.

use crate::period::Ended;

/// At the least, one in two to this power of the requests that could begin a round does so. On
/// average, a hotspot that comes to a calm ring then waits for so many periods whose last request
/// goes to this ring and is not served by its head. With the default period that is some 600
/// accesses.
const MOST: u8 = 7;

/// Where a ring begins, whose accesses nobody knows yet. Most rings are cold, and would be sampled
/// for nothing. A hot one has its first round some 160 accesses later. Until then its head moves at
/// random, which takes no walk.
const FIRST: u8 = 5;

/// See the module. It is part of the head, see [`crate::head`], so a ring without one has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Calm {
    /// At most 7.
    pub(crate) level: u8,
    /// Whether no round has ended yet.
    pub(crate) is_unsampled: bool,
}

impl Calm {
    /// Before a ring's first round.
    pub(crate) const AT_FIRST: Self = Self {
        level: FIRST,
        is_unsampled: true,
    };

    /// Whether the request that ends a thread's `period` begins no round.
    pub(crate) fn passes(self, period: Ended) -> bool {
        !period.is_one_of(self.level.into())
    }

    /// After a round that gained `gain` out of the `cost` that its samples had before.
    #[must_use]
    pub(crate) fn gained(self, gain: i128, cost: i128) -> Self {
        let level = if gain.saturating_mul(2) >= cost {
            self.level.saturating_sub(2)
        } else {
            MOST.min(self.level + 1)
        };
        Self {
            level,
            is_unsampled: false,
        }
    }
}

#[cfg(all(test, not(any(hotring_loom, hotring_shuttle))))]
mod tests {
    use super::*;

    /// How many of 512 periods, evenly spread, begin a round.
    fn begun(calm: Calm) -> usize {
        (0..512)
            .filter(|period| !calm.passes(Ended(period << 23)))
            .count()
    }

    #[test]
    fn rounds_that_gain_little_are_begun_by_half_as_many_requests_each_time_down_to_a_fewest() {
        let mut calm = Calm::AT_FIRST;
        assert_eq!(begun(calm), 16, "who knows yet");
        let begun_after = [1, 2, 3, 4].map(|_| {
            calm = calm.gained(49, 100);
            begun(calm)
        });
        assert_eq!(begun_after, [8, 4, 4, 4]);
    }

    #[test]
    fn rounds_that_gain_much_are_begun_by_four_times_as_many_requests_up_to_all() {
        let mut calm = Calm::AT_FIRST;
        let begun_after = [1, 2, 3, 4].map(|_| {
            calm = calm.gained(50, 100);
            begun(calm)
        });
        assert_eq!(begun_after, [64, 256, 512, 512]);
        assert_eq!(begun(calm.gained(0, 100)), 256);
    }

    #[test]
    fn the_first_round_that_ends_makes_a_ring_sampled_whatever_it_gained() {
        for gain in [0, 100] {
            let calm = Calm::AT_FIRST;
            assert!(calm.is_unsampled);
            assert!(!calm.gained(gain, 100).is_unsampled, "{gain}");
        }
    }
}
