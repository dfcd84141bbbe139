//! Settings of placement by hotness. Symbols and sections are those of the HotRAP paper.

use crate::error::{Error, Result};

/// Who decides where a record lives.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Placement {
    /// Its level does: recent records on the fast tier, older ones on the slow one.
    ByLevel,
    /// Its hotness does: records that are read often stay on, or come back to, the fast tier.
    /// With one tier there is nothing to decide, and this is the same as [`Placement::ByLevel`].
    HotRap(HotRapOptions),
    /// The heat of the table does that it lies in: whole tables lie on the fast tier as far as
    /// their reads are worth it, and are written anew where that changes. With one tier there is
    /// nothing to decide.
    ByTable,
    /// Nothing does: every table lies on the last tier, and the first one, beside the log, is a
    /// cache of blocks that were read (feature `flash-cache`). For comparison with
    /// [`Placement::HotRap`]. The cache begins empty at every opening. It lies in the file system
    /// at the first tier's path, whatever medium the tier is given.
    FlashCache,
}

impl Default for Placement {
    fn default() -> Self {
        Placement::HotRap(HotRapOptions::default())
    }
}

/// Makes the constants of placement by hotness as visible as `$constant` says: with the feature
/// `experiments` they are public. Programs set [`HotRapOptions::hot_share`].
macro_rules! hotrap_options {
    ($constant:vis) => {
        /// How hotness is tracked and how much of the fast tier hot records may take. Unless said
        /// otherwise, the defaults are the paper's, and fractions are of the fast tier's capacity.
        ///
        /// ```
        /// use thermocline::{HotRapOptions, Options, Placement};
        /// let mut options = Options::two_tiers("fast", 1 << 30, "slow");
        /// // The rest is for new records, and for work in the background.
        /// options.placement = Placement::HotRap(HotRapOptions::default().hot_share(0.5));
        /// assert!(options.validate().is_ok());
        /// ```
        #[derive(Debug, Clone, PartialEq)]
        pub struct HotRapOptions {
            /// α: what is left of a score after one time slice (§3.2).
            $constant decay: f64,
            /// γ: bytes accessed in one time slice (§3.2).
            $constant slice: f64,
            /// β: the share of access records that one eviction removes (§3.2).
            $constant eviction: f64,
            /// L_hs: the least that the hot set may be limited to (§3.7).
            $constant hot_set_min: f64,
            /// R_hs: the most that the hot set may be limited to, and the bytes accessed after
            /// which every counter loses 1 (§3.7).
            $constant hot_set_max: f64,
            /// D_hs: how many bytes of records that are not stable yet may be tracked, as a
            /// fraction of `hot_set_max` (§3.7). The paper has 0.1. Under a zipfian distribution
            /// most records that are worth the fast tier are read too seldom to be stable: there
            /// 0.3 answers more reads from the fast tier.
            $constant unstable: f64,
            /// Δc: what an access adds to a record's counter (§3.7).
            $constant counter_step: f64,
            /// c_max: the highest counter (§3.7).
            $constant counter_max: f64,
            /// The hot set's limit before the first eviction, at most `hot_set_max`. The paper has
            /// 0.5; here it is 0.7: while the fast tier has room for more, there is no reason to
            /// forget a record that was read once.
            $constant hot_set_initial: f64,
            /// The limit of access records on the fast tier before the first eviction.
            $constant ralt_initial: f64,
            /// Which techniques are in use: for measuring what each is worth.
            #[cfg(feature = "experiments")]
            pub switches: Switches,
        }
    };
}

#[cfg(feature = "experiments")]
hotrap_options!(pub);
#[cfg(not(feature = "experiments"))]
hotrap_options!(pub(crate));

impl Default for HotRapOptions {
    fn default() -> Self {
        Self {
            decay: 0.999,
            slice: 0.10,
            eviction: 0.10,
            hot_set_min: 0.05,
            hot_set_max: 0.70,
            unstable: 0.30,
            counter_step: 2.6,
            counter_max: 5.0,
            hot_set_initial: 0.70,
            ralt_initial: 0.15,
            #[cfg(feature = "experiments")]
            switches: Switches::default(),
        }
    }
}

