//! Evictions, and the limits that follow them (§3.2, Algorithm 1 in §3.7).

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};

use super::*;
use crate::placement::hotrap::ralt::histogram::BINS;
use crate::placement::hotrap::ralt::reuse::Reuse;

/// Bytes of a value here.
pub(super) const VALUE: usize = 500;

/// HotRAP size of a record here.
const SIZE: u64 = 12 + VALUE as u64;

/// Reads drawn from `hot` with probability 0.95, and from `all` otherwise.
fn hotspot(
    fixture: &Fixture,
    rng: &mut StdRng,
    accesses: u64,
    hot: std::ops::Range<u64>,
    all: u64,
) {
    for _ in 0..accesses {
        let number = match rng.random_bool(0.95) {
            true => rng.random_range(hot.clone()),
            false => rng.random_range(0..all),
        };
        fixture.read(0, number, VALUE);
    }
}

fn uniform(fixture: &Fixture, rng: &mut StdRng, accesses: u64, all: u64) {
    hotspot(fixture, rng, accesses, 0..all, all);
}

/// Accesses that sum up to this part of the fast tier's capacity.
pub(super) fn of(part: f64) -> u64 {
    (part * CAPACITY as f64) as u64 / SIZE
}

pub(super) fn check_limits(fixture: &Fixture) {
    let metrics = fixture.ralt.metrics();
    assert!(
        metrics.hot_set_bytes <= metrics.hot_set_limit_bytes,
        "{metrics:?}"
    );
    assert!(
        metrics.physical_bytes <= metrics.physical_limit_bytes,
        "{metrics:?}"
    );
    assert_eq!(fixture.fast.file_bytes(), fixture.bytes_on_disk());
    assert_eq!(fixture.fast.reserved_bytes(), 0);
    assert_eq!(metrics.trouble, None);
}

#[test]
fn a_hotspot_is_found_kept_and_followed_when_it_moves() {
    // With the paper's D_hs: the more records may be tracked that are not stable, the longer the
    // old spot is tracked.
    let options = HotRapOptions {
        unstable: 0.1,
        ..HotRapOptions::default()
    };
    let fixture = Fixture::on(Arc::new(Memory::new()), CAPACITY, options);
    let mut rng = StdRng::seed_from_u64(1);
    let all = of(10.0);
    let spot = of(0.3);
    hotspot(&fixture, &mut rng, of(12.0), 0..spot, all);
    check_limits(&fixture);
    assert!(!fixture.is_young());
    let hot = fixture.hot(0, 0..all);
    let inside = hot.iter().filter(|n| **n < spot).count() as u64;
    assert!(inside * 100 >= spot * 95, "{inside} of {spot}");
    let limit = fixture.ralt.metrics().hot_set_limit_bytes as f64 / CAPACITY as f64;
    assert!(
        (0.3..0.45).contains(&limit),
        "about the spot and D_hs: {limit}"
    );

    // It moves: the new one is hot, the old one is forgotten.
    hotspot(&fixture, &mut rng, of(8.0), all - spot..all, all);
    check_limits(&fixture);
    let hot = fixture.hot(0, 0..all);
    let new = hot.iter().filter(|n| **n >= all - spot).count() as u64;
    let old = hot.iter().filter(|n| **n < spot).count() as u64;
    assert!(new * 100 >= spot * 95, "{new} of {spot}");
    // What is not stable any more is spared while there is room for it.
    assert!(old * 100 <= spot * 15, "{old} of {spot}");
}

/// Records of the old spot stay stable for five epochs, which is 3.5 times the fast tier's bytes of
/// reads, and the new spot's records need far longer to reach their scores. By Algorithm 1 the old
/// records kept their place all that while, and what little room there was beside them went from
/// one part of the new spot to another.
///
/// In one run of ten it was the same here, and in some for good. Records that are read after a new
/// epoch has begun are stable for longer than any was at the last eviction, and they were held
/// against the worst class of those there had been. So a record ceased to be hot by being read
/// again.
#[test]
fn a_large_hotspot_that_moves_is_followed_before_the_old_ones_counters_run_out() {
    let all = of(10.0);
    let spot = of(0.5);
    for seed in 1..25 {
        let fixture = Fixture::new();
        let mut rng = StdRng::seed_from_u64(seed);
        hotspot(&fixture, &mut rng, of(12.0), 0..spot, all);
        for (reads, share) in [(2.5, 85), (2.5, 95)] {
            hotspot(&fixture, &mut rng, of(reads), all - spot..all, all);
            check_limits(&fixture);
            let hot = fixture.hot(0, 0..all);
            let new = hot.iter().filter(|n| **n >= all - spot).count() as u64;
            assert!(new * 100 >= spot * share, "seed {seed}: {new} of {spot}");
        }
    }
}

