//! What one more read would make hot: asked by promotion, and by nobody else.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::eviction::{VALUE, of};
use super::*;
use crate::placement::hotrap::ralt::record::{Record, tracked_key};
use crate::placement::hotrap::ralt::reuse::{Census, Reuse};
use crate::placement::hotrap::ralt::scoring::{Model, Moment, UNIT};
use crate::sync::atomic::Ordering;

/// A RALT for which what was read more than once is hot.
fn wanting_two_reads(options: HotRapOptions) -> Fixture {
    let fixture = Fixture::on(Arc::new(Memory::new()), CAPACITY, options);
    // Merges tell nothing more then.
    fixture.ralt.set_data(0);
    fixture.ralt.want_two_reads();
    fixture
}

fn read(fixture: &Fixture, numbers: Range<u64>) {
    numbers.for_each(|number| fixture.read(0, number, 100));
    fixture.flush();
}

/// Checks by the filters whether each of `numbers` is hot, and whether it is with one more read.
fn check_filters(fixture: &Fixture, numbers: Range<u64>, hot: bool, with_a_read: bool) {
    let ralt = &fixture.ralt;
    for number in numbers {
        let key = key(number);
        assert_eq!(ralt.is_hot(0, &key), hot, "{number}");
        let found = ralt.is_hot_with_a_read(0, &key);
        assert_eq!(found, with_a_read, "{number} with a read");
    }
}

/// As [`check_filters`], and whether crossings find them hot, too.
fn check(fixture: &Fixture, numbers: Range<u64>, hot: bool, with_a_read: bool) {
    check_filters(fixture, numbers.clone(), hot, with_a_read);
    let expected: Vec<u64> = numbers.clone().filter(|_| hot).collect();
    assert_eq!(fixture.hot(0, numbers), expected);
}

/// What merges show if all stable records are read again, those stable for one epoch and those
/// stable for several.
pub(super) fn read_again() -> Reuse {
    let model = Model::new(&HotRapOptions::default());
    let once = model.first(Moment::default(), 100, 1);
    let mut census = Census::new(1, 0);
    for epochs in 1..=6 {
        let stable = Record {
            stable_until: epochs * UNIT,
            again: true,
            ..once
        };
        (0..20).for_each(|_| census.count(&[(0, once), (1, stable)], 100, &model));
    }
    (0..940).for_each(|_| census.count(&[(0, once)], 100, &model));
    let mut reuse = Reuse::default();
    reuse.take(&census, 1_000_000);
    reuse
}

/// What merges show if records that were read before are read again no more than others are: a
/// tenth of either.
fn read_alike() -> Reuse {
    let model = Model::new(&HotRapOptions::default());
    let once = model.first(Moment::default(), 100, 1);
    let found = [(0, once), (1, once)];
    let mut census = Census::new(1, 0);
    for number in 0..600 {
        let again = number % 10 == 0;
        census.count(&found[usize::from(!again)..], 100, &model);
    }
    (0..940).for_each(|_| census.count(&found[..1], 100, &model));
    let mut reuse = Reuse::default();
    reuse.take(&census, 1_000_000);
    reuse
}

#[test]
fn with_one_more_read_a_record_is_hot_for_promotion_alone() {
    let fixture = wanting_two_reads(HotRapOptions::default());
    read(&fixture, 0..100);
    check(&fixture, 0..100, false, true);
    check(&fixture, 100..200, false, false);
    fixture.merge_all();
    check(&fixture, 0..100, false, true);
    let all = range(&key(0), &key(100));
    assert_eq!(fixture.ralt.hot_bytes(0, &all), 0);
    assert_eq!(fixture.ralt.metrics().hot_set_bytes, 0);

    // The counters of before have run out since.
    fixture.read(0, 1000, 8 * CAPACITY as usize);
    fixture.flush();
    fixture.merge_all();
    check(&fixture, 0..100, false, true);

    // What was read again lies in a table by itself. Filters learn of it once it is merged;
    // crossings put it together with what was known.
    read(&fixture, 0..100);
    check_filters(&fixture, 0..100, false, true);
    assert_eq!(fixture.hot(0, 0..100), (0..100).collect::<Vec<_>>());
    fixture.merge_all();
    check(&fixture, 0..100, true, true);
}

