//! What placement keeps of a keyspace, and how that changes with the tables.

use super::Brought;
use super::hotrap::{FrozenPromotion, PromotionGate, Taken};
use super::shares::Share;
use crate::memtable::Memtable;
use crate::read::PromotionView;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicU64};

/// What an edit that is installed came from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Installed<'a> {
    /// This memtable became a table.
    Flush(&'a Arc<Memtable>),
    /// A compaction on one side of level f.
    Compaction,
    /// The compaction of this number, to a level below f from f or the one above, which brought
    /// these up.
    Crossing(u64, &'a Brought),
    /// This promotion cache became a table.
    Promotion(&'a FrozenPromotion),
}

impl Installed<'_> {
    /// The place in L0 that was reserved for it (I2).
    pub(crate) fn place(&self) -> Option<u64> {
        match self {
            Installed::Promotion(frozen) => Some(frozen.epoch),
            _ => None,
        }
    }
}

/// What placement keeps of a keyspace.
#[derive(Debug, Default)]
pub(crate) struct OfKeyspace {
    /// What of the slow tier waits for its promotion.
    pub(crate) gate: PromotionGate,
    /// Its part of the memory for promotion caches, 0 to 1: that of the fast tier, as of late.
    pub(super) promotion_share: Share,
    /// What its hot records take of the fast tier, or would, as of late, in bytes.
    pub(crate) hot_bytes: AtomicU64,
    /// Whether a promotion by flush is queued or runs; there is never more than one.
    pub(super) promoting: AtomicBool,
}

impl OfKeyspace {
    /// What readers see of it now.
    pub(crate) fn view(&self) -> PromotionView {
        self.gate.view()
    }

    /// Has what came of `what` published, by `publish`, with what readers are to see of it from now
    /// on; so far they saw `now`. Records that a crossing takes out of readers' sight come back.
    pub(crate) fn install(
        &self,
        what: Installed<'_>,
        now: &PromotionView,
        publish: impl FnOnce(PromotionView),
    ) -> Taken {
        match what {
            // I6: from running to installed under the gate's lock.
            Installed::Crossing(job, brought) => return self.gate.install(job, brought, publish),
            Installed::Promotion(frozen) => {
                self.gate.drop_frozen(&frozen.cache);
                publish(self.gate.view());
            }
            Installed::Flush(_) | Installed::Compaction => publish(now.clone()),
        }
        Taken::new()
    }

    /// Ends the claim of the crossing `job`, if it came to nothing.
    pub(crate) fn release(&self, job: u64) {
        self.gate.release(job);
    }

    /// Lets go of everything, for a keyspace that was dropped.
    pub(crate) fn empty(&self, publish: impl FnOnce(PromotionView)) {
        self.gate.empty(publish);
    }
}
