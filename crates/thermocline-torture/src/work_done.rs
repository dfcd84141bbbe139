//! What a store has done by itself. A run in which nothing moved between tiers proves little.

use thermocline::Purpose;
use thermocline::metrics::Metrics;

use crate::verdict::Tally;

/// Adds the work behind the writers since the store was opened.
pub(crate) fn count_work(metrics: &Metrics, tally: &mut Tally) {
    tally.add("flushes", metrics.flushes);
    for job in &metrics.compactions {
        let slow: u64 = job.write_bytes.iter().skip(1).sum();
        let from_fast = job.read_bytes.first().is_some_and(|bytes| *bytes > 0);
        if from_fast && slow > 0 {
            tally.add("crossings", job.jobs);
        }
    }
    let io = metrics.tiers.iter().flat_map(|tier| &tier.io);
    let copied = io.filter(|io| io.purpose == Purpose::Copy);
    let copied = copied.map(|io| io.write_bytes).sum();
    tally.add("bytes copied to the fast tier", copied);
    if let Some(hotrap) = &metrics.hotrap {
        for (what, count) in [
            ("bytes promoted by flush", hotrap.promoted_flush_bytes),
            (
                "bytes promoted by compaction",
                hotrap.promoted_compaction_bytes,
            ),
            ("bytes retained", hotrap.retained_bytes),
            ("bytes past the last fast level", hotrap.bypassed_bytes),
            ("evictions of access records", hotrap.ralt.evictions),
        ] {
            tally.add(what, count);
        }
    }
}
