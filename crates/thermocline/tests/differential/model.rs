//! What the store should be: ordered maps, and ranges over them.

use std::collections::BTreeMap;
use std::ops::Bound;

use rand::RngExt;
use rand::rngs::SmallRng;
use thermocline::{Bytes, Range};

/// Contents of one keyspace.
pub(crate) type Map = BTreeMap<Bytes, Bytes>;

/// Bounds of a range.
pub(crate) type Bounds = (Bound<Bytes>, Bound<Bytes>);

/// How a range is walked.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Walk {
    Forward,
    Backward,
    /// From both ends in random turns.
    Both,
}

impl Walk {
    pub(crate) fn random(rng: &mut SmallRng) -> Self {
        [Walk::Forward, Walk::Backward, Walk::Both][rng.random_range(0..3)]
    }
}

/// The records of `map` within `bounds`, which need not be in order.
pub(crate) fn records(map: &Map, (lower, upper): &Bounds) -> Vec<(Bytes, Bytes)> {
    let from = match lower {
        Bound::Included(key) | Bound::Excluded(key) => Bound::Included(key.clone()),
        Bound::Unbounded => Bound::Unbounded,
    };
    let below = |key: &Bytes| matches!(lower, Bound::Excluded(lower) if key == lower);
    let within = |key: &Bytes| match upper {
        Bound::Included(upper) => key <= upper,
        Bound::Excluded(upper) => key < upper,
        Bound::Unbounded => true,
    };
    map.range((from, Bound::Unbounded))
        .take_while(|(key, _)| within(key))
        .filter(|(key, _)| !below(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Walks `range` for at most `limit` steps and compares each with `expected`.
pub(crate) fn compare(
    mut range: Range,
    expected: &[(Bytes, Bytes)],
    walk: Walk,
    limit: usize,
    rng: &mut SmallRng,
    at: &str,
) {
    let mut left = expected;
    for step in 0..limit {
        let forward = match walk {
            Walk::Forward => true,
            Walk::Backward => false,
            Walk::Both => rng.random(),
        };
        let (found, wanted) = if forward {
            (range.next(), left.split_first())
        } else {
            (range.next_back(), left.split_last())
        };
        let found = found.map(|record| record.unwrap_or_else(|e| panic!("{at}: {e}")));
        let found = found.map(|(key, value)| (key, value.into_bytes()));
        let wanted = wanted.map(|(record, rest)| {
            left = rest;
            record.clone()
        });
        assert_eq!(
            found, wanted,
            "{at}: step {step}, forward {forward}, {walk:?}"
        );
        if found.is_none() {
            return;
        }
    }
}
