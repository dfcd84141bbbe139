//! What promotion counts.

use crate::metrics::Refusal;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Counters of a store since it was opened, in bytes unless they say otherwise.
#[derive(Debug, Default)]
pub(crate) struct PromotionStats {
    /// Records offered to promotion caches.
    pub(crate) attempts: AtomicU64,
    /// Records that were not taken, by reason.
    pub(crate) refused: [AtomicU64; Refusal::ALL.len()],
    pub(crate) by_flush: AtomicU64,
    pub(crate) by_compaction: AtomicU64,
    pub(crate) retained: AtomicU64,
    pub(crate) bypassed: AtomicU64,
    /// Records dropped because they were not hot.
    pub(crate) dropped_cold: AtomicU64,
    /// Promotions by flush that came too late.
    pub(crate) voided: AtomicU64,
}

impl PromotionStats {
    pub(crate) fn count_refusal(&self, why: Refusal) {
        self.refused[why as usize].fetch_add(1, Ordering::Relaxed);
    }
}
