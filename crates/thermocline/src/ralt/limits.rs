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

/// Epochs of counters, from an empty RALT on, in which the hot set's limit does not fall. In one
/// epoch as many bytes are accessed as the largest hot set has: a hotspot of that size needs
/// about four until nearly all of its records were read twice.
const LEARNING_EPOCHS: u64 = 4;

/// What an eviction goes by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct EvictionRule {
    /// β: the share that it takes.
    pub(super) share: f64,
    /// Whether records that are not stable go first, and the limits follow what is left.
    pub(super) auto_tuning: bool,
    /// The counters' epoch.
    pub(super) epoch: u64,
    /// What the hot set and the access records were limited to, in bytes.
    pub(super) limits: (u64, u64),
    /// Ranks below which records go.
    pub(super) cut: Cut,
}

/// Ranks below which records go: those that are stable, and those that are not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cut {
    pub(super) stable: f64,
    pub(super) unstable: f64,
}

impl Cut {
    /// Nothing goes.
    pub(super) const NONE: Cut = Cut {
        stable: f64::NEG_INFINITY,
        unstable: f64::NEG_INFINITY,
    };
}

impl EvictionRule {
    /// Whether a record that ceases to be stable in that epoch does not count as stable.
    fn is_unstable(&self, stable_before: u64) -> bool {
        self.auto_tuning && stable_before <= self.epoch
    }

    /// Whether a record goes.
    pub(super) fn evicts(&self, stable_before: u64, rank: f64) -> bool {
        match self.is_unstable(stable_before) {
            true => rank < self.cut.unstable,
            false => rank < self.cut.stable,
        }
    }

    /// Decides what goes of `version`, so that 1−β of the limits is left: records that are not stable
    /// first, those that score lowest first among them; if they are not enough, stable ones
    /// that score lowest. The rank from which on records are hot comes back.
    ///
    /// Algorithm 1 has every record go that is not stable. Here as many stay as there is room for: a
    /// hotspot of which each key was read once so far would else be forgotten, and be learnt
    /// anew D_hs at a time.
    pub(super) fn decide(&mut self, version: &Version, sizes: &Sizes) -> f64 {
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
        bins.sort_by(|a, b| b.rank.total_cmp(&a.rank));
        let (unstable, stable): (Vec<Bin>, Vec<Bin>) = bins
            .into_iter()
            .partition(|bin| self.is_unstable(bin.stable_before));
        let is_stable: u64 = stable.iter().map(|bin| bin.hot_rap).sum();
        let hot_set = self.hot_set_limit(is_stable, sizes).min(self.limits.0);
        let left = |limit: u64| (limit as f64 * (1.0 - self.share)) as u64;
        let cut = |target: u64, size: fn(&Bin) -> u64| {
            let (of_stable, rest) = threshold(&stable, target, size);
            let (of_unstable, _) = threshold(&unstable, rest, size);
            Cut {
                stable: of_stable,
                unstable: of_unstable,
            }
        };
        let hot = cut(left(hot_set), |bin| bin.hot_rap);
        let physical = cut(left(self.limits.1), |bin| bin.physical);
        self.cut = Cut {
            stable: physical.stable,
            unstable: physical.unstable.max(hot.unstable),
        };
        hot.stable.max(physical.stable)
    }

    /// The limit that follows from `stable` bytes of stable records: Algorithm 1's, but that it does
    /// not fall while few records have had the time to become stable.
    fn hot_set_limit(&self, stable: u64, sizes: &Sizes) -> u64 {
        let is_learning = self.epoch < LEARNING_EPOCHS;
        let least = if is_learning { self.limits.0 } else { 0 };
        let limit = (stable + sizes.unstable).max(least);
        limit.min(sizes.hot_set_max).max(sizes.hot_set_min)
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
        let hot_set = self.hot_set_limit(hot_rap, sizes);
        // As many access records as the hot set may have that are not stable.
        let unstable = (ratio * hot_set.saturating_sub(hot_rap) as f64) as u64;
        Limits {
            hot_set,
            physical: (physical + unstable + sizes.unmerged).max(sizes.physical_min),
            ..version.limits
        }
    }
}

/// The rank above which records of `target` bytes lie, and what is left of `target` when all have
/// their place; `bins` begin with the highest.
fn threshold(bins: &[Bin], target: u64, size: impl Fn(&Bin) -> u64) -> (f64, u64) {
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
