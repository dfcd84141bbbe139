//! The two limits, the two thresholds, and how an eviction sets them (HotRAP, §3.2 and
//! Algorithm 1 in §3.7).

use super::histogram::Bin;
use super::reuse::{CLASSES, Reuse, UNDIVIDED, class};
use super::sizes::Sizes;
use super::version::Version;

/// What is tracked and what is hot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limits {
    /// Most bytes of hot records, in HotRAP size.
    pub(super) hot_set: u64,
    /// Most bytes of access records.
    pub(super) physical: u64,
    /// The ranks from which on records are hot.
    pub(super) hot: Cut,
    /// The rank below which the last eviction forgot records.
    pub(super) evicted: f64,
    /// Evictions ever.
    pub(super) generation: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            hot_set: u64::MAX,
            physical: u64::MAX,
            hot: Cut::NONE,
            evicted: f64::NEG_INFINITY,
            generation: 0,
        }
    }
}

impl Limits {
    /// Before the first eviction: everything that is tracked is hot.
    pub(super) fn initial(sizes: &Sizes) -> Self {
        Self {
            hot_set: sizes.hot_set_initial,
            physical: sizes.physical_initial,
            ..Self::default()
        }
    }

    /// Limits that were kept over a restart, since which the options may have changed.
    pub(super) fn reopened(self, sizes: &Sizes) -> Self {
        match self.generation {
            0 => Self::initial(sizes),
            _ => Self {
                hot_set: self.hot_set.clamp(sizes.hot_set_min, sizes.hot_set_max),
                physical: self.physical.clamp(sizes.physical_min, sizes.physical_max),
                ..self
            },
        }
    }
}

/// What an eviction goes by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct EvictionRule {
    /// β: the share that it takes.
    pub(super) share: f64,
    /// Whether records go class by class, and the limits follow what is left.
    pub(super) auto_tuning: bool,
    /// The counters' epoch.
    pub(super) epoch: u64,
    /// What the classes are worth.
    pub(super) reuse: Reuse,
    /// What the hot set and the access records are limited to so far, in bytes.
    pub(super) limits: (u64, u64),
    /// What the hot set is limited to from outside, in bytes.
    pub(super) room: u64,
    /// Ranks below which records go.
    pub(super) cut: Cut,
}

/// A rank for each class of records, as of an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cut {
    pub(super) epoch: u64,
    pub(super) ranks: [f64; CLASSES],
}

impl Cut {
    /// A cut below every record.
    pub(super) const NONE: Cut = Cut {
        epoch: 0,
        ranks: [f64::NEG_INFINITY; CLASSES],
    };

    /// Whether a record that ceases to be stable in that epoch reaches the rank of its class.
    pub(super) fn admits(&self, stable_before: u64, rank: f64) -> bool {
        rank >= self.ranks[class(stable_before, self.epoch)]
    }

    /// The rank in the one class of `bins` that the cut goes through; below every record if there
    /// is none.
    pub(super) fn boundary<'a>(&self, bins: impl Iterator<Item = &'a Bin>) -> f64 {
        // A class that lies below the cut as a whole has a finite rank, too, but none of its
        // records reaches it.
        let reached = bins
            .map(|bin| (bin.rank, self.ranks[class(bin.stable_before, self.epoch)]))
            .filter(|(rank, least)| least.is_finite() && rank >= least);
        let ranks = reached.map(|(_, least)| least);
        ranks.reduce(f64::min).unwrap_or(f64::NEG_INFINITY)
    }

    /// In each class the higher of the ranks of two cuts of one epoch.
    fn higher(&self, other: &Cut) -> Cut {
        Cut {
            epoch: self.epoch,
            ranks: std::array::from_fn(|class| self.ranks[class].max(other.ranks[class])),
        }
    }

    /// The cut above which records of `target` bytes lie, class by class in `order`.
    fn through(
        classes: &[Vec<Bin>; CLASSES],
        order: [usize; CLASSES],
        epoch: u64,
        mut target: u64,
        size: fn(&Bin) -> u64,
    ) -> Self {
        let mut cut = Self {
            epoch,
            ..Self::NONE
        };
        for class in order {
            (cut.ranks[class], target) = threshold(&classes[class], target, size);
        }
        // Records that are read after a new epoch has begun are of a class that is not there yet.
        // They are judged like the best class, as a record that nobody reads stays in a class that
        // is there.
        let has_records = |class: &usize| !classes[*class].is_empty();
        let best = order.into_iter().find(has_records);
        let top = (0..CLASSES).rfind(has_records);
        if let Some((best, top)) = best.zip(top) {
            let rank = cut.ranks[best];
            cut.ranks[top + 1..].fill(rank);
        }
        cut
    }
}

