//! RALT against a plain map of records, over random accesses.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::eviction::check_limits;
use super::*;
use crate::placement::hotrap::ralt::sizes::LEVEL0_TABLES;
use crate::placement::hotrap::ralt::version::Version;
use crate::sync::atomic::{AtomicU64, Ordering};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn while_young_everything_tracked_is_hot_and_nothing_else(
        seed: u64, keys in 10u64..400, accesses in 10u64..6000, value_len in 0usize..100,
    ) {
        // Large enough that nothing is evicted.
        let fixture = Fixture::on(Arc::new(Memory::new()), 4 << 20, HotRapOptions::default());
        let mut rng = StdRng::seed_from_u64(seed);
        let mut expected: BTreeMap<(u32, u64), u64> = BTreeMap::new();
        for _ in 0..accesses {
            let (keyspace, number) = (rng.random_range(0..2), rng.random_range(0..keys) * 2);
            fixture.read(keyspace, number, value_len);
            let size = key(number).len() + value_len;
            expected.insert((keyspace, number), size as u64);
        }
        fixture.flush();
        fixture.work();
        prop_assert!(fixture.is_young());
        for keyspace in 0..2 {
            let tracked = expected.range((keyspace, 0)..=(keyspace, u64::MAX));
            let numbers: Vec<u64> = tracked.map(|((_, number), _)| *number).collect();
            prop_assert_eq!(&fixture.hot(keyspace, 0..2 * keys + 1), &numbers);
            for number in numbers {
                prop_assert!(fixture.ralt.is_hot(keyspace, &key(number)));
            }
            let wrong = (0..keys).filter(|n| fixture.ralt.is_hot(keyspace, &key(2 * n + 1)));
            prop_assert!(wrong.count() <= 2, "filters err too often");
            // Whoever asks in order gets the same answers, and need not ask for every key.
            let all = range(&key(0), &key(2 * keys));
            for step in [1, 3] {
                let mut filter = fixture.ralt.hot_filter(keyspace, &all);
                for number in (0..2 * keys).step_by(step) {
                    let one = fixture.ralt.is_hot(keyspace, &key(number));
                    prop_assert_eq!(filter.is_hot(&key(number)), one);
                }
            }
            // Sums are exact but for the blocks at the edges, and duplicates.
            let (first, last) = (key(keys / 2), key(keys));
            let inside = expected.range((keyspace, keys / 2)..=(keyspace, keys));
            let size: u64 = inside.map(|(_, size)| size).sum();
            let found = fixture.ralt.hot_bytes(keyspace, &range(&first, &last));
            prop_assert!(found * 10 >= size * 7, "{} of {}", found, size);
        }
        prop_assert_eq!(fixture.fast.file_bytes(), fixture.bytes_on_disk());
        prop_assert_eq!(fixture.fast.reserved_bytes(), 0);
        prop_assert_eq!(fixture.ralt.trouble(), None);
    }
}

#[test]
fn sums_over_the_whole_range_are_exact_after_a_merge() {
    let fixture = Fixture::on(Arc::new(Memory::new()), 4 << 20, HotRapOptions::default());
    for number in 0..3000 {
        fixture.read(7, number % 1000, 100);
    }
    fixture.flush();
    fixture.merge_all();
    let size = key(0).len() as u64 + 100;
    let all = range(&key(0), &key(1000));
    assert_eq!(fixture.ralt.hot_bytes(7, &all), 1000 * size);
    assert_eq!(fixture.ralt.metrics().hot_set_bytes, 1000 * size);
    assert_eq!(fixture.ralt.metrics().records, 1000);
    assert_eq!(fixture.ralt.hot_bytes(6, &all), 0);
    // A half, to a block on either side.
    let half = fixture.ralt.hot_bytes(7, &range(&key(250), &key(749)));
    assert!((500 * size..700 * size).contains(&half), "{half}");
}

