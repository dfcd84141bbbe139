//! The central cases, measured in a few minutes: `cargo bench -p hotring`. See `examples/bench` for
//! figures that can be compared: there the tables are far larger than the caches and take turns.

#[allow(dead_code, reason = "the example measures more")]
mod contenders;
mod keys;

use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use contenders::chained::Chained;
use contenders::crates::{Dash, Index, Papaya};
use contenders::{Handle, Table};
use divan::counter::ItemsCount;
use hotring::{HotRing, Movement, Options};

const KEYS: u32 = 1 << 20;
const KEYS_A_BUCKET: u32 = 8;
const REQUESTS: usize = 1 << 16;
const SKEWS: [f64; 3] = [0.5, 0.99, 1.22];

fn main() {
    divan::main();
}

fn loaded<T: Table>(table: T) -> T {
    let mut handle = table.handle();
    for batch in keys::shuffled(KEYS).chunks(64) {
        for &key in batch {
            handle.insert(key.into(), key.into());
        }
        handle.repin();
    }
    drop(handle);
    table
}

fn ring(keys_a_bucket: u32, movement: Movement) -> HotRing<u64, AtomicU64> {
    let options = Options::default()
        .buckets((KEYS / keys_a_bucket) as usize)
        .movement(movement)
        .grow_above(f64::INFINITY);
    match HotRing::with_options(options) {
        Ok(ring) => loaded(ring),
        Err(error) => panic!("{error}"),
    }
}

fn chained() -> &'static Chained<AtomicU64> {
    static TABLE: OnceLock<Chained<AtomicU64>> = OnceLock::new();
    TABLE.get_or_init(|| loaded(Chained::new((KEYS / KEYS_A_BUCKET) as usize)))
}

fn sampling() -> &'static HotRing<u64, AtomicU64> {
    static RING: OnceLock<HotRing<u64, AtomicU64>> = OnceLock::new();
    RING.get_or_init(|| ring(KEYS_A_BUCKET, Movement::Sampling))
}

fn random() -> &'static HotRing<u64, AtomicU64> {
    static RING: OnceLock<HotRing<u64, AtomicU64>> = OnceLock::new();
    RING.get_or_init(|| ring(KEYS_A_BUCKET, Movement::Random))
}

/// Runs `request` for every key of a prepared stream, in batches under one handle.
fn each<T: Table>(
    bencher: divan::Bencher,
    table: &T,
    theta: f64,
    request: impl Fn(&T::Handle<'_>, u64) + Sync,
) {
    let stream = keys::zipfian(KEYS, theta, REQUESTS, 1);
    bencher.counter(ItemsCount::new(REQUESTS)).bench(|| {
        let mut handle = table.handle();
        for batch in stream.chunks(64) {
            for &key in batch {
                request(&handle, key.into());
            }
            handle.repin();
        }
    });
}

fn read<T: Table>(bencher: divan::Bencher, table: &T, theta: f64) {
    each(bencher, table, theta, |handle, key| {
        black_box(handle.get(key));
    });
}

mod reads {
    use super::*;

    #[divan::bench(args = SKEWS, threads = [1, 2])]
    fn chained(bencher: divan::Bencher, theta: f64) {
        read(bencher, super::chained(), theta);
    }

    #[divan::bench(args = SKEWS, threads = [1, 2])]
    fn hotring_s(bencher: divan::Bencher, theta: f64) {
        read(bencher, sampling(), theta);
    }

    #[divan::bench(args = SKEWS, threads = [1, 2])]
    fn hotring_r(bencher: divan::Bencher, theta: f64) {
        read(bencher, random(), theta);
    }
}

mod absent {
    use super::*;

    #[divan::bench]
    fn chained(bencher: divan::Bencher) {
        each(bencher, super::chained(), 0.0, |handle, key| {
            black_box(handle.get(key + u64::from(KEYS)));
        });
    }

    #[divan::bench]
    fn hotring_s(bencher: divan::Bencher) {
        each(bencher, sampling(), 0.0, |handle, key| {
            black_box(handle.get(&(key + u64::from(KEYS))));
        });
    }
}

mod updates_in_place {
    use super::*;

    #[divan::bench(threads = [1, 2])]
    fn chained(bencher: divan::Bencher) {
        each(bencher, super::chained(), 1.22, |handle, key| {
            handle.put(key, key);
        });
    }

    #[divan::bench(threads = [1, 2])]
    fn hotring_s(bencher: divan::Bencher) {
        each(bencher, sampling(), 1.22, |handle, key| {
            handle.put(key, key);
        });
    }
}

/// One key a bucket, θ 0.99.
mod other_crates {
    use super::*;
    use foldhash::quality::RandomState;

    #[divan::bench(threads = [1, 2])]
    fn hotring_s(bencher: divan::Bencher) {
        static RING: OnceLock<HotRing<u64, AtomicU64>> = OnceLock::new();
        read(
            bencher,
            RING.get_or_init(|| ring(1, Movement::Sampling)),
            0.99,
        );
    }

    #[divan::bench(threads = [1, 2])]
    fn dashmap(bencher: divan::Bencher) {
        static MAP: OnceLock<Dash> = OnceLock::new();
        let make = || Dash::with_capacity_and_hasher(KEYS as usize, RandomState::default());
        read(bencher, MAP.get_or_init(|| loaded(make())), 0.99);
    }

    #[divan::bench(threads = [1, 2])]
    fn papaya(bencher: divan::Bencher) {
        static MAP: OnceLock<Papaya> = OnceLock::new();
        let make = || Papaya::with_capacity_and_hasher(KEYS as usize, RandomState::default());
        read(bencher, MAP.get_or_init(|| loaded(make())), 0.99);
    }

    #[divan::bench(threads = [1, 2])]
    fn scc(bencher: divan::Bencher) {
        static MAP: OnceLock<Index> = OnceLock::new();
        let make = || Index::with_capacity_and_hasher(KEYS as usize, RandomState::default());
        read(bencher, MAP.get_or_init(|| loaded(make())), 0.99);
    }
}