#[test]
fn while_all_that_is_tracked_is_hot_nothing_is_marked() {
    let fixture = Fixture::new();
    read(&fixture, 0..100);
    assert!(fixture.is_young());
    check(&fixture, 0..100, true, true);
    for table in fixture.ralt.shared.version.load().tables() {
        for number in 0..100 {
            let marked = table.table.may_be_marked(&tracked_key(0, &key(number)));
            assert!(!marked.unwrap(), "{number}");
        }
    }
}

#[test]
fn marks_of_what_was_merged_away_are_seen_no_more() {
    let fixture = wanting_two_reads(HotRapOptions::default());
    read(&fixture, 0..100);
    fixture.merge_all();
    let version = fixture.ralt.shared.version.load_full();
    let [table] = version.level(1) else {
        panic!("one table: {version:?}");
    };
    let tracked = |number| tracked_key(0, &key(number));
    let mut trimmed = Version::default();
    trimmed.insert(1, Arc::new(table.trimmed(tracked(49).into()).unwrap()));
    for number in 0..100 {
        let found = trimmed.may_be_hot_with_a_read(&tracked(number)).unwrap();
        assert_eq!(found, number > 49, "{number}");
    }
}

#[test]
fn where_no_class_is_worth_the_fast_tier_no_read_makes_hot() {
    let fixture = wanting_two_reads(HotRapOptions::default());
    fixture.ralt.shared.worker.lock().reuse = read_alike();
    read(&fixture, 0..100);
    check(&fixture, 0..100, false, false);
    fixture.merge_all();
    check(&fixture, 0..100, false, false);
    // What an opening begins with.
    fixture.ralt.shared.worker.lock().reuse = Reuse::default();
    fixture.merge_all();
    check(&fixture, 0..100, false, false);
    fixture.ralt.shared.worker.lock().reuse = read_again();
    fixture.merge_all();
    check(&fixture, 0..100, false, true);
}

/// Once RALT has stopped, it learns of no more reads: a record that was promoted by one went down
/// again as cold, and came back with the next.
#[test]
fn when_ralt_has_stopped_no_read_makes_hot() {
    let fixture = wanting_two_reads(HotRapOptions::default());
    read(&fixture, 0..100);
    check(&fixture, 0..100, false, true);
    fixture.ralt.shared.stopped.store(true, Ordering::Relaxed);
    check(&fixture, 0..100, false, false);
}

#[cfg(feature = "experiments")]
#[test]
fn without_auto_tuning_no_class_is_asked_for_its_worth() {
    use crate::options::Switches;

    let options = HotRapOptions {
        switches: Switches {
            auto_tuning: false,
            ..Switches::default()
        },
        ..HotRapOptions::default()
    };
    let fixture = wanting_two_reads(options);
    fixture.ralt.shared.worker.lock().reuse = read_alike();
    read(&fixture, 0..100);
    check(&fixture, 0..100, false, true);
}

/// The least hot set is a quarter of the fast tier, and chance fills it. A tenth as much is known
/// besides, and would be hot with one more read.
#[test]
fn under_uniform_reads_hardly_a_record_is_hot_for_promotion_alone() {
    let fixture = Fixture::new();
    fixture.ralt.set_data(20 * CAPACITY);
    let mut rng = StdRng::seed_from_u64(3);
    let all = of(20.0);
    for _ in 0..all {
        fixture.read(0, rng.random_range(0..all), VALUE);
    }
    assert!(!fixture.is_young());
    let for_promotion = |number: &u64| {
        let (ralt, key) = (&fixture.ralt, key(*number));
        ralt.is_hot_with_a_read(0, &key) && !ralt.is_hot(0, &key)
    };
    let count = (0..all).filter(for_promotion).count() as u64;
    assert!(count * 400 < all, "{count} of {all}");
}
