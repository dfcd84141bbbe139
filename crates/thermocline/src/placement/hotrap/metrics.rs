//! What placement by hotness counts, and what is hot.

use super::HotRap;
use crate::engine::Engine;
use crate::error::Result;
use crate::metrics::{Activity, HeatReport, HotRapMetrics, RaltMetrics, Refusal};
use crate::sync::atomic::{AtomicU64, Ordering};

impl HotRap {
    pub(super) fn counted(&self, engine: &Engine) -> HotRapMetrics {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counted = &self.promotions;
        let trees = engine.all_trees();
        HotRapMetrics {
            ralt: RaltMetrics {
                cpu_seconds: engine.cpu.seconds(Activity::Ralt),
                ..self.ralt.metrics()
            },
            promotion_cache_bytes: trees.iter().map(|tree| tree.placed.gate.bytes()).sum(),
            promoted_flush_bytes: get(&counted.by_flush),
            promoted_compaction_bytes: get(&counted.by_compaction),
            retained_bytes: get(&counted.retained),
            bypassed_bytes: get(&counted.bypassed),
            admission_attempts: get(&counted.attempts),
            admission_refused: Refusal::ALL
                .iter()
                .map(|why| (*why, get(&counted.refused[*why as usize])))
                .collect(),
            dropped_cold: get(&counted.dropped_cold),
            voided_flushes: get(&counted.voided),
            crossings: trees
                .iter()
                .map(|tree| tree.placed.gate.claims() as u64)
                .sum(),
        }
    }

    /// What is hot and what is not.
    pub(super) fn heat_report(&self, engine: &Engine, most: usize) -> Result<HeatReport> {
        let name = |id| {
            let tree = engine.tree(id)?;
            Some(String::from_utf8_lossy(&tree.name).into_owned())
        };
        let mut report = self.ralt.heat(most, &name)?;
        for tree in engine.all_trees() {
            // Before compression, as the curve counts. Files are shorter by their tier's
            // compression.
            report.data_bytes = report.data_bytes.saturating_add(tree.raw_bytes());
        }
        Ok(report)
    }
}
