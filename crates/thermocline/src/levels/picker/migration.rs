//! Tables that change their tier and stay on their level.

use super::Picker;
use crate::ids::FileId;
use crate::levels::plan::{Cause, Plan};
use crate::placement::Output;
use crate::sync::Arc;
use crate::version::TableHandle;

impl Picker<'_> {
    /// Writes the table `id` anew on tier `to`, if it is there and lies elsewhere. The level gains
    /// no key by that, and no version of a key passes another (I1).
    pub(crate) fn pick_migration(&self, id: FileId, to: u8) -> Option<Plan> {
        let mut tables = self.below_l0();
        let (level, table) = tables.find(|(_, table)| table.meta.id == id)?;
        let goes = table.meta.tier != to;
        goes.then(|| self.admit(self.migration(level, table, to)))
            .flatten()
    }

    /// Brings the coldest table of the fast tier that `may` go to the slowest, with how urgent that
    /// is: the colder, the more.
    pub(crate) fn pick_coldest(&self, may: &dyn Fn(&TableHandle) -> bool) -> Option<(f64, Plan)> {
        let [fast, slow] = self.tiers;
        let goes = |table: &TableHandle| table.meta.tier == fast && fast != slow && may(table);
        let mut tables: Vec<(f64, usize, &Arc<TableHandle>)> = self
            .below_l0()
            .filter(|(_, table)| goes(table) && !self.running.has_input(table))
            .map(|(level, table)| (table.density(), level, table))
            .collect();
        tables.sort_by(|a, b| a.0.total_cmp(&b.0));
        tables.into_iter().find_map(|(density, level, table)| {
            Some((-density, self.admit(self.migration(level, table, slow))?))
        })
    }

    fn migration(&self, level: usize, table: &Arc<TableHandle>, to: u8) -> Plan {
        let mut plan = self.in_place(level, vec![Arc::clone(table)], Cause::Migration);
        plan.outputs = vec![Output {
            level: level as u8,
            tier: to,
        }];
        plan
    }

    fn below_l0(&self) -> impl Iterator<Item = (usize, &Arc<TableHandle>)> {
        let levels = self.version.levels.iter().enumerate().skip(1);
        levels.flat_map(|(level, here)| here.tables.iter().map(move |table| (level, table)))
    }
}
