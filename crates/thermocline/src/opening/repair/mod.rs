//! Repair: a manifest made anew from the tables and the log of a store that no longer opens.
//!
//! | module | what it does |
//! |---|---|
//! | `report` | what a repair says |
//! | `evidence` | what is left: edits of manifests, tables by their own properties |
//! | `live` | which tables belong to the store, where no manifest says so |
//! | `plan` | what the new manifest is to name, and what is lost |
//! | `merge` | tables written anew from what can be read |
//! | `carry_out` | the changes, none of which destroys what was there |
//!
//! Where the manifest is whole it decides. Where it is not, levels and epochs cannot be known
//! (tables move by an edit alone), so every keyspace is merged into one level by sequence number:
//! I1 then holds whatever the order was. `docs/format.md` has the argument for which tables count.

mod carry_out;
mod evidence;
mod live;
mod merge;
mod plan;
mod report;

use evidence::Evidence;
use plan::Plan;
pub use report::{Loss, RepairReport};

use super::open::open_tiers;
use super::unfinished;
use crate::error::Result;
use crate::opening::request::Request;

/// Finds out what is wrong with the store and, unless it is a dry run, sets it right.
pub(crate) fn repair(request: &Request, dry_run: bool) -> Result<RepairReport> {
    let sizes = request.options.resolve()?;
    let (tiers, _locks) = open_tiers(request, false)?;
    // An unfinished store never had what it lacks: a repair would call what little is there the
    // store.
    unfinished::refuse(&tiers[0], &tiers)?;
    let evidence = Evidence::gather(request, &tiers)?;
    let mut plan = Plan::new(request, &sizes, &tiers, evidence)?;
    if dry_run || plan.nothing_to_do() {
        return Ok(plan.report());
    }
    carry_out::carry_out(request, &tiers, &mut plan)?;
    let mut report = plan.report();
    report.repaired = true;
    Ok(report)
}
