//! How soon heads follow when the hot keys change.

use std::time::Duration;

use hotring::Movement;

use crate::contenders::{Table, Visits};
use crate::keys;
use crate::run::{Contender, Entrant, load};
use crate::set_up::{Ring, SetUp, heading};

/// The paper's figure 14.
pub(crate) fn run(set_up: &SetUp) {
    let keys = keys::shuffled(set_up.keys);
    let chained = set_up.chained(set_up.ratio);
    let rings =
        [Movement::Sampling, Movement::Random].map(|movement| set_up.ring(set_up.ratio, movement));
    let before = set_up.reads(set_up.theta);
    let after = set_up.work(set_up.theta, |_, key| (key + set_up.keys / 2) % set_up.keys);
    let all: [&dyn Contender; 3] = [&chained, &rings[0], &rings[1]];
    load(&all, &keys);
    heading("Before the shift", "");
    set_up.lines("", &all, &before);

    println!("\n## After all hot keys have changed, θ {}\n", set_up.theta);
    println!(
        "| ms | chained, ns | hotring-s, ns | its items a lookup | hotring-r, ns | its items a lookup |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
    let mut past = Duration::ZERO;
    // Slices that grow: what matters comes first.
    for slice in [1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048].map(Duration::from_millis) {
        let costs = all.map(|contender| contender.run(&after, slice));
        past += slice;
        println!(
            "| {} | {:.1} | {:.1} | {:.2} | {:.1} | {:.2} |",
            past.as_millis(),
            costs[0],
            costs[1],
            steps(&rings[0], &after.streams[0]),
            costs[2],
            steps(&rings[1], &after.streams[0]),
        );
    }
}

/// Items that a lookup reads, on average over some requests.
fn steps(ring: &Entrant<Ring>, stream: &[u32]) -> f64 {
    let handle = ring.table.handle();
    let some = &stream[..stream.len().min(1 << 18)];
    let sum: u64 = some
        .iter()
        .map(|&key| u64::from(handle.visits(key.into())))
        .sum();
    sum as f64 / some.len() as f64
}
