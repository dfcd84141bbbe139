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
use super::copies::{BLOCKS_IN_A_SWEEP, COOLING};
use super::hot_room::HOT_SHARE;
use super::trial::{Counted, Trial};
use crate::engine::Engine;
use crate::error::Result;
use crate::executor::{Job, Lane, Step};
use crate::metrics::{Activity, CostReport, Purpose};
use crate::options::MAX_TIERS;
use crate::placement::epochs::Epochs;
use crate::placement::most_of_late::MostOfLate;
use crate::placement::price::{Bill, Reads};
use crate::points::point;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};
use crate::tier::Tier;

/// By how much what records are worth has to change for their room to follow, as a part of what is
/// paid for: each change rewrites records or tables.
const WORTHWHILE: f64 = 0.02;

/// Looks between two estimates of how much is there twice.
const ESTIMATE_EACH: u32 = 10;

/// What the fast tier is paid for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Budget {
    /// Bytes of files and copies.
    paid: u64,
    /// Bytes of files that there are to be: those for records, and everything else that lies there.
    /// More than is paid for until tables have left a tier between the first and the last.
    files: u64,
}

impl Budget {
    /// Divides `paid` bytes of the fast tier. All but the last fast levels takes `others` of it,
    /// and hot records are worth `worth` on top, of which they have `given` to tables. `before` is
    /// how it was divided so far.
    fn new(paid: u64, others: u64, worth: u64, given: u64, before: Option<Self>) -> Self {
        let wanted = others.saturating_add(worth).min(paid);
        let wanted = wanted.saturating_sub(given).max(others.min(paid));
        let hysteresis = (paid as f64 * WORTHWHILE) as u64;
        let files = match before {
            Some(before) if before.files.abs_diff(wanted) <= hysteresis => before.files.min(paid),
            _ => wanted,
        };
        Self { paid, files }
    }