/// The least slice, and the most.
const SLICE: (f64, f64) = (0.0001, 10.0);

/// How far off a slice may be after it was divided by one number and multiplied by another, as a
/// part of the slice.
const ROUNDING: f64 = 1e-12;

/// `slice`, or the nearest end of the allowed range if no more than rounding has taken it past that
/// end. Any other value that is out of range, or no number, is returned as it is.
fn unrounded(slice: f64) -> f64 {
    let nearest = slice.clamp(SLICE.0, SLICE.1);
    if (slice - nearest).abs() <= ROUNDING * nearest {
        nearest
    } else {
        slice
    }
}

/// How accesses become a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    not(feature = "experiments"),
    expect(unreachable_pub, reason = "set with the feature only")
)]
#[non_exhaustive]
pub enum Scoring {
    /// Exponential smoothing over time slices (§3.2).
    #[default]
    Smoothing,
    /// Second chance: what was accessed since the last eviction is better than what was not.
    Clock,
    /// What was accessed last is best.
    Lru,
}

/// Techniques that can be turned off one by one, as the paper's ablations do (§4.5, §4.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "experiments"),
    expect(unreachable_pub, reason = "set with the feature only")
)]
pub struct Switches {
    /// Hot records stay on the fast tier when a compaction crosses to the slow one.
    pub retention: bool,
    /// Only hot records are promoted; without it, every record that was read.
    pub hotness_check: bool,
    /// Records of the promotion cache join compactions that cross their range.
    pub promotion_by_compaction: bool,
    /// A full promotion cache becomes a table of L0.
    pub promotion_by_flush: bool,
    /// Cold records that level f has no version of go past it (not in the paper).
    pub bypass: bool,
    /// What is read most on the slow tier is copied into room that the fast tier has no use for
    /// (not in the paper).
    pub copies: bool,
    /// The limits follow the workload (§3.7).
    pub auto_tuning: bool,
    /// How accesses become a score.
    pub scoring: Scoring,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            retention: true,
            hotness_check: true,
            promotion_by_compaction: true,
            promotion_by_flush: true,
            bypass: true,
            copies: true,
            auto_tuning: true,
            scoring: Scoring::Smoothing,
        }
    }
}

impl HotRapOptions {
    /// At most this share of the fast tier's capacity is for hot records: 0.01 to 0.95, and 0.7 if
    /// it is not set (R_hs, §3.7). A smaller share leaves more room for new records and for
    /// compactions.
    #[must_use]
    pub fn hot_share(self, share: f64) -> Self {
        Self {
            hot_set_max: share,
            hot_set_initial: self.hot_set_initial.min(share),
            hot_set_min: self.hot_set_min.min(share),
            ..self
        }
    }

    /// Which techniques are in use; all of them without the feature `experiments`.
    pub(crate) fn switches(&self) -> Switches {
        #[cfg(feature = "experiments")]
        return self.switches;
        #[cfg(not(feature = "experiments"))]
        Switches::default()
    }

    /// The defaults, except for what scores and counters depend on: −ln α, how many epochs a slice
    /// has, and the scoring. None if no valid settings have these.
    pub(crate) fn scored_by(decay: f64, epochs_per_slice: f64, scoring: Scoring) -> Option<Self> {
        let usual = Self::default();
        let (least, most) = (SLICE.0 / epochs_per_slice, SLICE.1 / epochs_per_slice);
        let hot_set_max = usual.hot_set_max.max(least).min(most);
        let options = Self {
            decay: (-decay).exp(),
            slice: unrounded(epochs_per_slice * hot_set_max),
            hot_set_min: usual.hot_set_min.min(hot_set_max),
            hot_set_max,
            hot_set_initial: usual.hot_set_initial.min(hot_set_max),
            #[cfg(feature = "experiments")]
            switches: Switches {
                scoring,
                ..Switches::default()
            },
            ..usual
        };
        let is_valid = options.check().is_ok() && options.switches().scoring == scoring;
        is_valid.then_some(options)
    }

