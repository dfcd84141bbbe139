//! What scripts reached: a script that stays in the memtable proves little.

use thermocline::{Db, Purpose};

use crate::verdict::Tally;
use crate::work_done::count_work;

/// A run that has not reached these is a failure.
pub(super) const REACHED: &[&str] = &[
    "crossings",
    "tables moved",
    "rewrites",
    "jobs into middle levels",
    "bytes on the last tier",
    "bytes promoted by flush",
    "bytes promoted by compaction",
    "bytes retained",
    "bytes past the last fast level",
    "bytes copied to the fast tier",
    "failed conditions",
    "reopenings",
    "checkpoints",
    "ingestions",
    #[cfg(feature = "flash-cache")]
    "reads from flash",
];

/// Adds what the store has done since it was opened.
pub(super) fn look_at(db: &Db, tally: &mut Tally) {
    let metrics = db.metrics();
    for io in metrics.tiers.iter().take(1).flat_map(|tier| &tier.io) {
        if io.purpose == Purpose::FlashCache {
            tally.add("reads from flash", io.read_ops);
        }
    }
    for job in &metrics.compactions {
        tally.add("tables moved", job.moves);
        tally.add("rewrites", job.jobs - job.moves);
        if job.to > 0 && usize::from(job.to) + 1 < metrics.levels.len() {
            tally.add("jobs into middle levels", job.jobs);
        }
    }
    if let Some(last) = metrics.tiers.last() {
        tally.add("bytes on the last tier", last.table_bytes);
    }
    count_work(&metrics, tally);
}