impl EvictionRule {
    /// Without auto-tuning all records are of one class.
    fn class_epoch(&self) -> u64 {
        match self.auto_tuning {
            true => self.epoch,
            false => UNDIVIDED,
        }
    }

    /// Whether the records of `bin` are of a class that is worth the fast tier.
    pub(super) fn is_worth(&self, bin: &Bin) -> bool {
        self.reuse.is_worth(class(bin.stable_before, self.epoch))
    }

    /// Whether a record goes.
    pub(super) fn evicts(&self, stable_before: u64, rank: f64) -> bool {
        !self.cut.admits(stable_before, rank)
    }

    /// Decides which records of `version` go, so that 1−β of the limits is left: class by class,
    /// beginning with the one that is read least, and in each class those that score lowest.
    /// Returns which records are hot.
    ///
    /// In Algorithm 1 every record that is not stable goes, then stable ones by their score. Here
    /// the order of classes is measured, and as much of each class stays as there is room for. Else
    /// a hotspot whose keys were each read once so far would be forgotten, and learnt anew D_hs at
    /// a time.
    pub(super) fn decide(&mut self, version: &Version, sizes: &Sizes) -> Cut {
        // Records that lie lower, too, count once. Physical sizes shrink with that.
        let lowest = version.lowest_run();
        let share = version.new_share();
        let above = version
            .above_lowest()
            .flat_map(|table| &table.histogram.bins);
        let above = above.map(|bin| Bin {
            hot_rap: (bin.hot_rap as f64 * share) as u64,
            physical: (bin.physical as f64 * share) as u64,
            ..*bin
        });
        let lowest = lowest.flat_map(|table| &table.histogram.bins);
        let epoch = self.class_epoch();
        let mut classes: [Vec<Bin>; CLASSES] = Default::default();
        for bin in lowest.copied().chain(above) {
            classes[class(bin.stable_before, epoch)].push(bin);
        }
        for bins in &mut classes {
            bins.sort_by(|a, b| b.rank.total_cmp(&a.rank));
        }
        let worth = |class: &usize| self.reuse.is_worth(*class);
        let worth = (0..CLASSES).filter(worth).flat_map(|class| &classes[class]);
        let hot_set = self.hot_set_limit(worth.map(|bin| bin.hot_rap).sum(), sizes);
        let left = |limit: u64| (limit as f64 * (1.0 - self.share)) as u64;
        let order = self.reuse.order();
        let through = |limit, size| Cut::through(&classes, order, epoch, left(limit), size);
        let hot = through(hot_set.min(self.room), |bin| bin.hot_rap);
        let physical = through(self.limits.1, |bin| bin.physical);
        let both = hot.higher(&physical);
        self.cut = physical;
        for class in 0..CLASSES {
            // Records that are worth their place stay tracked while there is space, hot or not.
            if self.auto_tuning && !self.reuse.is_worth(class) {
                self.cut.ranks[class] = both.ranks[class];
            }
        }
        both
    }

    /// The limit that follows from `worth` bytes of records that are worth the fast tier: Algorithm
    /// 1's, once anything was measured.
    fn hot_set_limit(&self, worth: u64, sizes: &Sizes) -> u64 {
        match self.auto_tuning && self.reuse.is_measured() {
            true => (worth + sizes.unstable)
                .min(sizes.hot_set_max)
                .max(sizes.hot_set_min),
            false => self.limits.0,
        }
    }

