//! Sizes of RALT's parts. All follow from the fast tier's size, so that a small store fills,
//! flushes and evicts like a large one. Limits follow from what is planned for the tier, all else
//! from its capacity.

use crate::options::HotRapOptions;

/// Tables of the first level that wait to be merged. The more they are, the less often what lies
/// below is rewritten for them.
pub(super) const LEVEL0_TABLES: usize = 8;

/// The same before the first eviction, while little lies below. Only merges show what it means that
/// a record was read once, and until then everything that is read is promoted.
pub(super) const FIRST_TABLES: usize = 2;

/// The most bytes of what a flush takes in, and of a table.
///
/// Both grow with the fast tier, and with them what a level holds: so access records go through as
/// few levels, and are written as often, however large the tier is. And both are in memory while
/// they are written: what one flush sorts, as much again that waits meanwhile (`backlog`), and what
/// a table knows of each of its records. That is 460 MB at most.
const MOST_AT_ONCE: u64 = 64 << 20;

/// A tier without a capacity may be of any size: it has buffers as one of so many bytes.
const UNLIMITED_AS: u64 = 2 << 30;

/// By how much each level is larger than the one above (§3.2).
const LEVEL_RATIO: u64 = 10;

/// Derived sizes, in bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sizes {
    /// What is buffered when a flush is due.
    pub(super) flush: u64,
    /// What may be buffered while flushes lag behind; more is dropped.
    pub(super) backlog: u64,
    /// One buffer.
    pub(super) chunk: usize,
    /// A table, and its data blocks.
    pub(super) table: u64,
    pub(super) block: usize,
    /// Input of one step of a merge.
    pub(super) step: u64,
    /// Edits of so few bytes stay in the state's file, however short it is otherwise.
    pub(super) few_edits: u64,
    /// γ: a time slice.
    pub(super) slice: u64,
    /// L_hs and R_hs, between which the hot set's limit stays.
    pub(super) hot_set_min: u64,
    pub(super) hot_set_max: u64,
    /// D_hs: records that are not stable yet.
    pub(super) unstable: u64,
    /// The limits before the first eviction.
    pub(super) hot_set_initial: u64,
    pub(super) physical_initial: u64,
    /// The bounds of the limit of access records: a few flushes must fit, and most of the fast tier
    /// is for what is hot. To know all of the largest hot set takes 0.15 of the tier if records
    /// have 200 bytes. If they have less than 100, it is worth more to have room for what is known.
    pub(super) physical_min: u64,
    pub(super) physical_max: u64,
    /// Bytes of access records that are too many whatever their limit, which may be half of the
    /// tier. If so many find no space to be merged, there is little else that could go and make
    /// some.
    pub(super) physical_most: u64,
    /// What the limit of access records leaves for those that wait to be merged.
    pub(super) unmerged: u64,
}

impl Sizes {
    /// For a fast tier of `capacity` bytes, of which `planned` are meant to be used. Scores are of
    /// slices, which must not change with what is planned.
    pub(super) fn new(options: &HotRapOptions, capacity: u64, planned: u64) -> Self {
        let part = |of: u64, fraction: f64| (of as f64 * fraction) as u64;
        let share = |fraction: f64| part(planned, fraction);
        let sized = match capacity {
            u64::MAX => UNLIMITED_AS,
            capacity => capacity,
        };
        let flush = (sized / 500).clamp(4 << 10, MOST_AT_ONCE);
        let table = (sized / 400).clamp(16 << 10, MOST_AT_ONCE);
        let hot_set_max = share(options.hot_set_max);
        let physical_min = 4 * flush;
        let physical_initial = share(options.ralt_initial).max(physical_min);
        Self {
            flush,
            backlog: (4 * flush).clamp(32 << 10, 2 * MOST_AT_ONCE),
            chunk: (flush as usize / 32).clamp(512, 64 << 10),
            table,
            block: (table as usize / 32).clamp(512, 8 << 10),
            step: 4 * table,
            few_edits: flush / 4,
            slice: part(capacity, options.slice).max(1),
            hot_set_min: share(options.hot_set_min),
            hot_set_max,
            unstable: (hot_set_max as f64 * options.unstable) as u64,
            hot_set_initial: share(options.hot_set_initial),
            physical_initial,
            physical_min,
            physical_max: physical_initial.max(planned / 4),
            physical_most: capacity / 4 * 3,
            unmerged: flush * LEVEL0_TABLES as u64,
        }
    }

    /// The same for one of `parts` of the table, with as many records fewer: there are as many
    /// tables, levels and slices as in the whole.
    #[cfg(feature = "experiments")]
    pub(super) fn one_of(self, parts: u64) -> Self {
        let chunk = (self.chunk as u64 / parts).max(512) as usize;
        let table = self.table / parts;
        Self {
            flush: self.flush / parts,
            backlog: self.backlog / parts,
            chunk,
            table,
            block: self.block.min(table as usize / 32).max(512),
            step: self.step / parts,
            few_edits: self.few_edits,
            slice: (self.slice / parts).max(1),
            hot_set_min: self.hot_set_min / parts,
            hot_set_max: self.hot_set_max / parts,
            unstable: self.unstable / parts,
            hot_set_initial: self.hot_set_initial / parts,
            physical_initial: self.physical_initial / parts,
            physical_min: self.physical_min / parts,
            physical_max: self.physical_max / parts,
            physical_most: self.physical_most / parts,
            unmerged: self.unmerged / parts,
        }
    }

    /// What level `level`, at least 1, holds before it is merged into the next.
    pub(super) fn level_target(&self, level: usize) -> u64 {
        let ratio = LEVEL_RATIO.saturating_pow(u32::try_from(level).unwrap_or(u32::MAX));
        self.unmerged.saturating_mul(ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_stay_in_proportion_from_a_hundred_kilobytes_to_no_limit() {
        let options = HotRapOptions::default();
        for capacity in [100 << 10, 400 << 10, 100 << 20, 10 << 30, 1 << 50, u64::MAX] {
            let sizes = Sizes::new(&options, capacity, capacity);
            assert!(sizes.chunk as u64 * 4 <= sizes.flush, "{capacity}");
            assert!(sizes.flush < sizes.backlog, "{capacity}");
            assert!(sizes.block as u64 * 8 <= sizes.table, "{capacity}");
            assert!(sizes.physical_min <= sizes.physical_initial, "{capacity}");
            assert!(sizes.physical_initial < sizes.physical_max, "{capacity}");
            assert!(sizes.physical_max < sizes.physical_most, "{capacity}");
            assert!(sizes.step <= capacity, "{capacity}");
            assert!(sizes.hot_set_min + sizes.unstable < sizes.hot_set_max);
            assert!(sizes.level_target(1) < sizes.level_target(2));
        }
    }

    #[test]
    fn limits_follow_what_is_planned_and_slices_the_capacity() {
        let options = HotRapOptions::default();
        let capacity = 100 << 20;
        let whole = Sizes::new(&options, capacity, capacity);
        let half = Sizes::new(&options, capacity, capacity / 2);
        let smaller = Sizes::new(&options, capacity / 2, capacity / 2);
        let limits = |sizes: &Sizes| {
            let hot_set = [sizes.hot_set_min, sizes.hot_set_initial, sizes.hot_set_max];
            (
                hot_set,
                sizes.unstable,
                [sizes.physical_initial, sizes.physical_max],
            )
        };
        assert_eq!(limits(&half), limits(&smaller));
        let fixed = |sizes: &Sizes| (sizes.slice, sizes.flush, sizes.table, sizes.physical_most);
        assert_eq!(fixed(&half), fixed(&whole));
    }
}