#[test]
fn readers_see_whole_versions_while_tables_are_merged() {
    let fixture = Fixture::on(Arc::new(Memory::new()), 8 << 20, HotRapOptions::default());
    (0..2000).for_each(|number| fixture.read(0, number * 2, 20));
    fixture.flush();
    let size = key(0).len() as u64 + 20;
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut rounds = 0;
            while rounds < 3 || !done.load(std::sync::atomic::Ordering::Relaxed) {
                let hot = fixture.hot(0, 0..4000);
                let even = hot.iter().filter(|number| *number % 2 == 0);
                assert_eq!(even.count(), 2000, "none is missed by a cursor");
                assert!((0..2000).all(|n| fixture.ralt.is_hot(0, &key(2 * n))));
                let bytes = fixture.ralt.hot_bytes(0, &range(&key(0), &key(4000)));
                assert!(bytes >= 2000 * size * 9 / 10, "{bytes}");
                rounds += 1;
            }
        });
        for round in 0..40 {
            for number in 0..400 {
                fixture.read(0, (number * 37 + round) % 2000 * 2, 20);
            }
            fixture.merge_all();
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        reader.join().unwrap();
    });
    assert_eq!(fixture.ralt.trouble(), None);
    assert_eq!(fixture.fast.file_bytes(), fixture.bytes_on_disk());
}

#[test]
fn a_reader_keeps_its_version_and_its_files_go_when_it_does() {
    let fixture = Fixture::new();
    (0..500).for_each(|number| fixture.read(0, number, 10));
    fixture.flush();
    let mut hot = fixture.ralt.hot_keys(0, &range(&key(0), &key(999)));
    assert!(hot.is_hot(&key(0)));
    (500..1000).for_each(|number| fixture.read(0, number, 10));
    fixture.flush();
    fixture.merge_all();
    let with_reader = fixture.bytes_on_disk();
    assert_eq!(fixture.fast.file_bytes(), with_reader);
    assert!((1..500).all(|number| hot.is_hot(&key(number))));
    assert!(
        (500..1000).all(|number| !hot.is_hot(&key(number))),
        "it came later"
    );
    drop(hot);
    assert!(fixture.bytes_on_disk() < with_reader);
    check_limits(&fixture);
}

/// A crossing over few keys held the files of all tables for as long as it took. If these were
/// merged away meanwhile, they took as much of the fast tier again, and nobody read them.
#[test]
fn a_reader_of_few_keys_keeps_their_tables_alone() {
    const KEYS: u64 = 10_000;
    let fixture = Fixture::on(Arc::new(Memory::new()), 8 << 20, HotRapOptions::default());
    (0..KEYS).for_each(|number| fixture.read(0, number, 10));
    fixture.flush();
    fixture.merge_all();
    let one = fixture.ralt.shared.sizes.table;
    let before = fixture.bytes_on_disk();
    assert!(before > 8 * one, "{before} in tables of {one}");
    let mut hot = fixture.ralt.hot_keys(0, &range(&key(0), &key(9)));
    assert!(hot.is_hot(&key(0)));
    fixture.merge_all();
    let with_reader = fixture.bytes_on_disk();
    let held = with_reader - fixture.ralt.metrics().physical_bytes;
    assert!(held < 4 * one, "{held} in tables of {one}");
    assert!((1..10).all(|number| hot.is_hot(&key(number))));
    drop(hot);
    assert!(fixture.bytes_on_disk() < with_reader);
    check_limits(&fixture);
}

#[test]
fn heat_names_the_hottest_and_adds_up() {
    let fixture = Fixture::new();
    let slice = fixture.ralt.shared.sizes.slice as usize;
    // Key 9 is read in ten slices, key 0 in one.
    for round in 0..10 {
        (round..10).for_each(|number| fixture.read(4, number, slice / 8));
    }
    fixture.flush();
    let name = |keyspace| (keyspace == 4).then(|| "four".to_owned());
    let report = fixture.ralt.heat(3, &name).unwrap();
    let found: Vec<_> = report.hottest.iter().map(|hot| &hot.key).collect();
    assert_eq!(found, [&key(9), &key(8), &key(7)]);
    let hottest = &report.hottest[0];
    assert_eq!(
        (&hottest.keyspace[..], hottest.value_len),
        ("four", slice as u64 / 8)
    );
    assert!(hottest.is_stable && hottest.is_hot && hottest.score > 4.0);
    let last = report.curve.last().unwrap();
    assert_eq!(
        (last.records, last.bytes),
        (10, 10 * (12 + slice as u64 / 8))
    );
    assert!(
        report
            .curve
            .is_sorted_by(|a, b| a.score > b.score && a.records < b.records)
    );
    assert!(report.curve.len() <= 40);
}

