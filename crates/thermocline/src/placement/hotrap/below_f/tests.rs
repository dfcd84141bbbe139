use crate::error::Error;
use crate::metrics::CostReport;
use crate::options::{Options, Placement, Target, TierOptions};
use crate::testing::priced::{RECORDS, Store, options};

/// Some 5 MB, of which the first tier has room for few.
fn three_tiers() -> Options {
    let tiers = vec![
        TierOptions::fast("/fast").capacity(1 << 20).price(0.5),
        TierOptions::slow("/ssd").capacity(2 << 20).price(0.2),
        TierOptions::slow("/hdd").price(0.05),
    ];
    Options {
        tiers,
        placement: Placement::default(),
        ..options()
    }
}

/// A store in which no record comes up.
fn filled(options: Options) -> Store {
    let store = Store::filled_with(options);
    store.points.set("promotion.start", || Err(Error::Closed));
    store
}

/// Of `numbers`, the part whose tables lie on `tier` or on a faster one.
fn part_on(store: &Store, numbers: std::ops::Range<u32>, tier: u8) -> f64 {
    let all = numbers.len() as f64;
    let on = numbers.filter(|number| store.tier_of(*number) <= tier);
    on.count() as f64 / all
}

fn held_on(store: &Store, tier: usize) -> u64 {
    store.db.engine().tiers[tier].file_bytes()
}

fn report(store: &Store) -> CostReport {
    store.db.cost().unwrap()
}

#[test]
fn without_a_target_the_tier_between_has_what_is_read_most_as_far_as_it_has_room() {
    let store = filled(three_tiers());
    for hot in [3000..5000, 6000..8000] {
        store.read(hot.clone(), 60);
        let part = part_on(&store, hot.clone(), 1);
        assert!(part > 0.9, "{part} of {hot:?}");
        let held = held_on(&store, 1);
        assert!(held > 1 << 20 && held <= 2 << 20, "{held}");
    }
    let moved = report(&store);
    assert!(
        moved.migrations > 0 && moved.migrated_up_bytes > 0,
        "{moved:?}"
    );
    store.check_all();
}

#[test]
fn under_a_target_the_bill_of_three_tiers_follows_it_and_nothing_is_lost() {
    let mut options = three_tiers();
    options.tiers[1].capacity = u64::MAX;
    let store = filled(options);
    let hot = 3000..5000;
    store.read(hot.clone(), 20);
    for target in [0.12, 0.2, 0.09, 0.15] {
        store.db.set_target(Target::Cost(target)).unwrap();
        store.read(hot.clone(), 20);
        // What is read little is worth the little that it costs, too.
        store.read(0..RECORDS, 3);
        // Now and then the store estimates how much lies there twice.
        (0..12).for_each(|_| store.settle());
        let share = store.share_of_target(target);
        assert!((0.9..=1.02).contains(&share), "{share} of {target}");
        let now = report(&store);
        assert!(
            now.floor < 0.08,
            "{}: the tier between can be emptied",
            now.floor
        );
        assert_eq!((now.moving_bytes, now.held_up_by), (0, None));
        store.check_all();
    }
}

/// Records that are worth the first tier come before tables that are worth the next.
#[test]
fn tables_of_the_tier_between_make_room_for_hot_records() {
    let mut options = three_tiers();
    options.tiers[0].capacity = 4 << 20;
    options.tiers[1].capacity = u64::MAX;
    let store = Store::filled_with(options);
    store.db.set_target(Target::Cost(0.12)).unwrap();
    // Nothing comes up yet, and the money goes to tables.
    store.points.set("promotion.start", || Err(Error::Closed));
    store.read(0..RECORDS, 10);
    let held = held_on(&store, 1);
    assert!(held > 512 << 10, "{held}");
    let hot = || (0..RECORDS).step_by(20);
    let are_up = || hot().filter(|number| store.tier_of(*number) == 0).count();
    let before = are_up();
    store.points.clear("promotion.start");
    for _ in 0..120 {
        hot().for_each(|number| store.check(number));
        store.settle();
    }
    // For the same money, so tables have made room for them.
    let after = are_up();
    assert!(after > before + 30, "{before} and then {after}");
    (0..5).for_each(|_| store.settle());
    let share = store.share_of_target(0.12);
    assert!(share <= 1.02, "{share}");
}

/// Of a table that few hot records made hot, the rest went down with the heat of the whole, and
/// came to a faster tier than it is worth.
#[test]
fn what_goes_down_takes_no_heat_of_fast_tables_along() {
    let mut options = three_tiers();
    options.tiers[0].capacity = 4 << 20;
    let store = filled(options);
    let mut seen = std::collections::BTreeSet::new();
    let is_first_of_fast = |number: &u32| {
        let table = store.table_of(*number);
        table.meta.tier == 0 && seen.insert(table.meta.id)
    };
    let read: Vec<u32> = (0..RECORDS).filter(is_first_of_fast).collect();
    assert!(read.len() > 20, "{}", read.len());
    for _ in 0..20 {
        read.iter().for_each(|number| store.check(*number));
        store.settle();
    }
    store.db.set_target(Target::Cost(0.06)).unwrap();
    (0..5).for_each(|_| store.settle());
    let version = store.db.tree().version();
    let slow = version.tables().filter(|table| table.meta.tier > 0);
    let rate: f64 = slow
        .filter_map(|table| table.lazy.heat().get().known())
        .sum();
    let down = report(&store);
    assert!(down.now < 0.08, "{down:?}");
    assert!(
        rate < 1.0,
        "{rate} reads a second of tables that nobody reads"
    );
}

/// Hot records had all the money that they could be worth, while every other read went to the
/// slowest tier: for a little more, all of it could have been on the next.
#[test]
fn records_leave_room_to_tables_that_save_more() {
    let mut options = three_tiers();
    options.tiers[0].capacity = 4 << 20;
    options.tiers[1].capacity = u64::MAX;
    let store = Store::filled_with(options);
    store.db.set_target(Target::Cost(0.23)).unwrap();
    for second in 0..200 {
        // A part of the records is read a little more than the rest, which is read in turn.
        let some = (0..RECORDS).step_by(5);
        let others = (0..RECORDS).skip(second % 4).step_by(4);
        some.chain(others).for_each(|number| store.check(number));
        store.settle();
    }
    let [fast, between, slowest] = [0, 1, 2].map(|tier| held_on(&store, tier));
    assert!(slowest < between / 8, "{fast}, {between}, {slowest}");
    let share = store.share_of_target(0.23);
    assert!((0.9..=1.03).contains(&share), "{share}");
}
