//! What a store costs while it runs, and how that follows its target.
//!
//! The bill is per GB of the records that exist, so that engines can be compared. A target is per
//! GB of keys and values in live tables, overwritten versions included, so whether it is kept is
//! seen by that bill.

use serde::Serialize;
use thermocline::Target;

use super::Shared;
use super::hits::Sample;
use super::timeline::Second;
use crate::counters::{CostCounters, Counters};
use crate::prices::Prices;

/// A bill up to this part of the target keeps it.
const NEAR: f64 = 1.02;

/// What a store cost at a moment. Dollars are per GB (10⁹ bytes) and month.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct CostSecond {
    /// Dollars per GB of keys and values of the records that exist.
    pub bill: Option<f64>,
    /// Dollars per GB of keys and values in live tables.
    pub bill_by_tables: Option<f64>,
    /// What it was to be at most, by tables.
    pub target_cost: Option<f64>,
    /// The least that it could have been, by tables.
    pub floor: Option<f64>,
    /// The most.
    pub ceiling: Option<f64>,
    /// Bytes of tables that were to move to another tier.
    pub moving_bytes: Option<u64>,
}

/// What a store cost in a stage of a run. Dollars are per GB (10⁹ bytes) and month, and “settled”
/// is from `seconds_to_target` on; if that did not come, or there is no target, all of the stage.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CostResult {
    /// Mean of the bill per GB of records, once settled.
    pub bill_mean: Option<f64>,
    /// The greatest that it was, once settled.
    pub bill_max: Option<f64>,
    /// Mean of the bill per GB of keys and values in live tables, once settled.
    pub bill_by_tables: Option<f64>,
    /// What that was to be at most.
    pub target_cost: Option<f64>,
    /// Time from the beginning of the stage until that first was at most 1.02 times the target,
    /// and nothing was to move, to the next second. Without a target in dollars, until nothing was
    /// to move.
    pub seconds_to_target: Option<f64>,
    /// Time, once settled, in which it was above 1.02 times the target.
    pub seconds_above_target: Option<f64>,
    /// Bytes of tables that were written anew on a faster tier in the stage.
    pub tables_up_bytes: Option<u64>,
    /// Bytes of tables that were written anew on a slower tier in the stage.
    pub tables_down_bytes: Option<u64>,
    /// How many tables these were.
    pub migrations: Option<u64>,
    /// How many tables compactions wrote on another tier than all that they were made of.
    pub migrations_by_compaction: Option<u64>,
    /// Bytes of the first tier that placement by hotness had filled with files at the stage's end.
    /// None without it.
    pub fast_room_records_bytes: Option<u64>,
    /// Bytes of it that held copies of tables then. None without it.
    pub fast_room_tables_bytes: Option<u64>,
    /// Why the target was not kept at the stage's end, in the store's words.
    pub held_up_by: Option<String>,
}

/// What the store costs as of `counters`, if there are prices.
pub(super) fn now(
    shared: &Shared<'_>,
    counters: &Counters,
    target: Option<Target>,
) -> Option<CostSecond> {
    let prices = shared.prices?;
    let records = shared.user_bytes() as f64;
    let bill = dollars(prices, counters).filter(|_| records > 0.0);
    let cost = counters.cost.as_ref();
    Some(CostSecond {
        bill: bill.map(|dollars| dollars * 1e9 / records),
        bill_by_tables: cost.map(|cost| cost.by_tables),
        target_cost: target.and_then(in_dollars),
        floor: cost.and_then(|cost| cost.floor),
        ceiling: cost.and_then(|cost| cost.ceiling),
        moving_bytes: cost.map(|cost| cost.moving_bytes),
    })
}

/// What all of a store costs in a month: by its own account, if it keeps one.
fn dollars(prices: &Prices, counters: &Counters) -> Option<f64> {
    if let Some(cost) = &counters.cost {
        return Some(cost.dollars);
    }
    let bytes = [counters.fd_bytes?, counters.sd_bytes?];
    let paid = prices.each().zip(bytes);
    Some(paid.map(|(price, bytes)| price * bytes as f64).sum::<f64>() / 1e9)
}

pub(super) fn in_dollars(target: Target) -> Option<f64> {
    match target {
        Target::Cost(dollars) => Some(dollars),
        _ => None,
    }
}

