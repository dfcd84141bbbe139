//! The log as a whole: what is recovered after which events.

mod crashes;
mod damage;
mod failures;

use bytes::Bytes;

use super::test_store::{Failing, TestStore};
use super::{FoundLog, *};
use crate::batch::{Batch, Ops};
use crate::error::{Error, Result};
use crate::key::SeqNo;
use crate::log_format::{FILE_HEADER_LEN, Found, Records};
use crate::metrics::Purpose;
use crate::options::RecoveryMode::{self, Strict, Tolerant};
use crate::points::Points;
use crate::sync::Arc;

const DB: u128 = 77;

fn batch(seq: SeqNo) -> Bytes {
    let mut batch = Batch::new();
    batch.put(format!("key{seq}"), format!("value{seq}"));
    batch.into_bytes()
}

fn start(store: &Arc<TestStore>, number: u64, recovered: &Recovered) -> Wal {
    Wal::create(store.tier(), DB, number, recovered, 0, Points::default()).unwrap()
}

fn fresh(store: &Arc<TestStore>) -> Wal {
    start(store, 1, &Recovered::default())
}

fn put(wal: &mut Wal, seqs: impl IntoIterator<Item = SeqNo>) {
    for seq in seqs {
        wal.append(seq, &[batch(seq)]).unwrap();
        wal.hand_over().unwrap();
    }
}

/// Replays as if no opening had been before, and removes what is not part of the log. Checks that
/// every record is the one that was written; returns the sequence numbers.
fn replay(
    store: &Arc<TestStore>,
    mode: RecoveryMode,
    from: SeqNo,
) -> Result<(Vec<SeqNo>, Recovered)> {
    replay_found(store, mode, from, None)
}

/// As [`replay`], but after an opening that took over `found` of the log.
fn replay_found(
    store: &Arc<TestStore>,
    mode: RecoveryMode,
    floor: SeqNo,
    found: Option<FoundLog>,
) -> Result<(Vec<SeqNo>, Recovered)> {
    let mut seqs = Vec::new();
    let recovered = recover(
        &store.tier(),
        DB,
        mode,
        &Bounds {
            start: 0,
            floor,
            found,
        },
        &Points::default(),
        &mut |seq, _, _, key, value| {
            assert_eq!(key, format!("key{seq}"));
            assert_eq!(value, format!("value{seq}"));
            seqs.push(seq);
            Ok(())
        },
    )?;
    let names = store.names();
    let next = names.iter().filter_map(|name| segment_number(name));
    let found = recovered.found_log(next.max().map_or(0, |newest| newest + 1));
    remove_others(&store.tier(), &found, &Points::default())?;
    Ok((seqs, recovered))
}

fn seqs(store: &Arc<TestStore>) -> Vec<SeqNo> {
    replay(store, Strict, 0).unwrap().0
}

fn name(number: u64) -> String {
    segment_file_name(number)
}

#[test]
fn groups_come_back_with_their_sequence_numbers_over_restarts() {
    let store = TestStore::new();
    let mut wal = fresh(&store);
    wal.append(1, &[batch(1), batch(2)]).unwrap();
    wal.append(3, &[batch(3)]).unwrap();
    wal.rotate(2).unwrap();
    put(&mut wal, [4]);
    drop(wal);
    let (found, recovered) = replay(&store, Strict, 0).unwrap();
    assert_eq!(found, [1, 2, 3, 4]);
    assert_eq!((recovered.last_seq, recovered.cut.is_none()), (4, true));
    let mut wal = start(&store, 3, &recovered);
    put(&mut wal, [5]);
    drop(wal);
    assert_eq!(seqs(&store), [1, 2, 3, 4, 5]);
}

#[test]
fn a_log_that_was_not_handed_over_is_lost_and_nothing_else() {
    let store = TestStore::new();
    let mut wal = fresh(&store);
    put(&mut wal, [1]);
    wal.append(2, &[batch(2)]).unwrap();
    assert!(wal.total_bytes() > store.get(&name(1)).unwrap().len() as u64);
    drop(wal);
    assert_eq!(seqs(&store), [1]);
}

#[test]
fn sequence_numbers_with_a_gap_are_not_logged() {
    let store = TestStore::new();
    let mut wal = fresh(&store);
    assert!(matches!(
        wal.append(2, &[batch(2)]),
        Err(Error::Poisoned { .. })
    ));
    assert_eq!(store.get(&name(1)).unwrap().len(), FILE_HEADER_LEN);
}

