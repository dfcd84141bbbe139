//! What a target in hits or in milliseconds takes in dollars, found by going there.
//!
//! The curve says which part of reads would miss the fast tier at each price. It is an estimate, so
//! it is corrected by the misses that are seen at the present price, and the price goes half of the
//! way at a time, once what the last step moved has arrived.

use std::time::Duration;

use crate::metrics::{CostReport, CurvePoint};
use crate::options::Target;

/// The least time between two steps: what is seen of late is of about half as long.
const BETWEEN: Duration = Duration::from_secs(60);

/// The most that a step gives up of the price, which it does when misses are half of those that are
/// allowed, or fewer; and the least that it adds. What is given up is soon missed, and records come
/// back slowly.
const MOST_DOWN: f64 = 0.15;
const LEAST_UP: f64 = 0.03;

/// By which part of the misses that are wanted those that are seen may be off.
const CLOSE: f64 = 0.05;

/// And by which part of all reads, in any case.
const CLOSE_ENOUGH: f64 = 0.002;

/// By how much the curve's misses are corrected at most.
const MOST_WRONG: f64 = 4.0;

/// What reads are like of late.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Seen {
    /// The part of reads that need a slow disk.
    pub(super) misses: f64,
    /// How long reads take that need none, and those that do, in seconds.
    pub(super) latencies: [f64; 2],
}

/// The price of a target that does not name one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Pursuit {
    /// Dollars per GB and month.
    pub(super) dollars: f64,
    stepped: Option<Duration>,
}

/// The misses that `target` allows when reads are like those of `seen`.
pub(super) fn allowed(target: Target, seen: Seen) -> f64 {
    let [fast, slow] = seen.latencies;
    match target {
        Target::HitRate(part) => 1.0 - part,
        Target::Latency(mean) => {
            let extra = slow - fast;
            match extra > 0.0 {
                true => ((mean.as_secs_f64() - fast) / extra).clamp(0.0, 1.0),
                false => 1.0,
            }
        }
        Target::None | Target::Cost(_) => 1.0,
    }
}

/// The part of reads that would miss the fast tier at `dollars`.
fn misses_at(curve: &[CurvePoint], dollars: f64) -> f64 {
    let above = curve.partition_point(|point| point.cost < dollars);
    let hits = match (
        above.checked_sub(1).and_then(|at| curve.get(at)),
        curve.get(above),
    ) {
        (Some(below), Some(above)) if above.cost > below.cost => {
            let part = (dollars - below.cost) / (above.cost - below.cost);
            below.hit_rate + part * (above.hit_rate - below.hit_rate)
        }
        (_, Some(only)) | (Some(only), None) => only.hit_rate,
        (None, None) => 0.0,
    };
    1.0 - hits
}

/// The least price at which no more than `misses` are to be expected; none if there is no such one.
fn price_of(curve: &[CurvePoint], misses: f64) -> Option<f64> {
    let hits = 1.0 - misses;
    let at = curve.iter().position(|point| point.hit_rate >= hits)?;
    let above = curve[at];
    let below = at.checked_sub(1).map(|at| curve[at]);
    Some(match below {
        Some(below) if above.hit_rate > below.hit_rate => {
            let part = (hits - below.hit_rate) / (above.hit_rate - below.hit_rate);
            below.cost + part * (above.cost - below.cost)
        }
        _ => above.cost,
    })
}

impl Pursuit {
    /// Begins at the price `most`: reads are fast from the start, and what is not needed is given
    /// up.
    pub(super) fn from(most: f64) -> Self {
        Self {
            dollars: most,
            stepped: None,
        }
    }

    /// Whether what `report` says to move has to arrive before the next step. What is to go down
    /// makes reads no faster, so that slow reads do not wait for it: under steady writes it may
    /// never end.
    pub(super) fn waits(&self, target: Target, seen: Seen, report: &CostReport) -> bool {
        let goes_down = report.now > self.dollars;
        let are_slow = seen.misses > allowed(target, seen);
        report.moving_bytes > 0 && !(goes_down && are_slow)
    }