/// What it cost in a stage that was sampled like this: `samples` begins with its beginning, and
/// `series` with the second after that.
pub(super) fn of_stage(
    series: &[Second],
    samples: &[Sample],
    target: Option<Target>,
) -> Option<CostResult> {
    let ((begin, before), (_, after)) = (samples.first()?, samples.last()?);
    let times = samples.iter().map(|(at, _)| *at);
    let lengths = times.clone().skip(1).zip(times);
    let each: Vec<Lasting> = series
        .iter()
        .zip(lengths)
        .filter_map(|(second, (end, begin))| {
            Some(Lasting {
                end,
                seconds: end - begin,
                cost: second.cost?,
            })
        })
        .collect();
    let is_settled = |of: &Lasting| of.cost.moving_bytes == Some(0) && !of.is_above();
    let settled = target.and(each.iter().position(is_settled));
    let rest = each.get(settled.unwrap_or(0)..)?;
    let bills = rest.iter().filter_map(|of| of.cost.bill);
    let moved: Option<CostCounters> = after.since(before).cost;
    let above = rest.iter().filter(|of| of.is_above());
    let target_cost = target.and_then(in_dollars);
    Some(CostResult {
        bill_mean: mean(rest, |cost| cost.bill),
        bill_max: bills.reduce(f64::max),
        bill_by_tables: mean(rest, |cost| cost.bill_by_tables),
        target_cost,
        seconds_to_target: settled.and_then(|at| each.get(at)).map(|of| of.end - begin),
        // Not `sum`, which makes -0 of nothing.
        seconds_above_target: target_cost.map(|_| above.fold(0.0, |sum, of| sum + of.seconds)),
        tables_up_bytes: moved.as_ref().map(|cost| cost.up_bytes),
        tables_down_bytes: moved.as_ref().map(|cost| cost.down_bytes),
        migrations: moved.as_ref().map(|cost| cost.migrations),
        migrations_by_compaction: moved.as_ref().map(|cost| cost.by_compaction),
        fast_room_records_bytes: moved.as_ref().and_then(|cost| cost.records_bytes),
        fast_room_tables_bytes: moved.as_ref().and_then(|cost| cost.copies_bytes),
        held_up_by: moved.and_then(|cost| cost.held_up_by),
    })
}

/// What it cost at the end of a second, and how long that was.
struct Lasting {
    end: f64,
    seconds: f64,
    cost: CostSecond,
}

impl Lasting {
    fn is_above(&self) -> bool {
        let known = self.cost.bill_by_tables.zip(self.cost.target_cost);
        known.is_some_and(|(bill, target)| bill > target * NEAR)
    }
}

