//! The time of single reads.

use std::hint::black_box;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use hotring::Movement;

use crate::contenders::{Handle, Table};
use crate::keys;
use crate::run::{Contender, Entrant, Work, load};
use crate::set_up::SetUp;

/// Longest time that is told apart.
const MOST: Duration = Duration::from_secs(10);

/// The paper's figure 16.
pub(crate) fn run(set_up: &SetUp) {
    println!(
        "\n## Times of single reads in ns, {} keys per bucket\n",
        set_up.ratio
    );
    println!("What reading the clock takes is in them.\n");
    println!("| θ | table | 50 % | 99 % | 99.9 % | 99.99 % | 99.999 % | most |");
    println!("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    let keys = keys::shuffled(set_up.keys);
    let chained = set_up.chained(set_up.ratio);
    let rings =
        [Movement::Sampling, Movement::Random].map(|movement| set_up.ring(set_up.ratio, movement));
    load(&[&chained, &rings[0], &rings[1]], &keys);
    for theta in [0.99, 1.22] {
        let work = set_up.reads(theta);
        line(theta, &chained, &work, set_up);
        line(theta, &rings[0], &work, set_up);
        line(theta, &rings[1], &work, set_up);
    }
}

fn line<T: Table>(theta: f64, entrant: &Entrant<T>, work: &Work, set_up: &SetUp) {
    entrant.run(work, set_up.turns().warm_up);
    let table = &entrant.table;
    let all = std::thread::scope(|scope| {
        let threads: Vec<_> = work
            .streams
            .iter()
            .map(|stream| scope.spawn(|| times(table, stream)))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join())
            .reduce(|one, other| one + other)
    });
    let Some(all) = all else { return };
    print!("| {theta} | {} ", entrant.name);
    for quantile in [0.5, 0.99, 0.999, 0.9999, 0.99999] {
        print!("| {} ", all.value_at_quantile(quantile));
    }
    println!("| {} |", all.max());
}

fn times<T: Table>(table: &T, stream: &[u32]) -> Histogram<u64> {
    // With bounds: a histogram without bounds begins with 2 µs, and values that saturate do not
    // make it grow.
    let Ok(mut times) = Histogram::new_with_bounds(1, MOST.as_nanos() as u64, 3) else {
        panic!("three digits are allowed");
    };
    let mut handle = table.handle();
    for batch in stream.chunks(64) {
        for &key in batch {
            let begun = Instant::now();
            black_box(handle.get(key.into()));
            times.saturating_record(begun.elapsed().as_nanos() as u64);
        }
        handle.repin();
    }
    times
}
