//! How large each level should be.

use std::ops::Range;

use crate::key::KeyRange;
use crate::options::{Options, Resolved};
use crate::version::{MAX_LEVELS, Version};

const LAST: usize = MAX_LEVELS - 1;

/// With one tier, a level between L0 and the last one pays once the last one holds this many times
/// what one L0 job brings. At that size, updates of keys at random write about as much either way.
/// Where keys repeat, a level between takes up the duplicates.
const WORTH_A_LEVEL: f64 = 2.0;

/// The least ratio of neighbouring levels of one tier: what lies outside the last level takes at
/// most about a third of what that one takes.
const LEAST_STEP: f64 = 4.0;

/// What the fast tier has for one keyspace's levels L1 to Lf.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FastRoom {
    /// For L1 to Lf in the long run, in bytes. The shape of the levels follows from this.
    pub(crate) planned: u64,
    /// For Lf now, in bytes.
    pub(crate) last: u64,
    /// p: the part of Lf's tables that crossings bring down, 0 to 1 (HotRAP, §3.6).
    pub(crate) cold: f64,
}

/// Target sizes of a keyspace's levels, and which levels are in use.
///
/// The fast tier's levels L1..Lf divide a fixed share of its capacity. On the slow tier, or with
/// one tier, sizes follow from what the last level really holds, from the bottom up, in even steps
/// of about the ratio at most. Levels above the first one that is worth having stay empty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LevelTargets {
    /// In bytes; 0 for L0, runs and unused levels, `u64::MAX` for the last.
    pub(crate) bytes: [u64; MAX_LEVELS],
    /// The level that L0 is compacted into.
    base: usize,
    /// The first level in use below f, if there is one.
    slow_base: Option<usize>,
    /// *f*.
    last_fast: usize,
    /// What Lf is to hold in the long run, in bytes.
    planned_last: u64,
}

impl LevelTargets {
    /// Targets for `version` with last fast level `f`, and `room` for it on the fast tier.
    pub(crate) fn new(
        options: &Options,
        sizes: &Resolved,
        version: &Version,
        f: u8,
        room: FastRoom,
    ) -> Self {
        let last_fast = usize::from(f);
        if last_fast >= LAST {
            Self::one_tier(options, sizes, version)
        } else {
            Self::tiered(options, sizes, version, last_fast, room)
        }
    }

    fn one_tier(options: &Options, sizes: &Resolved, version: &Version) -> Self {
        let l0_job = sizes.l0_trigger as f64 * sizes.memtable_size as f64;
        let last = version.levels[LAST].bytes as f64;
        let ratio = options.level_ratio as f64;
        let mut levels = 1;
        let mut growth = last / l0_job;
        while growth > WORTH_A_LEVEL && levels < LAST {
            growth /= ratio;
            levels += 1;
        }
        // Sizes rise evenly from what an L0 job brings to the last level: so a byte is rewritten
        // least.
        let even = (last / l0_job).powf(1.0 / levels as f64);
        let step = even.max(LEAST_STEP).min(ratio);
        let base = LAST + 1 - levels;
        // A backlog in L0 raises the base: emptying it matters more than its shape.
        let mut target = (last / step.powi(levels as i32 - 1)).max(version.levels[0].bytes as f64);
        let mut bytes = [0; MAX_LEVELS];
        for level in &mut bytes[base..LAST] {
            *level = target as u64;
            target *= step;
        }
        bytes[LAST] = u64::MAX;
        Self {
            bytes,
            base,
            slow_base: None,
            last_fast: LAST,
            planned_last: 0,
        }
    }