/// Mean over time.
fn mean(of: &[Lasting], value: impl Fn(&CostSecond) -> Option<f64>) -> Option<f64> {
    let (mut sum, mut time) = (0.0, 0.0);
    for (seconds, value) in of
        .iter()
        .filter_map(|of| Some((of.seconds, value(&of.cost)?)))
    {
        sum += value * seconds;
        time += seconds;
    }
    (time > 0.0).then(|| sum / time)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{on_new_store, store};
    use super::*;
    use crate::engines::memory::Lie;
    use crate::plan::tests::parse;

    /// Seconds with this bill by tables and these bytes on the move. The bill by records is twice
    /// as high, and a table goes down in each.
    fn stage(of: &[(f64, u64)], target: Option<Target>) -> CostResult {
        let counters = |number: u64| Counters {
            cost: Some(CostCounters {
                migrations: 10 + number,
                up_bytes: 100,
                down_bytes: 1000 * (1 + number),
                by_compaction: 20 + 2 * number,
                records_bytes: Some(number),
                copies_bytes: Some(2 * number),
                held_up_by: (number == of.len() as u64).then(|| "a reader".to_owned()),
                ..CostCounters::default()
            }),
            ..Counters::default()
        };
        let samples: Vec<Sample> = (0..=of.len() as u64)
            .map(|number| (20.0 + number as f64, counters(number)))
            .collect();
        let series: Vec<Second> = of
            .iter()
            .map(|&(bill, moving)| Second {
                cost: Some(CostSecond {
                    bill: Some(bill * 2.0),
                    bill_by_tables: Some(bill),
                    target_cost: target.and_then(in_dollars),
                    moving_bytes: Some(moving),
                    ..CostSecond::default()
                }),
                ..Second::default()
            })
            .collect();
        of_stage(&series, &samples, target).unwrap()
    }

    #[test]
    fn a_target_is_reached_when_the_bill_is_near_it_and_nothing_moves() {
        let target = Some(Target::Cost(0.2));
        let cost = stage(
            &[(0.5, 9), (0.2, 9), (0.204, 0), (0.21, 0), (0.186, 9)],
            target,
        );
        assert_eq!(
            (cost.seconds_to_target, cost.target_cost),
            (Some(3.0), Some(0.2))
        );
        assert_eq!(cost.seconds_above_target, Some(1.0), "not what came before");
        assert!(
            (cost.bill_by_tables.unwrap() - 0.2).abs() < 1e-9,
            "{cost:?}"
        );
        assert!((cost.bill_mean.unwrap() - 0.4).abs() < 1e-9, "{cost:?}");
        assert_eq!(cost.bill_max, Some(0.42));
        let moved = (
            cost.migrations,
            cost.tables_up_bytes,
            cost.tables_down_bytes,
        );
        assert_eq!(moved, (Some(5), Some(0), Some(5000)));
        assert_eq!(cost.migrations_by_compaction, Some(10));
        let room = (cost.fast_room_records_bytes, cost.fast_room_tables_bytes);
        assert_eq!(room, (Some(5), Some(10)), "at the end");
        assert_eq!(cost.held_up_by.as_deref(), Some("a reader"));
    }

    #[test]
    fn no_time_above_the_target_is_not_less_than_none() {
        let above = stage(&[(0.2, 0)], Some(Target::Cost(0.2))).seconds_above_target;
        assert!(above.is_some_and(|seconds| seconds == 0.0 && seconds.is_sign_positive()));
    }

    #[test]
    fn a_target_that_is_not_reached_has_the_bill_of_the_whole_stage() {
        let cost = stage(&[(0.5, 9), (0.4, 0), (0.2, 9)], Some(Target::Cost(0.2)));
        assert_eq!(cost.seconds_to_target, None);
        assert_eq!(cost.seconds_above_target, Some(2.0));
        assert_eq!(cost.bill_max, Some(1.0));
    }

    #[test]
    fn without_a_target_in_dollars_a_stage_is_settled_when_nothing_moves() {
        let of = [(0.5, 9), (0.4, 0), (0.3, 9)];
        let latency = stage(
            &of,
            Some(Target::Latency(std::time::Duration::from_millis(1))),
        );
        assert_eq!(latency.seconds_to_target, Some(2.0));
        assert_eq!(
            (latency.bill_max, latency.seconds_above_target),
            (Some(0.8), None)
        );
        let none = stage(&of, None);
        assert_eq!((none.seconds_to_target, none.bill_max), (None, Some(1.0)));
    }

    /// An engine that says what it has on each disk, and no more.
    #[test]
    fn the_bill_is_what_the_disks_hold_over_what_the_records_have() {
        let flags = "--price-fast 0.5 --price-slow 0.1 --data-size 40KB --record-size 200";
        let plan = parse(&format!("{flags} --ops 2000 --workload d"));
        let plan = plan.unwrap().plan().unwrap();
        let measured = on_new_store(&plan, Lie::None, &mut ());
        // This store holds records and nothing else. Workload d inserts one in twenty.
        let cost = measured.cost.unwrap();
        for bill in [cost.bill_mean, cost.bill_max] {
            assert!((bill.unwrap() - 0.5).abs() < 1e-9, "{cost:?}");
        }
        assert_eq!((cost.target_cost, cost.migrations), (None, None));
        assert!(measured.records > Some(250));
        let (_dir, engine) = store(&plan, Lie::None);
        let shared = Shared::new(&plan, engine.as_ref());
        let both = Counters {
            fd_bytes: Some(20_000),
            sd_bytes: Some(60_000),
            ..Counters::default()
        };
        let bill = now(&shared, &both, None).unwrap().bill.unwrap();
        assert!(
            (bill - (0.5 * 20.0 + 0.1 * 60.0) / 40.0).abs() < 1e-9,
            "{bill}"
        );
        let own = Counters {
            cost: Some(CostCounters {
                dollars: 2e-5,
                ..CostCounters::default()
            }),
            ..both
        };
        let bill = now(&shared, &own, None).unwrap().bill.unwrap();
        assert!((bill - 0.5).abs() < 1e-9, "{bill}");
        assert_eq!(now(&shared, &Counters::default(), None).unwrap().bill, None);
    }
}
