//! Placement by level: how the fast tier's capacity is divided, and how many levels it holds.

use crate::options::{Options, Resolved};
use crate::version::MAX_LEVELS;

/// How the fast tier's capacity is spent (I8). All in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpacePlan {
    /// For the tables of L1 to Lf once every level is at its target.
    pub(crate) levels: u64,
    /// Kept free for what is in flight: the log, L0, and the output of running jobs, whose
    /// inputs stay until the output is installed.
    pub(crate) headroom: u64,
}

impl SpacePlan {
    pub(crate) fn new(options: &Options, sizes: &Resolved) -> Self {
        let capacity = options.tiers[0].capacity;
        let log = 4 * sizes.memtable_size;
        let l0 = (options.l0_trigger as u64 + 2) * sizes.memtable_size;
        // An L0 job rewrites L0 and all of L1 (a share of 1/ratio of the levels); a job below
        // takes one table and about `level_ratio` of the next level's.
        let l0_job = l0;
        let level_job = (options.level_ratio + 2) * sizes.table_size;
        let fixed = log + l0 + l0_job + level_job;
        // `fixed` may exceed a tiny tier: half of it then goes to the levels, and jobs that
        // find no room write to the next tier.
        let rest = capacity.saturating_sub(fixed).max(capacity / 2);
        let levels = rest / (options.level_ratio + 1) * options.level_ratio;
        Self {
            levels,
            headroom: capacity - levels,
        }
    }
}

/// *f* for a new keyspace: the last level of the fast tier. With one tier, the last level.
///
/// L1 should hold several memtables, or each flush would rewrite levels that are hardly larger
/// than it.
pub(crate) fn last_fast_level(options: &Options, sizes: &Resolved) -> u8 {
    let deepest = MAX_LEVELS as u8 - 1;
    if options.tiers.len() == 1 {
        return deepest;
    }
    let mut size = SpacePlan::new(options, sizes).levels / options.level_ratio;
    let mut level = 2;
    // At least two levels remain for the slow tier.
    while size / options.level_ratio >= 4 * sizes.memtable_size && level < deepest - 2 {
        size /= options.level_ratio;
        level += 1;
    }
    level
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(capacity: u64) -> (SpacePlan, u8) {
        let options = Options::two_tiers("/f", capacity, "/s");
        let sizes = options.resolve().unwrap();
        (
            SpacePlan::new(&options, &sizes),
            last_fast_level(&options, &sizes),
        )
    }

    #[test]
    fn levels_and_headroom_add_up_to_the_capacity() {
        for capacity in [4 << 20, 100 << 20, 10 << 30, 1 << 40] {
            let (plan, _) = plan(capacity);
            assert_eq!(plan.levels + plan.headroom, capacity);
            assert!(plan.levels >= capacity / 3, "{capacity}: {plan:?}");
        }
    }

    #[test]
    fn a_larger_fast_tier_has_more_levels() {
        assert_eq!(plan(4 << 20).1, 2);
        assert!(plan(1 << 40).1 > plan(10 << 30).1);
        assert_eq!(
            last_fast_level(
                &Options::one_tier("/f"),
                &Options::one_tier("/f").resolve().unwrap()
            ),
            6
        );
    }
}