    /// What each of L1 to Lf is to hold in the long run, of `planned` bytes together: `level_ratio`
    /// times as much as the level above it. Where hot records want the room, the level above Lf is
    /// half as large if all of Lf comes down: what it holds is held twice while it is compacted.
    /// The less of Lf comes down (`cold`: p), the more goes past Lf, and the larger the level above
    /// is, the less it meets there.
    pub(crate) fn planned(
        options: &Options,
        sizes: &Resolved,
        planned: u64,
        last_fast: usize,
        cold: f64,
    ) -> [u64; MAX_LEVELS] {
        let mut bytes = [0; MAX_LEVELS];
        let mut target = planned / options.level_ratio * (options.level_ratio - 1);
        for level in (1..=last_fast).rev() {
            bytes[level] = target.max(sizes.table_size);
            target /= options.level_ratio;
            if level == last_fast && options.hotrap().is_some() {
                target = (target as f64 * (1.0 - cold / 2.0)) as u64;
            }
        }
        bytes
    }

    fn tiered(
        options: &Options,
        sizes: &Resolved,
        version: &Version,
        last_fast: usize,
        room: FastRoom,
    ) -> Self {
        let mut bytes = Self::planned(options, sizes, room.planned, last_fast, room.cold);
        let planned = std::mem::replace(&mut bytes[last_fast], room.last.max(sizes.table_size));
        // As few slow levels as keep neighbouring sizes within one and a half times the ratio, or
        // within less if little of Lf comes down: a level for that little takes little space, and
        // saves rewriting the larger ones for it. A level that holds tables stays in use until it
        // is clearly not worth having: at the edge, data would else be moved into it and out of it
        // in turn.
        let below: u64 = version.levels[last_fast + 1..]
            .iter()
            .map(|l| l.bytes)
            .sum();
        // A crossing rewrites what it meets below for the sake of the cold part only: so the first
        // slow level is smaller by that (HotRAP, §3.6).
        let growth = below as f64 / (room.cold * planned as f64);
        let mut count = 1;
        while LAST - count > last_fast {
            let in_use = version.levels[LAST - count].bytes > planned;
            let widest = options.level_ratio as f64 * if in_use { 1.0 } else { 1.5 };
            if growth.powf(1.0 / count as f64) <= widest * room.cold.sqrt() {
                break;
            }
            count += 1;
        }
        let step = growth.powf(1.0 / count as f64).max(2.0);
        let mut size = below as f64;
        for level in bytes[LAST + 1 - count..LAST].iter_mut().rev() {
            size /= step;
            *level = size as u64;
        }
        bytes[LAST] = u64::MAX;
        Self {
            bytes,
            base: 1,
            slow_base: Some(LAST + 1 - count),
            last_fast,
            planned_last: planned,
        }
    }

    /// The level to which what lies within `hull` goes down from `from`; none for the last. A level
    /// out of use is passed over if none of its tables meets `hull`, so that it empties. If one
    /// does, the level is not passed over: what lies there may be older than `from` and newer than
    /// what is below (I1). The job's locks know of what is on its way there (I11).
    pub(crate) fn next(&self, from: usize, version: &Version, hull: &KeyRange) -> Option<usize> {
        if from >= LAST {
            return None;
        }
        let wanted = self.in_use(from + 1);
        let is_met = |level: &usize| !version.levels[*level].overlapping(hull).is_empty();
        Some((from + 1..wanted).find(is_met).unwrap_or(wanted))
    }

    /// The first level in use from `level` on, among those below L0. What comes to a level out of
    /// use goes on to this one.
    pub(crate) fn in_use(&self, level: usize) -> usize {
        match self.slow_base {
            Some(slow_base) if level > self.last_fast => level.max(slow_base),
            _ => level.max(self.base),
        }
    }

    /// The levels below f and above the first one in use there. They hold runs: what comes down
    /// lies in them until it is merged with what is below, all at once.
    pub(crate) fn runs(&self) -> Range<usize> {
        let below_f = self.last_fast + 1;
        below_f..self.slow_base.unwrap_or(below_f)
    }

    /// *f*: levels up to this one belong to the fast tier.
    pub(crate) fn last_fast(&self) -> usize {
        self.last_fast
    }

    /// What Lf is to hold in the long run, in bytes; 0 with one tier.
    pub(crate) fn planned_last(&self) -> u64 {
        self.planned_last
    }

