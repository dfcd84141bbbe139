//! Compactions for the sake of deletes, and of other records that hide much: what they hide takes
//! room until they come to it.

use super::Picker;
use crate::key::KeyRange;
use crate::levels::plan::{Cause, Plan, union};
use crate::read::Passed;
use crate::sync::Arc;
use crate::version::{MAX_LEVELS, TableHandle};

const LAST: usize = MAX_LEVELS - 1;

/// Deletes are due if they are at least one in this many of the records in their range, from their
/// level down. Each delete hides at most one record below it. So hidden records are never much more
/// than a third of those that are seen, and for each delete at most this many records are written
/// anew, level by level.
const DUE: u64 = 4;

/// The same for superseded bytes, when somebody asks for a compaction.
pub(super) const DUE_BY_HAND: u64 = 16;

/// A job has to give back at least one in this many bytes of a full table, if each delete hides a
/// record of average length.
pub(super) const WORTH_A_JOB: u64 = 16;

impl Picker<'_> {
    /// The compaction of a table, or of all of L0, whose deletes or other records are due, upper
    /// levels first. It brings them a level down. It writes the table anew in place if the deletes
    /// hide nothing further down, or if the table keeps older versions of its own records.
    pub(super) fn pick_for_hidden(&self) -> Option<Plan> {
        (0..MAX_LEVELS)
            .find_map(|level| match level {
                0 => self.l0_for_hidden(),
                _ => self.level_for_hidden(level),
            })
            .map(|plan| plan.because(Cause::Hidden))
    }

    fn l0_for_hidden(&self) -> Option<Plan> {
        let tables = self.l0();
        let is_due = self.are_due(0, tables, &union(tables.iter())?);
        is_due.then(|| self.pick_l0(usize::MAX)).flatten()
    }

    fn level_for_hidden(&self, level: usize) -> Option<Plan> {
        let tables = self.version.levels[level].tables.iter();
        let due = tables.filter(|table| {
            let of_one = std::slice::from_ref(*table);
            !self.running.has_input(table)
                && (self.are_due(level, of_one, &table.meta.range) || self.keeps_much(table, DUE))
        });
        due.into_iter().find_map(|table| {
            if self.drops(table, level) || self.keeps_much(table, DUE) {
                return self.admit(self.rewrite(level, table));
            }
            let plan = self.plan(level, vec![Arc::clone(table)])?;
            self.admit(plan)
        })
    }

    /// Whether `tables` of `level`, which lie within `range`, are due for what they hide. They are
    /// not while a reader may need some of it: that would stay, and they would be due again at
    /// once.
    fn are_due(&self, level: usize, tables: &[Arc<TableHandle>], range: &KeyRange) -> bool {
        let is_free = |table: &Arc<TableHandle>| table.meta.max_seq <= self.oldest_reader;
        tables.iter().all(is_free)
            && (tables.iter().any(|table| self.was_passed(table))
                || self.delete_much(level, tables, range)
                || self.supersede_much(level, tables, range, DUE))
    }

    fn delete_much(&self, level: usize, tables: &[Arc<TableHandle>], range: &KeyRange) -> bool {
        let deletes = tables.iter().map(|table| table.meta.deletes);
        let deletes = deletes.fold(0, u64::saturating_add);
        let below = self.version.levels.iter().skip(level + 1);
        let below = below.flat_map(|level| level.overlapping(range));
        let (mut records, mut bytes) = (0_u64, 0_u64);
        for table in tables.iter().chain(below).take_while(|_| deletes > 0) {
            records = records.saturating_add(table.meta.entries);
            bytes = bytes.saturating_add(table.raw_bytes());
        }
        let freed = u128::from(deletes) * u128::from(bytes) / u128::from(records.max(1));
        let least = u128::from(self.table_sizes.least / WORTH_A_JOB);
        deletes > 0 && deletes.saturating_mul(DUE) >= records && freed >= least
    }

    /// Whether `table` has deletes, and an iterator has since passed many where the table lies.
    fn was_passed(&self, table: &TableHandle) -> bool {
        let is_meant = |passed: &Passed| {
            table.meta.deletes > 0
                && table.meta.max_seq <= passed.seq
                && passed.range.meets(&table.meta.range)
        };
        self.passed.is_some_and(is_meant)
    }

    /// The next crossing that takes deletes and other records of level f that are `meant` down to
    /// what they hide.
    pub(crate) fn pick_hiding(&self, meant: &super::Meant) -> super::Manual {
        let f = self.targets.last_fast();
        let hides = |table: &Arc<TableHandle>| {
            let of_one = std::slice::from_ref(table);
            table.meta.min_seq <= self.oldest_reader
                && (table.meta.deletes > 0 && !self.drops(table, f)
                    || self.supersede_much(f, of_one, &table.meta.range, DUE_BY_HAND))
        };
        let here = self.version.levels[f].tables.iter();
        let mut tables = here.filter(|table| f < LAST && meant.holds(f, table) && hides(table));
        self.manual(
            tables
                .next()
                .map(|table| self.plan(f, vec![Arc::clone(table)])),
        )
    }
}
