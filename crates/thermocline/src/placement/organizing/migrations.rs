//! What is to move, and starting it.

use std::collections::HashSet;

use super::Stock;
use super::counted::Counted;
use super::organizer::Organized;
use super::queue::{Queue, Wanted};
use crate::engine::{Engine, Tree};
use crate::ids::FileId;
use crate::levels::{Densities, Plan, Spread};
use crate::metrics::CostReport;
use crate::placement::Output;
use crate::sync::{Arc, Mutex};
use crate::table::TableMeta;

/// While the store costs too much, at least one job in so many brings a table down: compactions
/// that are always due must not keep the bill high.
const ONE_IN: u32 = 4;

/// What the last look has found, and what has moved since the store was opened.
#[derive(Debug, Default)]
pub(in crate::placement) struct Migrations {
    queue: Mutex<Queue>,
    counted: Counted,
}

impl Migrations {
    /// The number of the first table that was written since the target was set.
    pub(in crate::placement) fn since_target(&self) -> FileId {
        self.queue.lock().since_target
    }

    /// The target was set, and the next table has the number `next`: what the last target has moved
    /// may move again.
    pub(in crate::placement) fn target_set(&self, next: FileId) {
        self.queue.lock().since_target = next;
    }

    /// The most of late that is paid for what comes and goes. Now it is `beside`.
    pub(in crate::placement) fn most_beside(&self, engine: &Engine, beside: f64) -> f64 {
        let now = engine.clock.now();
        self.queue.lock().beside.note(now, beside)
    }

    /// Takes over what was `organized` of the tables of `stock`.
    pub(in crate::placement) fn take(&self, organized: &Organized, stock: &Stock) {
        let moves = organized.moves.iter().map(|wanted| {
            let (keyspace, table) = stock.names[wanted.candidate];
            Wanted {
                keyspace,
                table,
                to: wanted.to,
            }
        });
        let tiers = organized.thresholds.iter().zip(&organized.left);
        let tiers = tiers.map(|((tier, least), (_, left))| (*tier, *least, *left));
        let mut queue = self.queue.lock();
        queue.moves = moves.collect();
        queue.is_over = organized.is_over;
        queue.tiers = tiers.collect();
    }

    /// Whether a table is to move.
    pub(in crate::placement) fn are_wanted(&self) -> bool {
        !self.queue.lock().moves.is_empty()
    }

    /// The next migration that can start, of the wanted ones.
    pub(in crate::placement) fn next(&self, engine: &Engine) -> Option<(Arc<Tree>, Plan)> {
        let wanted: Vec<Wanted> = self.queue.lock().moves.iter().copied().collect();
        if wanted.is_empty() {
            return None;
        }
        let mut trees = engine.all_trees().into_iter();
        if trees.any(|tree| tree.state.lock().running.migrating_bytes() > 0) {
            return None;
        }
        let mut wanted = wanted.into_iter();
        wanted.find_map(|wanted| {
            let tree = engine.tree(wanted.keyspace)?;
            let state = tree.state.lock();
            let plan = tree.with_picker(engine, &state, false, |picker| {
                picker.pick_migration(wanted.table, wanted.to)
            })?;
            drop(state);
            Some((tree, plan))
        })
    }

    /// Whether one is wanted that has room.
    pub(in crate::placement) fn is_due(&self, engine: &Engine) -> bool {
        let migration = self.next(engine);
        migration.is_some_and(|(_, mut plan)| engine.reserve_for(&mut plan).is_ok())
    }

    /// Takes note that `plan` has begun.
    pub(in crate::placement) fn note_start(&self, plan: &Plan) {
        let mut queue = self.queue.lock();
        if !plan.is_migration() {
            queue.since_migration = queue.since_migration.saturating_add(1);
            return;
        }
        queue.since_migration = 0;
        let table = plan.upper.tables().first().map(|table| table.meta.id);
        queue.moves.retain(|wanted| Some(wanted.table) != table);
    }

    /// A job of `plan` has written `tables`.
    pub(in crate::placement) fn note_written(&self, plan: &Plan, tables: &[TableMeta]) {
        self.counted.note(plan, tables);
    }

    /// Whether a migration is to start before anything else.
    pub(in crate::placement) fn is_overdue(&self) -> bool {
        let queue = self.queue.lock();
        queue.is_over && queue.since_migration + 1 >= ONE_IN
    }

    /// Which of the tables that `plan` writes at `output` lie on faster tiers than that.
    pub(in crate::placement) fn spread(&self, plan: &Plan, output: Output) -> Spread {
        let tiers = self.queue.lock().tiers.clone();
        let densities = Densities::new(plan, self.unknown_density());
        let faster = tiers.into_iter().filter(|(tier, _, _)| *tier < output.tier);
        let faster = faster.map(|(tier, least, left)| {
            // What comes from there makes room for as much. Not so L0: its room is for the next
            // flushes.
            let comes = plan
                .inputs()
                .filter(|t| t.meta.tier == tier && t.meta.level > 0);
            let comes: u64 = comes.map(|table| table.meta.len).sum();
            (tier, least, left.saturating_add(comes))
        });
        Spread::new(Arc::new(densities), faster.collect())
    }

    /// About as hot as the coldest table of the fastest tier: where that is full it goes to the
    /// next one.
    pub(in crate::placement) fn unknown_density(&self) -> f64 {
        let queue = self.queue.lock();
        let least = queue.tiers.first().map_or(0.0, |(_, least, _)| *least);
        match least.is_finite() {
            true => least.next_down().max(0.0),
            false => 0.0,
        }
    }

    /// Adds what has moved and what is on the way to `report`.
    pub(in crate::placement) fn add_to(&self, engine: &Engine, report: &mut CostReport) {
        self.counted.add_to(report);
        report.moving_bytes += self.moving_bytes(engine);
    }

    /// Bytes of tables that wait for their migration or are on the way.
    fn moving_bytes(&self, engine: &Engine) -> u64 {
        let wanted: HashSet<_> = {
            let queue = self.queue.lock();
            queue.moves.iter().map(|w| (w.keyspace, w.table)).collect()
        };
        let mut bytes = 0;
        for tree in engine.all_trees() {
            let version = tree.version();
            let is_wanted = |id| wanted.contains(&(tree.id, id));
            let moving = version.tables().filter(|table| is_wanted(table.meta.id));
            bytes += moving.map(|table| table.meta.len).sum::<u64>();
            bytes += tree.state.lock().running.migrating_bytes();
        }
        bytes
    }
}
