//! What the store does in every case.

use thermocline::storage::Operation;
use thermocline::{HotRapOptions, Placement};

use super::super::calls::Calls;
use crate::life::{Hotness, SIDE, Step, Trial, tiny_options};
use crate::verdict::Violation;

/// Flushes, compacts across tiers, reads until records come up in each way, forgets what was read,
/// checkpoints and reopens.
pub(super) const SCRIPT: &[Step] = &[
    Step::Write(30),
    Step::CreateKeyspace(SIDE),
    Step::Write(300),
    Step::Idle,
    Step::Read,
    Step::Idle,
    Step::Write(121),
    Step::Read,
    Step::Checkpoint,
    Step::Write(120),
    Step::Ingest(40),
    Step::Read,
    Step::Compact,
    Step::Read,
    Step::Reopen,
    Step::Read,
    Step::Write(61),
    Step::Sync,
    Step::Flush,
    Step::Idle,
];

/// The store that is about to go through the script. It is always the same one, so that a number
/// means the same call in every case.
pub(super) fn store() -> Trial {
    let mut trial = Trial::new(1);
    trial.options = tiny_options();
    trial.options.placement = Placement::HotRap(HotRapOptions {
        // So small that it forgets within the script.
        hot_set_initial: 0.1,
        hot_set_max: 0.2,
        hot_set_min: 0.05,
        ..HotRapOptions::default()
    });
    trial
}

/// The script without a fault.
pub(super) struct Healthy {
    /// Every call of it, in order.
    pub(super) calls: Vec<Operation>,
    /// What placement by hotness did.
    pub(super) hotness: Hotness,
    /// Whether tables came to lie on the slow tier.
    pub(super) crossed: bool,
}

/// Runs the script without a fault.
pub(super) fn healthy() -> Result<Healthy, Violation> {
    let mut trial = store();
    let calls = Calls::of(&trial.disk);
    trial
        .run(SCRIPT)
        .map_err(|stop| stop.unexpected("without a fault"))?;
    let metrics = trial.db().map(|db| db.metrics());
    let metrics = metrics.map_err(|stop| stop.unexpected("without a fault"))?;
    trial.hotness.note(&metrics);
    Ok(Healthy {
        calls: calls.so_far(),
        hotness: trial.hotness,
        crossed: metrics.tiers.last().is_some_and(|t| t.table_bytes > 0),
    })
}
