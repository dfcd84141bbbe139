//! The organizer at work: it ends epochs, and finds what is to move.

use std::time::Duration;

use super::ByTable;
use crate::engine::Engine;
use crate::executor::{Job, Lane, Step};
use crate::metrics::Activity;
use crate::placement::organizing::{Stock, Which, organize};
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::table::Cooling;

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
        let since_target = self.migrations.since_target();
        let latencies = self.reads.lock().latencies();
        let stock = Stock::take(engine, Which::All, since_target, latencies);
        let beside = self.migrations.most_beside(engine, stock.beside);
        let budget = stock.budget(dollars, beside);
        if self.switches.tails {
            self.keep_tails(engine, &stock, budget);
        }
        let budget = (budget - stock.copies).max(0.0);
        let organized = organize(
            &stock.candidates,
            &stock.tiers,
            budget,
            self.switches.resistance,
        );
        self.migrations.take(&organized, &stock);
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

    fn end_epoch(&self, engine: &Engine) {
        let Some(length) = self.epochs.end(engine.clock.now()) else {
            return;
        };
        end_epoch_of_tables(engine, length, self.cooling());
        if self
            .ended
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(SPAN)
        {
            engine.fast().begin_span();
        }
        let mut reads = self.reads.lock();
        reads.end_epoch(engine, length, self.cooling());
        drop(reads);
        engine.pursue(&self.reads);
    }
}

/// Works out the temperatures anew after an epoch of this `length`.
fn end_epoch_of_tables(engine: &Engine, length: Duration, cooling: Cooling) {
    for tree in engine.all_trees() {
        let version = tree.version();
        version
            .tables()
            .for_each(|table| table.lazy.heat().end_epoch(length, cooling));
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
        // To look for a compaction takes longer than to organize.
        if policy.migrations.are_wanted() {
            engine.schedule_compactions();
        }
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
