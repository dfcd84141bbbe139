//! Which level a table of an ingestion comes to: the lowest on which it meets nothing, and above
//! which it meets nothing (I1).
//!
//! It comes there as a table does that moves down from L0 by an edit alone: it passes the levels
//! between, and has to keep others from bringing its keys to them until it is installed (I11).

use crate::key::KeyRange;
use crate::levels::{Cause, Plan, Running, Upper};
use crate::placement::Output;
use crate::sync::Arc;
use crate::version::{MAX_LEVELS, TableHandle, Version};

/// The plan by which `table` comes to its level, unless that is L0. `running` is what runs beside
/// it, and f is `last_fast`.
pub(super) fn plan_for(
    version: &Arc<Version>,
    running: &Running,
    table: &Arc<TableHandle>,
    last_fast: u8,
) -> Option<Plan> {
    let lowest = lowest(version, &table.meta.range);
    // A job that writes to one of the levels may be about to bring its keys there.
    let mut plans = (1..=lowest).rev().map(|level| Plan {
        from: 0,
        to: level,
        upper: Upper::Tables(vec![at(table, level)]),
        between: Vec::new(),
        lower: Vec::new(),
        outputs: vec![Output {
            level: level as u8,
            tier: table.meta.tier,
        }],
        is_crossing: level > usize::from(last_fast),
        bypass: None,
        version: Arc::clone(version),
        is_move: true,
        cause: Cause::Level,
    });
    plans.find(|plan| running.admits(plan))
}

/// The lowest level that a table of these keys may come to, as far as `version` tells.
fn lowest(version: &Version, range: &KeyRange) -> usize {
    let mut l0 = version.levels[0].tables.iter();
    if l0.any(|table| table.meta.range.meets(range)) {
        return 0;
    }
    let is_free = |level: &usize| version.levels[*level].overlapping(range).is_empty();
    (1..MAX_LEVELS).take_while(is_free).last().unwrap_or(0)
}

/// `table` as one of `level`.
pub(super) fn at(table: &Arc<TableHandle>, level: usize) -> Arc<TableHandle> {
    let mut handle = TableHandle::clone(table);
    handle.meta.level = level as u8;
    Arc::new(handle)
}
