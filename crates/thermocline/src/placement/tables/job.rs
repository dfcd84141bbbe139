//! The organizer at work: it ends epochs, and finds what is to move.

use std::time::Duration;

use super::candidates::Stock;
use super::organizer::organize;
use super::queue::Wanted;
use super::{ByTable, KEPT_PER_SECOND, RESISTANCE};
use crate::engine::{Engine, Tree};
use crate::executor::{Job, Lane, Step};
use crate::levels::Plan;
use crate::metrics::Activity;
use crate::sync::Arc;
use crate::sync::atomic::Ordering;

/// While the store costs too much, at least one job in so many brings a table down: compactions
/// that are always due must not keep the bill high.
const ONE_IN: u32 = 4;

/// Epochs after which room that nobody has used is taken to be free for copies. With a target they
/// have what is paid for.
const SPAN: u64 = 30;

impl ByTable {
    /// Has the organizer look again, now or once it is done with its present look.
    pub(super) fn schedule_organizer(&self, engine: &Engine) {
        let (Some(held), Some(policy)) = (engine.me(), self.me.upgrade()) else {
            return;
        };
        if engine.background.writes_nothing() {
            return;
        }
        self.is_stale.store(true, Ordering::Release);
        if self.organizes.swap(true, Ordering::AcqRel) {
            return;
        }
        let job = Organizer {
            engine: held,
            policy,
        };
        engine.spawn(Lane::Hotness, Activity::Placement, job);
    }

    /// Finds what is to move.
    pub(super) fn organize(&self, engine: &Engine) {
        let dollars = engine.target.dollars();
        let since_target = self.queue.lock().since_target;
        let latencies = self.reads.lock().latencies();
        let stock = Stock::take(engine, since_target, latencies);
        let mut queue = self.queue.lock();
        let beside = queue.beside.note(engine.clock.now(), stock.beside);
        let budget = stock.budget(dollars, beside);
        self.keep_tails(engine, &stock, budget);
        let budget = (budget - stock.copies).max(0.0);
        let organized = organize(&stock.candidates, &stock.tiers, budget, RESISTANCE);
        let moves = organized.moves.iter().map(|wanted| {
            let (keyspace, table) = stock.names[wanted.candidate];
            Wanted {
                keyspace,
                table,
                to: wanted.to,
            }
        });
        queue.moves = moves.collect();
        queue.is_over = organized.is_over;
        let tiers = organized.thresholds.iter().zip(&organized.left);
        queue.tiers = tiers
            .map(|((tier, least), (_, left))| (*tier, *least, *left))
            .collect();
    }

    /// Has tails copied for at most `budget`, which they have before tables: a byte of a tail saves
    /// more reads than a byte of any table.
    fn keep_tails(&self, engine: &Engine, stock: &Stock, budget: f64) {
        let fast = engine.fast();
        let paid = match &stock.bill {
            Some(bill) if budget.is_finite() => Some((budget / bill.first_price()) as u64),
            _ => None,
        };
        fast.pay_for_copies(paid);
        self.copier.keep_to(engine, paid.unwrap_or(u64::MAX));
    }

    /// The next migration that can start, of the wanted ones.
    pub(super) fn next_migration(&self, engine: &Engine) -> Option<(Arc<Tree>, Plan)> {
        let mut trees = engine.all_trees().into_iter();
        if trees.any(|tree| tree.state.lock().running.migrating_bytes() > 0) {
            return None;
        }
        let wanted: Vec<Wanted> = self.queue.lock().moves.iter().copied().collect();
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

    /// Takes note that `plan` has begun.
    pub(super) fn note_start(&self, plan: &Plan) {
        let mut queue = self.queue.lock();
        if !plan.is_migration() {
            queue.since_migration = queue.since_migration.saturating_add(1);
            return;
        }
        queue.since_migration = 0;
        let table = plan.upper.tables().first().map(|table| table.meta.id);
        queue.moves.retain(|wanted| Some(wanted.table) != table);
    }

    /// Whether a migration is to start before anything else.
    pub(super) fn is_overdue(&self) -> bool {
        let queue = self.queue.lock();
        queue.is_over && queue.since_migration + 1 >= ONE_IN
    }

    fn end_epoch(&self, engine: &Engine) {
        let Some(length) = self.epochs.end(engine.clock.now()) else {
            return;
        };
        end_epoch_of_tables(engine, length);
        if self
            .ended
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(SPAN)
        {
            engine.fast().begin_span();
        }
        let mut reads = self.reads.lock();
        reads.end_epoch(engine, length, KEPT_PER_SECOND);
        drop(reads);
        engine.pursue(&self.reads);
    }
}

/// Works out the temperatures anew after an epoch of this `length`.
fn end_epoch_of_tables(engine: &Engine, length: Duration) {
    for tree in engine.all_trees() {
        let version = tree.version();
        version
            .tables()
            .for_each(|table| table.lazy.heat().end_epoch(length, KEPT_PER_SECOND));
    }
}

/// A look of the organizer.
struct Organizer {
    engine: Arc<Engine>,
    policy: Arc<ByTable>,
}

impl Job for Organizer {
    fn step(&mut self) -> Step {
        let (engine, policy) = (&self.engine, &self.policy);
        if engine.check_writable().is_err() {
            return Step::Done;
        }
        policy.is_stale.store(false, Ordering::Release);
        policy.end_epoch(engine);
        policy.organize(engine);
        engine.schedule_compactions();
        match policy.is_stale.load(Ordering::Acquire) {
            true => Step::Again,
            false => Step::Done,
        }
    }
}

impl Drop for Organizer {
    fn drop(&mut self) {
        self.policy.organizes.store(false, Ordering::Release);
        // Something may have changed between the last look and this.
        if self.policy.is_stale.load(Ordering::Acquire) && self.engine.check_writable().is_ok() {
            self.policy.schedule_organizer(&self.engine);
        }
        self.engine.executor.notify();
    }
}
