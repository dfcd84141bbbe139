use super::*;
use crate::wal::FoundLog;
use crate::wal::test_store::{Failing, TestStore};

fn edit(seq: u64) -> VersionEdit {
    VersionEdit {
        last_seq: Some(seq),
        flushed_through: vec![(0, seq)],
        ..VersionEdit::default()
    }
}

fn create(store: &Arc<TestStore>, number: FileId, snapshot: &[VersionEdit]) -> Manifest {
    Manifest::create(store.tier(), 5, number, snapshot, Points::default()).unwrap()
}

fn three_edits() -> Arc<TestStore> {
    let store = TestStore::new();
    let mut manifest = create(&store, 1, &[edit(1)]);
    manifest.append(&edit(2)).unwrap();
    manifest.append(&edit(3)).unwrap();
    store
}

fn recover(store: &Arc<TestStore>) -> Result<Option<RecoveredManifest>> {
    Manifest::recover(&store.tier())
}

const NAME: &str = "MANIFEST-00000001";

/// Length of each of [`three_edits`], and of the count that the first one has in addition.
fn lengths(bytes: &[u8]) -> (usize, usize) {
    let count = VersionEdit {
        snapshot: Some(1),
        ..VersionEdit::default()
    };
    let (mut with, mut without) = (Vec::new(), Vec::new());
    count.encode(&mut with);
    VersionEdit::default().encode(&mut without);
    let count = with.len() - without.len();
    ((bytes.len() - 72 - count) / 3, count)
}

#[test]
fn edits_come_back_and_a_rollover_replaces_the_file() {
    let store = three_edits();
    let found = recover(&store).unwrap().unwrap();
    assert_eq!(found.edits, [edit(1), edit(2), edit(3)]);
    assert_eq!((found.database, found.number, found.torn), (5, 1, false));
    assert_eq!(found.len, store.get(NAME).unwrap().len() as u64);
    create(&store, 4, &[edit(3)]);
    assert_eq!(recover(&store).unwrap().unwrap().edits, [edit(3)]);
    assert_eq!(store.names(), ["CURRENT", "MANIFEST-00000004"]);
}

#[test]
fn every_truncation_gives_a_prefix_or_an_error() {
    let store = three_edits();
    let bytes = store.get(NAME).unwrap();
    let whole = [edit(1), edit(2), edit(3)];
    let (record, count) = lengths(&bytes);
    for len in 0..bytes.len() {
        store.put(NAME, bytes[..len].to_vec());
        match recover(&store) {
            Ok(found) => assert!(whole.starts_with(&found.unwrap().edits)),
            Err(error) => {
                let in_force = len < 72 + record + count;
                assert!(error.is_corruption() && in_force, "{len}: {error}");
            }
        }
    }
}

#[test]
fn every_flipped_byte_before_the_last_edit_is_an_error() {
    let store = three_edits();
    let bytes = store.get(NAME).unwrap();
    let (record, _) = lengths(&bytes);
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 0x04;
        store.put(NAME, bad);
        if at < bytes.len() - record {
            assert!(recover(&store).unwrap_err().is_corruption(), "byte {at}");
        } else {
            let found = recover(&store).unwrap().unwrap();
            assert_eq!((found.edits.len(), found.torn), (2, true));
        }
    }
    store.put(NAME, bytes);
    let current = store.get(CURRENT).unwrap();
    for at in 0..current.len() {
        let mut bad = current.clone();
        bad[at] ^= 0x04;
        store.put(CURRENT, bad);
        assert!(recover(&store).unwrap_err().is_corruption(), "CURRENT {at}");
    }
}

#[test]
fn nothing_there_is_told_from_a_lost_current() {
    let store = TestStore::new();
    assert_eq!(recover(&store).unwrap(), None);
    store.put(NAME, Vec::new());
    assert_eq!(recover(&store).unwrap(), None, "creation was cut short");
    for file in ["00000002.wal", "00000002.sst"] {
        let lost = store.copy();
        lost.put(file, Vec::new());
        assert!(recover(&lost).unwrap_err().is_corruption(), "{file}");
    }
    let store = three_edits();
    LogStore::remove(&*store, NAME).unwrap();
    assert!(recover(&store).unwrap_err().is_corruption());
}

#[test]
fn a_write_that_failed_is_taken_back_and_may_be_repeated() {
    let store = TestStore::new();
    let mut manifest = create(&store, 1, &[]);
    store.fail(Failing {
        append: true,
        ..Failing::default()
    });
    assert!(manifest.append(&edit(1)).unwrap_err().is_no_space());
    store.fail(Failing::default());
    manifest.append(&edit(2)).unwrap();
    assert_eq!(recover(&store).unwrap().unwrap().edits, [edit(2)]);
    assert_eq!(manifest.len(), store.get(NAME).unwrap().len() as u64);
}

/// If a manifest was written but not put in force, for lack of space perhaps, it stayed, and the
/// next attempt left another one: whole manifests that nobody counted (I8).
#[test]
fn a_manifest_that_does_not_come_into_force_is_removed() {
    let store = three_edits();
    let points = Points::default();
    points.set("manifest.current_written", || Err(Error::Closed));
    let refused = Manifest::create(store.tier(), 5, 4, &[edit(3)], points);
    assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
    assert_eq!(store.names(), ["CURRENT", "CURRENT.tmp", NAME]);
    let found = recover(&store).unwrap().unwrap();
    assert_eq!(found.edits, [edit(1), edit(2), edit(3)]);
}

#[test]
fn failures_of_sync_and_of_truncation_are_final() {
    let sync = Failing {
        sync: true,
        ..Failing::default()
    };
    let truncate = Failing {
        append: true,
        truncate: true,
        ..Failing::default()
    };
    for failing in [sync, truncate] {
        let store = TestStore::new();
        let mut manifest = create(&store, 1, &[]);
        store.fail(failing);
        let poisoned = |result| matches!(result, Err(Error::Poisoned { .. }));
        assert!(poisoned(manifest.append(&edit(1))));
        store.fail(Failing::default());
        assert!(poisoned(manifest.append(&edit(1))));
    }
}

/// Where the state is long, a manifest was long from the beginning, and each flush and each
/// compaction wrote it anew.
#[test]
fn a_manifest_is_long_when_it_has_grown_to_twice_what_it_began_with() {
    let long = VersionEdit {
        found_log: Some(FoundLog {
            segments: (0..1 << 20).map(|number| (number, 1 << 20)).collect(),
            ..FoundLog::default()
        }),
        ..VersionEdit::default()
    };
    let store = TestStore::new();
    let mut manifest = create(&store, 1, &[]);
    assert!(!manifest.is_long());
    manifest.append(&long).unwrap();
    assert!(manifest.len() > ROLL_AT && manifest.is_long());

    let mut manifest = create(&store, 2, &[long.clone(), edit(1)]);
    assert!(manifest.len() > ROLL_AT && !manifest.is_long());
    manifest.append(&edit(2)).unwrap();
    assert!(!manifest.is_long());
    manifest.append(&long).unwrap();
    manifest.append(&long).unwrap();
    assert!(manifest.is_long());
}

#[test]
fn bytes_are_counted_while_the_manifest_is_in_force() {
    let store = TestStore::new();
    let tier = store.tier();
    let create = |number| {
        let tier = Arc::clone(&tier);
        Manifest::create(tier, 5, number, &[edit(1)], Points::default()).unwrap()
    };
    let mut old = create(1);
    old.append(&edit(2)).unwrap();
    assert_eq!(tier.file_bytes(), old.len());
    let new = create(2);
    drop(old);
    assert_eq!(tier.file_bytes(), new.len());
}
