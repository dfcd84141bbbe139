//! Places, heat and bytes of the record cache by itself. The engine's tests cover what may be in
//! the cache.

use std::sync::mpsc::channel;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use super::tables::VISITS;
use super::*;
use crate::key::MAX_SEQ;

fn record(seq: SeqNo, value: &[u8]) -> Record {
    Record {
        seq,
        kind: Kind::Put,
        value: Value::new(Bytes::copy_from_slice(value)),
    }
}

fn cache(capacity: u64) -> RecordCache {
    RecordCache::new(capacity, 7).unwrap()
}

fn fill(cache: &RecordCache, key: &[u8], seq: SeqNo, value: &[u8]) {
    fill_sought(cache, &cache.sought(0, key), seq, value);
}

fn fill_sought(cache: &RecordCache, sought: &Sought<'_>, seq: SeqNo, value: &[u8]) {
    let mut left = |_, _: &[u8], _, _| {};
    cache.fill(sought, &record(seq, value), None, || true, &mut left);
}

fn get(cache: &RecordCache, key: &[u8], seq: SeqNo) -> Option<(SeqNo, Bytes)> {
    let hit = cache.get(&cache.sought(0, key), seq, || None)?;
    Some((hit.record.seq, hit.record.value.into_bytes()))
}

/// Runs `work` on a thread that then stays idle, and meanwhile runs `beside`.
fn beside_an_idle_thread(work: impl FnOnce() + Send, beside: impl FnOnce()) {
    std::thread::scope(|scope| {
        let (has_worked, worked) = channel();
        let (_stay, is_over) = channel::<()>();
        scope.spawn(move || {
            work();
            has_worked.send(()).unwrap();
            // Fails when the other end is dropped.
            let _ = is_over.recv();
        });
        worked.recv().unwrap();
        beside();
    });
}

#[test]
fn a_record_is_found_under_its_keyspace_and_key_by_readers_not_before_it() {
    let cache = cache(1 << 20);
    fill(&cache, b"k", 5, b"five");
    assert_eq!(get(&cache, b"k", 5), Some((5, Bytes::from_static(b"five"))));
    assert_eq!(get(&cache, b"k", 4), None);
    assert_eq!(get(&cache, b"l", 9), None);
    assert!(cache.get(&cache.sought(1, b"k"), 9, || None).is_none());
    assert_eq!(cache.invalidate(&cache.sought(0, b"k")), Some((4, 0)));
    assert_eq!(get(&cache, b"k", 9), None);
}

fn refresh(cache: &RecordCache, key: &[u8], seq: SeqNo, value: &[u8]) -> Option<(usize, u32)> {
    cache.refresh(&cache.sought(0, key), seq, value, || {})
}

#[test]
fn a_newer_version_takes_the_place_of_a_record_and_of_nothing_else() {
    let cache = cache(1 << 20);
    assert_eq!(refresh(&cache, b"k", 1, b"one"), None);
    assert_eq!(get(&cache, b"k", 9), None, "it was not there");
    fill(&cache, b"k", 5, b"five");
    let filled = cache.used_bytes();
    assert_eq!(refresh(&cache, b"k", 7, b"the seventh"), Some((4, 0)));
    let found = Some((7, Bytes::from_static(b"the seventh")));
    assert_eq!(get(&cache, b"k", 7), found);
    assert_eq!(get(&cache, b"k", 6), None);
    assert_eq!(refresh(&cache, b"k", 7, b"the seventh"), None, "again");
    let metrics = cache.metrics();
    assert_eq!((metrics.refreshes, metrics.entries), (1, 1));
    let live = || cache.live.load(Ordering::Relaxed);
    assert_eq!(live(), size(1, 11));
    // Threads of other tests may keep the older one for a while.
    let mut turns = 0;
    while cache.used_bytes() > filled + 7 {
        turns += 1;
        assert!(turns < 1_000_000, "{} bytes", cache.used_bytes());
        cache.hand_over();
        std::thread::yield_now();
    }
    assert_eq!(cache.invalidate(&cache.sought(0, b"k")), Some((11, 0)));
    assert_eq!(live(), 0);
}

