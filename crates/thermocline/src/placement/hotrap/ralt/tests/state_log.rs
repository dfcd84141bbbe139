//! The state as a log of edits: what a crash leaves of it, and how long it gets.

use xxhash_rust::xxh3::xxh3_64;

use super::reopening::{reopen, reopen_expecting};
use super::*;
use crate::error::Error;
use crate::log_format::{FILE_HEADER_LEN, Found, Records};
use crate::placement::hotrap::ralt::state::{Edit, State};
use crate::placement::hotrap::ralt::state_file::StateFile;
use crate::placement::hotrap::ralt::state_log::{NAME, StateLog};
use crate::storage::{CrashStyle, Fault, Faulty, Operation};
use crate::wal::test_store::{Failing, TestStore};

fn on(medium: impl Medium + 'static) -> Fixture {
    Fixture::on(Arc::new(medium), CAPACITY, HotRapOptions::default())
}

fn state(medium: &dyn Medium) -> Vec<u8> {
    let log = medium.log_store(&dir(), false).unwrap();
    log.read(NAME).unwrap()
}

/// Where each record of a state ends.
fn ends(bytes: &[u8]) -> Vec<usize> {
    let number = u64::from_le_bytes(bytes[16..24].try_into().unwrap());
    let mut records = Records::new(number, bytes);
    let mut ends = Vec::new();
    while let Found::Record { payload, .. } = records.next() {
        ends.push(payload.end);
    }
    ends
}

/// Flushes `keys` accesses, each of a key of its own.
fn flush(fixture: &Fixture, first: u64, keys: u64) {
    (first..first + keys).for_each(|number| {
        fixture.ralt.log(0, &key(number), 10, 1);
    });
    fixture.flush();
}

/// The records of the state were valid where those of a manifest or a segment with the same number
/// are. A manifest that was overwritten by it was taken for one of a later release.
#[test]
fn no_other_file_takes_its_records_for_its_own() {
    let bytes = state(&of_edits().0);
    for number in 0..10_000 {
        let found = Records::new(number, &bytes).next();
        assert!(!matches!(found, Found::Record { .. }), "file {number}");
    }
}

/// A state of several edits, the last of them a flush, and how many records each prefix of it has.
fn of_edits() -> (Memory, Vec<u64>) {
    let memory = Memory::new();
    let fixture = on(memory.clone());
    // A new store has a state without tables.
    let mut records = vec![0];
    let mut first = 0;
    while records.len() < 4 {
        flush(&fixture, first, 20);
        first += 20;
        records.push(first);
        assert_eq!(ends(&state(&memory)).len(), records.len());
    }
    assert_eq!(fixture.ralt.trouble(), None);
    (memory, records)
}

fn with_state(memory: &Memory, bytes: &[u8]) -> Memory {
    let (copy, from) = (Memory::new(), memory.log_store(&dir(), false).unwrap());
    let to = copy.log_store(&dir(), true).unwrap();
    for file in from.list().unwrap() {
        let content = match &file.name[..] {
            NAME => bytes.to_vec(),
            name => from.read(name).unwrap(),
        };
        to.create(&file.name).unwrap().append(&content).unwrap();
    }
    copy
}

/// An edit that a crash has torn was never in force, and all before it holds.
#[test]
fn every_truncation_gives_the_edits_before_it() {
    let (memory, records) = of_edits();
    let bytes = state(&memory);
    let ends = ends(&bytes);
    assert_eq!(ends.last(), Some(&bytes.len()));
    for len in (0..=bytes.len()).rev().step_by(7).chain(ends.clone()) {
        let after = reopen_expecting(&with_state(&memory, &bytes[..len]));
        let whole = ends.iter().take_while(|end| **end <= len).count();
        let Some(last) = whole.checked_sub(1) else {
            assert!(after.ralt.trouble().is_some(), "{len}");
            continue;
        };
        assert_eq!(after.ralt.trouble(), None, "{len}");
        assert_eq!(after.ralt.metrics().records, records[last], "{len}");
        assert_eq!(after.fast.file_bytes(), after.bytes_on_disk(), "{len}");
        // The torn end is left behind: later edits would follow damage.
        flush(&after, 5000, 20);
        assert_eq!(after.ralt.metrics().records, records[last] + 20);
        let again = after.ralt.metrics().records;
        let left = with_state(&memory_of(&after), &state(&*after.medium));
        assert_eq!(reopen(&left).ralt.metrics().records, again, "{len}");
    }
}

