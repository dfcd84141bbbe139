//! How the fast tier's room is divided.

use crate::options::{MEMTABLES, Options, Resolved};

/// How the room on the fast tier is spent (I8). All in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpacePlan {
    /// For the tables of L1 to Lf once every level is at its target.
    pub(crate) levels: u64,
    /// For the tables of L0 until they are compacted.
    pub(crate) l0: u64,
    /// For a flash cache, if there is one: all but the log's part and enough free space to keep
    /// writers at full speed.
    pub(crate) flash_cache: u64,
    /// What compactions leave free for the log and for flushes, so that writers need not wait
    /// for a compaction to end.
    pub(crate) margin: u64,
}

impl SpacePlan {
    /// How `room` bytes of the fast tier are spent.
    pub(crate) fn new(options: &Options, sizes: &Resolved, room: u64) -> Self {
        let log = planned_log(sizes);
        let l0 = sizes.l0_trigger as u64 * sizes.memtable_size;
        // The output of one compaction from level to level, whose inputs stay until it is
        // installed. A larger job, such as L0's, first makes room by moving tables of Lf down.
        let job = (options.level_ratio + 2) * sizes.table_size;
        // On a tiny tier all of that may be more than there is. Then half of the tier goes to the
        // levels, and jobs that find no room write to the last tier.
        let levels = room.saturating_sub(log + l0 + job).max(room / 2);
        // Placement by hotness wants every byte for hot records, and makes do with a smaller
        // margin.
        let memtables = MEMTABLES - u64::from(options.hotrap().is_some());
        let margin = (memtables * sizes.memtable_size).min((room - levels) / 4);
        let flash_cache = if options.has_flash_cache() {
            let kept = log + margin + sizes.memtable_size;
            room.saturating_sub(kept.saturating_add(options.log_retention))
        } else {
            0
        };
        Self {
            levels,
            l0,
            flash_cache,
            margin,
        }
    }
}

/// What the log of unflushed memtables takes, in bytes.
pub(crate) fn planned_log(sizes: &Resolved) -> u64 {
    (MEMTABLES + 1) * sizes.memtable_size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_get_most_of_the_tier_and_leave_room_for_the_rest() {
        for capacity in [4 << 20, 100 << 20, 10 << 30, 1 << 40] {
            let options = Options::two_tiers("/f", capacity, "/s");
            let plan = SpacePlan::new(&options, &options.resolve().unwrap(), capacity);
            assert!(plan.levels + plan.margin < capacity, "{capacity}: {plan:?}");
            assert!(plan.levels >= capacity / 5 * 4, "{capacity}: {plan:?}");
        }
    }
}
