//! What a crossing does with the promotion cache's records of its keys (HotRAP, §3.1).

use bytes::Bytes;

use super::cache::Promoted;
use super::gate::{Claim, Taken};
use super::records::Joining;
use crate::engine::{Engine, Tree};
use crate::levels::Plan;
use crate::placement::Choice;
use crate::placement::hotrap::HotRap;
use crate::placement::hotrap::choice::HotChoice;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;

impl HotRap {
    /// Claims the keys of the crossing `plan`, whose number is `job`, and takes their records out
    /// of the promotion caches (I6). Returns the hot ones, to join the merge; the others are
    /// dropped.
    pub(crate) fn claim_crossing(
        &self,
        engine: &Engine,
        tree: &Tree,
        plan: &Plan,
        job: u64,
    ) -> Joining {
        let Some(range) = plan.hull() else {
            return Joining::new(Vec::new());
        };
        let taken = tree.placed.gate.claim(Claim {
            job,
            range,
            level: plan.from,
            inputs: plan
                .upper
                .tables()
                .iter()
                .map(|table| table.meta.id)
                .collect(),
        });
        let joins = plan.outputs.len() > 1 && self.switches.promotion_by_compaction;
        let hot = taken.into_iter().filter(|(key, promoted)| {
            let hot = self.is_hot(tree, key);
            if !hot {
                self.promotions.dropped_cold.fetch_add(1, Ordering::Relaxed);
            }
            self.log_access(engine, tree.id, key, promoted.value.len(), promoted.reads());
            // If nothing of the crossing stays on the fast tier, the hot ones are dropped, too, for
            // want of room.
            hot && joins
        });
        Joining::new(hot.collect::<Vec<(Bytes, Arc<Promoted>)>>())
    }

    /// Tells RALT of the reads of records that are no longer in a promotion cache.
    pub(crate) fn count_reads_of(&self, engine: &Engine, tree: &Tree, taken: &Taken) {
        for (key, promoted) in taken {
            self.log_access(engine, tree.id, key, promoted.value.len(), promoted.reads());
        }
    }

    /// Whether a record that was read from the slow tier is worth promoting. Ask before the reads
    /// that the promotion cache has counted are logged: the answer assumes that RALT does not know
    /// of the read that brought the record.
    pub(super) fn is_hot(&self, tree: &Tree, key: &[u8]) -> bool {
        // An empty fast tier helps nobody: while it has room, or nothing was ever forgotten, what
        // was read is as good as hot.
        let is_generous = self.ralt.is_generous() || self.has_spare_room.load(Ordering::Relaxed);
        is_generous || !self.switches.hotness_check || self.ralt.is_hot_with_a_read(tree.id, key)
    }

    /// The choice in a crossing that the records of `promoted` take part in; none if nothing of it
    /// may stay.
    pub(crate) fn crossing_choice(
        &self,
        tree: &Tree,
        plan: &Plan,
        promoted: &Joining,
    ) -> Option<Box<dyn Choice>> {
        let hull = plan.hull().filter(|_| plan.outputs.len() > 1)?;
        let switches = self.switches;
        Some(Box::new(HotChoice {
            hot: self.ralt.hot_keys(tree.id, &hull),
            promoted: promoted.keys().into_iter().peekable(),
            retains: switches.retention,
            // Without retention, the job after a bypass would send down again what came up, and so
            // on without end.
            promotes: switches.promotion_by_compaction
                && (switches.retention || plan.bypass.is_none()),
        }))
    }
}