/// The fill may have read an older version, and comes late to the place.
#[test]
fn a_pending_place_is_not_refreshed_but_goes() {
    let cache = cache(1 << 20);
    let is_current = || {
        assert_eq!(refresh(&cache, b"k", 2, b"new"), None);
        assert_eq!(cache.metrics().entries, 0);
        true
    };
    let mut left = |_, _: &[u8], _, _| {};
    let sought = cache.sought(0, b"k");
    cache.fill(&sought, &record(1, b"old"), None, is_current, &mut left);
    assert_eq!(get(&cache, b"k", 9), None);
    assert_eq!(cache.live.load(Ordering::Relaxed), 0);
}

/// A record that is found as seldom as others but was refreshed often would stay for ever, and one
/// that was found often would leave, if its next version began anew.
#[test]
fn the_next_version_of_a_record_was_used_as_much_and_loses_no_access() {
    let cache = cache(1 << 20);
    let sought = cache.sought(0, b"k");
    let mut left = |_, _: &[u8], _, _| {};
    cache.fill(&sought, &record(1, b"v"), Some(3), || true, &mut left);
    let used = || {
        let ring = cache.index.pin();
        let found = ring.get(sought.hash, sought.is_key()).unwrap();
        format!("{:?}", found.header().used)
    };
    let unused = used();
    assert_eq!(refresh(&cache, b"k", 2, b"w"), Some((1, 0)));
    assert_eq!(used(), unused);
    let hit = |slice| cache.get(&sought, 9, || Some(slice)).unwrap().to_log;
    assert_eq!([hit(3), hit(3)], [0, 0], "logged by the reader that filled");
    let after = used();
    assert_ne!(after, unused);
    assert_eq!(refresh(&cache, b"k", 3, b"x"), Some((1, 2)));
    assert_eq!(used(), after);
    assert_eq!([hit(3), hit(4)], [0, 2]);
}

/// While a reader keeps older versions from being freed, newer ones find no memory at some time.
/// Then records go, and none stays that is older.
#[test]
fn refreshing_keeps_the_bound_and_leaves_nothing_older() {
    let capacity = 256 << 10;
    let cache = cache(capacity);
    let keys: Vec<_> = (0..100u32).map(u32::to_le_bytes).collect();
    for key in &keys {
        fill(&cache, key, 1, &[1; 1000]);
    }
    let reader = cache.index.pin();
    for (seq, key) in (2..).zip(keys.iter().chain(&keys)) {
        refresh(&cache, key, seq, &[2; 1000]);
        assert!(cache.used_bytes() <= capacity, "{}", cache.used_bytes());
        let found = get(&cache, key, MAX_SEQ);
        assert!(found.is_none_or(|(found, _)| found == seq));
    }
    drop(reader);
    let metrics = cache.metrics();
    let gone = metrics.invalidations;
    assert!(gone > 0 && metrics.refreshes > 0, "{metrics:?}");
    assert_eq!(metrics.entries + gone, keys.len() as u64);
    cache.forget(0);
    assert_eq!(cache.live.load(Ordering::Relaxed), 0);
}

/// Two fills of one key, the first of which was invalidated: it must not complete the place that
/// the second has reserved, because the second brings a newer record.
#[test]
fn a_fill_does_not_complete_the_place_of_another() {
    let cache = cache(1 << 20);
    std::thread::scope(|scope| {
        let (is_reserved, reserved) = channel();
        let (go_on, may_go_on) = channel();
        let cache = &cache;
        let late = scope.spawn(move || {
            let sought = cache.sought(0, b"k");
            let is_current = || {
                is_reserved.send(()).unwrap();
                may_go_on.recv().unwrap();
                true
            };
            let mut left = |_, _: &[u8], _, _| {};
            cache.fill(&sought, &record(1, b"old"), None, is_current, &mut left);
        });
        reserved.recv().unwrap();
        assert_eq!(cache.invalidate(&cache.sought(0, b"k")), None);
        let second = || {
            go_on.send(()).unwrap();
            late.join().unwrap();
            assert_eq!(get(cache, b"k", 9), None, "nothing is complete");
            true
        };
        let mut left = |_, _: &[u8], _, _| {};
        let sought = cache.sought(0, b"k");
        cache.fill(&sought, &record(2, b"new"), None, second, &mut left);
    });
    assert_eq!(get(&cache, b"k", 9), Some((2, Bytes::from_static(b"new"))));
    let metrics = cache.metrics();
    assert_eq!((metrics.fills, metrics.refused_fills), (1, 1));
}