/// Under a zipfian distribution few records are read often enough to be stable. By Algorithm 1 the
/// limit followed those, and half of the fast tier went to records that happened to lie there.
///
/// And with two of these seeds the best records were the least hot: see
/// [`a_large_hotspot_that_moves_is_followed_before_the_old_ones_counters_run_out`].
#[test]
fn what_is_read_often_without_being_stable_has_its_place() {
    let mut limits = Vec::new();
    for seed in 1..17 {
        let fixture = Fixture::new();
        let mut rng = StdRng::seed_from_u64(seed);
        let zipfian = Zipf::new(of(10.0) as f64, 0.99).unwrap();
        for _ in 0..of(20.0) {
            fixture.read(0, zipfian.sample(&mut rng) as u64, VALUE);
        }
        check_limits(&fixture);
        limits.push(fixture.ralt.metrics().hot_set_limit_bytes as f64 / CAPACITY as f64);
        let best = fixture.hot(0, 0..of(0.2)).len() as u64;
        assert!(
            best * 100 > of(0.2) * 80,
            "seed {seed}: {best} of the best {}",
            of(0.2)
        );
    }
    // In so small a store chance decides now and then.
    let all = limits.iter().filter(|limit| **limit > 0.69).count();
    assert!(all >= 12, "all that it may be: {limits:?}");
}

/// The first eviction used to take everything that had been read once: a hotspot that has only just
/// been read through was forgotten, limit and all, and learnt anew a little at a time.
#[test]
fn the_first_eviction_takes_the_oldest_of_what_was_read_once_and_leaves_the_limit() {
    let fixture = Fixture::new();
    let before = fixture.ralt.metrics().hot_set_limit_bytes;
    // Each key is read once, in order: nothing is stable.
    let all = of(2.0);
    let mut read = 0;
    while fixture.is_young() {
        fixture.read(0, read, VALUE);
        read += 1;
        assert!(read < all, "nothing was evicted");
    }
    fixture.work();
    check_limits(&fixture);
    let hot = fixture.hot(0, 0..read);
    assert!(
        hot.len() as u64 * 100 > read * 80,
        "{} of {read}",
        hot.len()
    );
    let youngest = hot.iter().filter(|n| **n >= read / 2).count() as u64;
    let oldest = hot.iter().filter(|n| **n < read / 10).count() as u64;
    assert!(
        youngest * 100 > read * 45,
        "{youngest} of the younger half of {read}"
    );
    assert!(
        oldest * 100 < read * 5,
        "{oldest} of the oldest tenth of {read}"
    );
    assert_eq!(fixture.ralt.metrics().hot_set_limit_bytes, before);
}

#[test]
fn the_limit_grows_and_shrinks_with_the_hotspot() {
    let fixture = Fixture::new();
    let mut rng = StdRng::seed_from_u64(2);
    let all = of(10.0);
    let mut limits = Vec::new();
    for spot in [0.1, 0.4, 0.1] {
        hotspot(&fixture, &mut rng, of(16.0), 0..of(spot), all);
        check_limits(&fixture);
        limits.push(fixture.ralt.metrics().hot_set_limit_bytes as f64 / CAPACITY as f64);
    }
    assert!(
        limits[1] > limits[0] + 0.15 && limits[1] > limits[2] + 0.15,
        "{limits:?}"
    );
}

