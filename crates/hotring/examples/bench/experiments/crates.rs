//! Beside other crates.

use std::sync::atomic::AtomicU64;

use foldhash::quality::RandomState;
use hotring::Movement;

use crate::contenders::crates::{Dash, Index, Papaya};
use crate::keys;
use crate::run::{Contender, Entrant, PUT, READ};
use crate::set_up::{SetUp, heading, ring};

/// One key a bucket, as tables of these crates have.
pub(crate) fn run(set_up: &SetUp) {
    heading(
        "Other crates, hotring with one key per bucket",
        "requests, θ",
    );
    let keys = keys::shuffled(set_up.keys);
    let len = set_up.keys as usize;
    let hasher = RandomState::default;
    let hot = Entrant::loaded(
        "hotring-s",
        ring::<AtomicU64>(set_up.options(1, Movement::Sampling)),
        &keys,
    );
    let dash = Entrant::loaded(
        "dashmap",
        Dash::with_capacity_and_hasher(len, hasher()),
        &keys,
    );
    let papaya = Entrant::loaded(
        "papaya",
        Papaya::with_capacity_and_hasher(len, hasher()),
        &keys,
    );
    let index = Entrant::loaded("scc", Index::with_capacity_and_hasher(len, hasher()), &keys);
    let all: [&dyn Contender; 4] = [&hot, &dash, &papaya, &index];
    for theta in [0.0, 0.99, 1.22] {
        set_up.lines(&format!("reads, {theta}"), &all, &set_up.reads(theta));
    }
    let work = set_up.work(0.99, |index, key| {
        key | if index % 20 == 0 { PUT } else { READ }
    });
    set_up.lines("5 % updates in place, 0.99", &all, &work);
}
