//! Many threads, real time: own keys exact, shared keys plausible, sums right in the end.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::{Counted, Living};
use crate::{BytesRing, HotRing, Movement, Options};

/// Runs threads for a time, each of which owns every `threads`-th key. Yields the operations done.
fn stress(threads: u64, keys: u64, time: Duration, movement: Movement, seed: u64) -> u64 {
    let living = Living::default();
    let options = Options::default()
        .buckets(1)
        .movement(movement)
        .window(64)
        .grow_above(1.5);
    let map: HotRing<u64, Counted> = HotRing::with_options(options).expect("a table");
    let stop = AtomicBool::new(false);
    let (done, entries) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (map, living, stop, done, entries) = (&map, &living, &stop, &done, &entries);
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(seed ^ thread);
                let mut own = vec![None; keys as usize];
                // A hundred at least, however late the thread begins.
                loop {
                    for _ in 0..100 {
                        done.fetch_add(1, Ordering::Relaxed);
                        let i = random
                            .random_range(0..keys)
                            .min(random.random_range(0..keys));
                        let key = i * threads + thread;
                        let value = thread << 48 | random.random_range(0..1 << 40);
                        let now: &mut Option<u64> = &mut own[i as usize];
                        let ring = map.pin();
                        match random.random_range(0..12) {
                            0 | 1 => {
                                let old = ring.insert(key, living.value(value));
                                assert_eq!(old.map(|old| old.value), now.replace(value));
                            }
                            2 => {
                                let old = ring.remove(&key);
                                assert_eq!(old.map(|old| old.value), now.take());
                            }
                            3 => {
                                let other = (thread + 1) % threads;
                                if let Some(counted) = ring.get(&(i * threads + other)) {
                                    assert_eq!(counted.value >> 48, other);
                                }
                            }
                            _ => assert_eq!(ring.get(&key).map(|there| there.value), *now),
                        }
                    }
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
                let left = own.iter().flatten().count() as u64;
                entries.fetch_add(left, Ordering::Relaxed);
            });
        }
        let end = Instant::now() + time;
        let mut buckets = 1;
        while Instant::now() < end {
            // Up and down, beside what the cost makes it do.
            buckets = if buckets > 64 { 1 } else { buckets * 2 };
            let _ = map.reserve(buckets);
            let _ = map.shrink_to(buckets);
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
    });
    while !map.settle() {
        std::thread::yield_now();
    }
    map.check();
    assert_eq!(map.len() as u64, entries.load(Ordering::Relaxed));
    drop(map);
    while living.count() > 0 {
        crate::reclaim::pin().flush();
        std::thread::yield_now();
    }
    done.load(Ordering::Relaxed)
}

#[test]
fn threads_find_their_own_keys_as_they_left_them() {
    if cfg!(miri) {
        assert!(stress(2, 4, Duration::from_millis(1), Movement::Sampling, 1) > 0);
        return;
    }
    for movement in [Movement::Sampling, Movement::Random] {
        let done = stress(4, 40, Duration::from_secs(1), movement, 1);
        assert!(done > 10_000, "{done} operations");
    }
}

/// Byte strings that are replaced by ones of other lengths, read by others all the time.
#[test]
fn readers_see_whole_byte_strings() {
    let rounds = if cfg!(miri) { 4 } else { 20_000u32 };
    let map = BytesRing::with_options(Options::default().buckets(1)).expect("a table");
    std::thread::scope(|scope| {
        for writer in 0..2u8 {
            let map = &map;
            scope.spawn(move || {
                for round in 0..rounds {
                    let byte = writer << 7 | (round % 100) as u8;
                    map.pin()
                        .insert(b"key", &vec![byte; usize::from(byte)])
                        .expect("memory");
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let ring = map.pin();
                for _ in 0..rounds {
                    if let Some(value) = ring.get(b"key") {
                        let len = value.len();
                        assert!(value.iter().all(|&byte| usize::from(byte) == len));
                    }
                }
            });
        }
    });
    map.core.check();
}

/// For as long as `HOTRING_STRESS_SECONDS` says, with other seeds all the time.
#[test]
#[ignore = "long: HOTRING_STRESS_SECONDS=600 cargo test -p hotring --release --lib -- --ignored"]
fn for_long() {
    let seconds = std::env::var("HOTRING_STRESS_SECONDS")
        .ok()
        .and_then(|s| s.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(60));
    let (mut seed, mut done) = (0, 0);
    while Instant::now() < end {
        seed += 1;
        let movement = if seed % 2 == 0 {
            Movement::Random
        } else {
            Movement::Sampling
        };
        done += stress(
            2 + seed % 7,
            1 << (seed % 11),
            Duration::from_secs(3),
            movement,
            seed << 8,
        );
    }
    println!("{seed} rounds, {done} operations");
    assert!(done > 0);
}
