//! What damage of the log is, and what a crash may leave.

use super::*;
use crate::storage::LogStore;

/// Where the records of a segment start, and where the last one ends.
fn bounds(store: &TestStore, number: u64) -> Vec<usize> {
    let bytes = store.get(&name(number)).unwrap();
    let mut records = Records::new(number, &bytes);
    let mut bounds = vec![FILE_HEADER_LEN];
    while let Found::Record { payload, .. } = records.next() {
        bounds.push(payload.end);
    }
    bounds
}

fn cut_file(store: &TestStore, number: u64, len: usize) {
    let mut bytes = store.get(&name(number)).unwrap();
    bytes.truncate(len);
    store.put(&name(number), bytes);
}

fn flip(store: &TestStore, number: u64, at: usize) {
    let mut bytes = store.get(&name(number)).unwrap();
    bytes[at] ^= 0x40;
    store.put(&name(number), bytes);
}

/// Removes a segment as a crash would.
fn remove(store: &TestStore, number: u64) {
    LogStore::remove(store, &name(number)).unwrap();
}

#[test]
fn every_truncation_of_an_unsynced_log_leaves_a_prefix() {
    let store = TestStore::new();
    put(&mut fresh(&store), 1..=3);
    let len = store.get(&name(1)).unwrap().len();
    let bounds = bounds(&store, 1);
    for keep in 0..len {
        let crashed = store.copy();
        cut_file(&crashed, 1, keep);
        let whole = bounds.iter().filter(|&&b| b <= keep).count().max(1) - 1;
        let expected: Vec<SeqNo> = (1..=whole as u64).collect();
        assert_eq!(seqs(&crashed), expected, "cut to {keep}");
        assert_eq!(seqs(&crashed), expected, "again after {keep}");
        assert!(replay(&crashed, Strict, 0).unwrap().1.cut.is_none());
    }
}

#[test]
fn every_flipped_byte_gives_a_prefix_or_an_error_and_after_a_close_an_error() {
    for closed in [false, true] {
        let store = TestStore::new();
        let mut wal = fresh(&store);
        put(&mut wal, 1..=2);
        wal.rotate(2).unwrap();
        put(&mut wal, 3..=4);
        if closed {
            wal.close().unwrap();
        }
        for number in [1, 2] {
            let len = store.get(&name(number)).unwrap().len();
            // The record that `close` appends vouches only for what comes before it.
            let vouched = match (closed, number) {
                (true, 2) => bounds(&store, 2)[2],
                (closed, _) => len * usize::from(closed),
            };
            for at in 0..len {
                let bad = store.copy();
                flip(&bad, number, at);
                match replay(&bad, Strict, 0) {
                    Err(error) => assert!(error.is_corruption(), "{error}"),
                    Ok((found, _)) => {
                        assert!(found.iter().copied().eq(1..=found.len() as u64));
                        assert!(at >= vouched, "segment {number} byte {at} went unnoticed");
                    }
                }
                let (found, recovered) = replay(&bad, Tolerant, 0).unwrap();
                assert!(found.iter().copied().eq(1..=found.len() as u64));
                assert!(recovered.cut.is_some_and(|cut| cut.damaged) || at >= vouched);
            }
        }
    }
}

#[test]
fn damage_before_synced_bytes_is_an_error_and_beyond_them_a_crash() {
    let store = TestStore::new();
    let mut wal = fresh(&store);
    put(&mut wal, [1, 2]);
    wal.sync().unwrap();
    put(&mut wal, [3, 4]);
    let bounds = bounds(&store, 1);
    let damaged = store.copy();
    flip(&damaged, 1, bounds[1] + 20);
    let error = replay(&damaged, Strict, 0).unwrap_err();
    assert!(matches!(error, Error::Corruption { offset, .. } if offset == bounds[1] as u64));
    let (found, recovered) = replay(&damaged, Tolerant, 0).unwrap();
    assert_eq!(found, [1]);
    let cut = recovered.cut.unwrap();
    assert!(cut.damaged && cut.offset == bounds[1] as u64 && cut.bytes > 0);

    let torn = store.copy();
    flip(&torn, 1, bounds[2] + 20);
    let (found, recovered) = replay(&torn, Strict, 0).unwrap();
    assert_eq!(found, [1, 2]);
    assert!(!recovered.cut.unwrap().damaged);
}