#[test]
fn syncs_go_oldest_first_and_name_the_directory_once() {
    let store = TestStore::new();
    let mut wal = fresh(&store);
    put(&mut wal, [1]);
    wal.rotate(2).unwrap();
    put(&mut wal, [2]);
    assert!(wal.handle().unsynced_closed());
    wal.sync().unwrap();
    assert!(!wal.handle().unsynced_closed());
    put(&mut wal, [3]);
    wal.sync().unwrap();
    wal.sync().unwrap();
    let syncs = store.syncs.lock().clone();
    assert_eq!(syncs, [&name(1), &name(2), "dir", &name(2)]);
}

#[test]
fn a_sync_is_of_what_is_asked_for_and_not_durable_yet() {
    let store = TestStore::new();
    let mut wal = fresh(&store);
    put(&mut wal, [1]);
    wal.rotate(2).unwrap();
    wal.sync().unwrap();
    for seq in 2..=4 {
        put(&mut wal, [seq]);
        wal.rotate(seq + 1).unwrap();
    }
    let before = store.syncs.lock().len();
    let since = || store.syncs.lock()[before..].to_vec();
    wal.handle().sync_through(2).unwrap();
    assert_eq!(since(), [&name(2), "dir"]);
    wal.handle().sync_through(2).unwrap();
    wal.handle().sync_through(3).unwrap();
    assert_eq!(since(), [&name(2), "dir", &name(3)]);
    wal.sync().unwrap();
    assert_eq!(since()[3..], [name(4), name(5)]);
    assert!(!wal.handle().unsynced_closed());
}

#[test]
fn a_flush_syncs_its_records_even_from_the_process_buffer() {
    let store = TestStore::new();
    let mut wal = fresh(&store);
    put(&mut wal, [1]);
    wal.rotate(2).unwrap();
    wal.append(2, &[batch(2)]).unwrap();
    let handle = wal.handle();
    handle.sync_through(1).unwrap();
    assert_eq!(*store.syncs.lock(), [&name(1), "dir"]);
    handle.sync_through(2).unwrap();
    assert_eq!(store.syncs.lock().last(), Some(&name(2)));
    drop(wal);
    assert_eq!(seqs(&store), [1, 2]);
}

#[test]
fn obsolete_segments_go_oldest_first_and_the_retention_stays() {
    let store = TestStore::new();
    let tier = store.tier();
    let none = Recovered::default();
    let create = |retention| {
        let tier = Arc::clone(&tier);
        Wal::create(tier, DB, 1, &none, retention, Points::default()).unwrap()
    };
    let mut wal = create(0);
    for seq in 1..=4 {
        put(&mut wal, [seq]);
        wal.rotate(seq + 1).unwrap();
    }
    assert_eq!(tier.file_bytes(), wal.total_bytes());
    wal.sync().unwrap();
    put(&mut wal, [5]);
    store.syncs.lock().clear();
    let len = store.get(&name(1)).unwrap().len() as u64;
    assert_eq!(wal.remove_obsolete(2).unwrap(), 2 * len);
    assert_eq!(store.names(), [name(3), name(4), name(5)]);
    assert_eq!(tier.file_bytes(), wal.total_bytes());
    assert_eq!(
        *store.syncs.lock(),
        ["dir"],
        "the first removal is durable before the second"
    );
    assert_eq!(replay(&store.copy(), Strict, 2).unwrap().0, [3, 4, 5]);
    assert!(replay(&store.copy(), Strict, 0).is_err(), "1 and 2 missing");

    let store = TestStore::new();
    let mut wal = Wal::create(store.tier(), DB, 1, &none, 2 * len, Points::default()).unwrap();
    for seq in 1..=4 {
        put(&mut wal, [seq]);
        wal.rotate(seq + 1).unwrap();
    }
    assert_eq!(wal.remove_obsolete(4).unwrap(), 2 * len);
    assert_eq!(store.names(), [name(3), name(4), name(5)]);
}

