//! A thread that asks several maps in turn: each of them gets its own ends of periods.

use super::Ring;
use super::rig::with;
use super::ring::KEYS;
use crate::{Movement, Options};

/// A map of one ring whose head is at its second item. The map knows nothing yet of what accesses
/// cost.
fn ring(period: u32) -> Ring {
    let map = with(
        Options::default()
            .buckets(1)
            .movement(Movement::Random)
            .period(period),
    );
    for key in KEYS {
        map.pin().insert(key, key);
    }
    map.core.tally.forget_cost();
    map
}

/// Has a thread that asked for nothing before read one key of each map in turn, over and over.
fn ask_in_turn(maps: &[&Ring]) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..5000 {
                for map in maps {
                    map.pin().get(&12);
                }
            }
        });
    });
}

/// Regression: all periods were equally long, and one of two maps got all of their ends.
#[test]
fn maps_of_equal_periods_all_turn_and_all_know_what_accesses_cost() {
    for period in [1, 2, 4, 6] {
        let maps = [(); 2].map(|()| ring(period));
        ask_in_turn(&maps.each_ref());
        for map in maps {
            assert_eq!(map.head_near(12), Some(12), "R = {period}");
            assert!(map.mean_visits() > 0.0, "R = {period}");
        }
    }
}

/// Regression: once a thread had asked a map of very long periods, no request to another map ended
/// a period.
#[test]
fn a_map_turns_whatever_the_periods_of_others() {
    for others in [1, 2, 1000, u32::MAX] {
        let (other, map) = (ring(others), ring(5));
        ask_in_turn(&[&other, &map]);
        assert_eq!(map.head_near(12), Some(12), "beside R = {others}");
        assert!(map.mean_visits() > 0.0, "beside R = {others}");
    }
}