#[test]
fn without_a_hotspot_little_is_tracked() {
    let fixture = Fixture::new();
    let mut rng = StdRng::seed_from_u64(3);
    uniform(&fixture, &mut rng, of(20.0), of(20.0));
    check_limits(&fixture);
    let metrics = fixture.ralt.metrics();
    let limit = metrics.hot_set_limit_bytes as f64 / CAPACITY as f64;
    // L_hs and D_hs, and the few records that chance made stable.
    assert!(limit < 0.05 + 0.21 + 0.05, "{limit}");
    let hot = fixture.hot(0, 0..of(20.0)).len() as u64;
    assert!(hot * 100 < of(20.0) * 3, "{hot} of {}", of(20.0));
}

/// While RALT is young, a record is promoted for having been read once. Under uniform reads of
/// small records that went on for ten minutes, with every record that was read, for nothing.
#[test]
fn a_young_ralt_ceases_to_be_generous_where_all_is_read_alike_and_only_there() {
    // Of a fast tier large enough for chance to have a say.
    const TIMES: u64 = 64;
    let (all, spot) = (TIMES * of(10.0), TIMES * of(0.7));
    for seed in 0..3 {
        let reads = |next: &dyn Fn(&mut StdRng) -> u64| {
            let disk = Arc::new(Memory::new());
            let fixture = Fixture::on(disk, TIMES * CAPACITY, HotRapOptions::default());
            let mut rng = StdRng::seed_from_u64(seed);
            let (mut generous, mut young) = (0, 0);
            while fixture.is_young() {
                fixture.read(0, next(&mut rng), VALUE);
                if fixture.is_young() {
                    generous += u64::from(fixture.ralt.is_generous());
                    young += 1;
                }
            }
            (generous, young)
        };
        let (generous, young) = reads(&|rng| rng.random_range(0..all));
        assert!(
            generous * 2 < young,
            "seed {seed}: {generous} of {young} uniform reads"
        );
        let zipfian = Zipf::new(all as f64, 0.99).unwrap();
        for (generous, young) in [
            reads(&|rng| zipfian.sample(rng) as u64),
            reads(&|rng| match rng.random_bool(0.95) {
                true => rng.random_range(0..spot),
                false => rng.random_range(0..all),
            }),
        ] {
            assert_eq!(generous, young, "seed {seed}");
        }
    }
}

/// With two sorted levels only an eviction looked at both. What a young RALT has seen is not kept
/// over a restart. So from a restart until the first eviction everything that was read counted as
/// hot, however evenly it was read.
#[test]
fn a_young_ralt_of_two_sorted_levels_sees_by_its_merges_that_all_is_read_alike() {
    const SMALL: usize = 8;
    let capacity = 4 * CAPACITY;
    let options = HotRapOptions {
        ralt_initial: 0.5,
        ..HotRapOptions::default()
    };
    let medium: Arc<dyn Medium> = Arc::new(Memory::new());
    let open = || Fixture::on(Arc::clone(&medium), capacity, options.clone());
    let all = 10 * capacity / (12 + SMALL as u64);
    let mut rng = StdRng::seed_from_u64(5);
    let mut read = |fixture: &Fixture| fixture.read(0, rng.random_range(0..all), SMALL);
    let fixture = open();
    while fixture.ralt.shared.version.load().bottom() < 2 {
        read(&fixture);
    }
    fixture.ralt.close();
    let fixture = open();
    assert!(fixture.is_young() && fixture.ralt.is_generous());
    while fixture.ralt.is_generous() {
        read(&fixture);
    }
    assert!(fixture.is_young(), "it took an eviction");
}

