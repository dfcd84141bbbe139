//! How densely tracked records are read again. Algorithm 1 (§3.7) takes this for granted; here it
//! is measured.
//!
//! The algorithm assumes that every stable record is worth its place, and no other is. But a
//! hotspot that has moved leaves stable records that nobody reads, for as long as their counters
//! last. And under a zipfian distribution most records that deserve the fast tier are read too
//! seldom to be stable. So records are told apart by how long they stay stable, and each class is
//! judged by the reads that its bytes drew, compared with those of bytes that are not tracked.

use super::record::Record;
use super::scoring::Model;

/// Classes of records: those that were read [`ONCE`], those that have ceased to be stable, and the
/// stable ones by the epochs that they have left, the last with all that have more.
pub(super) const CLASSES: usize = 8;
const ONCE: usize = 0;
const LAPSED: usize = 1;

/// An epoch in which all records are of one class.
pub(super) const UNDIVIDED: u64 = u64::MAX;

/// The class in `epoch` of records that cease to be stable in the epoch `stable_before`, 0 if they
/// never were.
pub(super) fn class(stable_before: u64, epoch: u64) -> usize {
    if stable_before == 0 || epoch == UNDIVIDED {
        return ONCE;
    }
    let left = usize::try_from(stable_before.saturating_sub(epoch));
    left.map_or(CLASSES, |left| left.saturating_add(LAPSED))
        .min(CLASSES - 1)
}

/// A class is worth the fast tier if its bytes draw this many times the reads that untracked bytes
/// draw. Under uniform reads they draw as many, but for chance. And it costs something to promote a
/// record and to demote it later.
const WORTH: f64 = 2.0;

/// If bytes that were read once draw this many times the reads of untracked ones, a hotspot is
/// being learnt: waiting for a second read of each record costs more than it saves. Chosen by a
/// model of the policy, in which the factor is about 4 under a zipfian distribution, and tens after
/// a hotspot has moved.
const LEARNING: f64 = 8.0;

/// What is left of older measurements when a new one comes.
const KEEP: f64 = 0.5;

/// Reads that every class is assumed to have had in addition: as densely as the class of records
/// that are stable for one epoch less, and at least as densely as untracked data. A few records
/// prove nothing, and in a small store every class is small.
const DOUBT: f64 = 8.0;

/// What a merge into the lowest run has shown: how many bytes lay there, by class, and how many of
/// these were read since the merge before; and how many bytes were read that did not lie there.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Census {
    /// The level from which on down everything is the lowest run.
    lowest: usize,
    /// The counters' epoch.
    epoch: u64,
    size: [u64; CLASSES],
    again: [u64; CLASSES],
    new: u64,
    /// Keys that were read.
    keys: u64,
}

impl Census {
    /// A census of a merge with the run that is level `lowest`, at least 1, and all below it.
    pub(super) fn new(lowest: usize, epoch: u64) -> Self {
        Self {
            lowest,
            epoch,
            ..Self::default()
        }
    }

    /// Takes in what is known of one key of `size` bytes: its records, newest first, each with its
    /// level.
    pub(super) fn count(&mut self, found: &[(usize, Record)], size: u64, model: &Model) {
        match found.split_last() {
            Some(((level, oldest), newer)) if *level >= self.lowest => {
                let class = class(model.stable_before(oldest), self.epoch);
                self.size[class] += size;
                if !newer.is_empty() {
                    self.again[class] += size;
                    self.keys += 1;
                }
            }
            Some(_) => {
                self.new += size;
                self.keys += 1;
            }
            None => {}
        }
    }

    /// A census of another slice of the same merge.
    pub(super) fn anew(&self) -> Self {
        Self::new(self.lowest, self.epoch)
    }

    /// Adds the next slice's.
    pub(super) fn add(&mut self, other: &Census) {
        for class in 0..CLASSES {
            self.size[class] += other.size[class];
            self.again[class] += other.again[class];
        }
        self.new += other.new;
        self.keys += other.keys;
    }
}

/// The bytes that were read; and the bytes that could have been, times the bytes of all reads
/// meanwhile.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Density {
    read: f64,
    could: f64,
}

impl Density {
    fn take(&mut self, read: f64, could: f64) {
        self.read = self.read * KEEP + read;
        self.could = self.could * KEEP + could;
    }
}

/// What the merges of late have shown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Reuse {
    classes: [Density; CLASSES],
    untracked: Density,
    /// Bytes of [`DOUBT`].
    doubt: f64,
}

