//! What placement keeps for each keyspace, and how it changes with the tables.

use super::Brought;
use super::hotrap::{FrozenPromotion, PromotionGate, Taken};
use super::shares::Share;
use crate::memtable::Memtable;
use crate::read::PromotionView;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicU64};

/// What the edit that is being installed came from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Installed<'a> {
    /// This memtable became a table.
    Flush(&'a Arc<Memtable>),
    /// A compaction on one side of level f.
    Compaction,
    /// The compaction of this number, from level f or the one above it to a level below f. It
    /// brought these records up.
    Crossing(u64, &'a Brought),
    /// This promotion cache became a table.
    Promotion(&'a FrozenPromotion),
    /// An ingestion, which came below level f under the claims of these numbers.
    Ingestion(&'a [u64]),
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

/// What placement keeps for a keyspace.
#[derive(Debug, Default)]
pub(crate) struct OfKeyspace {
    /// Records of the slow tier that wait for their promotion.
    pub(crate) gate: PromotionGate,
    /// Its part of the memory for promotion caches, 0 to 1. It is the same as its part of the fast
    /// tier when that was last worked out.
    pub(super) promotion_share: Share,
    /// Bytes that its hot records take of the fast tier, or would take, when that was last worked
    /// out.
    pub(crate) hot_bytes: AtomicU64,
    /// Whether a promotion by flush is queued or runs; there is never more than one.
    pub(super) promoting: AtomicBool,
}

impl OfKeyspace {
    /// What readers see of it now.
    pub(crate) fn view(&self) -> PromotionView {
        self.gate.view()
    }

    /// Publishes the result of `what`: calls `publish` with what readers are to see of placement
    /// from now on. So far they saw `now`. Returns the records that a crossing takes out of
    /// readers' sight.
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
            Installed::Ingestion(jobs) => self.gate.install_ingested(jobs, publish),
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
