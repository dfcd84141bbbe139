//! What recovery makes of a log after a crash.

use proptest::prelude::*;

use super::*;

#[test]
fn what_was_replayed_is_durable_before_the_log_goes_on() {
    let store = TestStore::new();
    let mut wal = fresh(&store);
    put(&mut wal, [1]);
    wal.rotate(2).unwrap();
    put(&mut wal, [2]);
    wal.sync().unwrap();
    put(&mut wal, [3]);
    drop(wal);
    store.syncs.lock().clear();
    // Segment 2 proves that segment 1 is durable; nothing proves it of segment 2.
    replay(&store, Strict, 0).unwrap();
    assert_eq!(*store.syncs.lock(), ["00000002.wal.tmp", "dir"]);
    assert_eq!(store.names(), [segment_file_name(1), segment_file_name(2)]);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Append,
    HandOver,
    Sync,
    Rotate,
    FlushSync,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Append),
        3 => Just(Step::HandOver),
        1 => Just(Step::Sync),
        1 => Just(Step::Rotate),
        1 => Just(Step::FlushSync),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever a crash does to bytes that were not synced, strict recovery finds a prefix that
    /// holds everything synced, finds it again, and the log goes on after it (I5).
    #[test]
    fn a_crash_leaves_a_prefix_with_everything_synced(
        steps in steps(),
        harm in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 40),
    ) {
        let store = TestStore::new();
        let mut wal = fresh(&store);
        let (mut seq, mut number, mut synced) = (0, 1, 0);
        let mut durable = std::collections::BTreeMap::new();
        for step in steps {
            match step {
                Step::Append => {
                    seq += 1;
                    wal.append(seq, &[batch(seq)]).unwrap();
                }
                Step::HandOver => wal.hand_over().unwrap(),
                Step::Sync => wal.sync().unwrap(),
                Step::FlushSync => wal.handle().sync_through(seq).unwrap(),
                Step::Rotate => {
                    number += 1;
                    wal.rotate(number).unwrap();
                }
            }
            if matches!(step, Step::Sync | Step::FlushSync) {
                synced = seq;
                // Syncing through a sequence number does not touch a segment that starts after it.
                let done = store.syncs.lock().clone();
                for file in store.names().into_iter().filter(|name| done.contains(name)) {
                    durable.insert(file.clone(), store.get(&file).unwrap().len());
                }
            }
        }
        drop(wal);
        for (file, (at, flipped)) in store.names().iter().zip(harm) {
            let mut bytes = store.get(file).unwrap();
            let durable = durable.get(file).copied().unwrap_or(0);
            if bytes.len() > durable {
                let at = durable + at.index(bytes.len() - durable);
                match flipped {
                    true => bytes[at] ^= 0xff,
                    false => bytes.truncate(at),
                }
                store.put(file, bytes);
            }
        }
        let (found, recovered) = replay(&store, Strict, synced).unwrap();
        let last = found.len() as u64;
        prop_assert!(last >= synced && found.iter().copied().eq(1..=last));
        prop_assert_eq!(recovered.last_seq, last);
        let (again, recovered) = replay(&store, Strict, synced).unwrap();
        prop_assert_eq!(&again, &found);
        prop_assert!(recovered.cut.is_none());
        let mut wal = start(&store, 100, &recovered);
        put(&mut wal, [last + 1]);
        prop_assert_eq!(replay(&store, Strict, synced).unwrap().0.len() as u64, last + 1);
    }
}
