//! Records against the formulas of the paper, computed access by access.

use proptest::prelude::*;

use crate::options::{HotRapOptions, Scoring};
use crate::placement::hotrap::ralt::record::Record;
use crate::placement::hotrap::ralt::scoring::{Model, Moment, UNIT};

fn moment(tick: u64) -> Moment {
    Moment {
        tick,
        ..Moment::default()
    }
}

/// Algorithm 1 and the score of §3.2, literally: time goes tick by tick.
struct Naive {
    score: f64,
    counter: f64,
    again: bool,
}

fn naive(model: &Model, options: &HotRapOptions, ticks: &[u64], now: u64) -> Naive {
    let mut state = None;
    for tick in 0..=now {
        if tick > 0
            && let Some(Naive { counter, .. }) = &mut state
        {
            for _ in model.epoch(tick - 1)..model.epoch(tick) {
                *counter = f64::max(*counter - 1.0, 0.0);
            }
        }
        for _ in ticks.iter().filter(|access| **access == tick) {
            match &mut state {
                None => {
                    state = Some(Naive {
                        score: 0.0,
                        counter: options.counter_step,
                        again: false,
                    });
                }
                Some(state) => {
                    let more = state.counter + options.counter_step;
                    state.counter = more.min(options.counter_max);
                    state.again = true;
                }
            }
        }
    }
    let mut state = state.unwrap();
    let mut slices = ticks.to_vec();
    slices.dedup();
    let slice = |tick: u64| options.decay.powf((now - tick) as f64);
    state.score = slices.into_iter().map(slice).sum();
    state
}

proptest! {
    #[test]
    fn accesses_merged_one_by_one_are_the_papers_scores_and_counters(
        mut ticks in prop::collection::vec(0u64..60, 1..30), later in 0u64..60,
        decay in 0.9f64..1.0,
    ) {
        let options = HotRapOptions { decay, ..HotRapOptions::default() };
        let model = Model::new(&options);
        ticks.sort_unstable();
        let now = ticks.last().unwrap() + later;
        let records = ticks.iter().map(|tick| model.first(moment(*tick), 9, 1));
        let merged = records.reduce(|older, newer| model.merge(older, newer)).unwrap();
        let expected = naive(&model, &options, &ticks, now);

        let score = model.score(&merged, moment(now));
        prop_assert!((score / expected.score - 1.0).abs() < 1e-4, "{score} {}", expected.score);
        let epoch = model.epoch(now);
        let counter = merged.stable_until.saturating_sub(epoch * UNIT) as f64 / UNIT as f64;
        // Rounding to the unit, once for each access.
        let error = ticks.len() as f64 / UNIT as f64;
        prop_assert!((counter - expected.counter).abs() <= error, "{counter} {}", expected.counter);
        prop_assert_eq!(merged.again, expected.again);
        if expected.counter == 0.0 || expected.counter > error {
            let stable = expected.again && expected.counter > 0.0;
            prop_assert_eq!(model.is_stable(&merged, epoch), stable);
        }
    }

    #[test]
    fn ranks_order_by_real_score_at_any_time(
        a in (0u64..5000, 0.01f32..500.0), b in (0u64..5000, 0.01f32..500.0), later in 0u64..1000,
    ) {
        let model = Model::new(&HotRapOptions::default());
        let record = |(tick, score): (u64, f32)| Record {
            value_len: 1, tick, score, stable_until: 0, again: false,
        };
        let (a, b) = (record(a), record(b));
        let now = moment(a.tick.max(b.tick) + later);
        let ratio = model.score(&a, now) / model.score(&b, now);
        // Closer ones are told apart by their keys.
        if !(0.998..1.002).contains(&ratio) {
            prop_assert_eq!(model.rank(&a, b"a") > model.rank(&b, b"b"), ratio > 1.0);
        }
    }

    #[test]
    fn merging_does_not_ask_in_which_order_buffers_came(x in 0u64..50, y in 0u64..50) {
        let model = Model::new(&HotRapOptions::default());
        let (x, y) = (model.first(moment(x), 1, 1), model.first(moment(y), 1, 2));
        prop_assert_eq!(model.merge(x, y), model.merge(y, x));
    }
}

#[test]
fn many_accesses_at_once_count_once_for_the_score_and_each_for_the_counter() {
    let model = Model::new(&HotRapOptions::default());
    let once = model.first(moment(3), 9, 1);
    let twice = model.first(moment(3), 9, 2);
    assert_eq!(twice, model.merge(once, once));
    assert!(!once.again && twice.again);
    let often = model.first(moment(3), 9, 100);
    assert_eq!(often.score, 1.0);
    assert_eq!(
        often.stable_until,
        model.epoch(3) * UNIT + 5 * UNIT,
        "c_max"
    );
}

#[test]
fn the_other_scorings_order_by_the_last_access() {
    let model = |scoring| {
        let mut model = Model::new(&HotRapOptions::default());
        model.scoring = scoring;
        model
    };
    let rank = |model: &Model, moments: &[Moment]| {
        let records = moments.iter().map(|moment| model.first(*moment, 1, 1));
        let merged = records.reduce(|older, newer| model.merge(older, newer));
        model.rank(&merged.unwrap(), b"k")
    };
    let at = |tick, fraction, generation| Moment {
        tick,
        fraction,
        generation,
    };
    // Often, but long ago; once, and later: within the slice, and an eviction later.
    let often = [at(1, 0.0, 1), at(2, 0.0, 1), at(5, 0.2, 1)];
    let later = [at(5, 0.6, 2)];
    for scoring in [Scoring::Lru, Scoring::Clock] {
        let model = model(scoring);
        assert!(rank(&model, &later) > rank(&model, &often), "{scoring:?}");
        assert!(rank(&model, &[often, [later[0]; 3]].concat()) >= rank(&model, &later));
    }
    let clock = model(Scoring::Clock);
    assert_eq!(
        rank(&clock, &often),
        rank(&clock, &often[..1]),
        "one chance for all"
    );
    let smoothing = model(Scoring::Smoothing);
    assert!(rank(&smoothing, &often) > rank(&smoothing, &later));
}
