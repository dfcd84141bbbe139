//! The two limits, the two thresholds, and how an eviction sets them (HotRAP, §3.2 and
//! Algorithm 1 in §3.7).

use super::histogram::Bin;
use super::sizes::Sizes;
use super::version::Version;

/// What is tracked and what is hot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limits {
    /// Most bytes of hot records, in HotRAP size.
    pub(super) hot_set: u64,
    /// Most bytes of access records.
    pub(super) physical: u64,
    /// The rank from which on a record is hot.
    pub(super) hot_threshold: f64,
    /// The rank below which the last eviction forgot records.
    pub(super) physical_threshold: f64,
    /// Evictions ever.
    pub(super) generation: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            hot_set: u64::MAX,
            physical: u64::MAX,
            hot_threshold: f64::NEG_INFINITY,
            physical_threshold: f64::NEG_INFINITY,
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

    /// Limits that were kept over a restart, which other options may have come with.
    pub(super) fn reopened(self, sizes: &Sizes) -> Self {
        match self.generation {
            0 => Self::initial(sizes),
            _ => Self {
                hot_set: self.hot_set.clamp(sizes.hot_set_min, sizes.hot_set_max),
                physical: self.physical.max(sizes.physical_min),
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
    /// Whether records that are not stable go first, and the limits follow what is left.
    pub(super) auto_tuning: bool,
    /// The counters' epoch.
    pub(super) epoch: u64,
}

impl EvictionRule {
    /// Whether a record that ceases to be stable in that epoch is evicted whatever its score.
    pub(super) fn is_unstable(&self, stable_before: u64) -> bool {
        self.auto_tuning && stable_before <= self.epoch
    }

    /// The thresholds that leave 1−β of the limits. Those records go first that are not stable;
    /// if that is not enough, those that score lowest.
    pub(super) fn thresholds(&self, version: &Version, hot_set: u64, physical: u64) -> (f64, f64) {
        // What also lies lower counts once. Physical sizes shrink with it.
        let lowest = version.lowest_run().iter();
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
        let mut bins: Vec<Bin> = lowest.copied().chain(above).collect();
        bins.retain(|bin| !self.is_unstable(bin.stable_before));
        bins.sort_by(|a, b| b.rank.total_cmp(&a.rank));
        let left = |limit: u64| (limit as f64 * (1.0 - self.share)) as u64;
        let physical = threshold(&bins, left(physical), |bin| bin.physical);
        let hot = threshold(&bins, left(hot_set), |bin| bin.hot_rap);
        (hot.max(physical), physical)
    }

    /// The limits after an eviction that left the tables of `version`. `ratio` is the mean of
    /// physical by HotRAP size before it.
    pub(super) fn limits_after(&self, version: &Version, ratio: f64, sizes: &Sizes) -> Limits {
        if !self.auto_tuning {
            return version.limits;
        }
        let bins = version.tables().flat_map(|t| &t.histogram.bins);
        let stable = bins.filter(|bin| !self.is_unstable(bin.stable_before));
        let (hot_rap, physical) = stable.fold((0, 0), |(hot_rap, physical), bin| {
            (hot_rap + bin.hot_rap, physical + bin.physical)
        });
        let most = (hot_rap + sizes.unstable).min(sizes.hot_set_max);
        let unstable = (ratio * sizes.unstable as f64) as u64;
        Limits {
            hot_set: most.max(sizes.hot_set_min),
            physical: (physical + unstable).max(sizes.physical_min),
            ..version.limits
        }
    }
}

/// The rank above which records of `target` bytes lie; `bins` begin with the highest.
fn threshold(bins: &[Bin], target: u64, size: impl Fn(&Bin) -> u64) -> f64 {
    let mut left = target;
    let mut above = None;
    for bin in bins {
        match left.checked_sub(size(bin)) {
            Some(rest) => left = rest,
            None => return bin.rank.midpoint(above.unwrap_or(bin.rank + 1.0)),
        }
        above = Some(bin.rank);
    }
    f64::NEG_INFINITY
}
