//! Where a ring's head would have served a round of samples best.
//!
//! The paper's formula 6 weighs a head at item `t` of `k` by the walk round the ring,
//! `W_t = Σ n_i/N · ((i − t) mod k)`, with `N·W_{t+1} = N·W_t − N + k·n_t`. Here a search for an
//! item before the head does not walk round, it jumps from the head to the anchor. With the
//! items numbered in the order of the ring, `n_i` samples of item `i`, and the head itself visited first,
//!
//! ```text
//! C(t) = Σ_{i ≥ t} n_i · (i − t + 1)  +  Σ_{i < t} n_i · (i + 2)
//! ```
//!
//! items are visited. With `N = Σ n_i` and `P_t = Σ_{i < t} n_i` this is `C(t) = C(0) + G(t)`,
//! where
//!
//! ```text
//! G(t) = (t + 1) · P_t − t · N
//! ```
//!
//! So one walk that sums `N` and a second that keeps `P_t` find the best place, in O(k).
//! `G(0) = 0` is also the cost without a head, when every search begins at the anchor.

/// The second walk: call [`Income::next`] for the items in the order of the ring.
#[derive(Debug)]
pub(crate) struct Income {
    total: i128,
    before: i128,
    index: i128,
}

impl Income {
    /// `total`: the samples of all items together.
    pub(crate) fn new(total: u64) -> Self {
        Self {
            total: total.into(),
            before: 0,
            index: 0,
        }
    }

    /// `G` of the next item, which was sampled `count` times. Less is better. The items may be
    /// other ones than those of the first walk: then the place is no longer the best, but a place.
    pub(crate) fn next(&mut self, count: u32) -> i128 {
        let gain = (self.index + 1) * self.before - self.index * self.total;
        self.before += i128::from(count);
        self.index += 1;
        gain
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The items visited, by walking: from the head on, or from the head to the anchor.
    fn visited(head: usize, item: usize) -> i128 {
        let mut visits = 1;
        let mut at = head;
        if item < head {
            visits += 1;
            at = 0;
        }
        while at != item {
            visits += 1;
            at += 1;
        }
        visits
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 8 } else { 256 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn agrees_with_walking_every_sample(counts in prop::collection::vec(0u32..50, 1..20)) {
            let total = counts.iter().map(|&n| u64::from(n)).sum();
            let walked = |head| -> i128 {
                counts.iter().enumerate().map(|(i, &n)| i128::from(n) * visited(head, i)).sum()
            };
            let mut income = Income::new(total);
            for (head, &n) in counts.iter().enumerate() {
                prop_assert_eq!(income.next(n), walked(head) - walked(0), "head {}", head);
            }
        }
    }
}