impl Reuse {
    /// Takes in a merge, in a store of `data` bytes.
    pub(super) fn take(&mut self, census: &Census, data: u64) {
        let tracked: u64 = census.size.iter().sum();
        let read = census.new + census.again.iter().sum::<u64>();
        if census.keys == 0 || tracked == 0 || data <= tracked {
            return;
        }
        let meanwhile = read as f64;
        for (class, density) in self.classes.iter_mut().enumerate() {
            let could = census.size[class] as f64 * meanwhile;
            density.take(census.again[class] as f64, could);
        }
        let untracked = (data - tracked) as f64;
        self.untracked
            .take(census.new as f64, untracked * meanwhile);
        self.doubt = DOUBT * read as f64 / census.keys as f64;
    }

    /// Whether anything is known.
    pub(super) fn is_measured(&self) -> bool {
        self.untracked.could > 0.0
    }

    /// How many times the reads of untracked bytes the bytes of a class drew. If nothing was
    /// measured, this is Algorithm 1's opinion: the longer stable, the better.
    fn density(&self, class: usize) -> f64 {
        if !self.is_measured() {
            return (class as f64 - LAPSED as f64) * WORTH;
        }
        // If all reads were of tracked records, a single byte stands for the untracked ones.
        let untracked = self.untracked.read.max(1.0) / self.untracked.could;
        let Density { read, could } = self.classes[class];
        let expected = match class {
            ONCE | LAPSED => 1.0,
            _ => self.density(class - 1).max(1.0),
        };
        (read + self.doubt) / (could * untracked + self.doubt / expected)
    }

    /// Whether records of a class are worth the fast tier.
    pub(super) fn is_worth(&self, class: usize) -> bool {
        self.density(class) >= WORTH
    }

    /// Whether a record that was read once is as good as hot.
    pub(super) fn is_learning(&self) -> bool {
        self.is_measured() && self.density(ONCE) >= LEARNING
    }

    /// Whether it is shown that a record that was read once is read no more than others. Until then
    /// it is assumed that a hotspot is being learnt: finding out costs little, and missing the
    /// beginning of one costs much.
    pub(super) fn is_flat(&self) -> bool {
        if !self.is_measured() {
            return false;
        }
        let Density { read, could } = self.classes[ONCE];
        let alike = could * self.untracked.read / self.untracked.could;
        read + self.doubt * LEARNING < (alike + self.doubt) * WORTH
    }