/// The retention was counted only in bytes. It kept as many short segments as fit into them, each
/// of which is a file.
#[test]
fn the_retention_keeps_so_many_segments_at_most() {
    let store = TestStore::new();
    let none = Recovered::default();
    let retention = 64 << 20;
    let mut wal = Wal::create(store.tier(), DB, 1, &none, retention, Points::default()).unwrap();
    for seq in 1..=300 {
        put(&mut wal, [seq]);
        wal.rotate(seq + 1).unwrap();
    }
    wal.sync().unwrap();
    assert_eq!(wal.handle().surplus_through(retention), Some(300 - 256));
    wal.remove_obsolete(300).unwrap();
    // One more: the segment that is being written.
    assert_eq!(store.names().len(), 256 + 1);
    assert_eq!(store.names().last(), Some(&name(301)));
    assert_eq!(wal.handle().surplus_through(retention), None);
}

#[test]
fn readers_see_what_was_handed_over_from_their_number_on() {
    let store = TestStore::new();
    let mut wal = fresh(&store);
    wal.append(1, &[batch(1), batch(2)]).unwrap();
    wal.rotate(2).unwrap();
    put(&mut wal, [3]);
    wal.append(4, &[batch(4)]).unwrap();
    let handle = wal.handle();
    let read = |since| -> Vec<SeqNo> {
        let reader = handle.read_since(since).unwrap();
        let read: Result<Vec<_>> = reader.collect();
        let read = read.unwrap();
        for (seq, bytes) in &read {
            let op = Ops::new(bytes.clone()).unwrap().next().unwrap().unwrap();
            assert_eq!(op.key, format!("key{seq}"));
        }
        read.iter().map(|(seq, _)| *seq).collect()
    };
    assert_eq!(read(0), [1, 2, 3]);
    assert_eq!(read(2), [2, 3]);
    assert_eq!(read(4), [] as [SeqNo; 0]);
    let mut late = handle.read_since(1).unwrap();
    wal.remove_obsolete(2).unwrap();
    let gone = |error| matches!(error, Error::LogGone { oldest: 3, .. });
    assert!(gone(late.next().unwrap().unwrap_err()));
    assert!(late.next().is_none());
    assert!(gone(handle.read_since(2).unwrap_err()));
}

/// For a reader that asked for the newest writes, their whole segment was read and verified.
#[test]
fn readers_begin_shortly_before_what_they_are_asked_for() {
    let store = TestStore::new();
    let tier = store.tier();
    let none = Recovered::default();
    let mut wal = Wal::create(Arc::clone(&tier), DB, 1, &none, 0, Points::default()).unwrap();
    let large = |seq: SeqNo| {
        let mut batch = Batch::new();
        batch.put(format!("key{seq}"), vec![7u8; 100 << 10]);
        batch.into_bytes()
    };
    for seq in 1..=9 {
        wal.append(seq, &[large(seq)]).unwrap();
    }
    // A group is withdrawn after its place was remembered: the next group has the same place.
    store.fail(Failing {
        append: true,
        ..Failing::default()
    });
    assert!(wal.append(10, &[large(10)]).is_err());
    store.fail(Failing::default());
    put(&mut wal, [10]);
    for seq in 11..=15 {
        wal.append(seq, &[large(seq)]).unwrap();
    }
    wal.rotate(2).unwrap();
    put(&mut wal, [16]);
    let handle = wal.handle();
    for since in 1..=16 {
        let batches = handle.read_since(since).unwrap();
        let read: Vec<SeqNo> = batches.map(|batch| batch.unwrap().0).collect();
        assert_eq!(read, Vec::from_iter(since..=16));
    }
    let bytes_read = || tier.io(Purpose::Maintenance).read_bytes;
    let before = bytes_read();
    assert_eq!(handle.read_since(15).unwrap().count(), 2);
    let read = bytes_read() - before;
    assert!(read < 300 << 10, "{read} bytes");
}

#[test]
fn a_segment_that_takes_no_more_is_open_until_it_is_durable() {
    let store = TestStore::new();
    let mut wal = fresh(&store);
    put(&mut wal, 1..=3);
    wal.rotate(2).unwrap();
    assert_eq!(wal.open_closed(), 1, "it is not synced yet");
    put(&mut wal, 4..=4);
    wal.sync().unwrap();
    assert_eq!(wal.open_closed(), 0);
    wal.rotate(3).unwrap();
    assert_eq!(wal.open_closed(), 0, "synced before");
}