    /// What bounds the limits of the hot set and of access records: `hot_set_min`, `hot_set_max`,
    /// `hot_set_initial` and `ralt_initial`.
    pub(crate) fn bounds(&self) -> [f64; 4] {
        [
            self.hot_set_min,
            self.hot_set_max,
            self.hot_set_initial,
            self.ralt_initial,
        ]
    }

    /// These settings with other [bounds](HotRapOptions::bounds), and as many epochs in a slice as
    /// before. None if that is not valid.
    pub(crate) fn bounded_by(&self, bounds: [f64; 4]) -> Option<Self> {
        let [hot_set_min, hot_set_max, hot_set_initial, ralt_initial] = bounds;
        let options = Self {
            slice: unrounded(self.slice / self.hot_set_max * hot_set_max),
            hot_set_min,
            hot_set_max,
            hot_set_initial,
            ralt_initial,
            ..self.clone()
        };
        options.check().is_ok().then_some(options)
    }

    pub(super) fn check(&self) -> Result<()> {
        // Name, value, least, most; all inclusive.
        for (option, value, least, most) in [
            ("hotrap.decay", self.decay, 0.5, 1.0),
            ("hotrap.slice", self.slice, SLICE.0, SLICE.1),
            ("hotrap.eviction", self.eviction, 0.01, 0.9),
            ("hotrap.hot_set_min", self.hot_set_min, 0.0, 0.95),
            ("hotrap.hot_set_max", self.hot_set_max, 0.01, 0.95),
            ("hotrap.unstable", self.unstable, 0.01, 1.0),
            ("hotrap.counter_step", self.counter_step, 1.0, 100.0),
            ("hotrap.counter_max", self.counter_max, 1.0, 100.0),
            ("hotrap.hot_set_initial", self.hot_set_initial, 0.01, 0.95),
            ("hotrap.ralt_initial", self.ralt_initial, 0.01, 0.5),
        ] {
            // NaN is in no range.
            if !(least..=most).contains(&value) {
                return Err(Error::InvalidOption {
                    option,
                    reason: format!("{value} is not within {least} to {most}"),
                });
            }
        }
        for (option, value, other, limit) in [
            (
                "hotrap.hot_set_min",
                self.hot_set_min,
                "hot_set_max",
                self.hot_set_max,
            ),
            (
                "hotrap.hot_set_initial",
                self.hot_set_initial,
                "hot_set_max",
                self.hot_set_max,
            ),
            (
                "hotrap.counter_step",
                self.counter_step,
                "counter_max",
                self.counter_max,
            ),
        ] {
            if value > limit {
                return Err(Error::InvalidOption {
                    option,
                    reason: format!("{value} is more than `{other}` ({limit})"),
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        let refused = |change: fn(&mut HotRapOptions)| {
            let mut options = HotRapOptions::default();
            assert!(options.check().is_ok());
            change(&mut options);
            options.check().unwrap_err().to_string()
        };
        assert!(refused(|o| o.decay = 1.5).contains("hotrap.decay"));
        assert!(refused(|o| o.decay = f64::NAN).contains("hotrap.decay"));
        assert!(refused(|o| o.slice = 0.0).contains("hotrap.slice"));
        assert!(refused(|o| o.hot_set_min = 0.8).contains("hot_set_max"));
        assert!(refused(|o| o.hot_set_initial = 0.8).contains("hotrap.hot_set_initial"));
        assert!(refused(|o| o.counter_step = 6.0).contains("counter_max"));
    }

    /// The other two bounds were refused where the share was smaller than they are by default.
    #[test]
    fn the_share_of_hot_records_takes_the_other_bounds_with_it() {
        let of = |share| HotRapOptions::default().hot_share(share);
        for share in [0.01, 0.05, 0.7, 0.95] {
            assert!(of(share).check().is_ok(), "{share}");
            assert_eq!(of(share).hot_set_max, share);
        }
        for share in [0.0, 0.96, f64::NAN] {
            let refused = of(share).check().unwrap_err().to_string();
            assert!(refused.contains("hotrap.hot_set_max"), "{refused}");
        }
    }

    #[test]
    fn each_range_ends_where_it_says() {
        type Set = fn(&mut HotRapOptions, f64);
        // A setting that bounds another one is set out of its way.
        let ranges: [(&str, f64, f64, Set); 10] = [
            ("decay", 0.5, 1.0, |o, value| o.decay = value),
            ("slice", 0.0001, 10.0, |o, value| o.slice = value),
            ("eviction", 0.01, 0.9, |o, value| o.eviction = value),
            ("hot_set_min", 0.0, 0.95, |o, value| {
                (o.hot_set_min, o.hot_set_max) = (value, 0.95);
            }),
            ("hot_set_max", 0.01, 0.95, |o, value| {
                (o.hot_set_min, o.hot_set_initial, o.hot_set_max) = (0.0, 0.01, value);
            }),
            ("unstable", 0.01, 1.0, |o, value| o.unstable = value),
            ("counter_step", 1.0, 100.0, |o, value| {
                (o.counter_step, o.counter_max) = (value, 100.0);
            }),
            ("counter_max", 1.0, 100.0, |o, value| {
                (o.counter_step, o.counter_max) = (1.0, value);
            }),
            ("hot_set_initial", 0.01, 0.95, |o, value| {
                (o.hot_set_initial, o.hot_set_max) = (value, 0.95);
            }),
            ("ralt_initial", 0.01, 0.5, |o, value| o.ralt_initial = value),
        ];
        for (name, least, most, set) in ranges {
            let check = |value: f64| {
                let mut options = HotRapOptions::default();
                set(&mut options, value);
                options.check()
            };
            for edge in [least, most] {
                assert!(check(edge).is_ok(), "{name} {edge}");
            }
            for past in [least - 1e-9, most + 1e-9, f64::NAN, f64::INFINITY] {
                let error = check(past).unwrap_err().to_string();
                let is_named = error.contains(&format!("hotrap.{name}`"));
                assert!(
                    is_named && error.contains("not within"),
                    "{name} {past}: {error}"
                );
            }
        }
    }

    /// A state of RALT keeps how many epochs a slice has. Computed back from that, some slices at
    /// the ends of the allowed range came out a little past them, by rounding, and were refused.
    /// Then the command line opened the store with defaults, and RALT began anew.
    #[test]
    fn the_shortest_and_the_longest_slice_are_read_back() {
        let usual = HotRapOptions::default();
        let read = |epochs_per_slice| {
            HotRapOptions::scored_by(-usual.decay.ln(), epochs_per_slice, Scoring::default())
        };
        for slice in [SLICE.0, SLICE.1] {
            for thousandths in 10..=950 {
                let hot_set_max = f64::from(thousandths) / 1000.0;
                let bounds = [0.0, hot_set_max, hot_set_max, usual.ralt_initial];
                let found = read(slice / hot_set_max).and_then(|found| found.bounded_by(bounds));
                let found = found.map(|found| found.slice);
                assert!(found.is_some(), "{slice} with {hot_set_max}");
                assert!(found.is_some_and(|found| (found / slice - 1.0).abs() < 1e-9));
            }
        }
        // Either no allowed `hot_set_max` makes the slice valid, or the given one does not.
        assert_eq!(read(SLICE.1 / 0.0099), None);
        let longest = HotRapOptions {
            slice: SLICE.1,
            ..usual
        };
        assert_eq!(longest.bounded_by([0.0, 0.71, 0.5, 0.1]), None);
    }
}