#[test]
fn accesses_that_come_during_a_walk_are_not_lost() {
    let fixture = Fixture::on(Arc::new(Memory::new()), 8 << 20, HotRapOptions::default());
    for _ in 0..2 {
        (0..10_000).for_each(|number| fixture.read(0, number * 2, 20));
        fixture.flush();
    }
    fixture.merge_all();
    (0..10_000).for_each(|number| fixture.read(0, number * 2, 20));
    fixture.flush();
    fixture.begin_full_merge();
    assert!(fixture.ralt.work(), "one slice of several");
    // The walk is past these.
    (0..100).for_each(|number| fixture.read(0, number * 2 + 1, 20));
    fixture.flush();
    fixture.work();
    let hot = fixture.hot(0, 0..20_000);
    assert_eq!(hot.iter().filter(|number| *number % 2 == 1).count(), 100);
    assert_eq!(hot.len(), 10_100);
}

/// Each step began with the flush that was due, and ended there. If accesses came as fast as they
/// were flushed, nothing was merged or evicted, and each question asked more tables, until access
/// records took twice what they may and all of them were forgotten.
#[test]
fn merges_keep_up_however_fast_accesses_come() {
    const KEYS: u64 = 25_000;
    let options = HotRapOptions {
        ralt_initial: 0.3,
        ..HotRapOptions::default()
    };
    // A slice of a merge is worth five flushes here, and all that is known is worth ten of them.
    let fixture = Fixture::on(Arc::new(Memory::new()), 6 << 20, options);
    for number in 0..KEYS {
        if fixture.ralt.log(0, &key(number * 7919 % KEYS), 10, 1) {
            fixture.flush();
        }
    }
    fixture.flush();
    fixture.merge_all();
    let shared = &fixture.ralt.shared;
    let below = shared.version.load().physical();
    assert!(below > 8 * shared.sizes.step, "{below} {:?}", shared.sizes);

    let (readers, next) = (Arc::clone(shared), AtomicU64::new(0));
    let fill = Arc::new(move || {
        let read = || next.fetch_add(7919, Ordering::Relaxed) % KEYS;
        while !readers.buffers.push(0, &key(read()), 10, 1) {}
    });
    fill();
    let flushes = Arc::new(AtomicU64::new(0));
    let (refill, count) = (fill, Arc::clone(&flushes));
    fixture.points.set("ralt.flush", move || {
        refill();
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    for step in 0..120 {
        assert!(fixture.ralt.work(), "a flush is due again");
        let waiting = shared.version.load().level(0).len();
        assert!(waiting <= 2 * LEVEL0_TABLES, "{waiting} after step {step}");
    }
    fixture.points.clear("ralt.flush");
    let flushes = flushes.load(Ordering::Relaxed);
    assert!(
        flushes > 120 / 4,
        "and flushes keep up with them: {flushes}"
    );
    assert_eq!(fixture.ralt.metrics().dropped_accesses, 0);
    fixture.work();
    assert_eq!(fixture.hot(0, 0..KEYS).len() as u64, KEYS);
    assert_eq!(fixture.ralt.trouble(), None);
}

/// While a merge took the lowest run to another level, only what had arrived there was taken for
/// that run. The rest counted as what lies above it, less what also lies below: a tenth of the hot
/// set was left, and hot tables were taken for cold.
#[test]
fn the_hot_set_stays_as_it_is_while_the_lowest_run_changes_its_level() {
    let options = HotRapOptions {
        ralt_initial: 0.5,
        ..HotRapOptions::default()
    };
    let fixture = Fixture::on(Arc::new(Memory::new()), 4 << 20, options);
    let shared = &fixture.ralt.shared;
    let nearly_full = shared.sizes.level_target(1) / 20 * 17;
    let mut keys = 0;
    while shared.version.load().level_bytes(1) < nearly_full {
        fixture.read(0, keys, 8);
        keys += 1;
    }
    (0..keys).for_each(|number| fixture.read(0, number, 8));
    assert!(shared.version.load().duplicates > 0.5);
    // One new key for every four that are read again.
    let (mut again, mut most) = (0..keys, 0);
    while shared.version.load().bottom() < 2 {
        for number in again.by_ref().take(4).chain([keys]) {
            let mut is_due = fixture.ralt.log(0, &key(number), 8, 1);
            while is_due {
                is_due = fixture.ralt.work();
                let hot = fixture.ralt.metrics().hot_set_bytes;
                assert!(hot * 10 > most * 9, "{hot} of {most}");
                most = most.max(hot);
            }
        }
        keys += 1;
    }
    assert!(!again.is_empty() && fixture.is_young());
}

/// HotRAP size of what is hot, in the lowest run and above it.
fn hot_sums(version: &Version) -> (u64, u64) {
    let (lowest, above) = version.sums();
    (lowest.hot, above.hot)
}

#[test]
fn a_run_on_two_levels_is_one_run_and_what_lies_over_it_is_not() {
    let fixture = Fixture::on(Arc::new(Memory::new()), 4 << 20, HotRapOptions::default());
    (0..2000).for_each(|number| fixture.read(0, number, 100));
    fixture.flush();
    fixture.merge_all();
    let whole = fixture.ralt.shared.version.load_full();
    let tables = whole.level(1).to_vec();
    assert!(tables.len() > 2);
    let tracked = |number| super::super::record::tracked_key(0, &key(number));
    let with = |level_of: &dyn Fn(usize) -> usize| {
        let mut version = Version {
            duplicates: 0.9,
            ..Version::default()
        };
        for (at, table) in tables.iter().enumerate() {
            version.insert(level_of(at), Arc::clone(table));
        }
        version
    };
    let hot = |version: &Version| version.hot_bytes(&tracked(0), &tracked(2000)).unwrap();
    // The run goes down, or up if a smaller level is enough by now.
    for (arrived, left) in [(2, 1), (1, 2)] {
        for count in 1..tables.len() {
            let version = with(&|at| match at < count {
                true => arrived,
                false => left,
            });
            assert!(version.is_one_run());
            assert_eq!(version.hot_set(), whole.hot_set());
            assert_eq!(hot(&version), hot(&whole));
            assert_eq!(version.lowest_level(), 1);
            assert!(version.levels.is_kept_up());
        }
    }
    let mut version = with(&|_| 1);
    version.insert(2, Arc::clone(&tables[0]));
    let sums = hot_sums(&version);
    assert_eq!(sums, (whole.hot_set(), tables[0].hot));
    assert_eq!((version.lowest_level(), whole.lowest_level()), (2, 1));

    // Below lies a table over the whole range. Its records in the range of the first table were
    // merged away.
    let other = Fixture::new();
    for number in 0..200 {
        other.ralt.log(0, &key(10 * number), 100, 1);
    }
    other.flush();
    let other = other.ralt.shared.version.load_full();
    let gone = tables[0].meta.range.last.clone();
    let wide = other.level(0)[0].trimmed(gone).unwrap();
    let (first, second) = (&tables[0], &tables[1]);
    let sums = (first.hot + wide.hot, second.hot);
    let mut version = Version::default();
    version.insert(2, Arc::new(wide));
    version.insert(1, Arc::clone(first));
    assert!(version.is_one_run());
    version.insert(1, Arc::clone(second));
    assert_eq!(hot_sums(&version), sums);
    assert!(version.levels.is_kept_up());
}

#[test]
fn records_that_were_merged_away_are_seen_no_more() {
    let fixture = Fixture::new();
    (0..100).for_each(|number| fixture.read(0, number, 10));
    fixture.flush();
    fixture.merge_all();
    let version = fixture.ralt.shared.version.load_full();
    let [table] = version.level(1) else {
        panic!("one table: {version:?}");
    };
    let tracked = |number| super::super::record::tracked_key(0, &key(number));
    let mut trimmed = Version::default();
    trimmed.insert(1, Arc::new(table.trimmed(tracked(49).into()).unwrap()));
    for number in 0..100 {
        assert!(version.may_be_hot(&tracked(number)).unwrap());
        assert_eq!(trimmed.may_be_hot(&tracked(number)).unwrap(), number > 49);
    }
    let below = trimmed.hot_bytes(&tracked(0), &tracked(49)).unwrap();
    assert_eq!(below, 0);
    assert!(trimmed.hot_set() < version.hot_set());
}
