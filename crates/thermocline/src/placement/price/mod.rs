//! What the store may cost, or how fast it has to be: how that is set, and kept.

mod bill;
mod check;
mod pursuit;
mod reads;

pub(crate) use bill::Bill;
use check::check;
use pursuit::{Pursuit, Seen};
pub(crate) use reads::Reads;

use crate::engine::Engine;
use crate::error::Result;
use crate::metrics::CostReport;
use crate::options::{Options, Target};
use crate::points::point;
use crate::sync::Mutex;
use crate::version::edit::{SetTarget, VersionEdit};

/// By how much the bill may be above the target, as a part of it (I12).
const ALLOWED: f64 = 0.02;

/// From this part of the most that a store can cost on, there is nothing left to buy.
const NEARLY: f64 = 0.99;

/// The target of an open store.
#[derive(Debug)]
pub(crate) struct Targeting {
    /// Changed only under the manifest's lock, after the edit that says so.
    set: Mutex<Set>,
    /// What became of the target that the manifest had, if it could not stay as it was.
    changed: Option<String>,
}

#[derive(Debug)]
struct Set {
    /// As the manifest has it, with the prices that it was set with.
    kept: SetTarget,
    /// The price of each tier in force: those that the options name, or else those of `kept`.
    prices: Vec<f64>,
    /// The target in force: none if the options do not allow the one that is kept.
    target: Target,
    /// What it takes in dollars, where it does not say so itself.
    pursuit: Pursuit,
}

impl Set {
    fn new(kept: SetTarget, prices: Vec<f64>, target: Target) -> Self {
        // No more than that can be spent.
        let most = prices.first().copied().unwrap_or(0.0);
        Self {
            kept,
            prices,
            target,
            pursuit: Pursuit::from(most),
        }
    }
}

impl Targeting {
    /// The target that was `found` in the manifest, at the prices that the options name. If they
    /// name none, the prices are those that the target was set with, so that a tool which opens the
    /// store changes nothing.
    pub(crate) fn open(options: &Options, found: Option<SetTarget>) -> Self {
        let kept = found.unwrap_or_default();
        let named: Option<Vec<f64>> = prices_of(options);
        let fit = |prices: &Vec<f64>| prices.len() == options.tiers.len();
        let prices = named.or_else(|| Some(kept.prices.clone()).filter(fit));
        let prices = prices.unwrap_or_default();
        let was = kept.target;
        let (target, changed) = match check(was, &prices, options) {
            Ok(()) => (was, None),
            Err(error) => {
                let fitted = fitted(was, &prices, options);
                let now = fitted.unwrap_or_default();
                (now, Some(format!("the target {was} is {now} now: {error}")))
            }
        };
        Self {
            set: Mutex::new(Set::new(kept, prices, target)),
            changed,
        }
    }

    /// The target in force.
    pub(crate) fn get(&self) -> Target {
        self.set.lock().target
    }

    /// Dollars per GB and month that the store may cost at present; none without a target.
    pub(crate) fn dollars(&self) -> Option<f64> {
        let set = self.set.lock();
        match set.target {
            Target::None => None,
            Target::Cost(dollars) => Some(dollars),
            Target::Latency(_) | Target::HitRate(_) => Some(set.pursuit.dollars),
        }
    }

    /// The target that is kept, and its prices, for a manifest.
    pub(crate) fn to_edit(&self) -> Option<SetTarget> {
        let kept = self.set.lock().kept.clone();
        (kept.target != Target::None).then_some(kept)
    }

    /// The price of each tier in dollars per GB and month; none if nobody has named them.
    pub(crate) fn prices(&self) -> Option<Vec<f64>> {
        let prices = self.set.lock().prices.clone();
        (!prices.is_empty()).then_some(prices)
    }

    /// What became of the target that the manifest had, if it could not stay as it was.
    pub(crate) fn changed(&self) -> Option<&str> {
        self.changed.as_deref()
    }
}

/// What reads are like, if there are any.
fn seen(reads: &Reads) -> Option<Seen> {
    // A handful says nothing.
    let hit_rate = reads
        .rate()
        .filter(|rate| *rate >= 1.0)
        .and(reads.hit_rate())?;
    Some(Seen {
        misses: 1.0 - hit_rate,
        latencies: [reads.latencies()[0], reads.slow_latency()],
    })
}

/// The prices that `options` name, if they name one for each tier.
fn prices_of(options: &Options) -> Option<Vec<f64>> {
    let tiers = options.tiers.iter();
    tiers.map(|tier| tier.price_per_gb_month).collect()
}

/// The target that is nearest to `target` of those that `prices` allow.
fn fitted(target: Target, prices: &[f64], options: &Options) -> Option<Target> {
    let Target::Cost(dollars) = target else {
        return None;
    };
    let (least, most) = (*prices.last()?, *prices.first()?);
    let fitted = Target::Cost(dollars.max(least).min(most));
    check(fitted, prices, options).ok().map(|()| fitted)
}

impl Engine {
    /// What the store costs, and what else it could cost.
    pub(crate) fn cost(&self) -> Result<CostReport> {
        self.check_open()?;
        let Some(prices) = self.target.prices() else {
            return Err(check::without_price(&self.options));
        };
        // Whoever asks may be the only one to look at the clock.
        self.placement.tick(self, self.clock.now());
        Ok(self.cost_at(prices, true))
    }