#[test]
fn where_nothing_was_measured_the_best_by_score_stay() {
    let fixture = Fixture::new();
    let shared = &fixture.ralt.shared;
    // Each key is read in as many slices as its number says.
    let slice = shared.sizes.slice;
    let count = 30;
    for round in 0..count {
        for number in round..count {
            fixture.read(0, number, (slice / count) as usize);
        }
    }
    fixture.flush();
    fixture.merge_all();
    let before = fixture.ralt.metrics();
    let scores: BTreeMap<Vec<u8>, f64> = {
        let report = fixture.ralt.heat(100, &|_| Some("k".into())).unwrap();
        report
            .hottest
            .into_iter()
            .map(|hot| (hot.key, hot.score))
            .collect()
    };
    assert_eq!(scores.len() as u64, count);
    assert!(scores[&key(29)] > scores[&key(5)], "{scores:?}");
    // Room for half of it, and as if nothing had been measured: the scores decide.
    shared.worker.lock().reuse = Reuse::default();
    fixture.ralt.set_room(before.hot_set_bytes / 2);
    assert!(fixture.ralt.has_work());
    fixture.work();
    check_limits(&fixture);
    let hot = fixture.hot(0, 0..count);
    assert!(!hot.is_empty() && hot.len() as u64 <= count / 2);
    let least = hot
        .iter()
        .map(|n| scores[&key(*n)])
        .fold(f64::MAX, f64::min);
    let colder = (0..count).filter(|n| !hot.contains(n));
    let most = colder.map(|n| scores[&key(n)]).fold(0.0, f64::max);
    assert!(least >= most * 0.99, "{least} {most}");
}

/// What had been read twice, however long ago, outlasted all that was read once.
#[cfg(feature = "experiments")]
#[test]
fn without_auto_tuning_the_scoring_alone_decides() {
    use crate::options::{Scoring, Switches};

    let options = HotRapOptions {
        switches: Switches {
            auto_tuning: false,
            scoring: Scoring::Lru,
            ..Switches::default()
        },
        ..HotRapOptions::default()
    };
    let fixture = Fixture::on(Arc::new(Memory::new()), CAPACITY, options);
    for _ in 0..2 {
        (0..100).for_each(|number| fixture.read(0, number, VALUE));
    }
    let mut next = 1000;
    while fixture.is_young() {
        fixture.read(0, next, VALUE);
        next += 1;
        assert!(next < 1000 + of(2.0), "nothing was evicted");
    }
    fixture.work();
    check_limits(&fixture);
    fixture.flush();
    assert!(fixture.hot(0, 0..100).is_empty());
    assert_eq!(fixture.hot(0, next - 500..next).len(), 500);
}

#[test]
fn stable_records_outlast_many_that_are_not() {
    let fixture = Fixture::new();
    // Twice each, then a stream of others, each once.
    for _ in 0..2 {
        (0..100).for_each(|number| fixture.read(0, number, VALUE));
    }
    fixture.flush();
    let stream = 1000..1000 + of(2.0);
    stream.for_each(|number| fixture.read(0, number, VALUE));
    assert!(fixture.ralt.metrics().evictions >= 2);
    check_limits(&fixture);
    assert_eq!(fixture.hot(0, 0..100).len(), 100);
}

#[test]
fn a_step_needs_little_space_beside_its_input() {
    let fixture = Fixture::on(Arc::new(Memory::new()), 16 << 20, HotRapOptions::default());
    let mut rng = StdRng::seed_from_u64(4);
    let step = fixture.ralt.shared.sizes.step;
    let flush = fixture.ralt.shared.sizes.flush;
    let mut evictions = 0;
    let mut steps = 0;
    for _ in 0..120_000 {
        let number = rng.random_range(0..50_000);
        if fixture.ralt.log(0, &key(number), 40, 1) {
            while fixture.ralt.work() {
                steps += 1;
                let metrics = fixture.ralt.metrics();
                let most = metrics.physical_limit_bytes + 4 * flush + 2 * step;
                assert!(fixture.fast.file_bytes() <= most, "{metrics:?}");
            }
            let now = fixture.ralt.metrics().evictions;
            if now > evictions {
                evictions = now;
            }
        }
        if number % 64 == 0 {
            // Both limits come and go.
            fixture.ralt.set_room(rng.random_range(1 << 18..1 << 20));
        }
    }
    assert!(
        evictions > 3 && steps > 50,
        "{evictions} evictions, {steps} steps"
    );
    fixture.work();
    check_limits(&fixture);
}