    /// Goes on towards `target` at the time `now`. The store costs `cost`, and `curve` says what
    /// else it could. Returns whether the price has changed.
    pub(super) fn step(
        &mut self,
        now: Duration,
        target: Target,
        seen: Seen,
        cost: f64,
        curve: &[CurvePoint],
    ) -> bool {
        let is_early = self.stepped.is_some_and(|at| now < at + BETWEEN);
        let (Some(least), Some(most)) = (curve.first(), curve.last()) else {
            return false;
        };
        if is_early {
            return false;
        }
        let allowed = allowed(target, seen);
        let close = (allowed * CLOSE).max(CLOSE_ENOUGH);
        if (seen.misses - allowed).abs() <= close {
            return false;
        }
        // What the curve says of the present was wrong by so much.
        let expected = misses_at(curve, cost).max(CLOSE_ENOUGH);
        let wrong = (seen.misses.max(CLOSE_ENOUGH) / expected).clamp(1.0 / MOST_WRONG, MOST_WRONG);
        let next = match price_of(curve, allowed / wrong) {
            Some(goal) => {
                // The store may cost less than it may: then that is where the way begins.
                let from = self.dollars.min(cost.max(least.cost));
                let next = from + (goal - from) / 2.0;
                let off = (seen.misses - allowed).abs() / allowed.max(CLOSE_ENOUGH);
                let factor = match seen.misses > allowed {
                    true => 1.0 + LEAST_UP * (1.0 + 2.0 * off).min(5.0),
                    false => 1.0 - MOST_DOWN * (2.0 * off).min(1.0),
                };
                let next = next.max(self.dollars * factor);
                next.max(least.cost).min(most.cost)
            }
            None => most.cost,
        };
        let changes = (next - self.dollars).abs() > self.dollars * 1e-3;
        if changes {
            (self.dollars, self.stepped) = (next, Some(now));
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(misses: impl Fn(f64) -> f64) -> Vec<CurvePoint> {
        let point = |number: u32| {
            let cost = 0.1 + 0.02 * f64::from(number);
            CurvePoint {
                cost,
                hit_rate: 1.0 - misses(cost),
            }
        };
        (0..=20).map(point).collect()
    }

    /// Misses fall by half with each tenth of a dollar.
    fn misses(cost: f64) -> f64 {
        0.5_f64.powf((cost - 0.1) * 10.0)
    }

    /// Follows `target` for forty minutes in a store whose misses are `real`. Returns the price and
    /// how often it has changed in the second half.
    fn followed(target: Target, real: impl Fn(f64, u32) -> f64) -> (f64, u32) {
        let curve = curve(misses);
        let mut pursuit = Pursuit::from(0.5);
        let mut late = 0;
        for second in 0..2400 {
            let seen = Seen {
                misses: real(pursuit.dollars, second),
                latencies: [1e-4, 1e-2],
            };
            let (now, cost) = (Duration::from_secs(second.into()), pursuit.dollars);
            let changed = pursuit.step(now, target, seen, cost, &curve);
            late += u32::from(changed && second >= 1200);
        }
        (pursuit.dollars, late)
    }

    #[test]
    fn the_cheapest_price_with_enough_hits_is_found() {
        let (dollars, late) = followed(Target::HitRate(0.75), |cost, _| misses(cost));
        let seen = misses(dollars);
        assert!((0.237..=0.263).contains(&seen), "{seen} at {dollars}");
        assert_eq!(late, 0);
    }

    #[test]
    fn a_mean_latency_is_reached() {
        // A fifth of reads may take 10 ms where the rest take 0.1 ms.
        let target = Target::Latency(Duration::from_micros(2080));
        let (dollars, late) = followed(target, |cost, _| misses(cost));
        let mean = 0.1 + misses(dollars) * 9.9;
        assert!((1.9..=2.2).contains(&mean), "{mean} at {dollars}");
        assert_eq!(late, 0);
    }

    #[test]
    fn a_curve_that_is_wrong_is_corrected() {
        for wrong in [0.4, 2.0] {
            let real = |cost: f64, _| (misses(cost) * wrong).min(1.0);
            let (dollars, _) = followed(Target::HitRate(0.75), real);
            let seen = real(dollars, 0);
            assert!((0.23..=0.265).contains(&seen), "{seen} at {dollars}");
        }
    }

    #[test]
    fn chance_does_not_move_it_to_and_fro() {
        let noisy =
            |cost: f64, second: u32| misses(cost) * (0.97 + f64::from(second * 7919 % 61) / 1000.0);
        let (dollars, late) = followed(Target::HitRate(0.75), noisy);
        assert!((0.27..=0.31).contains(&dollars), "{dollars}");
        assert!(late <= 2, "{late}");
    }

    #[test]
    fn what_cannot_be_reached_takes_all_that_there_is() {
        let (dollars, _) = followed(Target::HitRate(0.99), |cost, _| misses(cost));
        assert!(dollars > 0.495, "{dollars}");
    }

    /// A store that writers kept above what it may cost never found that its reads were too slow.
    #[test]
    fn slow_reads_do_not_wait_for_what_goes_down() {
        let pursuit = Pursuit::from(0.3);
        let waits = |misses: f64, now: f64, moving_bytes: u64| {
            let seen = Seen {
                misses,
                latencies: [1e-4, 1e-2],
            };
            let mut report = CostReport::default();
            (report.now, report.moving_bytes) = (now, moving_bytes);
            pursuit.waits(Target::HitRate(0.9), seen, &report)
        };
        assert!(!waits(0.2, 0.4, 1000));
        // What comes up makes reads faster, and so more of it need not be paid for.
        assert!(waits(0.2, 0.25, 1000));
        assert!(waits(0.05, 0.4, 1000));
        assert!(!waits(0.05, 0.4, 0));
    }

    #[test]
    fn without_a_curve_nothing_changes() {
        let mut pursuit = Pursuit::from(0.5);
        let seen = Seen {
            misses: 0.5,
            latencies: [1e-4, 1e-2],
        };
        let target = Target::HitRate(0.9);
        assert!(!pursuit.step(Duration::ZERO, target, seen, 0.5, &[]));
        assert_eq!(pursuit.dollars, 0.5);
    }
}