#[test]
fn a_pending_place_is_no_record_and_holds_off_other_fills() {
    let cache = cache(1 << 20);
    let is_current = || {
        assert_eq!(get(&cache, b"k", 9), None);
        fill(&cache, b"k", 1, b"meanwhile");
        assert_eq!(get(&cache, b"k", 9), None);
        false
    };
    let mut left = |_, _: &[u8], _, _| {};
    let sought = cache.sought(0, b"k");
    cache.fill(&sought, &record(1, b"v"), None, is_current, &mut left);
    assert_eq!(cache.metrics().entries, 0, "given up");
    fill(&cache, b"k", 1, b"v");
    assert_eq!(cache.metrics().entries, 1);
}

/// Everything counts: places, dead entries, tables, the door.
#[test]
fn the_cache_keeps_its_bound_and_what_is_used() {
    for (capacity, len) in [(64 << 10, 100), (256 << 10, 1000), (1 << 20, 10)] {
        let cache = cache(capacity);
        fill(&cache, b"hot", 1, &vec![1; len]);
        let (mut evicted, mut i) = (0u64, 0u32);
        // Fills are refused while threads of other tests keep what was taken out from being freed.
        while cache.metrics().fills < 10_000 {
            i += 1;
            assert!(i < 10_000_000, "{:?}", cache.metrics());
            let mut left = |_, key: &[u8], value_len: usize, _| {
                assert_ne!(key, b"hot");
                assert_eq!(value_len, len);
                evicted += 1;
            };
            let key = i.to_le_bytes();
            let sought = cache.sought(0, &key);
            let record = record(1, &vec![0; len]);
            cache.fill(&sought, &record, None, || true, &mut left);
            assert!(
                cache.used_bytes() <= capacity,
                "{} bytes",
                cache.used_bytes()
            );
            assert!(get(&cache, b"hot", 1).is_some(), "at {i}");
        }
        let metrics = cache.metrics();
        assert_eq!(metrics.evictions, evicted);
        assert!(metrics.bytes > capacity / 2, "{metrics:?}");
        let held: u64 = metrics.entries * size(4, len);
        assert!(metrics.bytes >= held, "{metrics:?}");
    }
}

/// Regression: the index grew by itself, and the cache exceeded its bound until enough entries had
/// left.
#[test]
fn the_index_grows_with_what_searches_cost_and_growth_is_paid_for() {
    let capacity = 1 << 20;
    let cache = RecordCache::with_buckets(capacity, 7, 256).unwrap();
    let paid = || cache.tables.lock().bytes();
    // It waits for readers elsewhere in the process, which may be other tests on a busy machine.
    for i in 0..100_000_000u32 {
        let key = (i % 5000).to_le_bytes();
        if get(&cache, &key, 1).is_none() {
            fill(&cache, &key, 1, b"small");
        }
        assert!(cache.used_bytes() <= capacity, "{}", cache.used_bytes());
        assert!(paid() >= cache.fixed_bytes(), "at {i}");
        if cache.index.buckets() >= 1024 {
            break;
        }
    }
    assert!(cache.index.buckets() >= 1024);
}