    /// The limits after an eviction that left the tables of `version`. `ratio` is, for records that
    /// are not worth the fast tier, the physical size divided by the HotRAP size.
    pub(super) fn limits_after(&self, version: &Version, ratio: f64, sizes: &Sizes) -> Limits {
        if !self.auto_tuning {
            return version.limits;
        }
        let worth = version.bins().filter(|bin| self.is_worth(bin));
        let (hot_rap, physical) = worth.fold((0, 0), |(hot_rap, physical), bin| {
            (hot_rap + bin.hot_rap, physical + bin.physical)
        });
        let hot_set = self.hot_set_limit(hot_rap, sizes);
        // As many access records as the hot set may have beside those that are worth it.
        let others = (ratio * hot_set.saturating_sub(hot_rap) as f64) as u64;
        let physical = physical + others + sizes.unmerged;
        Limits {
            hot_set,
            physical: physical.clamp(sizes.physical_min, sizes.physical_max),
            ..version.limits
        }
    }
}

/// The rank above which records of `target` bytes lie, and what is left of `target` when all have
/// their place; `bins` begin with the highest.
fn threshold(bins: &[Bin], target: u64, size: fn(&Bin) -> u64) -> (f64, u64) {
    let mut left = target;
    let mut above = None;
    for bin in bins {
        match left.checked_sub(size(bin)) {
            Some(rest) => left = rest,
            None => return (bin.rank.midpoint(above.unwrap_or(bin.rank + 1.0)), 0),
        }
        above = Some(bin.rank);
    }
    (f64::NEG_INFINITY, left)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without auto-tuning, records that were read once were a class of their own, which went first
    /// whatever their score: other scorings were measured with another policy than theirs.
    #[test]
    fn of_one_class_the_rank_alone_decides() {
        let mut ranks = [7.0; CLASSES];
        ranks[0] = 3.0;
        let cut = Cut {
            epoch: UNDIVIDED,
            ranks,
        };
        for stable_before in [0, 1, 9] {
            assert!(cut.admits(stable_before, 3.5), "{stable_before}");
            assert!(!cut.admits(stable_before, 2.5), "{stable_before}");
        }
    }

    /// The boundary was the highest rank of all classes, even of those that lay below the cut as a
    /// whole. It was given as the score from which on records are hot, and had nothing to do with
    /// that.
    #[test]
    fn the_boundary_is_the_rank_in_the_class_that_the_cut_goes_through() {
        let bin = |class: u64, rank| Bin {
            rank,
            records: 1,
            stable_before: class - 1,
            hot_rap: 100,
            physical: 10,
        };
        let bins = [bin(4, 3.0), bin(4, 1.0), bin(3, 5.0)];
        let mut classes: [Vec<Bin>; CLASSES] = Default::default();
        (classes[4], classes[3]) = (bins[..2].to_vec(), bins[2..].to_vec());
        let boundary = |target| {
            let order = [7, 6, 5, 4, 2, 1, 0, 3];
            let cut = Cut::through(&classes, order, 0, target, |bin| bin.hot_rap);
            cut.boundary(bins.iter())
        };
        assert_eq!(boundary(150), 2.0, "through class 4");
        assert_eq!(boundary(200), f64::NEG_INFINITY, "between the two");
        assert_eq!(boundary(300), f64::NEG_INFINITY, "below both");
    }

    /// Records that are read after the eviction are stable for longer than any was. The worst
    /// class, in which a hotspot of yesterday is stable for longest, says nothing about them.
    #[test]
    fn records_that_become_stable_for_longer_are_judged_as_those_of_the_best_class() {
        let (best, worst) = (4, 6);
        let mut classes: [Vec<Bin>; CLASSES] = Default::default();
        for class in [best, worst] {
            classes[class] = vec![Bin {
                rank: 3.0,
                records: 1,
                stable_before: 0,
                hot_rap: 100,
                physical: 10,
            }];
        }
        let order = [7, best, 5, 3, 2, 1, 0, worst];
        let cut = |target| Cut::through(&classes, order, 0, target, |bin| bin.hot_rap);
        let tight = cut(150);
        assert!(!tight.admits(worst as u64 - 1, 3.0));
        assert!(tight.admits(best as u64 - 1, 3.0) && tight.admits(7, 3.0));
        assert!(
            !cut(50).admits(7, 3.0),
            "not all of the best class has room"
        );
    }
}
