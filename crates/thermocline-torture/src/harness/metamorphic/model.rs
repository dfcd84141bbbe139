//! What the store should be: ordered maps, and ranges over them.

use std::collections::BTreeMap;
use std::ops::Bound;

use rand::RngExt;
use rand::rngs::SmallRng;
use thermocline::{Bytes, Range};

use crate::verdict::{Promise, Violation};

/// Contents of one keyspace.
pub(super) type Map = BTreeMap<Bytes, Bytes>;

/// Bounds of a range.
pub(super) type Bounds = (Bound<Bytes>, Bound<Bytes>);

/// How a range is walked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Walk {
    Forward,
    Backward,
    /// From both ends in random turns.
    Both,
}

impl Walk {
    pub(super) fn random(rng: &mut SmallRng) -> Self {
        [Walk::Forward, Walk::Backward, Walk::Both][rng.random_range(0..3)]
    }
}

/// The records of `map` within `bounds`, which need not be in order.
pub(super) fn records(map: &Map, (lower, upper): &Bounds) -> Vec<(Bytes, Bytes)> {
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

/// Compares what `read` gives for `key` with `map`.
pub(super) fn judge(
    read: &str,
    key: &Bytes,
    found: Option<&[u8]>,
    map: &Map,
) -> Result<(), Violation> {
    let wanted = map.get(key).map(|value| &value[..]);
    match Promise::judge(found, wanted) {
        None => Ok(()),
        Some(promise) => Err(Violation::new(promise, format!("{read} of {key:?}"))),
    }
}

/// Walks `range` for at most `limit` steps and compares each with `expected`.
pub(super) fn compare(
    mut range: Range,
    expected: &[(Bytes, Bytes)],
    walk: Walk,
    limit: usize,
    rng: &mut SmallRng,
) -> Result<(), Violation> {
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
        let found = found.transpose()?;
        let found = found.map(|(key, value)| (key, value.into_bytes()));
        if let Some((_, rest)) = wanted {
            left = rest;
        }
        let found = found.as_ref().map(|(key, value)| (&key[..], &value[..]));
        let wanted = wanted.map(|((key, value), _)| (&key[..], &value[..]));
        if let Some(promise) = Promise::judge_next(found, wanted, forward) {
            let key = |(key, _)| String::from_utf8_lossy(key);
            let (found, wanted) = (found.map(key), wanted.map(key));
            let message = format!("{walk:?}, step {step}: {found:?} where {wanted:?} is right");
            return Err(Violation::new(promise, message));
        }
        if found.is_none() {
            break;
        }
    }
    Ok(())
}
