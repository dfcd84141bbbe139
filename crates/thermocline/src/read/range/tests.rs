//! What scans read and find, bounds and damage included.

use std::path::Path;

use super::*;
use crate::storage::Faulty;
use crate::table::{HashedKey, Located, ReadTrace};
use crate::testing::scene::{KEYS, SLOW, Scene, options};

#[test]
fn a_prefix_ends_before_its_successor() {
    assert_eq!(
        prefix_end(b"ab"),
        Bound::Excluded(Bytes::from_static(b"ac"))
    );
    assert_eq!(
        prefix_end(b"a\xff"),
        Bound::Excluded(Bytes::from_static(b"b"))
    );
    assert_eq!(prefix_end(b"\xff\xff"), Bound::Unbounded);
    assert_eq!(prefix_end(b""), Bound::Unbounded);
}

/// Before it returned a record, the cursor went on to the next one. So a damaged block cost the
/// last record of the block before it, too, for good: whoever went on behind the last key that had
/// come met the error again. And a scan for a given number of records that ended with a block read
/// the next block for nobody.
#[test]
fn a_damaged_block_costs_a_scan_no_record_before_it() {
    let disk = Faulty::new(1);
    let scene = Scene::on(Arc::new(disk.clone()), options());
    scene.put_all(&KEYS, "1");
    scene.db.flush().unwrap();
    let pinned = scene.tree().pin();
    let [table] = &pinned.version.levels[0].tables[..] else {
        panic!("a flush makes one table");
    };
    let block = |key: &str| {
        let mut trace = ReadTrace::default();
        let found =
            table
                .table()
                .unwrap()
                .locate(&HashedKey::new(key.as_bytes()), MAX_SEQ, &mut trace);
        let Located::Read(handle) = found.unwrap() else {
            panic!("nothing has been read");
        };
        handle.offset
    };
    let first = block(KEYS[0]);
    let intact = KEYS.iter().take_while(|key| block(key) == first).count();
    let second = block(KEYS[intact]);

    let reads = || scene.engine().tiers[0].io(Purpose::UserRead).read_ops;
    let before = reads();
    assert_eq!(scene.db.iter().take(intact).count(), intact);
    assert_eq!(reads(), before + 1);
    let name = table.meta.file_name();
    disk.corrupt(Path::new("/fast"), &name, second + 3, 1)
        .unwrap();
    let mut records = scene.db.iter();
    for key in &KEYS[..intact] {
        assert_eq!(records.next().unwrap().unwrap().0, *key);
    }
    assert!(records.next().unwrap().unwrap_err().is_corruption());
    assert!(records.next().is_none());
}

/// Below L0, a scan went on to the next table of a level at the end of the one before, even behind
/// the last key of its bounds. A scan whose bounds met no table looked into the next one. If that
/// table was damaged, both failed for what they had not asked for. If it was sound, it was read
/// from the slow disk for nobody.
#[test]
fn tables_outside_its_bounds_are_nothing_to_a_scan() {
    const TABLES: [[&str; 2]; 2] = [["a", "f"], ["m", "z"]];
    for (damaged, [first, last]) in [(1, TABLES[0]), (0, TABLES[1])] {
        let disk = Faulty::new(1);
        let scene = Scene::on(Arc::new(disk.clone()), options());
        for keys in TABLES {
            scene.put_all(&keys, "1");
            scene.to_slow();
        }
        let reads = || scene.engine().tiers[1].io(Purpose::UserRead).read_ops;
        let before = reads();
        assert!(scene.db.range("g".."h").next().is_none());
        assert!(scene.db.range("g".."h").next_back().is_none());
        assert_eq!(reads(), before);

        let pinned = scene.tree().pin();
        let tables = &pinned.version.levels[SLOW].tables;
        assert_eq!(tables.len(), TABLES.len());
        let (table, key) = (&tables[damaged], TABLES[damaged][0]);
        let mut trace = ReadTrace::default();
        let found =
            table
                .table()
                .unwrap()
                .locate(&HashedKey::new(key.as_bytes()), MAX_SEQ, &mut trace);
        let Located::Read(block) = found.unwrap() else {
            panic!("nothing has been read");
        };
        let name = table.meta.file_name();
        disk.corrupt(Path::new("/slow"), &name, block.offset + 3, 1)
            .unwrap();
        assert!(scene.db.range("g".."h").next().is_none());
        let keys = |range: Range| -> Vec<Bytes> { range.map(|record| record.unwrap().0).collect() };
        assert_eq!(keys(scene.db.range(first..=last)), [first, last]);
        let mut back = scene.db.range(first..=last);
        for key in [last, first] {
            assert_eq!(back.next_back().unwrap().unwrap().0, key);
        }
        assert!(back.next_back().is_none());
        assert!(scene.db.get(key).unwrap_err().is_corruption());
    }
}

#[test]
fn bounds_meet_neighbours_of_a_level() {
    use std::ops::Bound::{Excluded, Included, Unbounded};

    let scene = Scene::new();
    for keys in [["a", "c"], ["e", "g"], ["i", "k"]] {
        scene.put_all(&keys, "1");
        scene.to_slow();
    }
    let pinned = scene.tree().pin();
    let tables = &pinned.version.levels[SLOW].tables;
    let met = |lower: Bound<&'static str>, upper: Bound<&'static str>| {
        let owned = |bound: Bound<&'static str>| bound.map(Bytes::from);
        let bounds = Bounds {
            lower: owned(lower),
            upper: owned(upper),
        };
        bounds.met(tables)
    };
    assert_eq!(met(Unbounded, Unbounded), 0..3);
    assert_eq!(met(Included("c"), Included("i")), 0..3);
    assert_eq!(met(Excluded("c"), Excluded("i")), 1..2);
    assert_eq!(met(Included("f"), Unbounded), 1..3);
    assert_eq!(met(Unbounded, Excluded("a")), 0..0);
    assert!(met(Included("h"), Excluded("i")).is_empty(), "between two");
    assert!(met(Excluded("k"), Unbounded).is_empty());
    assert!(met(Included("j"), Included("b")).is_empty(), "inverted");
}
