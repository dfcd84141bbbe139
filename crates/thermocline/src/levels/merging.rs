//! The pass over one part of a compaction: what it reads, and where it writes.

use super::compaction::{Compaction, TakenPart};
use super::cut::Cutter;
use super::filter::VersionFilter;
use super::fresh::Held;
use super::heirs::Heirs;
use super::notes::{Done, Notes};
use super::pass::Pass;
use super::plan::{Between, Cause, Plan};
use super::readahead::readahead;
use super::sink::{Origin, Sink};
use super::spread::Places;
use crate::error::Result;
use crate::metrics::CompactionMetrics;
use crate::placement::{Joining, NoChoice, Output, Router, router_of};
use crate::points::point;
use crate::sync::Arc;
use crate::table::ScanOptions;
use crate::version::LevelIter;

/// About how many tables of the next level a table of a fast level meets at most. While a job is
/// near, room for what it writes is reserved on the fast tier, and hot records cannot have it.
pub(crate) const MOST_MET: u64 = 2;

impl Compaction {
    /// The notes of a pass over a part of `plan`.
    pub(super) fn notes(&self, plan: &Plan) -> Notes {
        let metrics = CompactionMetrics {
            write_bytes: vec![0; self.engine.tiers.len()],
            ..CompactionMetrics::default()
        };
        let held = self.tells(plan).then(Held::default);
        let range = plan
            .range()
            .filter(|_| held.is_some() && plan.bypass.is_none());
        let stayers = range.and_then(|range| self.engine.placement.stayers(&self.tree, &range));
        Notes {
            engine: Arc::clone(&self.engine),
            to: plan.to,
            below: Arc::clone(&self.below),
            bypass: plan.bypass.clone(),
            held,
            stayers,
            heirs: Heirs::new(Arc::clone(&self.densities), plan.outputs.len()),
            done: Done {
                metrics,
                ..Done::default()
            },
        }
    }

    /// Begins the pass over a part.
    ///
    /// # Errors
    /// Those of reading the inputs.
    pub(super) fn begin_pass(&self, taken: TakenPart) -> Result<Pass> {
        let TakenPart {
            plan, part, places, ..
        } = taken;
        // I6: claimed before anything is read.
        let joining = self.claim(&plan);
        point!(self.engine.points, "compaction.claimed")?;

        let uppers = plan.upper.runs(plan.from);
        let cursors = uppers + plan.between.len() + 1;
        let uppers = uppers + plan.fast_between().count();
        let how = ScanOptions {
            purpose: plan.purpose(),
            readahead: readahead(cursors),
            fill_cache: false,
            to_end: true,
        };
        let until = part.until.as_ref();
        let mut children = plan.upper.cursors(plan.from, how, until);
        for Between { tables, .. } in &plan.between {
            let iter = LevelIter::new(Arc::new(tables.clone()), how).until(part.until.clone());
            children.push(Box::new(iter));
        }
        let lower = Arc::new(plan.lower.clone());
        children.push(Box::new(LevelIter::within(lower, part.lower.clone(), how)));
        if joining.is_some() {
            point!(self.engine.points, "crossing.claimed")?;
        }
        let router = self.router(&plan, joining.as_ref());
        if let Some(joining) = joining {
            children.push(Box::new(joining));
        }
        let snapshots = &self.engine.snapshots;
        let filter = VersionFilter::new(snapshots.boundaries(|| self.engine.visible()));
        let sinks = self.sinks(&plan, places);
        let keys = (part.from, part.until);
        Pass::within(children, uppers, filter, router, sinks, keys)
    }

    /// Does what a crossing has to do before it reads (I6). Returns the records that join the
    /// merge.
    pub(super) fn claim(&self, plan: &Plan) -> Option<Joining> {
        let engine = &self.engine;
        let claim = || {
            engine
                .placement
                .claim(engine, &self.tree, plan, self.number)
        };
        plan.is_crossing.then(claim).flatten()
    }

    fn router(&self, plan: &Plan, joining: Option<&Joining>) -> Box<dyn Router> {
        if !plan.is_crossing {
            return Box::new(NoChoice);
        }
        let choice = self.engine.placement.choice(&self.tree, plan, joining);
        router_of(plan, choice)
    }

    fn sinks(&self, plan: &Plan, places: Vec<Places>) -> Vec<Sink> {
        let epoch = plan.inputs().map(|table| table.meta.epoch).max();
        let origin = Origin {
            purpose: plan.purpose(),
            epoch: epoch.unwrap_or(0),
            replaces: plan.inputs().map(|table| table.meta.id).collect(),
        };
        let outputs = plan.outputs.iter().zip(&self.table_sizes).zip(places);
        let sinks = outputs.map(|((output, size), places)| {
            let cutter = self.cutter(plan, *output, *size);
            Sink::new(output.level, origin.clone(), places, *size, cutter)
        });
        sinks.collect()
    }

    fn cutter(&self, plan: &Plan, output: Output, size: u64) -> Cutter {
        // A table that changes its tier stays one.
        if plan.cause == Cause::SmallTables || plan.is_migration() {
            // They become one table: otherwise there would be no fewer of them.
            return Cutter::never();
        }
        let home = self
            .engine
            .placement
            .last_fast_home(self.tree.last_fast_level);
        let is_above_lf = output.level < home;
        // On the fast tier, the room for the output of a job is scarce.
        let most_met = if is_above_lf && self.engine.tiers.len() > 1 {
            MOST_MET * size
        } else {
            u64::MAX
        };
        Cutter::new(&self.below, usize::from(output.level), size, most_met)
    }
}
