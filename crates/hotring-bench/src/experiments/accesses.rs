//! What a lookup touches, counted.

use std::hint::black_box;

use hotring::Movement;

use crate::contenders::{Handle, Table, Visits};
use crate::keys;
use crate::run::{Contender, Entrant, load};
use crate::set_up::SetUp;

/// Memory accesses of a lookup as the paper counts them: one for the bucket, and one for every item
/// that is read.
pub(crate) fn run(set_up: &SetUp) {
    println!("\n## Memory accesses of a lookup: the bucket and the items\n");
    println!(
        "| keys per bucket, θ | table | mean | at most 2, % of requests | the same of requests for the hottest 1 % | absent keys, mean |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: |");
    let keys = keys::shuffled(set_up.keys);
    for ratio in [2, 8, 16] {
        let chained = set_up.chained(ratio);
        let rings = [Movement::Sampling, Movement::Random, Movement::Off]
            .map(|movement| set_up.ring(ratio, movement));
        load(&[&chained, &rings[0], &rings[1], &rings[2]], &keys);
        for theta in [0.5, 0.99, 1.22] {
            let work = set_up.reads(theta);
            let label = format!("{ratio}, {theta}");
            line(set_up, &label, &chained, &work.streams[0]);
            for ring in &rings {
                ring.run(&work, set_up.turns().warm_up);
                line(set_up, &label, ring, &work.streams[0]);
            }
        }
    }
}

fn line<T: Table>(set_up: &SetUp, label: &str, entrant: &Entrant<T>, stream: &[u32])
where
    for<'t> T::Handle<'t>: Visits,
{
    let handle = entrant.table.handle();
    let some = &stream[..stream.len().min(1 << 20)];
    let hottest = set_up.keys / 100;
    let (mut sum, mut within, mut hot, mut hot_within, mut absent) = (0, 0, 0, 0, 0);
    for &key in some {
        let accesses = 1 + u64::from(handle.visits(key.into()));
        sum += accesses;
        within += u64::from(accesses <= 2);
        if key < hottest {
            hot += 1;
            hot_within += u64::from(accesses <= 2);
        }
        absent += 1 + u64::from(handle.visits((key + set_up.keys).into()));
    }
    let all = some.len() as f64;
    println!(
        "| {label} | {} | {:.2} | {:.1} | {:.1} | {:.2} |",
        entrant.name,
        sum as f64 / all,
        within as f64 / all * 100.0,
        hot_within as f64 / f64::from(hot.max(1)) * 100.0,
        absent as f64 / all,
    );
}

/// Loads one table and goes through the requests on one thread, once for each turn. Two runs with
/// different numbers of turns differ by what the reads take.
pub(crate) fn probe(set_up: &SetUp, chained: bool) {
    let keys = keys::shuffled(set_up.keys);
    let stream = keys::zipfian(set_up.keys, set_up.theta, set_up.requests, 100);
    if chained {
        let chained = set_up.chained(set_up.ratio);
        load(&[&chained], &keys);
        read_all(set_up, &chained.table, &stream);
    } else {
        let ring = set_up.ring(set_up.ratio, Movement::Sampling);
        load(&[&ring], &keys);
        read_all(set_up, &ring.table, &stream);
    }
}

fn read_all<T: Table>(set_up: &SetUp, table: &T, stream: &[u32]) {
    let mut handle = table.handle();
    for _ in 0..set_up.repeats {
        for batch in stream.chunks(set_up.batch) {
            for &key in batch {
                black_box(handle.get(key.into()));
            }
            handle.repin();
        }
    }
}
