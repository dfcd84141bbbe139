//! What the store costs, and what moves for it.

use crate::metrics::CostReport;
use crate::metrics::human::bytes;
use crate::metrics::section::Section;

impl CostReport {
    pub(super) fn text(&self) -> Section {
        let mut section = Section::new("Cost");
        section.pair("target", self.target.to_string());
        section.pair(
            "now",
            format!(
                "{:.4} $/GB/month, {:.2} $ a month for {}",
                self.now,
                self.dollars_per_month,
                bytes(self.data_bytes)
            ),
        );
        if let Some((floor, ceiling)) = self.bounds() {
            section.pair("possible", format!("{floor:.4} to {ceiling:.4} $/GB/month"));
        }
        section.pair("to move", bytes(self.moving_bytes));
        if let Some(why) = &self.held_up_by {
            section.pair("held up", why.clone());
        }
        section.pair(
            "migrations",
            format!(
                "{} tables, {} up, {} down",
                self.migrations,
                bytes(self.migrated_up_bytes),
                bytes(self.migrated_down_bytes)
            ),
        );
        section.pair(
            "by compactions",
            format!(
                "{} tables, {}",
                self.migrations_by_compaction,
                bytes(self.migrated_by_compaction_bytes)
            ),
        );
        section
    }
}