#[test]
fn a_lost_tail_before_another_segment_is_a_crash_unless_that_one_knew_better() {
    for synced in [false, true] {
        for lose_all in [false, true] {
            let store = TestStore::new();
            let mut wal = fresh(&store);
            put(&mut wal, [1, 2]);
            wal.rotate(2).unwrap();
            if synced {
                wal.handle().sync_through(2).unwrap();
            }
            put(&mut wal, [3]);
            wal.rotate(3).unwrap();
            put(&mut wal, [4]);
            match lose_all {
                true => remove(&store, 1),
                false => cut_file(&store, 1, bounds(&store, 1)[1]),
            }
            let kept: &[SeqNo] = if lose_all { &[] } else { &[1] };
            if synced {
                assert!(replay(&store, Strict, 0).unwrap_err().is_corruption());
            }
            let (found, recovered) = replay(&store, Tolerant, 0).unwrap();
            assert_eq!(found, kept);
            assert_eq!(recovered.cut.unwrap().damaged, synced);
            assert!(!store.names().contains(&name(3)), "later segments are gone");
            let mut wal = start(&store, 9, &replay(&store, Strict, 0).unwrap().1);
            let next = kept.len() as u64 + 1;
            put(&mut wal, [next]);
            assert_eq!(seqs(&store).last(), Some(&next));
        }
    }
}

#[test]
fn a_log_shorter_than_the_tables_is_damage() {
    let store = TestStore::new();
    put(&mut fresh(&store), 1..=3);
    assert_eq!(replay(&store.copy(), Strict, 3).unwrap().0, [1, 2, 3]);
    let short = store.copy();
    cut_file(&short, 1, bounds(&store, 1)[2]);
    assert!(replay(&short, Strict, 3).unwrap_err().is_corruption());
    let (found, recovered) = replay(&short, Tolerant, 3).unwrap();
    assert_eq!((found.len(), recovered.last_seq), (2, 3));
    // The next segment records the gap, which is not damage from then on.
    put(&mut start(&short, 2, &recovered), [4]);
    assert_eq!(replay(&short, Strict, 3).unwrap().0, [1, 2, 4]);
}

/// The flushed sequence numbers allow the log to begin with a later segment. If the first segment
/// was cut down to less than a record, it was taken for one that had been given up. What it held of
/// keyspaces that were not flushed was lost.
#[test]
fn a_first_segment_that_is_there_in_part_is_damage() {
    for has_newer in [true, false] {
        let store = TestStore::new();
        let mut wal = fresh(&store);
        put(&mut wal, [1, 2]);
        wal.rotate(2).unwrap();
        wal.sync().unwrap();
        let newer = 3..3 + u64::from(has_newer);
        put(&mut wal, newer.clone());
        let len = store.get(&name(1)).unwrap().len();
        for keep in 0..len {
            let short = store.copy();
            cut_file(&short, 1, keep);
            let refused = replay(&short, Strict, 2);
            assert!(refused.is_err(), "{has_newer}, cut to {keep}: {refused:?}");
        }
        remove(&store, 1);
        let found = replay(&store, Strict, 2).unwrap().0;
        assert!(found.into_iter().eq(newer), "as if it were obsolete");
    }
}

