//! Placement by hotness under a target: how much of the fast tier is paid for, and how that is
//! divided between hot records and copies of hot tables.
//!
//! Records come first, as far as RALT says that they are worth the fast tier. What is left of the
//! money, and what records have not filled yet, holds copies of the slow tables that are read most:
//! the reads that reach the slow tier are those that promotion has left over. A lower target is met
//! at once by dropping copies, and then by ordinary crossings; a higher one is used at once by
//! copies, and by records as they come up.

use std::time::Duration;

use super::HotRap;
use super::hot_room::HOT_SHARE;
use crate::engine::Engine;
use crate::error::Result;
use crate::executor::{Job, Lane, Step};
use crate::metrics::{Activity, CostReport};
use crate::options::Target;
use crate::placement::epochs::Epochs;
use crate::placement::price::Bill;
use crate::points::point;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};
use crate::table::Table;

/// By how much what records are worth has to change for their room to follow, as a part of what is
/// paid for: each change rewrites records or tables.
const WORTHWHILE: f64 = 0.02;

/// How much hotter a table has to be than one that has a copy to take its place.
const HOTTER: f64 = 1.1;

/// Looks between two estimates of how much is there twice.
const ESTIMATE_EACH: u32 = 10;

/// What the fast tier is paid for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Budget {
    /// Bytes of files and copies.
    paid: u64,
    /// Bytes of files: those for records, and everything else that lies there.
    files: u64,
}

impl Budget {
    /// Divides `paid` bytes of the fast tier. All but the last fast levels takes `others` of it,
    /// and hot records are worth `worth` on top. `before` is how it was divided so far.
    fn new(paid: u64, others: u64, worth: u64, before: Option<Self>) -> Self {
        let wanted = others.saturating_add(worth).min(paid);
        let hysteresis = (paid as f64 * WORTHWHILE) as u64;
        let files = match before {
            Some(before) if before.files.abs_diff(wanted) <= hysteresis => before.files.min(paid),
            _ => wanted,
        };
        Self { paid, files }
    }
}

/// The governor of an open store.
#[derive(Debug, Default)]
pub(super) struct Governor {
    epochs: Epochs,
    /// Whether its job is queued or runs.
    runs: AtomicBool,
    /// How the fast tier is divided; none without a target.
    budget: Mutex<Option<Budget>>,
    /// The part of the tables' bytes that is there twice, as the bits of a number, and how many
    /// looks ago that was estimated.
    twice: AtomicU64,
    looks: Mutex<u32>,
}

impl HotRap {
    /// Ends the epoch, if its time has come.
    pub(super) fn tick_governor(&self, engine: &Engine, now: Duration) {
        if self.governor.epochs.is_due(now) {
            self.schedule_governor(engine);
        }
    }

    pub(super) fn is_governing(&self) -> bool {
        self.governor.runs.load(Ordering::Acquire)
    }

    fn schedule_governor(&self, engine: &Engine) {
        let (Some(held), Some(hotrap)) = (engine.me(), self.me.upgrade()) else {
            return;
        };
        if engine.background.writes_nothing() || self.governor.runs.swap(true, Ordering::AcqRel) {
            return;
        }
        let job = GovernorJob {
            engine: held,
            hotrap,
        };
        engine.spawn(Lane::Hotness, Activity::Placement, job);
    }

    /// Divides the fast tier anew. `jumps` after a change of the target: what is hot then follows
    /// at once.
    pub(super) fn govern(&self, engine: &Engine, jumps: bool) {
        loop {
            let target = engine.target.get();
            let _: Result<()> = point!(engine.points, "governor.begun");
            self.divide(engine, target, jumps);
            // Whoever has set another one meanwhile may have divided the tier by it already.
            if engine.target.get() == target {
                return;
            }
        }
    }

    /// Divides the fast tier for `target`.
    fn divide(&self, engine: &Engine, target: Target, jumps: bool) {
        let fast = engine.fast();
        let Target::Cost(dollars) = target else {
            if self.governor.budget.lock().take().is_some() {
                fast.plan_for(fast.capacity());
                fast.pay_for_copies(None);
                self.follow(engine, true);
            }
            return;
        };
        let Some(bill) = self.bill(engine) else {
            return;
        };
        let paid = paid_on_first(&bill, dollars, fast.capacity());
        let files = fast.file_bytes().saturating_sub(fast.unfinished_bytes());
        let others = files.saturating_sub(engine.bytes_of_last_levels());
        let worth = self.ralt.worth() as f64 / self.expansion(engine) / HOT_SHARE;
        let mut budget = self.governor.budget.lock();
        let before = budget.filter(|_| !jumps);
        let next = Budget::new(paid, others, worth as u64, before);
        let has_changed = before.is_none_or(|before| before.files != next.files);
        *budget = Some(next);
        drop(budget);
        // What jobs need beside their inputs is there for a moment only, and is not paid for.
        let beside = fast.capacity().saturating_sub(self.most_files(engine));
        fast.plan_for(next.files.saturating_add(beside));
        let copies = paid.saturating_sub(files);
        fast.pay_for_copies(Some(copies));
        self.keep_to_copies(engine, copies);
        if has_changed {
            self.follow(engine, jumps);
        }
    }

