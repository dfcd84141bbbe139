//! Small cases that can be reckoned by hand: ten keys of 100 bytes at 0.5 and 0.1 dollars.

use super::*;
use crate::sizing::offer::tests::DISKS;
use crate::sizing::offer::{cheapest, points};

const NOTHING: Space = Space {
    fixed: 0.0,
    job: 0.0,
    hot_set: f64::INFINITY,
};

/// One with 5 reads, two with 2, one with 1, and six with none.
fn ten_keys() -> Coverage {
    Coverage::new([(100.0, 5.0), (200.0, 4.0), (100.0, 1.0), (600.0, 0.0)]).unwrap()
}

/// What `cost` buys of ten keys.
fn at(cost: f64, tracked: Option<f64>, space: Space) -> Point {
    let coverage = ten_keys();
    let space = |_: f64| Ok(space);
    let model = Model::new(DISKS, &coverage, Some(1000.0), tracked, &space).unwrap();
    model.at(cost).unwrap()
}

#[track_caller]
fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} for {expected}");
}

/// 1000 bytes cost 0.12 on the slow disk, with its fifth on top. Each 0.055 more buys 110 bytes of
/// the fast one: 100 of hot records.
#[test]
fn money_buys_the_hottest_records() {
    for (cost, hit_rate) in [
        (0.12, 0.0),
        (0.175, 0.5),
        (0.23, 0.7),
        (0.285, 0.9),
        (0.34, 1.0),
    ] {
        let point = at(cost, Some(0.0), NOTHING);
        near(point.hit_rate, hit_rate);
        near(point.fast_bytes, (cost - 0.12) * 2000.0);
        near(point.dollars_per_month, cost * 1e-6);
        near(
            point.slow_reads_per_second.unwrap(),
            1000.0 * (1.0 - hit_rate),
        );
        near(
            point.mean_read_us,
            1000.0 * hit_rate + 11_000.0 * (1.0 - hit_rate),
        );
    }
}

#[test]
fn the_log_is_paid_for_and_room_for_rewriting_is_not() {
    let space = Space {
        fixed: 40.0,
        job: 30.0,
        ..NOTHING
    };
    // 40 of 150 bytes are the log's.
    let point = at(0.195, Some(0.0), space);
    near(point.fast_bytes, 150.0);
    near(point.fast_capacity.unwrap(), 180.0);
    near(point.hit_rate, 0.5);
    near(at(0.14, Some(0.0), space).hit_rate, 0.0);
}

#[test]
fn access_records_take_their_part_up_to_a_quarter() {
    // 100 bytes of records, 10 on top, and 10 of access records.
    near(at(0.18, Some(0.1), NOTHING).hit_rate, 0.5);
    // They would take as much as the records: of 220 bytes they get 55, and 165 hold 150.
    near(at(0.23, Some(1.0), NOTHING).hit_rate, 0.6);
}

/// What is left is a part of all 1200 bytes on the slow disk, and answers that part of the rest.
#[test]
fn what_hot_records_may_not_take_holds_copies() {
    let space = Space {
        hot_set: 100.0,
        ..NOTHING
    };
    near(
        at(0.23, Some(0.0), space).hit_rate,
        0.5 + 0.5 * 110.0 / 1200.0,
    );
}

/// A table that goes up leaves the slow disk: 0.4 dollars buy as much as 0.5 of records. 1000 bytes
/// cost 0.105 there.
#[test]
fn a_table_is_paid_once() {
    // 210 bytes of tables hold 200 of data.
    let point = at(0.189, None, NOTHING);
    near(point.fast_bytes, 210.0);
    near(point.hit_rate, 0.7);
    let space = Space {
        fixed: 40.0,
        ..NOTHING
    };
    let point = at(0.209, None, space);
    near(point.fast_bytes, 250.0);
    near(point.hit_rate, 0.7);
}

#[test]
fn more_money_buys_no_less() {
    let coverage = ten_keys();
    let space = |capacity: f64| {
        Ok(Space {
            fixed: capacity * 0.07,
            job: capacity * 0.08,
            hot_set: capacity * 0.7,
        })
    };
    for tracked in [Some(0.1), None] {
        let model = Model::new(DISKS, &coverage, None, tracked, &space).unwrap();
        let points = points(&model).unwrap();
        assert!(
            points.is_sorted_by(|a, b| a.hit_rate <= b.hit_rate),
            "{points:?}"
        );
        assert!(
            points.is_sorted_by(|a, b| a.fast_bytes <= b.fast_bytes),
            "{points:?}"
        );
        assert!(points[0].hit_rate < 1e-9);
        let last = points[9];
        assert_eq!(
            (last.placement, last.cost, last.hit_rate),
            (Layout::OneDisk, 0.5, 1.0)
        );
        assert_eq!(points[8].slow_reads_per_second, None);
    }
}

#[test]
fn a_wanted_time_has_its_price() {
    let coverage = ten_keys();
    let space = |_: f64| Ok(NOTHING);
    let model = Model::new(DISKS, &coverage, None, Some(0.0), &space).unwrap();
    // 4 ms: 0.7 of the reads in 1 ms, the others in 11.
    let found = cheapest(&model, 4000.0).unwrap().unwrap();
    near(found.cost, 0.23);
    assert_eq!(cheapest(&model, 999.0).unwrap(), None);
}

#[test]
fn data_that_are_less_than_the_log_are_refused() {
    let coverage = ten_keys();
    let space = |_: f64| {
        Ok(Space {
            fixed: 1000.0,
            ..NOTHING
        })
    };
    let error = Model::new(DISKS, &coverage, None, None, &space)
        .err()
        .unwrap();
    assert!(
        error.to_string().contains("0.605 $/GB/month at least"),
        "{error}"
    );
}