/// The next segment records the gap. Until that is begun, the found log says that the gap is known.
#[test]
fn a_loss_that_was_given_up_is_no_damage_before_the_next_segment_is_begun() {
    let store = TestStore::new();
    put(&mut fresh(&store), 1..=3);
    cut_file(&store, 1, bounds(&store, 1)[2]);
    let recovered = replay(&store, Tolerant, 3).unwrap().1;
    let found = recovered.found_log(2);
    let again = |store: &Arc<TestStore>, floor| {
        let replayed = replay_found(store, Strict, floor, Some(found.clone()));
        replayed.map(|(seqs, recovered)| (seqs, recovered.last_seq, recovered.cut.is_some()))
    };
    assert_eq!(again(&store.copy(), 3).unwrap(), (vec![1, 2], 3, false));
    assert!(again(&store.copy(), 4).is_err(), "4 was flushed since");
    // A crash takes the header of the new segment, whose records were not synced.
    put(&mut start(&store, 2, &recovered), [4]);
    assert_eq!(again(&store.copy(), 3).unwrap(), (vec![1, 2, 4], 4, false));
    flip(&store, 2, 10);
    assert_eq!(again(&store.copy(), 3).unwrap(), (vec![1, 2], 3, true));
    assert!(again(&store.copy(), 4).is_err());
    // More is lost than was known.
    cut_file(&store, 1, bounds(&store, 1)[1]);
    assert!(again(&store, 3).is_err());
}

/// A follower was given what comes before and after the loss, as if nothing were missing in
/// between.
#[test]
fn who_reads_from_before_a_gap_is_told_that_it_is_gone() {
    let store = TestStore::new();
    put(&mut fresh(&store), 1..=3);
    cut_file(&store, 1, bounds(&store, 1)[2]);
    let recovered = replay(&store, Tolerant, 3).unwrap().1;
    let mut wal = start(&store, 2, &recovered);
    put(&mut wal, [4]);
    wal.rotate(3).unwrap();
    put(&mut wal, [5]);
    let handle = wal.handle();
    for since in 0..=3 {
        let gone = handle.read_since(since).map(|_| ());
        let told = matches!(gone, Err(Error::LogGone { oldest: 4, .. }));
        assert!(told, "since {since}: {gone:?}");
    }
    let read = handle.read_since(4).unwrap();
    let seqs: Vec<SeqNo> = read.map(|batch| batch.unwrap().0).collect();
    assert_eq!(seqs, [4, 5]);
}

#[test]
fn a_log_of_another_database_is_refused_in_any_mode() {
    let store = TestStore::new();
    put(&mut fresh(&store), [1]);
    let points = Points::default();
    let mut ignore = |_, _, _, _, _| Ok(());
    let other = recover(
        &store.tier(),
        DB + 1,
        Tolerant,
        &Bounds::default(),
        &points,
        &mut ignore,
    );
    assert!(other.unwrap_err().is_corruption());
}

/// Found by the simulation: recovery gave up a segment, and the sync after its removal failed. The
/// store was opened once more, and later the power went. The segment was back, older than the log
/// by then, and was called damage: because what followed did not continue it, or because the log
/// ended with it when all the rest was flushed.
#[test]
fn a_given_up_segment_that_is_back_is_no_part_of_the_log() {
    // With all of its record, with none, and with half a header.
    for kept in [usize::MAX, FILE_HEADER_LEN, 20] {
        let store = TestStore::new();
        let mut wal = fresh(&store);
        put(&mut wal, [1]);
        wal.rotate(2).unwrap();
        put(&mut wal, [2]);
        drop(wal);
        let mut given_up = store.get(&name(2)).unwrap();
        given_up.iter_mut().skip(kept).for_each(|byte| *byte = 0xaa);
        // Segment 1 loses its record, so segment 2 cannot be a part of what is recovered.
        cut_file(&store, 1, FILE_HEADER_LEN + 10);
        let recovered = replay(&store, Strict, 0).unwrap().1;
        assert_eq!(recovered.last_seq, 0);
        let mut wal = start(&store, 3, &recovered);
        let found = Some(recovered.found_log(3));
        put(&mut wal, [1, 2]);
        wal.rotate(4).unwrap();
        put(&mut wal, [3]);
        wal.sync().unwrap();
        put(&mut wal, [4]);
        let again = |floor: SeqNo| {
            let store = store.copy();
            store.put(&name(2), given_up.clone());
            let replayed = replay_found(&store, Strict, floor, found.clone());
            replayed.map(|(seqs, _)| (seqs, store.names()))
        };
        assert_eq!(
            again(0).unwrap(),
            (vec![1, 2, 3, 4], vec![name(3), name(4)])
        );
        // The segment after it has become obsolete.
        wal.remove_obsolete(2).unwrap();
        assert_eq!(again(2).unwrap(), (vec![3, 4], vec![name(4)]));
        assert!(again(1).is_err(), "2 is missing");
        remove(&store, 4);
        assert_eq!(again(4).unwrap(), (vec![], vec![]));
    }
}

