//! How many levels the fast tier holds.

use super::SpacePlan;
use crate::options::{Options, Resolved};
use crate::version::MAX_LEVELS;

/// *f* for a new keyspace: the last level of a fast tier of `capacity` bytes. With one tier, the
/// last level of all.
///
/// L1 should hold several memtables, or each flush would rewrite levels that are hardly larger
/// than it.
pub(crate) fn last_fast_level(options: &Options, sizes: &Resolved, capacity: u64) -> u8 {
    let deepest = MAX_LEVELS as u8 - 1;
    if options.tiers.len() == 1 {
        return deepest;
    }
    let mut size = SpacePlan::new(options, sizes, capacity).levels / options.level_ratio;
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

    #[test]
    fn a_larger_fast_tier_has_more_levels() {
        let level = |options: Options, capacity: u64| {
            last_fast_level(&options, &options.resolve().unwrap(), capacity)
        };
        let of_two = |capacity| level(Options::two_tiers("/f", capacity, "/s"), capacity);
        assert_eq!(of_two(4 << 20), 2);
        assert!(of_two(1 << 40) > of_two(10 << 30));
        assert_eq!(level(Options::one_tier("/f"), u64::MAX), 6);
    }
}
