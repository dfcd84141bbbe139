//! Beside other crates.

use std::sync::atomic::AtomicU64;

use foldhash::quality::RandomState;
use hotring::Movement;

use crate::contenders::crates::{Dash, Index, Papaya};
use crate::keys;
use crate::run::{Contender, Entrant, PUT, READ, load};
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
    let hot = Entrant::new(
        "hotring-s",
        ring::<AtomicU64>(set_up.options(1, Movement::Sampling)),
    );
    let dash = Entrant::new("dashmap", Dash::with_capacity_and_hasher(len, hasher()));
    let papaya = Entrant::new("papaya", Papaya::with_capacity_and_hasher(len, hasher()));
    let index = Entrant::new("scc", Index::with_capacity_and_hasher(len, hasher()));
    let all: [&dyn Contender; 4] = [&hot, &dash, &papaya, &index];
    load(&all, &keys);
    for theta in [0.0, 0.99, 1.22] {
        set_up.lines(&format!("reads, {theta}"), &all, &set_up.reads(theta));
    }
    let work = set_up.work(0.99, |index, key| {
        key | if index % 20 == 0 { PUT } else { READ }
    });
    set_up.lines("5 % updates in place, 0.99", &all, &work);
}