/// A copy of what a fixture's medium holds.
fn memory_of(fixture: &Fixture) -> Memory {
    let copy = Memory::new();
    let from = fixture.medium.log_store(&dir(), false).unwrap();
    let to = copy.log_store(&dir(), true).unwrap();
    for file in from.list().unwrap() {
        let content = from.read(&file.name).unwrap();
        to.create(&file.name).unwrap().append(&content).unwrap();
    }
    copy
}

#[test]
fn a_flipped_bit_before_the_last_edit_means_beginning_anew() {
    let (memory, records) = of_edits();
    let bytes = state(&memory);
    let ends = ends(&bytes);
    let last = ends[ends.len() - 2];
    for at in (0..bytes.len()).step_by(11) {
        let mut bad = bytes.clone();
        bad[at] ^= 0x10;
        let after = reopen_expecting(&with_state(&memory, &bad));
        if at < last {
            assert!(after.ralt.trouble().is_some(), "{at}");
            assert_eq!(after.ralt.metrics().records, 0, "{at}");
        } else {
            let before = records[records.len() - 2];
            assert_eq!(after.ralt.metrics().records, before, "{at}");
        }
    }
}

#[test]
fn a_state_of_a_later_version_is_said_to_be_one() {
    let (memory, _) = of_edits();
    let mut bytes = state(&memory);
    bytes[8] += 1;
    let sum = xxh3_64(&bytes[..FILE_HEADER_LEN - 8]);
    bytes[FILE_HEADER_LEN - 8..FILE_HEADER_LEN].copy_from_slice(&sum.to_le_bytes());
    let after = reopen_expecting(&with_state(&memory, &bytes));
    let trouble = after.ralt.trouble().unwrap();
    assert!(trouble.contains("format version 2"), "{trouble}");
}

/// All of the state was written for each flush and each slice of a merge: with a hundred times the
/// tables, a hundred times the bytes.
#[test]
fn what_a_flush_writes_of_the_state_does_not_grow_with_the_tables() {
    let written = |fixture: &Fixture| {
        let files = fixture.ralt.shared.files.as_ref().unwrap();
        files.tier.io(crate::metrics::Purpose::Manifest).write_bytes
    };
    let of = |flushes: u64| {
        let fixture = on(Memory::new());
        (0..flushes).for_each(|number| flush(&fixture, 10 * number, 10));
        assert_eq!(
            fixture.ralt.shared.version.load().tables().count() as u64,
            flushes
        );
        let len = state(&*fixture.medium).len() as u64;
        assert_eq!(fixture.fast.file_bytes(), fixture.bytes_on_disk());
        (written(&fixture), len)
    };
    let ((few, _), (many, len)) = (of(20), of(200));
    // Ten times as much, but for the first few; a hundred times if each flush wrote all of it.
    assert!(many < 30 * few, "{many}, {few} for a tenth of the flushes");
    // Edits are dropped once they are longer than what the file began with.
    let (_, short) = of(1);
    assert!(len < 3 * 200 * short, "{len}");
}