/// What an opening found was durable. If a record of it is the last one of the log, its loss could
/// be taken for the work of a crash.
#[test]
fn a_loss_in_what_an_opening_found_is_damage() {
    let store = TestStore::new();
    let mut wal = fresh(&store);
    put(&mut wal, [1]);
    wal.rotate(2).unwrap();
    put(&mut wal, [2]);
    drop(wal);
    let recovered = replay(&store, Strict, 0).unwrap().1;
    let found = recovered.found_log(3);
    put(&mut start(&store, 3, &recovered), [3]);
    let again = |change: &dyn Fn(&TestStore)| {
        let store = store.copy();
        change(&store);
        replay_found(&store, Strict, 0, Some(found.clone())).map(|(seqs, _)| seqs)
    };
    assert_eq!(again(&|_| {}).unwrap(), [1, 2, 3]);
    // Bytes that come back because a cut was undone are not part of it.
    let longer = |store: &TestStore| {
        let bytes = store.get(&name(2)).unwrap();
        store.put(&name(2), [bytes.as_slice(), &[0xaa; 40]].concat());
    };
    assert_eq!(again(&longer).unwrap(), [1, 2, 3]);
    for number in [1, 2] {
        for has_newest in [true, false] {
            let without = |store: &TestStore| {
                cut_file(store, number, FILE_HEADER_LEN);
                if !has_newest {
                    remove(store, 3);
                }
            };
            assert!(again(&without).unwrap_err().is_corruption());
        }
    }
    let missing = |store: &TestStore| {
        remove(store, 2);
        remove(store, 3);
    };
    assert!(again(&missing).unwrap_err().is_corruption());
    // Obsolete segments are removed oldest first.
    let store = store.copy();
    remove(&store, 1);
    let replayed = replay_found(&store, Strict, 1, Some(found)).unwrap();
    assert_eq!(replayed.0, [2, 3]);
}

/// Found by the simulation: a record that could not be written completely was cut off, its segment
/// was closed, and a loss of power undid the cut. The half record was called damage, because later
/// segments said that what came before them was durable.
#[test]
fn half_a_record_that_is_back_behind_the_end_of_a_closed_segment_is_no_part_of_the_log() {
    let store = TestStore::new();
    let mut wal = fresh(&store);
    put(&mut wal, [1]);
    let cut_off = store.get(&name(1)).unwrap();
    wal.rotate(2).unwrap();
    put(&mut wal, [2]);
    wal.sync().unwrap();
    put(&mut wal, [3]);
    let half = [cut_off.as_slice(), &cut_off[FILE_HEADER_LEN..][..30]].concat();
    store.put(&name(1), half.clone());
    assert_eq!(replay(&store.copy(), Strict, 0).unwrap().0, [1, 2, 3]);
    // In another place, it is damage.
    let mut torn = half;
    torn.drain(FILE_HEADER_LEN + 5..FILE_HEADER_LEN + 9);
    store.put(&name(1), torn);
    assert!(replay(&store, Strict, 0).unwrap_err().is_corruption());
}