    /// Bytes of files that there would be on the fast tier if all of it were planned for.
    fn most_files(&self, engine: &Engine) -> u64 {
        let fast = engine.fast();
        let room = self.room_of_last_fast_levels(engine, &engine.shares(), fast.capacity());
        let others = fast
            .file_bytes()
            .saturating_sub(engine.bytes_of_last_levels());
        others.saturating_add(room).min(fast.capacity())
    }

    /// Has levels and the hot set follow what is planned.
    fn follow(&self, engine: &Engine, jumps: bool) {
        if jumps {
            self.hot_room.forget();
            self.least_room.forget();
        }
        self.update_hot_room(engine);
        engine.update_pressure();
        engine.schedule();
    }

    /// Drops the coldest copies beyond `most` bytes, and one of them for a table that is clearly
    /// hotter. Has tables copied if there is room for any.
    fn keep_to_copies(&self, engine: &Engine, most: u64) {
        let mut copied: Vec<(f64, Arc<Table>)> = Vec::new();
        let mut hottest = 0.0_f64;
        super::copies::for_each_slow_table(engine, |table| {
            let Some(opened) = table.lazy.opened() else {
                return;
            };
            let density = table.density();
            match opened.copy().is_open() {
                true => hottest = hottest.max(density),
                false => copied.push((density, Arc::clone(opened))),
            }
        });
        copied.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut copied = copied.into_iter();
        let fast = engine.fast();
        while fast.copied_bytes() > most
            && let Some((_, table)) = copied.next()
        {
            table.copy().clear();
        }
        let is_full = fast.free_for_copies() < engine.sizes.table_size / 2;
        if is_full
            && let Some((coldest, table)) = copied.next()
            && hottest > coldest * HOTTER
        {
            table.copy().clear();
        }
        if hottest > 0.0 && fast.free_for_copies() >= engine.sizes.table_size / 2 {
            self.schedule_copying(engine);
        }
    }

    /// The bill. A record that was promoted is on both tiers; it counts as data once.
    fn bill(&self, engine: &Engine) -> Option<Bill> {
        let mut bill = engine.bill(engine.target.prices()?);
        let mut looks = self.governor.looks.lock();
        if *looks == 0 {
            let twice = engine.part_that_is_there_twice();
            self.governor
                .twice
                .store(twice.to_bits(), Ordering::Relaxed);
        }
        *looks = (*looks + 1) % ESTIMATE_EACH;
        let twice = f64::from_bits(self.governor.twice.load(Ordering::Relaxed));
        bill.data = (bill.data as f64 * (1.0 - twice)) as u64;
        Some(bill)
    }

    /// Adds to `report` what this placement knows.
    pub(super) fn add_cost(&self, engine: &Engine, report: &mut CostReport) {
        let Some(bill) = self.bill(engine) else {
            return;
        };
        let fast = engine.fast();
        (report.now, report.data_bytes) = (bill.per_gb(), bill.data);
        let last = engine.bytes_of_last_levels();
        let files = fast.file_bytes();
        report.fast_room_records_bytes = files;
        report.fast_room_tables_bytes = fast.copied_bytes();
        report.floor = bill.with_first(files.saturating_sub(last)).per_gb();
        report.ceiling = bill.with_first(fast.capacity()).per_gb();
        if let Some(budget) = *self.governor.budget.lock() {
            let now = files.saturating_sub(fast.unfinished_bytes()) + fast.copied_bytes();
            let last_may_go = last > engine.sizes.table_size;
            report.moving_bytes = if last_may_go {
                now.saturating_sub(budget.paid)
            } else {
                0
            };
        }
    }
}

/// Bytes of the first tier that `dollars` per GB pay for beside what lies on the others.
fn paid_on_first(bill: &Bill, dollars: f64, capacity: u64) -> u64 {
    let left = dollars * bill.data as f64 - bill.with_first(0).amount();
    ((left / bill.first_price()).max(0.0) as u64).min(capacity)
}

/// A look of the governor.
struct GovernorJob {
    engine: Arc<Engine>,
    hotrap: Arc<HotRap>,
}

impl Job for GovernorJob {
    fn step(&mut self) -> Step {
        let (engine, hotrap) = (&self.engine, &self.hotrap);
        if engine.check_writable().is_err() {
            return Step::Done;
        }
        if let Some(length) = hotrap.governor.epochs.end(engine.clock.now()) {
            super::copies::end_epoch(engine, length);
        }
        hotrap.govern(engine, false);
        Step::Done
    }
}

impl Drop for GovernorJob {
    fn drop(&mut self) {
        self.hotrap.governor.runs.store(false, Ordering::Release);
        self.engine.executor.notify();
    }
}

#[cfg(test)]
mod tests;