/// How many entries a full cache takes out for a larger table when searches are long; `begun` says
/// whether a change of the table was begun before.
fn taken_out_for_a_table(begun: bool) -> u64 {
    const LEN: usize = 2500;
    let cache = RecordCache::with_buckets(128 << 10, 7, 64).unwrap();
    let mut keys = (0..u32::MAX).map(u32::to_le_bytes);
    // Nothing has to be freed for these fills, so it does not matter what threads of other tests
    // keep.
    while cache.live.load(Ordering::Relaxed) + size(4, LEN) <= cache.room_for_entries() {
        let key = keys.next().unwrap();
        fill_sought(&cache, &colliding(&cache, 1 << 63, &key), 1, &[0; LEN]);
    }
    let absent = keys.next().unwrap();
    for _ in 0..200 {
        cache.get(&colliding(&cache, 1 << 63, &absent), 1, || None);
    }
    // There are enough entries for a larger table, searches are long enough to justify one, and no
    // entry has left yet.
    assert!(cache.index.len() > 32 && cache.index.mean_visits() > VISITS);
    assert_eq!(cache.metrics().evictions, 0);
    if begun {
        cache.index.grow().unwrap();
    }
    cache.tend_tables(&mut |_, _: &[u8], _, _| {});
    cache.metrics().evictions
}

/// Regression: while the index grew, every look at it made room for another table, which cannot be
/// begun before the growth is over.
#[test]
fn nobody_leaves_for_a_larger_table_while_the_index_changes() {
    assert!(taken_out_for_a_table(false) > 0);
    assert_eq!(taken_out_for_a_table(true), 0);
}

/// Reads keys that are all equally hot, and fills those that are missed and wanted. Returns the
/// share of the reads that found their record, and the share of those that were wanted.
fn read_evenly(cache: &RecordCache, keys: u32, reads: u32) -> (f64, f64) {
    let (mut found, mut wanted) = (0, 0);
    for i in 0..reads {
        let key = (xxh3_64(&i.to_le_bytes()) as u32 % keys).to_le_bytes();
        if get(cache, &key, 1).is_some() {
            found += 1;
        } else if cache.is_wanted(&cache.sought(0, &key)) {
            wanted += 1;
            fill(cache, &key, 1, &[0; 900]);
        }
    }
    let share = |n: u32| f64::from(n) / f64::from(reads);
    (share(found), share(wanted))
}

/// With a hot set four times as large as the cache, each miss was a fill, and most of the records
/// were gone before they were read.
#[test]
fn a_hot_set_that_does_not_fit_is_taken_in_slowly_and_found_as_often() {
    let cache = cache(1 << 20);
    let fits = (cache.room_for_entries() / size(4, 900)) as u32;
    read_evenly(&cache, 4 * fits, 30_000);
    let (found, wanted) = read_evenly(&cache, 4 * fits, 30_000);
    assert!(found > 0.2 && wanted < found, "{found} {wanted}");
    let known = |key: u32| cache.is_wanted(&cache.sought(0, &key.to_le_bytes()));
    let let_in =
        |range: std::ops::Range<u32>| range.filter(|&key| known(key) || known(key)).count();
    let is_slow = |round: u32| let_in(10_000 + round * 100..10_100 + round * 100) < 60;
    assert!((0..50).any(is_slow), "full, and as slowly as before");
    cache.forget(0);
    while !cache.has_room() {
        cache.index.pin().flush();
    }
    assert_eq!(let_in(20_000..20_100), 100, "there is room for all");
}

/// Regression: while nothing is freed, no record leaves, and those that stay are found. So all that
/// had been missed twice came in, only to be turned away for lack of memory.
#[test]
fn while_a_reader_keeps_the_dead_from_being_freed_few_try_to_come_in() {
    let cache = cache(1 << 20);
    let _reader = cache.index.pin();
    read_evenly(&cache, 10_000, 30_000);
    let refused = || cache.metrics().refused_fills;
    let before = refused();
    let (_, wanted) = read_evenly(&cache, 10_000, 30_000);
    assert!(refused() > before, "memory for all");
    assert!(wanted < 0.1, "{wanted}");
}

#[test]
fn a_record_too_large_for_the_cache_stays_out() {
    let cache = cache(64 << 10);
    fill(&cache, b"k", 1, &[0; 5000]);
    assert_eq!(
        (cache.metrics().entries, cache.metrics().refused_fills),
        (0, 1)
    );
}

