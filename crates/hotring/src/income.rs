//! Where a ring's head would have served a round of samples best.
//!
//! The paper's formula 6 weighs a head at item `t` of `k` by the walk round the ring,
//! `W_t = Σ n_i/N · ((i − t) mod k)`, with `N·W_{t+1} = N·W_t − N + k·n_t`. Here a search for an
//! item before the head does not walk round but begins at the anchor. If the item is in an earlier
//! *part* of the bucket, see [`crate::head`], the head is not looked at. If it is in the same part,
//! the head is read first, in vain. With the items numbered in the order of the ring, and `n_i`
//! samples of item `i`, a head at `t` makes searches visit
//!
//! ```text
//! C(t) = Σ_{i ≥ t} n_i · (i − t + 1)  +  Σ_{i < t} n_i · (i + 1)  +  S_t
//! ```
//!
//! items, where `S_t` are the samples of the items before `t` in its part. With `N = Σ n_i` and
//! `P_t = Σ_{i < t} n_i` this is `C(t) = C(0) + G(t)`, where
//!
//! ```text
//! G(t) = S_t − t · (N − P_t)
//! ```
//!
//! So one walk that sums `N` and a second that keeps `P_t` and `S_t` find the best place, in O(k).
//! `G(0) = 0` is also the cost without a head, when every search begins at the anchor. A ring has
//! two places that cost one visit: its first item, and the head.

/// The second walk: call [`Income::next`] for the items in the order of the ring.
#[derive(Debug)]
pub(crate) struct Income {
    total: i128,
    before: i128,
    index: i128,
    /// The part of the last item, and the samples of that part so far.
    part: usize,
    in_part: i128,
}

impl Income {
    /// `total`: the samples of all items together.
    pub(crate) fn new(total: u64) -> Self {
        Self {
            total: total.into(),
            before: 0,
            index: 0,
            part: 0,
            in_part: 0,
        }
    }

    /// `G` of the next item, which is in this part and was sampled `count` times. Less is better.
    /// The items may differ from those of the first walk: then the place that is found is no longer
    /// the best one, but still a place.
    pub(crate) fn next(&mut self, part: usize, count: u32) -> i128 {
        if part != self.part {
            (self.part, self.in_part) = (part, 0);
        }
        let gain = self.in_part - self.index * (self.total - self.before);
        self.before += i128::from(count);
        self.in_part += i128::from(count);
        self.index += 1;
        gain
    }
}

#[cfg(all(test, not(any(hotring_loom, hotring_shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The items visited, counted by walking: from the head on, or from the anchor. In the latter
    /// case the head counts too, if the search has to read it to see that it is too far.
    fn visited(parts: &[usize], head: usize, item: usize) -> i128 {
        if item >= head {
            (head..=item).count() as i128
        } else {
            let vain = parts[item] == parts[head];
            (0..=item).count() as i128 + i128::from(vain)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 8 } else { 256 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn agrees_with_walking_every_sample(
            mut items in prop::collection::vec((0usize..8, 0u32..50), 1..20),
        ) {
            items.sort();
            let (parts, counts): (Vec<usize>, Vec<u32>) = items.into_iter().unzip();
            let total = counts.iter().map(|&n| u64::from(n)).sum();
            let walked = |head| -> i128 {
                counts
                    .iter()
                    .enumerate()
                    .map(|(i, &n)| i128::from(n) * visited(&parts, head, i))
                    .sum()
            };
            let none: i128 = (1..).zip(&counts).map(|(i, &n)| i * i128::from(n)).sum();
            let mut income = Income::new(total);
            for (head, &n) in counts.iter().enumerate() {
                prop_assert_eq!(income.next(parts[head], n), walked(head) - none, "head {}", head);
            }
        }
    }
}
