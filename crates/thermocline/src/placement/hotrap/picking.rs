//! What the picker of compactions is told of hotness.

use super::HotRap;
use super::ralt::Ralt;
use crate::engine::Tree;
use crate::ids::KeyspaceId;
use crate::levels::{BypassWorth, Hotness};
use crate::sync::atomic::Ordering;
use crate::version::{TableHandle, Version};

impl HotRap {
    /// How much of the tables of `tree` is hot.
    pub(super) fn hot_tables<'a>(
        &'a self,
        tree: &Tree,
        version: &Version,
    ) -> Box<dyn Hotness + 'a> {
        let level_f = &version.levels[usize::from(tree.last_fast_level)];
        Box::new(HotTables {
            ralt: &self.ralt,
            keyspace: tree.id,
            stale: level_f.tables.len() as u64 / ESTIMATES_A_CHANGE,
        })
    }

    /// What passing level f by is worth, if no room on the fast tier waits to be filled.
    pub(super) fn worth_of_bypass(&self, tree: &Tree) -> Option<BypassWorth> {
        let fresh = self.fresh(tree);
        let may = fresh > 0.0 && !self.has_spare_room.load(Ordering::Relaxed);
        may.then(|| BypassWorth {
            fresh,
            cold: tree.averages.cold(),
        })
    }

    /// The part of what comes down from the level above f that may pass level f by.
    pub(crate) fn fresh(&self, tree: &Tree) -> f64 {
        match self.switches.bypass {
            true => tree.averages.fresh(),
            false => 0.0,
        }
    }
}

/// For about so many of level f's tables at most it is found anew how much of them is hot, each
/// time that RALT has changed.
const ESTIMATES_A_CHANGE: u64 = 64;

/// Hotness of one keyspace's tables, by RALT.
struct HotTables<'a> {
    ralt: &'a Ralt,
    keyspace: KeyspaceId,
    /// After how many changes of RALT at least it is found anew.
    stale: u64,
}

impl Hotness for HotTables<'_> {
    fn hot_bytes(&self, table: &TableHandle) -> u64 {
        // RALT counts keys and values as they are, the picker bytes of files.
        let raw = table.raw_bytes().max(1);
        let find = || self.ralt.hot_bytes(self.keyspace, &table.meta.range);
        // Each has a patience of its own: estimates that were made together would all be made anew
        // together.
        let stale = self.stale + table.meta.id % (self.stale + 1);
        let hot = table.hot.bytes(self.ralt.changes(), stale, find);
        (table.meta.len as f64 * (hot.min(raw) as f64 / raw as f64)) as u64
    }
}