#[test]
fn a_capacity_a_byte_short_of_a_record_takes_none_of_it_in() {
    for len in [0, 1, 100, 5000] {
        let value = vec![3; len];
        let enough = RecordCache::least_capacity(1, len);
        for (capacity, comes_in) in [(enough, true), (enough - 1, false)] {
            let cache = cache(capacity);
            let empty = cache.used_bytes();
            fill(&cache, b"k", 1, &value);
            let found = get(&cache, b"k", 1).map(|(_, value)| value);
            assert_eq!(found, comes_in.then(|| Bytes::from(value.clone())));
            let metrics = cache.metrics();
            let counted = (metrics.entries, metrics.fills, metrics.refused_fills);
            let wanted = if comes_in { (1, 1, 0) } else { (0, 0, 1) };
            assert_eq!(counted, wanted, "{len} bytes in {capacity}");
            assert!(comes_in || metrics.bytes == empty);
            assert!(metrics.bytes <= capacity);
        }
    }
}

/// Goes down to capacities in which not even the tables find room.
#[test]
fn every_small_capacity_is_kept_or_is_no_cache() {
    let caches = (0..4096).map(|capacity| RecordCache::new(capacity, 7));
    let mut begun = 0;
    for (capacity, cache) in (0..).zip(caches) {
        let Some(cache) = cache else {
            assert_eq!(
                begun, 0,
                "{capacity} bytes are too little, and fewer were not"
            );
            continue;
        };
        begun += 1;
        for key in [b"k", b"l"] {
            fill(&cache, key, 1, b"");
            assert!(cache.used_bytes() <= capacity, "{capacity}");
        }
    }
    assert!((1..4096).contains(&begun), "{begun}");
}

/// A key with this hash.
fn colliding<'a>(cache: &RecordCache, hash: u64, key: &'a [u8]) -> Sought<'a> {
    Sought {
        hash,
        ..cache.sought(0, key)
    }
}

/// Somebody who knows the seed might make such keys. The first and the last hash are the ends of
/// the hand's round.
#[test]
fn keys_that_all_collide_are_kept_apart_and_within_the_bound() {
    let capacity = 64 << 10;
    for hash in [0, 0x0123_4567_89ab_cdef, u64::MAX] {
        let cache = cache(capacity);
        let find = |keyspace, key: &[u8]| {
            let sought = Sought {
                keyspace,
                ..colliding(&cache, hash, key)
            };
            let hit = cache.get(&sought, 1, || None)?;
            Some(hit.record.value.into_bytes())
        };
        let keys: Vec<_> = (0..50u32).map(u32::to_le_bytes).collect();
        for key in &keys {
            fill_sought(&cache, &colliding(&cache, hash, key), 1, key);
        }
        let gone = &keys[20];
        cache.invalidate(&colliding(&cache, hash, gone));
        for key in &keys {
            let wanted = (key != gone).then(|| Bytes::copy_from_slice(key));
            assert_eq!(find(0, key), wanted);
            assert_eq!(find(1, key), None);
        }
        let (mut i, mut most) = (50u32, 0);
        // Fills are refused while threads of other tests keep what was taken out from being freed,
        // and what waits for that takes room. So there may be fewer entries in the end than when
        // the index grew.
        while cache.metrics().evictions < 1000 {
            i += 1;
            most = most.max(cache.metrics().entries as usize);
            assert!(i < 10_000_000, "{:?}", cache.metrics());
            let key = i.to_le_bytes();
            fill_sought(&cache, &colliding(&cache, hash, &key), 1, &[0; 100]);
            assert!(cache.used_bytes() <= capacity, "{}", cache.used_bytes());
        }
        assert!(cache.index.buckets() < 4 * (most + 1), "grown in vain");
    }
}

