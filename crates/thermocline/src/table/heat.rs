//! How hot a table is: how often its blocks are read from a device (Mutant, §3.1.3).

use std::time::Duration;

use crate::sync::atomic::{AtomicU32, Ordering};

/// A table's temperature at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Heat {
    /// Blocks that users have a device read in a second, on average.
    pub(crate) rate: f32,
    /// Over how many seconds this has been watched, what it was inherited from included. 0 if
    /// nobody has watched it yet: then the rate says nothing.
    pub(crate) watched: f32,
}

/// No number in it is NaN.
impl Eq for Heat {}

/// How fast what was read is forgotten.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cooling {
    /// What is left of a temperature after a second without a read (Mutant's α).
    pub(crate) kept: f64,
    /// Whether that holds for young tables, too, as in the paper.
    pub(crate) plain: bool,
}

impl Cooling {
    /// After a second without a read `kept` is left.
    pub(crate) const fn keeping(kept: f64) -> Self {
        Self { kept, plain: false }
    }
}

impl Heat {
    /// A heat that was kept; none if it cannot be one.
    pub(crate) fn from_bits(rate: u32, watched: u32) -> Option<Self> {
        let number = |bits| {
            let number = f32::from_bits(bits);
            (number.is_finite() && number >= 0.0).then_some(number)
        };
        Some(Self {
            rate: number(rate)?,
            watched: number(watched)?,
        })
    }

    /// The rate, if anything is known of it.
    pub(crate) fn known(self) -> Option<f64> {
        (self.watched > 0.0).then_some(f64::from(self.rate))
    }

    /// This heat after another `seconds` with so many `reads`. Mutant gives a new epoch the weight
    /// 1 − α, so the first second of a table counts for more than all that follow for ten minutes.
    /// Here no epoch counts for more than a later one until the table is that old.
    pub(crate) fn after(self, seconds: f64, reads: f64, cooling: Cooling) -> Self {
        let watched = f64::from(self.watched) + seconds;
        let usual = 1.0 - cooling.kept.powf(seconds);
        let weight = match cooling.plain && self.watched > 0.0 {
            true => usual,
            false => usual.max(seconds / watched),
        };
        let rate = f64::from(self.rate);
        Self {
            rate: (rate + weight * (reads / seconds - rate)) as f32,
            watched: watched as f32,
        }
    }
}

/// The heat of an open store's table, and what is counted for it. The files at other levels that a
/// move makes of a table share it.
#[derive(Debug)]
pub(crate) struct TableHeat {
    /// Blocks that users had a device read since the last epoch ended. What a cache in memory
    /// answers is not counted: a faster tier would save nothing of that.
    reads: AtomicU32,
    /// The bits of [`Heat::rate`] and [`Heat::watched`]. Only the end of an epoch changes them, and
    /// there is one at a time.
    rate: AtomicU32,
    watched: AtomicU32,
    /// When a flush wrote it, by the store's clock. None for tables that others were merged into,
    /// and for those that an opening found.
    born: Option<Duration>,
    /// When it was written anew on another tier.
    migrated: Option<Duration>,
}

impl TableHeat {
    /// Of a table that was not just flushed.
    pub(crate) fn new(heat: Heat) -> Self {
        Self {
            reads: AtomicU32::new(0),
            rate: AtomicU32::new(heat.rate.to_bits()),
            watched: AtomicU32::new(heat.watched.to_bits()),
            born: None,
            migrated: None,
        }
    }

    /// Of a table that was written anew on another tier at `now`.
    pub(crate) fn migrated(heat: Heat, now: Duration) -> Self {
        Self {
            migrated: Some(now),
            ..Self::new(heat)
        }
    }

    /// Of a table that was flushed at `now`.
    pub(crate) fn flushed(now: Duration) -> Self {
        Self {
            born: Some(now),
            ..Self::new(Heat::default())
        }
    }

    /// How old the table is at `now`, if a flush of this opening wrote it.
    pub(crate) fn age(&self, now: Duration) -> Option<Duration> {
        self.born.map(|born| now.saturating_sub(born))
    }

    /// For how long it has lain on its tier at `now`, if a migration of this opening brought it.
    pub(crate) fn settled_for(&self, now: Duration) -> Option<Duration> {
        self.migrated.map(|at| now.saturating_sub(at))
    }

    /// Counts a read.
    #[inline]
    pub(super) fn count(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    /// The temperature as of the end of the last epoch.
    pub(crate) fn get(&self) -> Heat {
        Heat {
            rate: f32::from_bits(self.rate.load(Ordering::Relaxed)),
            watched: f32::from_bits(self.watched.load(Ordering::Relaxed)),
        }
    }

    /// Reads since the last epoch ended.
    pub(crate) fn reads(&self) -> f64 {
        f64::from(self.reads.load(Ordering::Relaxed))
    }

    /// Ends an epoch that took `length`, and begins the next.
    pub(crate) fn end_epoch(&self, length: Duration, cooling: Cooling) {
        let reads = self.reads.swap(0, Ordering::Relaxed);
        let next = self
            .get()
            .after(length.as_secs_f64(), f64::from(reads), cooling);
        self.rate.store(next.rate.to_bits(), Ordering::Relaxed);
        self.watched
            .store(next.watched.to_bits(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// With the paper's formula the first second outweighs all that follow for long.
    #[test]
    fn a_young_table_is_the_mean_of_its_seconds_unless_cooling_is_plain() {
        let rate_after = |cooling: Cooling| {
            let seconds = [1000.0].into_iter().chain([0.0; 9]);
            let heat = seconds.fold(Heat::default(), |heat, reads| {
                heat.after(1.0, reads, cooling)
            });
            f64::from(heat.rate)
        };
        let mean = rate_after(Cooling::keeping(0.999));
        assert!((mean - 100.0).abs() < 1.0, "{mean}");
        let plain = rate_after(Cooling {
            kept: 0.999,
            plain: true,
        });
        assert!((plain - 1000.0 * 0.999_f64.powi(9)).abs() < 1.0, "{plain}");
    }

    /// Half is left after 693 seconds.
    const KEPT: Cooling = Cooling::keeping(0.999);

    fn read(heat: &TableHeat, reads: u32) -> f64 {
        (0..reads).for_each(|_| heat.count());
        heat.end_epoch(SECOND, KEPT);
        heat.get().known().unwrap()
    }

    #[test]
    fn a_young_tables_temperature_is_the_mean_of_all_epochs() {
        let heat = TableHeat::flushed(SECOND);
        assert_eq!(heat.get().known(), None);
        assert_eq!(read(&heat, 30), 30.0);
        assert_eq!(read(&heat, 0), 15.0);
        assert!((read(&heat, 0) - 10.0).abs() < 1e-5);
        assert_eq!(heat.age(5 * SECOND), Some(4 * SECOND));
    }

    /// After a thousand seconds each epoch has the weight of a thousandth, and what was hot is half
    /// as hot after 693 seconds.
    #[test]
    fn an_old_tables_temperature_halves_in_693_seconds() {
        let heat = TableHeat::new(Heat {
            rate: 80.0,
            watched: 5000.0,
        });
        (0..693).for_each(|_| heat.end_epoch(SECOND, KEPT));
        assert!((heat.get().rate - 40.0).abs() < 0.1, "{:?}", heat.get());
        // The same in one epoch.
        heat.end_epoch(693 * SECOND, KEPT);
        assert!((heat.get().rate - 20.0).abs() < 0.1, "{:?}", heat.get());
    }
}
