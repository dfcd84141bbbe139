//! Recorded histories of values that change in place, checked as those of [`super::history`].

use std::sync::atomic::AtomicU64;

use rand::RngExt;
use rand::rngs::SmallRng;
use todc_utils::Specification;

use super::Plain;
use super::history::{Key, Record, check, check_recorded, may_yield};
use crate::{InPlace, Pinned};

/// An operation on a key, with what it returned. Of a removed or replaced node, only its existence
/// counts: its value may still change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Read(Option<u64>),
    Put(u64, Option<u64>),
    /// What was expected, the new one, and what was returned.
    Exchange(u64, u64, Option<Result<u64, u64>>),
    Insert(u64, bool),
    Remove(bool),
}

struct Entry;

impl Specification for Entry {
    type State = Option<u64>;
    type Operation = Op;

    fn init() -> Self::State {
        None
    }

    fn apply(op: &Op, state: &Self::State) -> (bool, Self::State) {
        let (is_legal, after) = match *op {
            Op::Read(seen) => (seen == *state, *state),
            Op::Put(new, seen) => (seen == *state, Some(new)),
            Op::Exchange(expected, new, seen) => match *state {
                Some(now) if now == expected => (seen == Some(Ok(now)), Some(new)),
                other => (seen == other.map(Err), other),
            },
            Op::Insert(new, seen) => (seen == state.is_some(), Some(new)),
            Op::Remove(seen) => (seen == state.is_some(), None),
        };
        (is_legal, if is_legal { after } else { *state })
    }
}

/// A value that lets another thread come to run at each access. So many accesses come late, to a
/// node that has been removed or replaced since they found it.
#[derive(Debug)]
struct Value(AtomicU64);

impl InPlace for Value {
    type Value = u64;

    fn holding(value: u64) -> Self {
        Self(AtomicU64::holding(value))
    }

    fn read(&self) -> u64 {
        may_yield();
        self.0.read()
    }

    fn replace(&self, value: u64) -> u64 {
        may_yield();
        self.0.replace(value)
    }

    fn exchange(&self, expected: u64, value: u64) -> Result<u64, u64> {
        may_yield();
        self.0.exchange(expected, value)
    }
}

fn operate(
    ring: &Pinned<'_, Key, Value, Plain>,
    key: Key,
    value: u64,
    random: &mut SmallRng,
) -> Op {
    match random.random_range(0..10) {
        0..3 => Op::Read(ring.read(&key)),
        3..6 => Op::Put(value, ring.put(key, value)),
        6 | 7 => {
            let expected = ring.read(&key).unwrap_or(0);
            Op::Exchange(expected, value, ring.exchange(&key, expected, value))
        }
        8 => Op::Insert(value, ring.insert(key, Value::holding(value)).is_some()),
        _ => Op::Remove(ring.remove(&key).is_some()),
    }
}

#[test]
fn every_recorded_history_of_changes_in_place_has_a_legal_order() {
    check_recorded::<Value, Entry>(operate);
}

/// The specification itself is not blind.
#[test]
fn histories_of_changes_in_place_without_a_legal_order_are_found() {
    let lost_exchange = Op::Exchange(1, 2, Some(Ok(1)));
    for (first, second, third) in [
        (Op::Put(1, None), lost_exchange, Op::Read(Some(1))),
        (Op::Put(1, None), Op::Insert(2, true), Op::Put(3, Some(1))),
        (Op::Put(1, None), Op::Remove(true), lost_exchange),
        (Op::Put(1, None), Op::Remove(true), Op::Insert(2, true)),
    ] {
        let records: [Record<Op>; 3] = [
            (0, 1, 0, 7, first),
            (2, 3, 1, 7, second),
            (4, 5, 0, 7, third),
        ];
        assert!(
            std::panic::catch_unwind(|| check::<Entry>(&records)).is_err(),
            "{records:?}"
        );
        assert_eq!(check::<Entry>(&records[..2]), 0);
    }
}

/// A late change takes effect before the removal, although the removal ended first.
#[test]
fn a_change_in_place_of_a_removed_node_has_a_legal_order() {
    let records: [Record<Op>; 4] = [
        (0, 1, 0, 7, Op::Put(1, None)),
        (2, 5, 0, 7, Op::Exchange(1, 2, Some(Ok(1)))),
        (3, 4, 1, 7, Op::Remove(true)),
        (6, 7, 1, 7, Op::Read(None)),
    ];
    assert_eq!(check::<Entry>(&records), 1);
}
