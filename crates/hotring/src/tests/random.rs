//! Random operations beside the standard map.

use std::collections::HashMap;

use proptest::prelude::*;

use super::{Plain, Ring};
use crate::{BytesRing, CompareAndSwap, HotRing, Movement, Options};

#[derive(Clone, Debug)]
enum Op {
    Get(u64),
    Insert(u64, u64),
    Update(u64, u64),
    TryInsert(u64, u64),
    Swap(u64, u64, u64),
    Remove(u64),
    Point(u64),
    Resize(u8),
    Work,
    Clear,
    Check,
}

fn op() -> impl Strategy<Value = Op> {
    // Few keys, some of equal order, at both ends of the range of hashes.
    let key = || (0u64..24, prop::bool::ANY).prop_map(|(k, high)| if high { !k } else { k });
    let value = || 0u64..4;
    prop_oneof![
        8 => key().prop_map(Op::Get),
        4 => (key(), value()).prop_map(|(k, v)| Op::Insert(k, v)),
        2 => (key(), value()).prop_map(|(k, v)| Op::Update(k, v)),
        2 => (key(), value()).prop_map(|(k, v)| Op::TryInsert(k, v)),
        2 => (key(), value(), value()).prop_map(|(k, e, v)| Op::Swap(k, e, v)),
        4 => key().prop_map(Op::Remove),
        2 => key().prop_map(Op::Point),
        1 => (0u8..7).prop_map(Op::Resize),
        3 => Just(Op::Work),
        1 => Just(Op::Check),
        1 => prop::bool::weighted(0.05).prop_map(|clear| if clear { Op::Clear } else { Op::Check }),
    ]
}

fn movement() -> impl Strategy<Value = Movement> {
    prop_oneof![
        Just(Movement::Sampling),
        Just(Movement::Random),
        Just(Movement::Off)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 400 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn agrees_with_the_standard_map(
        movement in movement(),
        period in 1u32..4,
        buckets in 0u32..5,
        ops in prop::collection::vec(op(), 1..if cfg!(miri) { 40 } else { 300 }),
    ) {
        let options = Options::default()
            .buckets(1 << buckets)
            .movement(movement)
            .period(period)
            .window(8)
            .grow_above(1.5);
        let map: Ring = HotRing::with_options_and_hasher(options, Plain).expect("a table");
        let mut model: HashMap<u64, u64> = HashMap::new();
        for op in ops {
            let ring = map.pin();
            match op {
                Op::Get(k) => prop_assert_eq!(ring.get(&k), model.get(&k)),
                Op::Insert(k, v) => prop_assert_eq!(ring.insert(k, v).copied(), model.insert(k, v)),
                Op::Update(k, v) => {
                    let old = model.get_mut(&k).map(|value| std::mem::replace(value, v));
                    prop_assert_eq!(ring.update(k, v).copied(), old);
                }
                Op::TryInsert(k, v) => {
                    let new = !model.contains_key(&k);
                    prop_assert_eq!(ring.try_insert(k, v).is_ok(), new);
                    model.entry(k).or_insert(v);
                }
                Op::Swap(k, expected, v) => {
                    let swapped = match model.get_mut(&k) {
                        None => CompareAndSwap::Absent,
                        Some(value) if *value != expected => CompareAndSwap::Differs(&*value),
                        Some(value) => {
                            *value = v;
                            CompareAndSwap::Swapped(&expected)
                        }
                    };
                    prop_assert_eq!(ring.compare_and_swap(k, &expected, v), swapped);
                }
                Op::Remove(k) => prop_assert_eq!(ring.remove(&k).copied(), model.remove(&k)),
                Op::Point(k) => prop_assert_eq!(map.point_at(k), model.contains_key(&k)),
                Op::Resize(bits) => {
                    // Refused while the last change is not over.
                    let _ = map.begin_change(1 << bits);
                }
                Op::Work => {
                    drop(ring);
                    map.core.work(&crate::reclaim::pin());
                }
                Op::Clear => {
                    ring.clear();
                    model.clear();
                }
                Op::Check => {
                    let mut all: Vec<_> = ring.iter().map(|(&k, &v)| (k, v)).collect();
                    let mut expected: Vec<_> = model.iter().map(|(&k, &v)| (k, v)).collect();
                    all.sort_unstable();
                    expected.sort_unstable();
                    prop_assert_eq!(all, expected);
                    drop(ring);
                    map.check();
                }
            }
            prop_assert_eq!(map.len(), model.len());
        }
        map.check();
    }

    #[test]
    fn byte_strings_agree_with_the_standard_map(
        ops in prop::collection::vec((0u8..4, prop::collection::vec(0u8..3, 0..4), prop::collection::vec(any::<u8>(), 0..40)), 1..if cfg!(miri) { 20 } else { 100 }),
    ) {
        let options = Options::default().buckets(1).period(1).window(8).grow_above(1.5);
        let map = BytesRing::with_options(options).expect("a table");
        let mut model: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
        for (op, key, value) in ops {
            let ring = map.pin();
            match op {
                0 => prop_assert_eq!(ring.get(&key), model.get(&key).map(Vec::as_slice)),
                1 => {
                    let old = ring.insert(&key, &value).expect("memory").map(<[u8]>::to_vec);
                    prop_assert_eq!(old, model.insert(key, value));
                }
                2 => prop_assert_eq!(ring.remove(&key).map(<[u8]>::to_vec), model.remove(&key)),
                _ => {
                    let mut all: Vec<_> =
                        ring.entries().map(|e| (e.key().to_vec(), e.value().to_vec())).collect();
                    let mut expected: Vec<_> = model.clone().into_iter().collect();
                    all.sort_unstable();
                    expected.sort_unstable();
                    prop_assert_eq!(all, expected);
                }
            }
        }
        map.core.check();
    }
}
