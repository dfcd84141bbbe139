//! How much has changed its tier, and by which jobs.

use crate::levels::Plan;
use crate::metrics::CostReport;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::table::TableMeta;

/// Tables that came to another tier since the store was opened.
#[derive(Debug, Default)]
pub(super) struct Counted {
    migrations: AtomicU64,
    /// Their bytes.
    up: AtomicU64,
    down: AtomicU64,
    /// Tables that compactions wrote there (compaction-migration, §4.3.1), and their bytes.
    by_compaction: AtomicU64,
    by_compaction_bytes: AtomicU64,
}

impl Counted {
    /// A job of `plan` has written `tables`.
    pub(super) fn note(&self, plan: &Plan, tables: &[TableMeta]) {
        match plan.is_migration() {
            true => self.note_migration(plan, tables),
            false => self.note_compaction(plan, tables),
        }
    }

    fn note_migration(&self, plan: &Plan, tables: &[TableMeta]) {
        let (Some(from), Some(to)) = (plan.upper.tables().first(), plan.outputs.first()) else {
            return;
        };
        let moved = match to.tier < from.meta.tier {
            true => &self.up,
            false => &self.down,
        };
        moved.fetch_add(bytes_of(tables), Ordering::Relaxed);
        self.migrations.fetch_add(1, Ordering::Relaxed);
    }

    fn note_compaction(&self, plan: &Plan, tables: &[TableMeta]) {
        let inputs = || plan.inputs().map(|input| &input.meta);
        let moved = tables.iter().filter(|table| is_moved(table, inputs()));
        for table in moved {
            self.by_compaction.fetch_add(1, Ordering::Relaxed);
            self.by_compaction_bytes
                .fetch_add(table.len, Ordering::Relaxed);
        }
    }

    pub(super) fn add_to(&self, report: &mut CostReport) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        report.migrations = read(&self.migrations);
        report.migrated_up_bytes = read(&self.up);
        report.migrated_down_bytes = read(&self.down);
        report.migrations_by_compaction = read(&self.by_compaction);
        report.migrated_by_compaction_bytes = read(&self.by_compaction_bytes);
    }
}

fn bytes_of(tables: &[TableMeta]) -> u64 {
    tables.iter().map(|table| table.len).sum()
}

/// Whether none of the `inputs` that `table` was made of lay on its tier. They are those with keys
/// in its range.
fn is_moved<'a>(table: &TableMeta, inputs: impl Iterator<Item = &'a TableMeta>) -> bool {
    let mut inputs = inputs.filter(|input| input.range.meets(&table.range));
    inputs.all(|input| input.tier != table.tier)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::key::KeyRange;

    fn table(tier: u8, first: &'static str, last: &'static str) -> TableMeta {
        TableMeta {
            id: 1,
            keyspace: 0,
            level: 1,
            tier,
            epoch: 0,
            len: 1,
            entries: 1,
            deletes: 0,
            min_seq: 1,
            max_seq: 1,
            ingested: false,
            range: KeyRange {
                first: Bytes::from_static(first.as_bytes()),
                last: Bytes::from_static(last.as_bytes()),
            },
            content: None,
        }
    }

    #[test]
    fn a_table_has_moved_if_nothing_of_its_keys_lay_on_its_tier() {
        let inputs = [
            table(0, "a", "c"),
            table(1, "d", "f"),
            table(0, "m", "p"),
            table(1, "o", "s"),
        ];
        for (tier, first, last, moved) in [
            (1, "a", "b", true),
            (0, "a", "b", false),
            (0, "d", "e", true),
            (1, "c", "d", false),
            (0, "c", "d", false),
            (2, "c", "d", true),
            (1, "m", "n", true),
            (1, "n", "o", false),
        ] {
            let table = table(tier, first, last);
            let is = is_moved(&table, inputs.iter());
            assert_eq!(is, moved, "{first} to {last} on tier {tier}");
        }
    }
}