    /// The classes, the one that draws most reads first.
    pub(super) fn order(&self) -> [usize; CLASSES] {
        let mut order: [usize; CLASSES] = std::array::from_fn(|place| CLASSES - 1 - place);
        order.sort_by(|a, b| self.density(*b).total_cmp(&self.density(*a)));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::HotRapOptions;

    const DATA: u64 = 1_000_000;

    fn record(stable_until: u64, again: bool) -> Record {
        Record {
            value_len: 0,
            tick: 0,
            score: 1.0,
            stable_until: stable_until * super::super::scoring::UNIT,
            again,
        }
    }

    /// A census of classes by number, bytes, and bytes that were read again. Records have a hundred
    /// bytes.
    fn census(classes: &[(usize, u64, u64)], new: u64) -> Census {
        let mut census = Census::new(1, 0);
        for (class, size, again) in classes {
            census.size[*class] = *size;
            census.again[*class] = *again;
        }
        census.new = new;
        census.keys = (new + census.again.iter().sum::<u64>()) / 100;
        census
    }

    fn reuse(census: &Census) -> Reuse {
        let mut reuse = Reuse::default();
        reuse.take(census, DATA);
        reuse
    }

    /// Some classes in the order of all.
    fn ordered(reuse: &Reuse, classes: &[usize]) -> Vec<usize> {
        let mut order = reuse.order().to_vec();
        order.retain(|class| classes.contains(class));
        order
    }

    #[test]
    fn keys_count_by_the_class_of_what_lay_in_the_lowest_run() {
        let model = Model::new(&HotRapOptions::default());
        let mut census = Census::new(2, 3);
        // Stable for two more epochs, and read since; read once; new.
        let (two, none) = (record(5, true), record(9, false));
        census.count(&[(0, none), (1, none), (2, two)], 10, &model);
        census.count(&[(2, none)], 20, &model);
        census.count(&[(0, two), (1, none)], 40, &model);
        let mut expected = super::tests::census(&[(3, 10, 10), (0, 20, 0)], 40);
        (expected.lowest, expected.epoch, expected.keys) = (2, 3, 2);
        assert_eq!(census, expected);
        let mut twice = census;
        twice.add(&census);
        assert_eq!(
            (twice.size[0], twice.again[3], twice.new, twice.keys),
            (40, 20, 80, 4)
        );
    }

    #[test]
    fn before_anything_is_measured_it_is_algorithm_1() {
        let reuse = Reuse::default();
        assert!(!reuse.is_measured());
        assert_eq!(reuse.order(), [7, 6, 5, 4, 3, 2, 1, 0]);
        assert!(!reuse.is_worth(ONCE) && !reuse.is_worth(LAPSED) && !reuse.is_learning());
        assert!((LAPSED + 1..CLASSES).all(|class| reuse.is_worth(class)));
        // A merge from which nothing can be told does not count either.
        assert_eq!(super::tests::reuse(&census(&[], 900)), reuse);
        let mut all = reuse;
        all.take(&census(&[(0, DATA, 5)], 0), DATA);
        assert_eq!(all, reuse);
    }

    #[test]
    fn under_uniform_reads_no_class_is_worth_its_place() {
        // A tenth of everything was read.
        let reuse = reuse(&census(&[(0, 60_000, 6_000), (5, 2_000, 200)], 93_800));
        assert!((0..CLASSES).all(|class| !reuse.is_worth(class)));
    }

    #[test]
    fn reads_are_alike_once_enough_of_them_have_shown_it() {
        let once =
            |size: u64, again| reuse(&census(&[(0, size, again)], 100_000 - again)).is_flat();
        // 60 reads of records that had been read before, as chance would have it; then 10.
        assert!(once(60_000, 6_000) && !once(10_000, 1_000));
        // A zipfian distribution, and a hotspot.
        assert!(!once(60_000, 24_000) && !once(60_000, 50_000));
        assert!(!Reuse::default().is_flat());
    }

    #[test]
    fn what_is_read_four_times_as_often_is_worth_it_stable_or_not() {
        let reuse = reuse(&census(&[(0, 60_000, 24_000), (5, 10_000, 9_000)], 90_000));
        assert!(reuse.is_worth(0) && reuse.is_worth(5) && !reuse.is_learning());
        assert_eq!(ordered(&reuse, &[0, 5]), [5, 0]);
        let hotspot = super::tests::reuse(&census(&[(0, 60_000, 50_000)], 40_000));
        assert!(hotspot.is_learning());
    }

    #[test]
    fn stable_records_that_nobody_reads_come_last() {
        let reuse = reuse(&census(
            &[(0, 20_000, 8_000), (3, 50_000, 100), (5, 10_000, 8_000)],
            90_000,
        ));
        assert!(reuse.is_worth(0) && !reuse.is_worth(3) && reuse.is_worth(5));
        assert_eq!(ordered(&reuse, &[0, 3, 5]), [5, 0, 3]);
    }

    /// Regression: right after an epoch has begun, few records are stable for longest: those that
    /// were just read. They proved nothing, so they came after those read once, and soon everything
    /// that was read became one of them: a moved hotspot was hot until it was read again.
    #[test]
    fn a_few_records_count_as_those_that_are_stable_for_one_epoch_less() {
        let fresh = reuse(&census(
            &[(0, 30_000, 3_000), (5, 30_000, 28_000), (6, 100, 0)],
            60_000,
        ));
        assert!(fresh.is_worth(6));
        assert_eq!(ordered(&fresh, &[0, 5, 6]), [5, 6, 0]);
        let many = reuse(&census(&[(5, 30_000, 28_000), (6, 30_000, 100)], 60_000));
        assert!(!many.is_worth(6), "measured is measured");
        let lapsed = reuse(&census(&[(0, 50_000, 45_000), (1, 100, 0)], 50_000));
        assert!(lapsed.is_worth(0) && !lapsed.is_worth(1));
    }

    #[test]
    fn a_few_records_prove_nothing() {
        let few = reuse(&census(&[(4, 500, 500)], 100_000));
        let many = reuse(&census(&[(4, 10_000, 10_000)], 100_000));
        assert!(!few.is_worth(4) && many.is_worth(4));
    }

    #[test]
    fn older_measurements_fade() {
        let mut reuse = reuse(&census(&[(5, 50_000, 45_000)], 90_000));
        assert!(reuse.is_worth(5));
        for _ in 0..4 {
            reuse.take(&census(&[(5, 50_000, 100)], 90_000), DATA);
        }
        assert!(!reuse.is_worth(5));
    }
}