    /// Bytes above target over all levels: what compaction has yet to move.
    pub(crate) fn debt(&self, version: &Version, l0_trigger: usize) -> u64 {
        let l0 = &version.levels[0];
        let from_l0 = if l0.tables.len() >= l0_trigger {
            l0.bytes
        } else {
            0
        };
        // Runs are to hold what they hold.
        let levels = (1..LAST).filter(|level| !self.runs().contains(level));
        let below = levels.map(|l| version.levels[l].bytes.saturating_sub(self.bytes[l]));
        from_l0 + below.sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::storage::Memory;
    use crate::sync::Arc;
    use crate::{Db, TierOptions};

    /// A version whose only table lies on `level`, and holds "key".
    fn version_with_table_on(level: u8) -> Version {
        let options = Options::with_tiers(vec![TierOptions::fast("/fast")]);
        let builder = Db::builder(options).medium(0, Arc::new(Memory::new()));
        let db = builder.open().unwrap();
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        let version = Arc::clone(&db.tree().pin().version);
        let mut table = (*version.levels[0].tables[0]).clone();
        table.meta.level = level;
        Version::default().with(&[], vec![Arc::new(table)])
    }

    /// Targets, and f. There is 15 times as much below level f as on it, and crossings bring down
    /// `cold` of what is on it.
    fn targets_where_comes_down(cold: f64) -> (LevelTargets, usize) {
        let medium = Arc::new(Memory::new());
        let builder = Db::builder(Options::two_tiers("/fast", 8 << 20, "/slow"));
        let builder = builder.medium(0, medium.clone()).medium(1, medium);
        let db = builder.open().unwrap();
        let (engine, f) = (db.engine(), db.tree().last_fast_level);
        let mut table = (*version_with_table_on(LAST as u8).levels[LAST].tables[0]).clone();
        table.meta.len = 15 * (4 << 20);
        let version = Version::default().with(&[], vec![Arc::new(table)]);
        let room = FastRoom {
            planned: (4 << 20) / 7 * 8,
            last: 4 << 20,
            cold,
        };
        let targets = LevelTargets::new(&engine.options, &engine.sizes, &version, f, room);
        (targets, usize::from(f))
    }

    #[test]
    fn where_little_comes_down_there_is_one_more_slow_level() {
        let slow_levels = |cold| {
            let (targets, f) = targets_where_comes_down(cold);
            assert_eq!(targets.runs().start, f + 1);
            MAX_LEVELS - targets.runs().end
        };
        assert_eq!([1.0, 0.5, 0.25].map(slow_levels), [2, 2, 3]);
    }

    #[test]
    fn where_little_comes_down_the_level_above_is_larger() {
        let above = |cold| {
            let (targets, f) = targets_where_comes_down(cold);
            targets.bytes[f - 1]
        };
        // An eighth of level f.
        let all = (4 << 20) / 8;
        for (cold, part) in [(1.0, 0.5), (0.5, 0.75), (0.25, 0.875)] {
            let expected = (f64::from(all) * part) as u64;
            assert!(expected - above(cold) < 8, "{cold}: not {expected}");
        }
    }

    /// Targets of the levels of one tier in use, but for the last, which holds `growth` times what
    /// an L0 job brings.
    fn one_tier_targets(growth: f64) -> Vec<f64> {
        let mut options = Options::one_tier("/fast");
        options.memtable_size = Some(1 << 20);
        let l0_job = (options.l0_trigger << 20) as f64;
        let sizes = options.resolve().unwrap();
        let mut table = (*version_with_table_on(LAST as u8).levels[LAST].tables[0]).clone();
        table.meta.len = (growth * l0_job) as u64;
        let version = Version::default().with(&[], vec![Arc::new(table)]);
        let targets = LevelTargets::one_tier(&options, &sizes, &version);
        let used = &targets.bytes[targets.base..LAST];
        used.iter().map(|bytes| *bytes as f64 / l0_job).collect()
    }

    #[test]
    fn levels_of_one_tier_rise_evenly_from_what_an_l0_job_brings() {
        let near = |growth: f64, expected: &[f64]| {
            let targets = one_tier_targets(growth);
            assert_eq!(targets.len(), expected.len(), "{growth}: {targets:?}");
            for (target, expected) in targets.iter().zip(expected) {
                assert!(
                    (target / expected - 1.0).abs() < 0.01,
                    "{growth}: {targets:?}"
                );
            }
        };
        // With a ratio of 8: a level more from 2, 16 and 128 times on.
        near(1.9, &[]);
        near(3.0, &[0.75]);
        near(15.0, &[3.75]);
        near(17.0, &[1.0625, 4.25]);
        near(125.0, &[5.0, 25.0]);
    }

    fn hull(first: &'static str, last: &'static str) -> KeyRange {
        KeyRange {
            first: Bytes::from_static(first.as_bytes()),
            last: Bytes::from_static(last.as_bytes()),
        }
    }

    /// Targets of two tiers with level f 2, and of one tier. The first level in use below f, or
    /// below L0 with one tier, is `first`.
    fn targets_in_use_from(first: usize) -> [LevelTargets; 2] {
        let two_tiers = LevelTargets {
            bytes: [0; MAX_LEVELS],
            base: 1,
            slow_base: Some(first),
            planned_last: 0,
            last_fast: 2,
        };
        let one_tier = LevelTargets {
            base: first,
            slow_base: None,
            last_fast: LAST,
            ..two_tiers
        };
        [two_tiers, one_tier]
    }

    /// I1: what lies on the level between may be older than what passes, and newer than what it
    /// would join.
    #[test]
    fn no_compaction_passes_over_tables_that_it_meets() {
        let [two_tiers, _] = targets_in_use_from(LAST);
        let [_, one_tier] = targets_in_use_from(4);
        for meets in [hull("a", "key"), hull("key", "z"), hull("a", "z")] {
            for level in 3..LAST {
                let version = version_with_table_on(level as u8);
                assert_eq!(two_tiers.next(2, &version, &meets), Some(level));
                assert_eq!(two_tiers.next(level, &version, &meets), Some(LAST));
            }
            for level in 1..4 {
                let version = version_with_table_on(level as u8);
                assert_eq!(one_tier.next(0, &version, &meets), Some(level));
            }
        }
    }

    /// As long as a level out of use held any table, all that came down went into it, and was
    /// written once more on its way. So it never emptied.
    #[test]
    fn a_level_out_of_use_is_passed_over_where_nothing_meets() {
        let [two_tiers, _] = targets_in_use_from(LAST);
        let [_, one_tier] = targets_in_use_from(4);
        for beside in [hull("a", "kex"), hull("kez", "z")] {
            for level in 3..=LAST {
                let version = version_with_table_on(level as u8);
                assert_eq!(two_tiers.next(2, &version, &beside), Some(LAST));
            }
            for level in 1..=4 {
                let version = version_with_table_on(level as u8);
                assert_eq!(one_tier.next(0, &version, &beside), Some(4));
            }
        }
    }

    #[test]
    fn no_compaction_passes_over_a_level_in_use() {
        let [two_tiers, one_tier] = targets_in_use_from(4);
        let (none, all) = (Version::default(), hull("a", "z"));
        let next = |targets: LevelTargets| {
            let froms = [0, 1, 2, 3, 4, 5, LAST];
            froms.map(|from| targets.next(from, &none, &all))
        };
        let from_f = [Some(4), Some(4), Some(5), Some(LAST), None];
        assert_eq!(next(two_tiers)[..2], [Some(1), Some(2)]);
        assert_eq!(next(two_tiers)[2..], from_f);
        assert_eq!(next(one_tier)[..2], [Some(4), Some(4)]);
        assert_eq!(next(one_tier)[2..], from_f);
    }
}
