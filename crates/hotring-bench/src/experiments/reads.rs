//! Reads of present and of absent keys.

use hotring::Movement;

use crate::keys;
use crate::run::{Contender, Entrant, load};
use crate::set_up::{SetUp, heading};

/// The paper's figure 11(a).
pub(crate) fn ratios(set_up: &SetUp) {
    heading(&format!("Reads, θ {}", set_up.theta), "keys per bucket");
    let keys = keys::shuffled(set_up.keys);
    let work = set_up.reads(set_up.theta);
    for ratio in [1, 2, 4, 8, 16] {
        let chained = set_up.chained(ratio);
        let rings = [Movement::Sampling, Movement::Random, Movement::Off]
            .map(|movement| set_up.ring(ratio, movement));
        let all: [&dyn Contender; 4] = [&chained, &rings[0], &rings[1], &rings[2]];
        load(&all, &keys);
        set_up.lines(&ratio.to_string(), &all, &work);
    }
}

/// The paper's figure 11(b).
pub(crate) fn skew(set_up: &SetUp) {
    heading(&format!("Reads, {} keys per bucket", set_up.ratio), "θ");
    let keys = keys::shuffled(set_up.keys);
    let rings = [Movement::Sampling, Movement::Random, Movement::Off]
        .map(|movement| set_up.ring(set_up.ratio, movement));
    let chained = set_up.chained(set_up.ratio);
    let all: [&dyn Contender; 4] = [&chained, &rings[0], &rings[1], &rings[2]];
    load(&all, &keys);
    for theta in [0.0, 0.5, 0.7, 0.9, 0.99, 1.11, 1.22] {
        set_up.lines(&theta.to_string(), &all, &set_up.reads(theta));
    }
}

/// What a handle costs.
pub(crate) fn pins(set_up: &SetUp) {
    let title = format!(
        "Reads, θ {}, {} keys per bucket",
        set_up.theta, set_up.ratio
    );
    heading(&title, "requests a handle");
    let keys = keys::shuffled(set_up.keys);
    let chained = set_up.chained(set_up.ratio);
    let ring = set_up.ring(set_up.ratio, Movement::Sampling);
    let all: [&dyn Contender; 2] = [&chained, &ring];
    load(&all, &keys);
    let mut work = set_up.reads(set_up.theta);
    for batch in [1, 8, 64, 512] {
        work.batch = batch;
        set_up.lines(&batch.to_string(), &all, &work);
    }
}

/// The paper's figure 15(b).
pub(crate) fn periods(set_up: &SetUp) {
    heading(
        &format!("Reads by R, {} keys per bucket", set_up.ratio),
        "θ",
    );
    let keys = keys::shuffled(set_up.keys);
    let rings = [5, 1, 2, 10, 16, 32].map(|period| {
        let set_up = SetUp {
            period,
            ..set_up.clone()
        };
        let ring = set_up.ring(set_up.ratio, Movement::Sampling);
        Entrant::new(format!("R = {period}"), ring.table)
    });
    let all: Vec<&dyn Contender> = rings.iter().map(|ring| ring as &dyn Contender).collect();
    load(&all, &keys);
    for theta in [0.5, 0.99, 1.22] {
        set_up.lines(&theta.to_string(), &all, &set_up.reads(theta));
    }
}

/// A chained bucket takes half the memory of a ring's bucket, so there may be twice as many for the
/// same memory.
pub(crate) fn memory(set_up: &SetUp) {
    heading("Reads, index of equal size", "keys per bucket, θ");
    let keys = keys::shuffled(set_up.keys);
    for ratio in [2, 4, 8, 16] {
        let chained = set_up.chained(ratio / 2);
        let ring = set_up.ring(ratio, Movement::Sampling);
        let all: [&dyn Contender; 2] = [&chained, &ring];
        load(&all, &keys);
        for theta in [0.99, 1.22] {
            let label = format!("{} and {ratio}, {theta}", ratio / 2);
            set_up.lines(&label, &all, &set_up.reads(theta));
        }
    }
}

/// What the size of a bucket costs: a ring's has 16 bytes.
pub(crate) fn buckets(set_up: &SetUp) {
    heading(&format!("Reads, {} keys per bucket", set_up.ratio), "θ");
    let keys = keys::shuffled(set_up.keys);
    let chained = set_up.chained(set_up.ratio);
    let of_16_bytes = set_up.roomy::<1>(set_up.ratio);
    let all: [&dyn Contender; 2] = [&chained, &of_16_bytes];
    load(&all, &keys);
    for theta in [0.0, 0.99, 1.22] {
        set_up.lines(&theta.to_string(), &all, &set_up.reads(theta));
    }
}

/// The paper's figure 15(a).
pub(crate) fn misses(set_up: &SetUp) {
    heading("Absent keys", "keys per bucket, θ");
    let keys = keys::shuffled(set_up.keys);
    for ratio in [2, 4, 8, 16] {
        let chained = set_up.chained(ratio);
        let ring = set_up.ring(ratio, Movement::Sampling);
        let all: [&dyn Contender; 2] = [&chained, &ring];
        load(&all, &keys);
        for theta in [0.0, 1.22] {
            let work = set_up.work(theta, |_, key| key + set_up.keys);
            set_up.lines(&format!("{ratio}, {theta}"), &all, &work);
        }
    }
}
