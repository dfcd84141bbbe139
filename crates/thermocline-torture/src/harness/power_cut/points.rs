//! The power goes at a named point of the engine.

use std::sync::atomic::{AtomicUsize, Ordering};

use thermocline::storage::Fault;

use crate::life::Trial;

/// The places where something has just become durable, visible or claimed, or is about to.
pub(super) const POINTS: [&str; 36] = [
    "checkpoint.before_manifest",
    "checkpoint.linked",
    "commit.inserting",
    "commit.published",
    "compaction.before_edit",
    "compaction.claimed",
    "compaction.installed",
    "compaction.start",
    "compaction.table_written",
    "flush.before_edit",
    "flush.installed",
    "flush.start",
    "freeze.before_publish",
    "ingest.before_edit",
    "ingest.flushed",
    "ingest.installed",
    "ingest.logged",
    "manifest.after_current",
    "manifest.after_sync",
    "manifest.before_append",
    "manifest.before_current",
    "manifest.before_sync",
    "move.before_edit",
    "promotion.before_edit",
    "promotion.frozen",
    "promotion.installed",
    "promotion.start",
    "promotion.written",
    "ralt.before_state",
    "ralt.edit_written",
    "ralt.flush",
    "wal.after_hand_over",
    "wal.after_sync",
    "wal.before_hand_over",
    "wal.before_sync",
    "wal.rotate.after_create",
];

/// Cuts the power when `point` is reached for the `nth` time: the next call finds the disk gone,
/// and no call comes in between.
pub(super) fn cut_power_at(trial: &Trial, point: &'static str, nth: usize) {
    let disk = trial.disk.clone();
    let reached = AtomicUsize::new(0);
    trial.points.set(point, move || {
        if reached.fetch_add(1, Ordering::SeqCst) + 1 == nth {
            disk.fail_nth(1, Fault::PowerLoss);
        }
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::kill;

    /// A point that the engine does not have is never reached, and nobody would notice.
    #[test]
    fn every_point_is_one_of_the_engine() {
        for point in POINTS {
            assert!(kill::is_point(point), "{point}");
        }
    }
}
