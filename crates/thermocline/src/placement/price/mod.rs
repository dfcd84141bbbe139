//! What the store may cost, or how fast it has to be: how that is set, and kept.

mod bill;
mod check;

pub(crate) use bill::Bill;
use check::check;

use crate::engine::Engine;
use crate::error::Result;
use crate::metrics::CostReport;
use crate::options::{Options, Target};
use crate::points::point;
use crate::sync::Mutex;
use crate::version::edit::{SetTarget, VersionEdit};

/// By how much the bill may be above the target, as a part of it (I12).
const ALLOWED: f64 = 0.02;

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
    /// As the manifest has it.
    kept: SetTarget,
    /// The target in force: none if the options do not allow the one that is kept.
    target: Target,
}

impl Targeting {
    /// The target that was `found` in the manifest, at the prices that the options name. If they
    /// name none, the prices are those that the target was set with, so that a tool which opens the
    /// store changes nothing.
    pub(crate) fn open(options: &Options, found: Option<SetTarget>) -> Self {
        let found = found.unwrap_or_default();
        let named: Option<Vec<f64>> = prices_of(options);
        let kept = Some(found.prices).filter(|kept| kept.len() == options.tiers.len());
        let prices = named.or(kept).unwrap_or_default();
        let was = found.target;
        let (target, changed) = match check(was, &prices, options) {
            Ok(()) => (was, None),
            Err(error) => {
                let fitted = fitted(was, &prices, options);
                let now = fitted.unwrap_or_default();
                (now, Some(format!("the target {was} is {now} now: {error}")))
            }
        };
        let kept = SetTarget {
            target: was,
            prices,
        };
        Self {
            set: Mutex::new(Set { kept, target }),
            changed,
        }
    }

    /// The target in force.
    pub(crate) fn get(&self) -> Target {
        self.set.lock().target
    }

    /// The target that is kept, and its prices, for a manifest.
    pub(crate) fn to_edit(&self) -> Option<SetTarget> {
        let kept = self.set.lock().kept.clone();
        (kept.target != Target::None).then_some(kept)
    }

    /// The price of each tier in dollars per GB and month; none if nobody has named them.
    pub(crate) fn prices(&self) -> Option<Vec<f64>> {
        let prices = self.set.lock().kept.prices.clone();
        (!prices.is_empty()).then_some(prices)
    }

    /// What became of the target that the manifest had, if it could not stay as it was.
    pub(crate) fn changed(&self) -> Option<&str> {
        self.changed.as_deref()
    }
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
        let bill = self.bill(prices.clone());
        let mut report = CostReport {
            target: self.target.get(),
            prices,
            now: bill.per_gb(),
            dollars_per_month: bill.dollars(),
            data_bytes: bill.data,
            ..CostReport::default()
        };
        self.placement.add_outlook(self, &mut report);
        report.held_up_by = self.held_up_by(&report);
        Ok(report)
    }

    /// Why the store costs more than its target (I12).
    fn held_up_by(&self, report: &CostReport) -> Option<String> {
        let Target::Cost(target) = report.target else {
            return None;
        };
        if report.now <= target * (1.0 + ALLOWED) || report.moving_bytes > 0 {
            return None;
        }
        let held: u64 = self
            .tiers
            .iter()
            .map(|t| self.graveyard.pinned(t.index).0)
            .sum();
        let in_flight: u64 = self.tiers.iter().map(|tier| tier.in_flight()).sum();
        Some(match (held, in_flight) {
            (0, 0) => format!(
                "what has to lie on the first tier (the log, the manifest, new tables) makes {:.4} \
                 the least that {} bytes of data can cost",
                report.floor, report.data_bytes
            ),
            (0, bytes) => format!("jobs are writing up to {bytes} bytes beside what they replace"),
            (bytes, _) => format!("readers hold {bytes} bytes of files that are obsolete"),
        })
    }

    /// Sets what the store may cost, or how fast it has to be. It is durable on return.
    pub(crate) fn set_target(&self, target: Target) -> Result<()> {
        self.check_writable()?;
        let prices = prices_of(&self.options).or_else(|| self.target.prices());
        let prices = prices.unwrap_or_default();
        check(target, &prices, &self.options)?;
        let set = SetTarget { target, prices };
        let edit = VersionEdit {
            target: Some(set.clone()),
            ..VersionEdit::default()
        };
        point!(self.points, "target.before_edit")?;
        {
            // Of two that set one at once, the later edit and the target in force are the same.
            let mut manifest = self.files.manifest.lock();
            self.check_writable()?;
            manifest.append(&edit)?;
            *self.target.set.lock() = Set { kept: set, target };
        }
        self.placement.target_set(self);
        self.schedule();
        Ok(())
    }
}
