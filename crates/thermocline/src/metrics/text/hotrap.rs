//! What is hot, and what moved because of it.

use super::seconds;
use crate::metrics::HotRapMetrics;
use crate::metrics::human::{bytes, percent};
use crate::metrics::section::Section;

impl HotRapMetrics {
    pub(super) fn text_hotness(&self) -> Section {
        let ralt = &self.ralt;
        let mut section = Section::new("Hotness");
        let filled = |size, limit| {
            let share = percent(size, limit);
            format!("{} of {} ({share})", bytes(size), bytes(limit))
        };
        section.pair(
            "hot set",
            filled(ralt.hot_set_bytes, ralt.hot_set_limit_bytes),
        );
        section.pair(
            "access records",
            format!(
                "{}, {}",
                ralt.records,
                filled(ralt.physical_bytes, ralt.physical_limit_bytes)
            ),
        );
        section.pair("memory", bytes(ralt.memory_bytes));
        section.pair(
            "scores",
            format!(
                "hot from {:.3}, forgotten below {:.3}",
                ralt.hot_threshold, ralt.evicted_threshold
            ),
        );
        let state = match (ralt.has_stopped, ralt.is_young, ralt.is_generous) {
            (true, ..) => "has stopped: nothing more is learnt",
            (false, true, true) => "young: every record read counts as hot",
            (false, true, false) => "young: no record is read more than others so far",
            (false, false, true) => "learning a hotspot: every record read counts as hot",
            (false, false, false) => "has told hot from cold",
        };
        section.pair("state", state.to_owned());
        section.pair(
            "accesses",
            format!(
                "{}, {} dropped, now slice {}",
                ralt.accesses, ralt.dropped_accesses, ralt.tick
            ),
        );
        section.pair("evictions", ralt.evictions.to_string());
        section.pair(
            "work",
            format!(
                "{} of processor time, {} read, {} written",
                seconds(ralt.cpu_seconds),
                bytes(ralt.read_bytes),
                bytes(ralt.write_bytes)
            ),
        );
        if let Some(trouble) = &ralt.trouble {
            section.pair("TROUBLE", trouble.clone());
        }
        section
    }

    pub(super) fn text_promotion(&self) -> Section {
        let mut section = Section::new("Promotion");
        section.pair("waiting in memory", bytes(self.promotion_cache_bytes));
        section.pair(
            "by flush",
            format!(
                "{}, {} voided",
                bytes(self.promoted_flush_bytes),
                self.voided_flushes
            ),
        );
        section.pair("by compaction", bytes(self.promoted_compaction_bytes));
        section.pair("kept by compactions", bytes(self.retained_bytes));
        section.pair("past the last fast level", bytes(self.bypassed_bytes));
        section.pair("dropped as cold", format!("{} records", self.dropped_cold));
        section.pair(
            "offered",
            format!(
                "{} records, {} refused ({})",
                self.admission_attempts,
                self.refused(),
                percent(self.refused(), self.admission_attempts)
            ),
        );
        for (reason, count) in &self.admission_refused {
            let reason = reason.name().replace('_', " ");
            section.pair(&format!("refused: {reason}"), count.to_string());
        }
        section.pair("crossings under way", self.crossings.to_string());
        section
    }
}
