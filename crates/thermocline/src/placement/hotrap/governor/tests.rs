use super::*;
use crate::options::{Options, Placement, Target};
use crate::testing::priced::{PRICES, RECORDS, Store, options};

fn by_hotness() -> Options {
    let mut options = options();
    options.placement = Placement::default();
    options
}

#[test]
fn records_have_what_they_are_worth_and_tables_the_rest() {
    let divided = |paid, others, worth, before| {
        let budget = Budget::new(paid, others, worth, 0, before);
        assert_eq!(budget.paid, paid);
        budget.files
    };
    assert_eq!(divided(1000, 100, 300, None), 400);
    assert_eq!(divided(1000, 100, 5000, None), 1000);
    assert_eq!(divided(50, 100, 5000, None), 50);
    // A little more or less is not worth rewriting anything for, unless it is not paid any more.
    let before = Budget::new(1000, 100, 300, 0, None);
    assert_eq!(divided(1000, 100, 310, Some(before)), 400);
    assert_eq!(divided(1000, 100, 330, Some(before)), 430);
    assert_eq!(divided(395, 100, 290, Some(before)), 390);
    // What records give is theirs, and not what has to lie there anyway.
    assert_eq!(Budget::new(1000, 100, 300, 50, None).files, 350);
    assert_eq!(Budget::new(1000, 100, 300, 500, None).files, 100);
    assert_eq!(Budget::new(50, 100, 300, 10, None).files, 50);
}

#[test]
fn what_is_paid_on_the_first_tier_is_what_the_others_leave() {
    let bill = |slow| Bill::of([0.5, 0.1], [7, slow], 1000);
    // 300 dollars, less a hundred for the slow tier, at half a dollar.
    assert_eq!(paid_on_first(&bill(1000), 0.3, u64::MAX), 400);
    assert_eq!(paid_on_first(&bill(3000), 0.3, u64::MAX), 0);
    assert_eq!(paid_on_first(&bill(1000), 0.3, 100), 100);
}

/// Reads a tenth of the records often and all of them once.
fn read(store: &Store, seconds: u32) {
    store.read(0..RECORDS, 1);
    store.read(RECORDS / 2..RECORDS / 2 + RECORDS / 10, seconds);
}

#[test]
fn the_bill_follows_a_target_down_and_up_and_nothing_is_lost() {
    let store = Store::filled_with(by_hotness());
    read(&store, 20);
    for target in [0.4, 0.2, 0.3] {
        store.db.set_target(Target::Cost(target)).unwrap();
        read(&store, 20);
        let share = store.share_of_target(target);
        assert!(share <= 1.02, "{share} of {target}");
        assert!(share > 0.8, "{share} of {target}");
        store.check_all();
    }
}

/// Under a target the copies that fill what is left over are paid for: there are as many as that.
#[test]
fn a_lower_target_is_met_at_once_by_dropping_copies() {
    let store = Store::filled_with(by_hotness());
    store.db.set_target(Target::Cost(0.15)).unwrap();
    (0..20).for_each(|_| store.settle());
    // No record comes up, so all that is paid for on top holds copies.
    let refused = || Err(crate::error::Error::Closed);
    store.points.set("promotion.start", refused);
    store.db.set_target(Target::Cost(0.4)).unwrap();
    store.read(0..RECORDS, 10);
    let copied = || store.db.engine().fast().copied_bytes();
    let before = copied();
    assert!(before > 1 << 20, "{before}");
    store.db.set_target(Target::Cost(0.3)).unwrap();
    assert!(copied() < before, "{} of {before}", copied());
    let share = store.share_of_target(0.3);
    assert!(share <= 1.02, "{share}");
    store.db.set_target(Target::None).unwrap();
    let fast = store.db.engine().fast();
    assert_eq!(fast.planned_bytes(), fast.capacity());
}

/// The log and new tables counted as bytes that were to move, and nothing that was said to move
/// let the report say that the target is out of reach.
#[test]
fn what_has_to_stay_is_not_to_move_and_an_unreachable_target_is_told_while_others_do() {
    let store = Store::filled_with(by_hotness());
    store.db.set_target(Target::Cost(0.2)).unwrap();
    read(&store, 20);
    for number in 0..600 {
        store
            .db
            .put(crate::testing::priced::key(number), vec![7; 500])
            .unwrap();
    }
    let engine = store.db.engine();
    store.db.set_target(Target::Cost(PRICES[1])).unwrap();
    let report = store.db.cost().unwrap();
    let may_go = engine.bytes_of_last_levels() + engine.fast().copied_bytes();
    assert!(report.moving_bytes > 0, "{report:?}");
    assert!(report.moving_bytes <= may_go, "{may_go}: {report:?}");

    let said = report.held_up_by.as_deref().unwrap_or_default();
    assert!(said.contains("the least that"), "{report:?}");
}