    /// The same for metrics; none without prices. They are read every few seconds, and a curve
    /// sorts all tables for each of its points.
    pub(crate) fn cost_metrics(&self) -> Option<CostReport> {
        let prices = self.target.prices()?;
        Some(self.cost_at(prices, false))
    }

    fn cost_at(&self, prices: Vec<f64>, with_curve: bool) -> CostReport {
        let bill = self.bill(prices.clone());
        let mut report = CostReport {
            target: self.target.get(),
            prices,
            now: bill.per_gb(),
            dollars_per_month: bill.dollars(),
            data_bytes: bill.data,
            budget: self.target.dollars(),
            ..CostReport::default()
        };
        self.placement.add_outlook(self, &mut report, with_curve);
        report.held_up_by = self.held_up_by(&report);
        report
    }

    /// Takes a step towards a target that does not name its price, by what reads are like.
    /// Returns whether the store may cost something else now.
    pub(crate) fn pursue(&self, reads: &Mutex<Reads>) -> bool {
        let target = self.target.get();
        if !matches!(target, Target::Latency(_) | Target::HitRate(_)) {
            return false;
        }
        let seen = seen(&reads.lock());
        let (Some(seen), Some(prices)) = (seen, self.target.prices()) else {
            return false;
        };
        let report = self.cost_at(prices, true);
        let mut set = self.target.set.lock();
        // Of another target that was set meanwhile nothing is known yet.
        set.target == target
            && !set.pursuit.waits(target, seen, &report)
            && set
                .pursuit
                .step(self.clock.now(), target, seen, report.now, &report.curve)
    }

    /// Why the store costs more than its target (I12), or does not reach it.
    fn held_up_by(&self, report: &CostReport) -> Option<String> {
        let Target::Cost(target) = report.target else {
            return self.out_of_reach(report);
        };
        let allowed = target * (1.0 + ALLOWED);
        if report.now <= allowed {
            return None;
        }
        let least = || {
            format!(
                "what has to lie on the first tier (the log, the manifest, new tables) makes {:.4} \
                 the least that {} bytes of data can cost; a compaction of everything brings new \
                 tables down",
                report.floor, report.data_bytes
            )
        };
        if report.moving_bytes > 0 {
            // What is on the way helps, but for these.
            return self
                .last_tier_is_full(report)
                .or_else(|| (report.floor > allowed).then(least));
        }
        let held: u64 = self
            .tiers
            .iter()
            .map(|t| self.graveyard.pinned(t.index).0)
            .sum();
        let in_flight: u64 = self.tiers.iter().map(|tier| tier.in_flight()).sum();
        Some(match (held, in_flight) {
            (0, 0) if report.floor <= target => format!(
                "what could go down is less than is moved at a time; {:.4} would be the least",
                report.floor
            ),
            (0, 0) => least(),
            (0, bytes) => format!("jobs are writing up to {bytes} bytes beside what they replace"),
            (bytes, _) => format!("readers hold {bytes} bytes of files that are obsolete"),
        })
    }

    /// Says so if what is to go down has no room.
    fn last_tier_is_full(&self, report: &CostReport) -> Option<String> {
        let last = self.tiers.last().filter(|tier| tier.index > 0)?;
        let free = last.free_for_jobs();
        let job = (self.options.level_ratio + 2) * self.sizes.table_size;
        (free < report.moving_bytes.min(job)).then(|| {
            format!(
                "the last tier is full: {free} bytes of its {} are free, and {} are to go down",
                last.capacity(),
                report.moving_bytes
            )
        })
    }

    /// Why reads are not as a target asks, although the store may cost as much as it can.
    fn out_of_reach(&self, report: &CostReport) -> Option<String> {
        let (budget, seen) = (report.budget?, report.hit_rate?);
        let misses = match report.target {
            Target::HitRate(part) => part > seen,
            Target::Latency(mean) => report.mean_latency.is_some_and(|seen| seen > mean),
            Target::None | Target::Cost(_) => false,
        };
        (misses && budget >= report.ceiling * NEARLY)
            .then(|| format!("all that the first tier may hold buys a hit rate of about {seen:.3}"))
    }

    /// Sets what the store may cost, or how fast it has to be. It is durable on return.
    pub(crate) fn set_target(&self, target: Target) -> Result<()> {
        self.check_writable()?;
        let prices = prices_of(&self.options).or_else(|| self.target.prices());
        let prices = prices.unwrap_or_default();
        check(target, &prices, &self.options)?;
        let kept = SetTarget {
            target,
            prices: prices.clone(),
        };
        let edit = VersionEdit {
            target: Some(kept.clone()),
            ..VersionEdit::default()
        };
        point!(self.points, "target.before_edit")?;
        {
            // Of two that set one at once, the later edit and the target in force are the same.
            let mut manifest = self.files.manifest.lock();
            self.check_writable()?;
            manifest.append(&edit)?;
            *self.target.set.lock() = Set::new(kept, prices, target);
        }
        self.placement.target_set(self);
        self.schedule();
        Ok(())
    }
}
