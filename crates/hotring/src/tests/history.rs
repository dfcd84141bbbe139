//! Recorded histories of many threads, checked for linearizability.
//!
//! Every key is an object of its own, so a history is checked key by key. The checker is the
//! one of `todc-utils`, by Wing and Gong with Lowe's memory.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng, random_bool};
use todc_utils::linearizability::WGLChecker;
use todc_utils::{Action, History, Specification};

use super::Plain;
use crate::{CompareAndSwap, HotRing, Movement, Options, Pinned};

/// An operation on a key, with what it returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Get(Option<u64>),
    Insert(u64, Option<u64>),
    Update(u64, Option<u64>),
    /// Whether the new one was stored, or what was there.
    TryInsert(u64, Option<u64>),
    /// What was expected, the new one, and what was there.
    Swap(u64, u64, Option<u64>),
    Remove(Option<u64>),
}

struct Entry;

impl Specification for Entry {
    type State = Option<u64>;
    type Operation = Op;

    fn init() -> Self::State {
        None
    }

    fn apply(op: &Op, state: &Self::State) -> (bool, Self::State) {
        let (seen, after) = match *op {
            Op::Get(seen) => (seen, *state),
            Op::Insert(new, seen) => (seen, Some(new)),
            Op::Update(new, seen) => (seen, state.and(Some(new))),
            Op::TryInsert(new, seen) => (seen, state.or(Some(new))),
            Op::Swap(expected, new, seen) => (
                seen,
                if *state == Some(expected) {
                    Some(new)
                } else {
                    *state
                },
            ),
            Op::Remove(seen) => (seen, None),
        };
        if seen == *state {
            (true, after)
        } else {
            (false, *state)
        }
    }
}

/// A point where another thread may come to run. Otherwise the operations of a history would hardly
/// overlap on a machine with few cores.
pub(super) fn may_yield() {
    if random_bool(0.3) {
        std::thread::yield_now();
    }
}

/// A key that lets another thread come to run when it is compared.
#[derive(Clone, Copy, Debug, Eq)]
pub(super) struct Key(u64);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        may_yield();
        self.0 == other.0
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// When it began and ended, by one clock, which thread, which key, and what.
pub(super) type Record<Op> = (u64, u64, usize, u64, Op);

/// Has threads call `operate` for keys, each time with a value of its own.
fn run<V, Op>(
    map: &HotRing<Key, V, Plain>,
    threads: usize,
    operations: usize,
    keys: u64,
    seed: u64,
    operate: &(impl Fn(&Pinned<'_, Key, V, Plain>, Key, u64, &mut SmallRng) -> Op + Sync),
) -> Vec<Record<Op>>
where
    V: Send + Sync + 'static,
    Op: Send,
{
    let clock = AtomicU64::new(0);
    let barrier = Barrier::new(threads);
    let all = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (clock, barrier, all) = (&clock, &barrier, &all);
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(seed << 8 | thread as u64);
                let mut records = Vec::with_capacity(operations);
                barrier.wait();
                for i in 0..operations {
                    // Half of all operations go to one key.
                    let key = if random.random() {
                        0
                    } else {
                        random.random_range(0..keys)
                    };
                    let value = (thread * operations + i) as u64;
                    let ring = map.pin();
                    let began = clock.fetch_add(1, Ordering::SeqCst);
                    let op = operate(&ring, Key(key), value, &mut random);
                    let ended = clock.fetch_add(1, Ordering::SeqCst);
                    records.push((began, ended, thread, key, op));
                }
                all.lock().expect("no panic").extend(records);
            });
        }
    });
    all.into_inner().expect("no panic")
}

/// When, which thread, and a call or what came of it.
type Event<Op> = (u64, usize, Action<Op>);

/// Whether each key's part of the records has an order that explains it. Yields how many operations
/// overlapped another one on their key.
pub(super) fn check<S>(records: &[Record<S::Operation>]) -> usize
where
    S: Specification,
    S::Operation: Copy,
{
    let mut keys: HashMap<u64, Vec<Event<S::Operation>>> = HashMap::new();
    for &(began, ended, thread, key, op) in records {
        let actions = keys.entry(key).or_default();
        actions.push((began, thread, Action::Call(op)));
        actions.push((ended, thread, Action::Response(op)));
    }
    let mut overlaps = 0;
    for (key, mut actions) in keys {
        actions.sort_by_key(|&(time, ..)| time);
        overlaps += actions
            .windows(2)
            .filter(|pair| matches!((&pair[0].2, &pair[1].2), (Action::Call(_), Action::Call(_))))
            .count();
        let shown = format!("{actions:?}");
        let actions = actions
            .into_iter()
            .map(|(_, thread, action)| (thread, action))
            .collect();
        assert!(
            WGLChecker::<S>::is_linearizable(History::from_actions(actions)),
            "no order explains key {key}: {shown}",
        );
    }
    overlaps
}

fn options(movement: Movement) -> Options {
    Options::default()
        .buckets(1)
        .movement(movement)
        .period(1)
        .window(16)
        .grow_above(1.2)
}

/// Records histories, checks each, and sees to it that operations did overlap.
pub(super) fn check_recorded<V, S>(
    operate: impl Fn(&Pinned<'_, Key, V, Plain>, Key, u64, &mut SmallRng) -> S::Operation + Sync,
) where
    V: Send + Sync + 'static,
    S: Specification,
    S::Operation: Copy + Send,
{
    let (rounds, operations) = if cfg!(miri) { (1, 8) } else { (60, 60) };
    let mut overlaps = 0;
    for round in 0..rounds {
        for (threads, movement) in [(4, Movement::Sampling), (8, Movement::Random)] {
            let threads = if cfg!(miri) { 2 } else { threads };
            let map: HotRing<Key, V, Plain> =
                HotRing::with_options_and_hasher(options(movement), Plain).expect("a table");
            let records = run(&map, threads, operations, 6, round, &operate);
            overlaps += check::<S>(&records);
            map.check();
        }
    }
    if !cfg!(miri) {
        assert!(overlaps > 1000, "{overlaps} overlapping operations");
    }
}

fn operate(ring: &Pinned<'_, Key, u64, Plain>, key: Key, value: u64, random: &mut SmallRng) -> Op {
    match random.random_range(0..10) {
        0..4 => Op::Get(ring.get(&key).copied()),
        4 | 5 => Op::Insert(value, ring.insert(key, value).copied()),
        6 => Op::Update(value, ring.update(key, value).copied()),
        7 => {
            let there = ring.try_insert(key, value).err().map(|(&old, ..)| old);
            Op::TryInsert(value, there)
        }
        8 => {
            let expected = ring.get(&key).copied().unwrap_or(0);
            let seen = match ring.compare_and_swap(key, &expected, value) {
                CompareAndSwap::Swapped(&old) | CompareAndSwap::Differs(&old) => Some(old),
                CompareAndSwap::Absent => None,
            };
            Op::Swap(expected, value, seen)
        }
        _ => Op::Remove(ring.remove(&key).copied()),
    }
}

#[test]
fn every_recorded_history_has_a_legal_order() {
    check_recorded::<u64, Entry>(operate);
}

/// The checker itself is not blind.
#[test]
fn a_history_without_a_legal_order_is_found() {
    let lost_update = [
        (0, 1, 0, 7, Op::Insert(1, None)),
        (2, 3, 1, 7, Op::Insert(2, Some(1))),
        (4, 5, 0, 7, Op::Get(Some(1))),
    ];
    assert!(std::panic::catch_unwind(|| check::<Entry>(&lost_update)).is_err());
    assert_eq!(check::<Entry>(&lost_update[..2]), 0);
}