#[test]
fn a_lower_target_slows_no_writer() {
    let store = Store::filled_with(by_hotness());
    read(&store, 20);
    let last = || store.db.tree().bytes_of_f();
    let before = last();
    store.db.engine().update_pressure();
    store.db.set_target(Target::Cost(0.12)).unwrap();
    assert_eq!(
        store.db.engine().stall.reason(),
        None,
        "{before} bytes in Lf"
    );
    store.settle();
    assert!(last() < before / 2, "{} of {before}", last());
}

/// A look of the governor that had begun with the old target divided the tier by it once more, and
/// nothing looked again before somebody read.
#[test]
fn of_a_target_that_is_set_under_the_governors_look_the_new_one_counts() {
    let store = Store::filled_with(by_hotness());
    store.db.set_target(Target::Cost(0.4)).unwrap();
    store.read(0..RECORDS, 2);
    let planned = || store.db.engine().fast().planned_bytes();
    let before = planned();
    let once = Mutex::new(Some(store.db.clone()));
    store.points.set("governor.begun", move || {
        let db = once.lock().take();
        db.map_or(Ok(()), |db| db.set_target(Target::Cost(0.2)))
    });
    let engine = store.db.engine();
    engine.hotrap().govern(engine, false);
    let after = planned();
    assert!(after < before, "{after} of {before}");
    // Another look finds nothing to do.
    engine.hotrap().govern(engine, false);
    assert_eq!(planned(), after);
}

/// Records come and go slowly, and the price is not to swing meanwhile.
#[test]
fn a_hit_rate_is_had_for_less_than_the_whole_fast_tier() {
    let store = Store::filled_with(by_hotness());
    store.db.set_target(Target::HitRate(0.8)).unwrap();
    let mut late = Vec::new();
    for second in 0..900 {
        (0..900).for_each(|number| store.check(number));
        let others = 900 + second * 100 % 8000;
        (others..others + 100).for_each(|number| store.check(number));
        store.settle();
        if second >= 500 && second % 10 == 0 {
            let report = store.db.cost().unwrap();
            late.push((report.hit_rate.unwrap(), report.now));
            assert!(report.ceiling <= PRICES[0], "{report:?}");
            let curve = &report.curve;
            assert!(
                curve
                    .windows(2)
                    .all(|pair| pair[0].hit_rate <= pair[1].hit_rate)
            );
        }
    }
    let mean =
        |of: &dyn Fn(&(f64, f64)) -> f64| late.iter().map(of).sum::<f64>() / late.len() as f64;
    let (hit_rate, now) = (mean(&|late| late.0), mean(&|late| late.1));
    assert!(hit_rate > 0.76, "{hit_rate}");
    assert!(now < 0.25, "{now}");
}

/// What is hot had no more room than what was tracked so far, and so was never learnt: copies of
/// tables had all that was paid for, and of scattered hot records they have few.
#[test]
fn scattered_hot_records_have_the_room_in_which_they_are_learnt() {
    let mut options = by_hotness();
    // Accesses are written in parts of the capacity, so nothing is measured for long.
    options.tiers[0].capacity = 256 << 20;
    let store = Store::filled_with(options);
    store.db.set_target(Target::Cost(0.2)).unwrap();
    (0..20).for_each(|_| store.settle());
    let hot = || (0..RECORDS).step_by(20);
    for _ in 0..60 {
        hot().for_each(|number| store.check(number));
        store.settle();
    }
    let slow = &store.db.engine().tiers[1];
    let reads = || slow.io(Purpose::UserRead).read_ops;
    let before = reads();
    hot().for_each(|number| store.check(number));
    let missed = reads() - before;
    assert!(missed < 45, "{missed} of 450");
}

#[test]
fn what_a_faster_slow_disk_does_counts_for_less() {
    let mut work = SlowWork::default();
    work.take(1, [100, 40], 0.1);
    work.take(2, [50, 10], 1.0);
    assert!((work.reads - 60.0).abs() < 1e-9 && (work.other - 14.0).abs() < 1e-9);
    // Only what came since, by what it takes now.
    work.take(1, [300, 40], 0.5);
    work.take(2, [50, 11], 1.0);
    assert!((work.reads - 160.0).abs() < 1e-9 && (work.other - 15.0).abs() < 1e-9);
}

/// All are read alike, so the records that are tracked have the part of the accesses that they are
/// of the data. Each is read about once in some slices: reads of one slice count once.
#[test]
fn scores_tell_which_part_of_all_accesses_a_record_has() {
    let store = Store::filled_with(by_hotness());
    store.read(0..RECORDS, 30);
    let ralt = &store.db.engine().hotrap().ralt;
    let masses = ralt.masses();
    let scores: f64 = masses.iter().map(|mass| mass.reads).sum();
    let tracked: f64 = masses.iter().map(|mass| mass.bytes).sum();
    let accessed = scores * ralt.accesses_of_score();
    let all = store.db.tree().raw_bytes() as f64;
    let ratio = accessed / (tracked / all);
    assert!(tracked > all / 10.0, "{tracked} of {all}");
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}
