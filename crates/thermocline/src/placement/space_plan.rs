//! How the fast tier's room is divided.

use crate::error::Result;
use crate::options::{MEMTABLES, Options, Resolved};

/// What a store takes of the first tier beside the records that it keeps there, in bytes
/// ([`Options::planned_space`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedSpace {
    /// The log of all that is in memtables.
    pub log: u64,
    /// New tables until they are compacted.
    pub l0: u64,
    /// What a compaction writes beside what it replaces. It is there for a moment only.
    pub job: u64,
    /// The most that records take that count as hot. None unless placement is by hotness.
    pub hot_set: Option<u64>,
}

impl PlannedSpace {
    fn new(options: &Options, sizes: &Resolved, room: u64) -> Self {
        let hot_set = |share: f64| (room as f64 * share) as u64;
        Self {
            log: planned_log(sizes),
            l0: sizes.l0_trigger as u64 * sizes.memtable_size,
            // The output of one compaction from level to level, whose inputs stay until it is
            // installed. A larger job, such as L0's, first makes room by moving tables of Lf down.
            job: (options.level_ratio + 2) * sizes.table_size,
            hot_set: options.hotrap().map(|hotrap| hot_set(hotrap.hot_set_max)),
        }
    }
}

impl Options {
    /// What a store with these settings would take of its first tier beside the records that it
    /// keeps there. So one can tell what a fast disk is good for before there is one.
    ///
    /// ```
    /// let space = thermocline::Options::two_tiers("/fast", 1 << 30, "/slow").planned_space()?;
    /// assert_eq!((space.log, space.job), (32 << 20, 80 << 20));
    /// # Ok::<(), thermocline::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Options::validate`].
    pub fn planned_space(&self) -> Result<PlannedSpace> {
        let sizes = self.resolve()?;
        Ok(PlannedSpace::new(self, &sizes, self.tiers[0].capacity))
    }
}

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
        let PlannedSpace { log, l0, job, .. } = PlannedSpace::new(options, sizes, room);
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

    /// The example of docs/architecture.md, "Tiers and space".
    #[test]
    fn what_is_beside_the_records_follows_from_the_capacity() {
        let mut options = Options::two_tiers("/f", 1 << 30, "/s");
        let space = options.planned_space().unwrap();
        assert_eq!(
            (space.log, space.l0, space.job),
            (32 << 20, 40 << 20, 80 << 20)
        );
        assert_eq!(space.hot_set, Some((1 << 30) / 10 * 7 + 2));
        options.placement = crate::options::Placement::ByTable;
        let space = options.planned_space().unwrap();
        assert_eq!((space.l0, space.hot_set), (48 << 20, None));
        options.tiers[0].capacity = 1 << 10;
        assert!(options.planned_space().is_err());
    }

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