#[test]
fn where_records_are_small_their_own_size_is_what_is_limited() {
    let fixture = Fixture::new();
    // Nothing is read again here, which must not make it count as worthless.
    fixture.ralt.set_data(0);
    let before = fixture.ralt.metrics();
    let limit = before.physical_limit_bytes;
    // Twice each, so that all are stable; the later ones are warmer by some slices.
    for number in 0..8000u64 {
        if fixture.ralt.log(0, &key(number), 40, 2) {
            fixture.work();
        }
        if fixture.ralt.metrics().evictions > 0 {
            break;
        }
    }
    let metrics = fixture.ralt.metrics();
    assert_eq!(metrics.evictions, 1);
    assert!(metrics.hot_set_bytes < before.hot_set_limit_bytes);
    assert!(metrics.physical_bytes * 100 < limit * 96, "{metrics:?}");
    assert!(metrics.physical_bytes * 100 > limit * 80, "{metrics:?}");
    let hot = fixture.hot(0, 0..8000);
    let early = hot.iter().filter(|number| **number < 100).count();
    assert!(early < 50 && hot.len() > 1000, "{early} of {}", hot.len());
}

/// Only what follows from the hot set bounded the limit of access records. If keys and values are
/// no larger than their access records, that came to the whole fast tier after the first eviction.
#[test]
fn access_records_of_small_records_leave_most_of_the_tier_to_the_records() {
    let fixture = Fixture::new();
    // Nothing is read again here, which must not make it count as worthless.
    fixture.ralt.set_data(0);
    let mut number = 0;
    while fixture.is_young() {
        fixture.read(0, number, 8);
        number += 1;
        assert!(number < 100_000, "nothing was evicted");
    }
    fixture.work();
    check_limits(&fixture);
    let metrics = fixture.ralt.metrics();
    assert!(metrics.physical_limit_bytes < CAPACITY / 2, "{metrics:?}");
}

/// Bins told records apart by the epoch in which they ceased to be stable, however long ago. The
/// older the store was, the more memory the histograms that an eviction goes by took, and the more
/// bytes of the state were written with each flush.
#[test]
fn histograms_do_not_grow_with_the_epochs_that_a_store_has_seen() {
    const EPOCHS: u64 = 300;
    const FRESH: u64 = 10;
    // An epoch is a slice, and one record's bytes.
    let options = HotRapOptions {
        hot_set_min: 0.01,
        hot_set_max: 0.02,
        slice: 0.02,
        ..HotRapOptions::default()
    };
    let fixture = Fixture::on(Arc::new(Memory::new()), CAPACITY, options);
    let slice = fixture.ralt.shared.sizes.slice;
    for number in 0..EPOCHS * FRESH {
        // All over the key range, so that each table has some of each epoch's.
        let key = key(number * 7919 % 1_000_003);
        if fixture.ralt.log(0, &key, 8, 2) {
            fixture.work();
        }
        if number % FRESH == 0 {
            fixture.read(0, 2_000_000, slice as usize);
        }
    }
    fixture.flush();
    fixture.merge_all();
    let version = fixture.ralt.shared.version.load();
    assert!(version.tables().count() > 1);
    let records: u64 = version.tables().map(|table| table.meta.entries).sum();
    assert!(records > EPOCHS * FRESH, "all are tracked: {records}");
    for table in version.tables() {
        let bins = table.histogram.bins.len();
        assert!(bins <= 3 * BINS, "{bins} of {}", table.meta.entries);
    }
}

/// The limit leaves room for other records beside those that are worth it, and the others were
/// assumed to be as large as these. With few large hot records beside very many small ones, the
/// limit fell below half of what an eviction had left. No other eviction followed, as nothing had
/// been read since, and everything was forgotten for being so far over.
#[test]
fn few_large_hot_records_are_not_forgotten_beside_many_small_ones() {
    let fixture = Fixture::on(Arc::new(Memory::new()), 16 << 20, HotRapOptions::default());
    fixture.ralt.set_data(0);
    for number in 0..92 {
        if fixture.ralt.log(0, &key(number), 100_000, 2) {
            fixture.work();
        }
    }
    let mut small = 1000..1_000_000;
    while fixture.is_young() {
        fixture.read(0, small.next().unwrap(), 0);
    }
    fixture.work();
    check_limits(&fixture);
    for number in small.take(5000) {
        fixture.read(0, number, 0);
    }
    assert_eq!(fixture.hot(0, 0..92).len(), 92);
}