    /// Bytes of files that there may be now.
    fn planned(&self) -> u64 {
        self.files.min(self.paid)
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
    trial: Mutex<Trial>,
    slow_work: Mutex<SlowWork>,
    pub(super) reads: Mutex<Reads>,
    /// Bytes that jobs have written beside what they replace.
    beside: Mutex<MostOfLate>,
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
            let dollars = engine.target.dollars();
            let _: Result<()> = point!(engine.points, "governor.begun");
            self.divide(engine, dollars, jumps);
            // Whoever has set another target meanwhile may have divided the tier by it already.
            if engine.target.dollars() == dollars {
                return;
            }
        }
    }

    /// Divides the fast tier if the store may cost so many `dollars`.
    fn divide(&self, engine: &Engine, dollars: Option<f64>, jumps: bool) {
        let fast = engine.fast();
        let Some(dollars) = dollars else {
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
        // What jobs write beside what they replace is there for a moment, but paid for.
        let now = engine.clock.now();
        let unfinished = fast.unfinished_bytes() as f64;
        let beside = self.governor.beside.lock().note(now, unfinished);
        let paid_of = |bill: &Bill| {
            let paid = paid_on_first(bill, dollars, fast.capacity());
            paid.saturating_sub(beside as u64)
        };
        // Records come before tables of the tiers between.
        let (paid, most) = (paid_of(&bill), paid_of(&bill.slow_on_last()));
        let files = fast.file_bytes().saturating_sub(fast.unfinished_bytes());
        let others = files.saturating_sub(engine.bytes_of_last_levels());
        if jumps {
            self.between.forget();
        }
        let worth = self.ralt.may_be_worth() as f64 / self.expansion(engine) / HOT_SHARE;
        let worth = self.between.limit(worth);
        let mut budget = self.governor.budget.lock();
        let before = budget.filter(|_| !jumps);
        let given = self.given_to_tables(engine, most, others, worth as u64, jumps);
        let wanted = Budget::new(most, others, worth as u64, given, before);
        let next = Budget { paid, ..wanted };
        let has_changed = before.is_none_or(|before| before.planned() != next.planned());
        *budget = Some(next);
        drop(budget);
        // What jobs need beside their inputs is there for a moment only, and is not paid for.
        let beside = fast.capacity().saturating_sub(self.most_files(engine));
        fast.plan_for(next.planned().saturating_add(beside));
        let copies = paid.saturating_sub(files);
        fast.pay_for_copies(Some(copies));
        self.keep_to_copies(engine, copies);
        if has_changed {
            self.follow(engine, jumps);
        }
    }

    /// Bytes that records have given to tables because that is better, or to see whether it is.
    fn given_to_tables(
        &self,
        engine: &Engine,
        paid: u64,
        others: u64,
        worth: u64,
        jumps: bool,
    ) -> u64 {
        let mut trial = self.governor.trial.lock();
        if jumps {
            *trial = Trial::default();
        }
        let records = worth.min(paid.saturating_sub(others));
        let most = records as f64 / paid.max(1) as f64;
        let counted = self.counted_so_far(engine);
        trial.observe(engine.clock.now().as_secs_f64(), counted, most);
        (trial.given() * paid as f64) as u64
    }

    /// Bytes of files that the fast tier is to have; none without a target.
    pub(super) fn wanted_files(&self) -> Option<u64> {
        self.governor.budget.lock().map(|budget| budget.files)
    }

    fn counted_so_far(&self, engine: &Engine) -> Counted {
        let latencies = self.governor.reads.lock().latencies();
        let last = latencies[engine.tiers.len() - 1];
        let mut work = self.governor.slow_work.lock();
        for (number, tier) in engine.tiers.iter().enumerate().skip(1) {
            work.take(number, work_of(tier), latencies[number] / last);
        }
        Counted {
            gets: engine.stats.hits(engine.tiers.len()).0.gets,
            slow_reads: work.reads as u64,
            other_work: work.other as u64,
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

    /// The bill. A record that was promoted is on both tiers; it counts as data once.
    pub(super) fn bill(&self, engine: &Engine) -> Option<Bill> {
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

    /// Bytes of the data of `bill` that are there twice.
    fn bytes_twice(&self, bill: &Bill) -> u64 {
        let twice = f64::from_bits(self.governor.twice.load(Ordering::Relaxed));
        // What is left of the data was counted once.
        (bill.data as f64 / (1.0 - twice).max(0.01) * twice) as u64
    }

    /// Adds to `report` what this placement knows.
    pub(super) fn add_cost(&self, engine: &Engine, report: &mut CostReport, with_curve: bool) {
        self.governor.reads.lock().add_to(report);
        self.below_f.add_to(engine, report);
        let Some(bill) = self.bill(engine) else {
            return;
        };
        let fast = engine.fast();
        (report.now, report.data_bytes) = (bill.per_gb(), bill.data);
        let last = engine.bytes_of_last_levels();
        let files = fast.file_bytes();
        report.fast_room_records_bytes = files;
        report.fast_room_tables_bytes = fast.copied_bytes();
        // Copies are on the slow tier, too, and so are records that came up.
        let twice = self.bytes_twice(&bill).saturating_add(fast.copied_bytes());
        let on_last = bill.slow_on_last();
        report.floor = on_last
            .moved_down(files.saturating_sub(last), twice)
            .per_gb();
        // More than if all of it were on the fast disk is no target.
        let most = bill.with_first(fast.capacity()).per_gb();
        report.ceiling = most.min(bill.first_price());
        if let Some(budget) = *self.governor.budget.lock() {
            let now = files.saturating_sub(fast.unfinished_bytes()) + fast.copied_bytes();
            let last_may_go = last > engine.sizes.table_size;
            // The log and the levels above stay, whatever is paid for.
            if last_may_go {
                let may_go = last.saturating_add(fast.copied_bytes());
                report.moving_bytes += now.saturating_sub(budget.paid).min(may_go);
            }
        }
        if with_curve {
            self.add_curve(engine, &on_last, report);
        }
    }
}

/// What slow disks had to do so far, in reads of the last one: a read of a faster one counts for
/// less.
#[derive(Debug, Default)]
struct SlowWork {
    /// What each tier had counted at the last look.
    before: [[u64; 2]; MAX_TIERS],
    reads: f64,
    other: f64,
}

impl SlowWork {
    fn take(&mut self, tier: usize, now: [u64; 2], weight: f64) {
        let before = std::mem::replace(&mut self.before[tier], now);
        let since = |number: usize| now[number].saturating_sub(before[number]) as f64 * weight;
        self.reads += since(0);
        self.other += since(1);
    }
}

/// Reads for users, and what else the disk had to do. It needs about as long to read or write some
/// blocks in one sweep as to read one of them by itself.
fn work_of(tier: &Tier) -> [u64; 2] {
    let sweep = BLOCKS_IN_A_SWEEP * tier.options.block_size as u64;
    let purposes = [Purpose::Compaction, Purpose::Copy, Purpose::Migration];
    let others = purposes.map(|purpose| {
        let io = tier.io(purpose);
        (io.read_bytes + io.write_bytes) / sweep
    });
    [
        tier.io(Purpose::UserRead).read_ops,
        others.into_iter().sum(),
    ]
}

/// Bytes of the first tier that `dollars` per GB pay for beside what lies on the others.
pub(super) fn paid_on_first(bill: &Bill, dollars: f64, capacity: u64) -> u64 {
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
            let mut reads = hotrap.governor.reads.lock();
            reads.end_epoch(engine, length, COOLING);
        }
        let jumps = engine.pursue(&hotrap.governor.reads);
        hotrap.govern(engine, jumps);
        if HotRap::has_slow_tiers(engine) {
            hotrap.organize_below_f(engine);
            if hotrap.below_f.are_wanted() {
                engine.schedule_compactions();
            }
        }
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