#[test]
fn what_was_not_logged_yet_is_told_when_a_record_leaves() {
    let cache = cache(1 << 20);
    let sought = cache.sought(0, b"k");
    let mut left = |_, _: &[u8], _, _| {};
    cache.fill(&sought, &record(1, b"v"), Some(3), || true, &mut left);
    let hits = [3, 3, 4, 4].map(|slice| cache.get(&sought, 9, || Some(slice)).unwrap().to_log);
    assert_eq!(hits, [0, 0, 3, 0]);
    assert_eq!(cache.invalidate(&sought), Some((1, 1)));
}

#[test]
fn what_was_not_logged_yet_is_told_when_a_record_is_evicted() {
    let cache = cache(64 << 10);
    let sought = cache.sought(0, b"k");
    let mut none = |_, _: &[u8], _, _| {};
    cache.fill(&sought, &record(1, b"v"), Some(3), || true, &mut none);
    let hits = [3, 3].map(|slice| cache.get(&sought, 9, || Some(slice)).unwrap().to_log);
    assert_eq!(hits, [0, 0]);
    let (mut told, mut i) = (None::<u32>, 0u32);
    // The hand comes by until the record has no uses left. Fills are refused while threads of other
    // tests keep what was taken out from being freed.
    while told.is_none() {
        i += 1;
        assert!(i < 10_000_000, "{:?}", cache.metrics());
        let mut left = |_, key: &[u8], _, accesses| {
            if key == b"k" {
                told = Some(accesses);
            }
        };
        let key = i.to_le_bytes();
        let sought = cache.sought(0, &key);
        cache.fill(&sought, &record(1, &[0; 100]), None, || true, &mut left);
    }
    assert_eq!(told, Some(2));
}

#[test]
fn a_keyspace_that_is_forgotten_leaves_the_others_alone() {
    let cache = cache(1 << 20);
    for keyspace in 0..3 {
        for key in [b"a", b"b"] {
            let mut left = |_, _: &[u8], _, _| {};
            let sought = cache.sought(keyspace, key);
            cache.fill(&sought, &record(1, b"v"), None, || true, &mut left);
        }
    }
    cache.forget(1);
    assert_eq!(cache.metrics().entries, 4);
    assert!(cache.get(&cache.sought(1, b"a"), 9, || None).is_none());
    assert!(cache.get(&cache.sought(2, b"a"), 9, || None).is_some());
}

/// Regression: what a thread had taken out was freed only when the thread took out some dozens
/// more, or ended. After a keyspace with thirty large records was dropped, the cache took nothing
/// in any more.
#[test]
fn what_was_forgotten_makes_room_though_its_thread_does_nothing_more() {
    let cache = cache(1 << 20);
    let fill_all = |name| (0..28).for_each(|i| fill(&cache, &[name, i], 1, &[0; 30_000]));
    fill_all(b'a');
    assert_eq!(cache.metrics().entries, 28);
    let forget = || cache.forget(0);
    beside_an_idle_thread(forget, || {
        assert_eq!(cache.metrics().entries, 0);
        // Threads of other tests may keep memory from being freed for a while; fills are then
        // refused.
        let mut rounds = 0;
        while cache.metrics().entries < 28 {
            rounds += 1;
            assert!(rounds < 20_000, "{:?}", cache.metrics());
            fill_all(b'b');
            std::thread::yield_now();
        }
    });
}

/// Regression: a thread that had evicted large records and filled no more kept them from being
/// freed. It could keep more than is left to the dead: then the fills of all other threads were
/// refused for ever.
#[test]
fn a_thread_that_fills_no_more_keeps_little_from_being_freed() {
    let cache = cache(1 << 20);
    for stay_after in 40..44u32 {
        let fill_some = || {
            for i in 0..stay_after {
                let key = [stay_after, i].map(u32::to_le_bytes).concat();
                fill(&cache, &key, 1, &[0; 60_000]);
            }
        };
        beside_an_idle_thread(fill_some, || {
            // Threads of other tests may keep it for a while.
            let mut turns = 0;
            while cache.dead_bytes() > cache.capacity / KEPT {
                turns += 1;
                assert!(turns < 1_000_000, "{} are kept", cache.dead_bytes());
                cache.hand_over();
                std::thread::yield_now();
            }
        });
    }
    assert!(cache.metrics().evictions > 0);
}