/// Half of an edit, followed by later ones, would be damage.
#[test]
fn an_edit_that_found_no_space_is_taken_back_and_may_be_repeated() {
    let disk = Faulty::new(1);
    let fixture = on(disk.clone());
    flush(&fixture, 0, 20);
    flush(&fixture, 20, 20);
    let before = disk.read_raw(&dir(), NAME).unwrap();
    disk.fail_where(
        |operation, name| operation == Operation::Append && name.starts_with(NAME),
        Fault::NoSpace,
    );
    (40..60).for_each(|number| {
        fixture.ralt.log(0, &key(number), 10, 1);
    });
    let shared = &fixture.ralt.shared;
    let files = shared.files.as_ref().unwrap();
    let flush_all = || shared.flush(files, &mut shared.worker.lock(), shared.buffers.take_all());
    assert!(flush_all().unwrap_err().is_no_space());
    assert_eq!(disk.read_raw(&dir(), NAME).unwrap(), before);
    disk.heal();
    flush_all().unwrap();
    assert_eq!(fixture.hot(0, 0..60).len(), 60);
    assert!(disk.read_raw(&dir(), NAME).unwrap().starts_with(&before));
    drop(fixture);
    let after = on(disk.crash(CrashStyle::LoseAll));
    assert_eq!(after.hot(0, 0..60).len(), 60);
}

/// The device was full when half of an edit was written. The half stayed, and later edits behind it
/// would have been damage.
#[test]
fn half_an_edit_is_taken_back_or_no_other_follows() {
    let fixture = Fixture::new();
    let files = fixture.ralt.shared.files.as_ref().unwrap();
    let (model, edit) = (fixture.ralt.shared.model, Edit::default());
    for truncate in [false, true] {
        let store = TestStore::new();
        let mut log = StateLog::write(files, &*store, &model, State::default()).unwrap();
        let whole = store.get(NAME).unwrap();
        store.fail(Failing {
            append: true,
            truncate,
            ..Failing::default()
        });
        let failed = log.append(files, &model, &edit).unwrap_err();
        assert_eq!(failed.may_pass(), !truncate, "{failed:?}");
        store.fail(Failing::default());
        if !truncate {
            assert_eq!(store.get(NAME).unwrap(), whole);
            log.append(files, &model, &edit).unwrap();
            let bytes = store.get(NAME).unwrap();
            assert_eq!(ends(&bytes).len(), 2);
            assert_eq!(log.len(), bytes.len() as u64);
            assert!(StateFile::read(&bytes, 0).is_ok());
        }
    }
}

/// It is not known whether such an edit is in force (I9).
#[test]
fn an_edit_that_could_not_be_synced_is_the_last() {
    let disk = Faulty::new(1);
    let fixture = on(disk.clone());
    flush(&fixture, 0, 20);
    flush(&fixture, 20, 20);
    disk.fail_where(
        |operation, name| operation == Operation::Sync && name.starts_with(NAME),
        Fault::SyncFails,
    );
    (40..60).for_each(|number| {
        fixture.ralt.log(0, &key(number), 10, 1);
    });
    let shared = &fixture.ralt.shared;
    let files = shared.files.as_ref().unwrap();
    let failed = shared.flush_all(files, &mut shared.worker.lock());
    assert!(matches!(failed, Err(Error::Poisoned { .. })), "{failed:?}");
    assert!(fixture.ralt.metrics().has_stopped);
    let after = on(disk.crash(CrashStyle::LoseAll));
    assert_eq!(after.ralt.trouble(), None);
    assert_eq!(after.hot(0, 0..60).len(), 40);
}

/// A closed state is whole: damage shows wherever it is.
#[test]
fn closing_leaves_a_state_without_edits() {
    let (memory, _) = of_edits();
    let fixture = reopen(&memory);
    flush(&fixture, 500, 20);
    assert_eq!(ends(&state(&memory)).len(), 1, "the end may be torn");
    flush(&fixture, 600, 20);
    assert_eq!(ends(&state(&memory)).len(), 2);
    fixture.ralt.close();
    let bytes = state(&memory);
    assert_eq!(ends(&bytes), [bytes.len()]);
    assert!(bytes.len() > FILE_HEADER_LEN);
}
