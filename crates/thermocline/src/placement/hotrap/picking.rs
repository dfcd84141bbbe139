//! What the compaction picker is told about hotness.

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

    /// What a bypass of level f is worth, if no room on the fast tier waits to be filled.
    pub(super) fn worth_of_bypass(&self, tree: &Tree) -> Option<BypassWorth> {
        let fresh = self.fresh(tree);
        let may = fresh > 0.0 && !self.has_spare_room.load(Ordering::Relaxed);
        may.then(|| BypassWorth {
            fresh,
            cold: tree.averages.cold(),
        })
    }

    /// The part of the bytes coming down from the level above f that may bypass level f.
    pub(crate) fn fresh(&self, tree: &Tree) -> f64 {
        match self.switches.bypass {
            true => tree.averages.fresh(),
            false => 0.0,
        }
    }
}

/// Each time RALT has changed, about so many of level f's tables at most have their hot bytes
/// estimated anew.
const ESTIMATES_A_CHANGE: u64 = 64;

/// Hotness of one keyspace's tables, by RALT.
struct HotTables<'a> {
    ralt: &'a Ralt,
    keyspace: KeyspaceId,
    /// Changes of RALT, at least, after which a table's hot bytes are estimated anew.
    stale: u64,
}

impl Hotness for HotTables<'_> {
    fn hot_bytes(&self, table: &TableHandle) -> u64 {
        // RALT counts keys and values before compression, the picker bytes of files.
        let raw = table.raw_bytes().max(1);
        let find = || self.ralt.hot_bytes(self.keyspace, &table.meta.range);
        // Each table waits for a different number of changes: estimates that were made together
        // would otherwise all be made anew together.
        let stale = self.stale + table.meta.id % (self.stale + 1);
        let hot = table.hot.bytes(self.ralt.changes(), stale, find);
        (table.meta.len as f64 * (hot.min(raw) as f64 / raw as f64)) as u64
    }
}
