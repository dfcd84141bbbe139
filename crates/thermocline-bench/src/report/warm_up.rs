//! What was done before a run was measured.

use serde::Serialize;

use crate::accounts::ActivitySeries;
use crate::run::{Second, WarmedUp};

/// The part before the run. Nothing of it counts in the run's own figures. `null`, or empty, if
/// there was none.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WarmUpResult {
    /// Operations.
    pub warm_up_ops: Option<u64>,
    /// Bytes that compactions read.
    pub warm_up_compaction_read_bytes: Option<u64>,
    /// Bytes that compactions wrote.
    pub warm_up_compaction_write_bytes: Option<u64>,
    /// Bytes of records promoted as tables of L0.
    pub warm_up_promoted_flush_bytes: Option<u64>,
    /// Bytes of records promoted by compactions.
    pub warm_up_promoted_compaction_bytes: Option<u64>,
    /// Bytes of records that compactions kept on the fast tier.
    pub warm_up_retained_bytes: Option<u64>,
    /// Second by second, since it began.
    pub warm_up_series: Vec<Second>,
    /// What each entry of `warm_up_series` took, by activity.
    pub warm_up_activity_series: ActivitySeries,
}

impl WarmUpResult {
    /// The result of what was `done`, if anything was.
    pub(super) fn new(done: Option<WarmedUp>) -> Self {
        let Some(done) = done else {
            return Self::default();
        };
        let (counters, hotness) = (&done.counters, done.counters.hotness);
        Self {
            warm_up_ops: Some(done.ops),
            warm_up_compaction_read_bytes: counters.compaction_read_bytes,
            warm_up_compaction_write_bytes: counters.compaction_write_bytes,
            warm_up_promoted_flush_bytes: hotness.map(|hot| hot.promoted_flush_bytes),
            warm_up_promoted_compaction_bytes: hotness.map(|hot| hot.promoted_compaction_bytes),
            warm_up_retained_bytes: hotness.map(|hot| hot.retained_bytes),
            warm_up_activity_series: ActivitySeries::new(&done.spent_by_second),
            warm_up_series: done.series,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::{Counters, HotCounters};

    #[test]
    fn each_number_of_a_warm_up_has_its_own_name_in_the_json() {
        let done = WarmedUp {
            ops: 1,
            seconds: 2.0,
            series: Vec::new(),
            spent_by_second: Vec::new(),
            counters: Counters {
                compaction_read_bytes: Some(3),
                compaction_write_bytes: Some(4),
                hotness: Some(HotCounters {
                    promoted_flush_bytes: 5,
                    promoted_compaction_bytes: 6,
                    retained_bytes: 7,
                    ..HotCounters::default()
                }),
                ..Counters::default()
            },
        };
        let json = serde_json::to_value(WarmUpResult::new(Some(done))).unwrap();
        for (name, number) in [
            ("ops", 1),
            ("compaction_read_bytes", 3),
            ("compaction_write_bytes", 4),
            ("promoted_flush_bytes", 5),
            ("promoted_compaction_bytes", 6),
            ("retained_bytes", 7),
        ] {
            assert_eq!(json[format!("warm_up_{name}")], number, "{name}");
        }
    }
}
