//! What a crossing does with the promotion cache's records of its keys (HotRAP, §3.1).

use bytes::Bytes;

use super::cache::Promoted;
use super::gate::{Claim, Taken};
use super::records::RecordsIter;
use crate::compaction::Plan;
use crate::db::{Engine, Tree};
use crate::placement::Router;
use crate::placement::hotrap::{BypassRouter, HotRouter};
use crate::sync::Arc;
use crate::sync::atomic::Ordering;

impl Engine {
    /// Claims the keys of the crossing `plan`, whose number is `job`, and takes their records out of
    /// the promotion caches (I6). The hot ones come back, to join the merge; the others are
    /// dropped.
    pub(crate) fn claim_crossing(&self, tree: &Tree, plan: &Plan, job: u64) -> RecordsIter {
        let Some(range) = plan.hull() else {
            return RecordsIter::new(Vec::new());
        };
        let taken = tree.promotion.claim(Claim {
            job,
            range,
            level: plan.from,
            inputs: plan.upper.iter().map(|table| table.meta.id).collect(),
        });
        let joins = plan.outputs.len() > 1 && self.switches().promotion_by_compaction;
        let hot = taken.into_iter().filter(|(key, promoted)| {
            let hot = self.is_hot(tree, key);
            if !hot {
                self.promotions.dropped_cold.fetch_add(1, Ordering::Relaxed);
            }
            self.log_access(tree.id, key, promoted.value.len(), promoted.reads());
            // Where nothing of the crossing stays on the fast tier the hot ones are dropped, too, for want of room.
            hot && joins
        });
        RecordsIter::new(hot.collect::<Vec<(Bytes, Arc<Promoted>)>>())
    }

    /// Tells RALT of the reads of records that are no longer in a promotion cache.
    pub(crate) fn count_reads_of(&self, tree: &Tree, taken: &Taken) {
        for (key, promoted) in taken {
            self.log_access(tree.id, key, promoted.value.len(), promoted.reads());
        }
    }

    /// Whether a record that was read from the slow tier is worth promoting. To be asked before what the promotion cache has counted
    /// is logged: the read that brought the record is taken for one that RALT does not know of.
    pub(super) fn is_hot(&self, tree: &Tree, key: &[u8]) -> bool {
        let Some(ralt) = &self.ralt else {
            return false;
        };
        // An empty fast tier helps nobody: while it has room, or nothing was ever forgotten, what
        // was read is as good as hot.
        let is_generous = ralt.is_generous() || self.has_spare_room.load(Ordering::Relaxed);
        is_generous || !self.switches().hotness_check || ralt.is_hot_with_a_read(tree.id, key)
    }

    /// The router of a crossing that the records of `promoted` take part in; none when there is no
    /// choice.
    pub(crate) fn crossing_router(
        &self,
        tree: &Tree,
        plan: &Plan,
        promoted: &RecordsIter,
    ) -> Option<Box<dyn Router>> {
        let ralt = self.ralt.as_ref()?;
        let hull = plan.hull().filter(|_| plan.outputs.len() > 1)?;
        let hot = ralt.hot_keys(tree.id, &hull);
        let input = plan.upper.iter().map(|table| table.raw_bytes()).sum();
        let (promoted, switches) = (promoted.keys(), self.switches());
        let crossing = HotRouter::new(hull, input, hot, promoted, switches);
        Some(match &plan.bypass {
            None => Box::new(crossing),
            Some(bypass) => Box::new(BypassRouter::new(bypass.clone(), input, crossing)),
        })
    }
}
