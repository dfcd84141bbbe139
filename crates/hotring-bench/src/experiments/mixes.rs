//! Reads with updates and new keys.

use hotring::{HotRing, Movement};

use crate::contenders::Wide;
use crate::contenders::chained::Chained;
use crate::keys;
use crate::run::{Contender, Entrant, INSERT, PUT, READ, Work, load};
use crate::set_up::{SetUp, heading, ring};

const MOVEMENTS: [(&str, Movement); 2] = [
    ("hotring-s", Movement::Sampling),
    ("hotring-r", Movement::Random),
];

/// The paper's figures 10 and 12.
pub(crate) fn run(set_up: &SetUp) {
    let keys = keys::shuffled(set_up.keys);
    let chained = set_up.chained(set_up.ratio);
    let rings = MOVEMENTS.map(|(_, movement)| set_up.ring(set_up.ratio, movement));
    heading("Values of 8 bytes, changed in place", "requests, θ");
    let all: [&dyn Contender; 3] = [&chained, &rings[0], &rings[1]];
    load(&all, &keys);
    for theta in [0.99, 1.22] {
        for percent in [5, 50, 100] {
            let work = mixed(set_up, theta, percent, PUT);
            set_up.lines(&format!("{percent} % updates, {theta}"), &all, &work);
        }
    }
    let work = mixed(set_up, set_up.theta, 5, INSERT);
    set_up.lines(&format!("5 % new keys, {}", set_up.theta), &all, &work);
    drop((chained, rings));

    // Items are three times as large.
    let wide = SetUp {
        keys: set_up.keys / 4,
        ..set_up.clone()
    };
    let keys = keys::shuffled(wide.keys);
    let buckets = wide.buckets(wide.ratio);
    let chained = Entrant::new("chained", Chained::<Wide>::new(buckets));
    let rings: [Entrant<HotRing<u64, Wide>>; 2] = MOVEMENTS
        .map(|(name, movement)| Entrant::new(name, ring(wide.options(wide.ratio, movement))));
    heading(
        &format!("Values of 100 bytes, {} keys", wide.keys),
        "requests, θ",
    );
    let all: [&dyn Contender; 3] = [&chained, &rings[0], &rings[1]];
    load(&all, &keys);
    for theta in [0.99, 1.22] {
        for percent in [0, 50, 100] {
            let work = mixed(&wide, theta, percent, PUT);
            wide.lines(&format!("{percent} % updates, {theta}"), &all, &work);
        }
    }
}

/// `percent` of the requests do `what`, the others read.
fn mixed(set_up: &SetUp, theta: f64, percent: usize, what: u32) -> Work {
    set_up.work(theta, |index, key| {
        // Spreads the percent evenly: 37 and 100 have no common divisor.
        let kind = if index * 37 % 100 < percent {
            what
        } else {
            READ
        };
        key | kind
    })
}
