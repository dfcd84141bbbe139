//! What open tables hold in memory, and what the budget for that counts.

use super::*;

/// Filters of two bytes a key are decoded into memory of their own, but the indexes beside them
/// kept the bytes that both had been read into. Such tables, all of RALT's among them, held their
/// filters twice and counted them once.
#[test]
fn nothing_keeps_the_bytes_of_filters_that_were_copied() {
    let rows = simple(10_000, 100);
    for (policy, borrows) in [(FilterPolicy::Fuse8, true), (FilterPolicy::Fuse16, false)] {
        let fixture = Fixture::new(options(512).filter(policy), 0, 0);
        let table = fixture.open(&fixture.write(1, &rows)).unwrap();
        let properties = table.properties();
        let start = properties.data_bytes;
        let len = properties.filter_bytes + properties.index_bytes;
        let region = table.file.read_bytes(Purpose::Open, start, len as usize);
        let (top, region) = (&table.top, region.unwrap());
        let partitions = top.decode_all(&region, start, table.meta.id, table.path());
        let partitions = partitions.unwrap();
        assert!(partitions.len() > 1);
        assert!(partitions.iter().all(|p| p.filter.is_some()));
        assert_eq!(region.is_unique(), !borrows, "{policy:?}");
    }
}

/// The top-level index was counted in no budget. It holds one key in full for each partition. Where
/// keys are long and share most of their bytes, a store's tables took as much memory as disk space,
/// and no metric said so.
#[test]
fn the_top_level_index_is_charged_whether_it_has_room_or_not() {
    let fixture = Fixture::new(options(4096), 0, 1 << 20);
    let rows: Vec<Row> = longest_keys(30).collect();
    let table = fixture.open(&fixture.write(1, &rows)).unwrap();
    assert!(fixture.pins.taken() >= 30 * MAX_KEY_LEN as u64);
    assert!(!table.is_pinned(), "what is left is below zero");
    let small = fixture.open(&fixture.write(2, &simple(5, 10))).unwrap();
    assert!(!small.is_pinned());
    drop((table, small));
    assert_eq!((fixture.pins.taken(), fixture.pins.refused()), (0, 0));
}

/// A table asked only once, when it was opened, whether its partitions may stay in memory. The
/// tables that a compaction writes are opened while its inputs still have their room, and a reader
/// may keep the inputs for long. Once they were gone, lookups went on reading filters and indexes
/// although half of the budget was free.
#[test]
fn a_table_that_found_no_room_has_some_once_others_are_gone() {
    let rows = simple(20_000, 100);
    let ample = Fixture::new(options(512), 0, u64::MAX);
    let alone = ample.open(&ample.write(1, &rows)).unwrap();
    let room = ample.pins.taken();
    drop(alone);

    let fixture = Fixture::new(options(512), 0, room);
    let first = fixture.open(&fixture.write(1, &rows)).unwrap();
    let second = fixture.open(&fixture.write(2, &rows)).unwrap();
    assert!(first.is_pinned() && !second.is_pinned());
    let absent = || {
        let mut trace = ReadTrace::default();
        for i in 0..100 {
            let key = format!("user{i:08}x");
            let found = second.get(&HashedKey::new(key.as_bytes()), MAX_SEQ, &mut trace);
            assert_eq!(found.unwrap(), None);
        }
        // Not counting the blocks of keys that the filter let pass.
        trace.cache_misses - trace.filter_false_positives
    };
    assert!(absent() >= 100, "each reads the filter");
    drop(first);
    assert_eq!(absent(), 0);
    assert_eq!((fixture.pins.taken(), fixture.pins.refused()), (room, 0));
}
