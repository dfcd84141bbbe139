//! Merging of small tables: neighbours of one level, where they lie.

use super::{Manual, Meant, Picker};
use crate::levels::MOST_MET;
use crate::levels::plan::{Cause, Plan, union};
use crate::sync::Arc;
use crate::version::{MAX_LEVELS, TableHandle};

/// How many tables one such job merges at most: it begins reading each of them.
const MOST_MERGED: usize = 256;

/// How many tables a level of `bytes` may have, if a full table has `size` bytes.
fn most_tables(bytes: u64, size: u64) -> u64 {
    bytes.saturating_mul(2) / size.max(1) + 8
}

impl Picker<'_> {
    /// The merge of neighbours of a level that has more tables than its bytes need. Rising keys
    /// bring tables that meet nothing and move down as they are: no other compaction would ever
    /// merge those.
    pub(super) fn pick_small(&self) -> Option<Plan> {
        // What lies in a run is soon merged with all that lies below it.
        let is_run = |level: &usize| self.targets.runs().contains(level);
        let levels = (1..MAX_LEVELS).filter(|level| !is_run(level));
        { levels }.find_map(|level| {
            let here = &self.version.levels[level];
            let is_over =
                here.tables.len() as u64 > most_tables(here.bytes, self.table_size(level));
            is_over.then(|| self.cheapest_merge(level))?
        })
    }

    /// The next merge of small tables of `level` that are `meant`, however few they are: the first
    /// in key order.
    pub(crate) fn pick_small_of(&self, level: usize, meant: &Meant) -> Manual {
        let is_meant = |table: &TableHandle| meant.holds(level, table);
        let tables = &self.version.levels[level].tables;
        let is_busy = |table: &Arc<TableHandle>| is_meant(table) && self.running.has_input(table);
        if tables.iter().any(is_busy) {
            return Manual::Wait;
        }
        let run =
            (0..tables.len()).find_map(|start| self.runs_from(level, start, &is_meant).last());
        self.manual(run.map(|run| Some(self.merge(level, run))))
    }

    /// Among the runs on `level` that may become one table, merges the one that takes the fewest
    /// bytes for each table that goes. So tables of like size are merged, and a byte is written
    /// anew at most as often as its table doubles.
    fn cheapest_merge(&self, level: usize) -> Option<Plan> {
        let starts = 0..self.version.levels[level].tables.len();
        let runs = starts.flat_map(|start| self.runs_from(level, start, &|_| true));
        let cost = |run: &&[Arc<TableHandle>]| {
            let bytes: u64 = run.iter().map(|table| table.meta.len).sum();
            bytes / (run.len() as u64 - 1)
        };
        self.admit(self.merge(level, runs.min_by_key(cost)?))
    }

    fn merge(&self, level: usize, run: &[Arc<TableHandle>]) -> Plan {
        self.in_place(level, run.to_vec(), Cause::SmallTables)
    }

    /// Runs of two and more neighbours on `level`, from the table numbered `start` on, that may
    /// become one table, the shortest first.
    fn runs_from<'a>(
        &'a self,
        level: usize,
        start: usize,
        may: &'a dyn Fn(&TableHandle) -> bool,
    ) -> impl Iterator<Item = &'a [Arc<TableHandle>]> {
        let tables = &self.version.levels[level].tables[start..];
        let tier = self.output(level).tier;
        let mut bytes = 0;
        let fits = move |table: &&Arc<TableHandle>| {
            bytes += table.meta.len;
            let is_free = table.meta.tier == tier && !self.running.has_input(table);
            is_free && may(table) && bytes <= self.table_size(level)
        };
        let fitting = tables.iter().take(MOST_MERGED).take_while(fits).count();
        let runs = (2..=fitting).map(|len| &tables[..len]);
        runs.take_while(move |run| !self.meets_too_much(level, run))
    }

    /// Whether a table in place of `run` would meet more of the next level than a table of a fast
    /// level above f should: the room for what its move down writes is kept from hot records.
    fn meets_too_much(&self, level: usize, run: &[Arc<TableHandle>]) -> bool {
        let Some(hull) = union(run.iter()).filter(|_| level < self.targets.last_fast()) else {
            return false;
        };
        let next = &self.version.levels[level + 1];
        let met: u64 = next.overlapping(&hull).iter().map(|t| t.meta.len).sum();
        self.tiers[0] != self.tiers[1] && met > MOST_MET * self.table_size(level + 1)
    }
}
