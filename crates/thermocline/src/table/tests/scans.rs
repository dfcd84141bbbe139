//! How a scan reads: few large reads, the next one early; and what happens when a read fails.

use super::*;
use crate::cache::{BlockCache, Kept};

/// As in `read/range.rs`.
const USERS: ScanOptions = ScanOptions {
    readahead: 256 << 10,
    ..SCAN
};

/// A block cache of `capacity` bytes above `flash`.
fn above(flash: &Arc<Kept>, capacity: u64) -> Arc<BlockCache> {
    Arc::new(BlockCache::new(capacity).above(Some(Box::new(Arc::clone(flash)))))
}

/// The rows that a scan returns before its error.
fn until_the_error(iter: &mut TableIter) -> (Vec<Row>, Error) {
    let mut rows = Vec::new();
    let mut moved = iter.seek_to_first();
    loop {
        if let Err(error) = moved {
            return (rows, error);
        }
        rows.push(row(iter).expect("an error comes before the end"));
        moved = iter.next();
    }
}

#[test]
fn compactions_read_in_few_large_reads_and_leave_the_cache_alone() {
    let rows = simple(20_000, 100);
    let fixture = Fixture::new(options(4096), 8 << 20, 1 << 20);
    let table = fixture.open(&fixture.write(1, &rows)).unwrap();
    assert_eq!(forward(&mut table.iter(COMPACTION)).unwrap(), rows);
    let expected = table.properties().data_bytes.div_ceil(AHEAD as u64);
    assert_eq!(fixture.purpose_ops(Purpose::Compaction), expected);
    assert_eq!(fixture.cache.used_bytes(), 0);
}

/// To find out how far a read may go, a compaction looked into the indexes of the partitions ahead,
/// and kept none of them. It read each index that is not pinned three times, twice of these while
/// its next read waited to begin: three times as many reads of indexes as of data.
#[test]
fn compactions_read_each_index_once_where_it_is_not_pinned() {
    let rows = simple(20_000, 100);
    let fixture = Fixture::new(options(4096), 0, 0);
    let table = fixture.open(&fixture.write(1, &rows)).unwrap();
    assert!(!table.is_pinned());
    let partitions = table.top.len() as u64;
    assert!(partitions > 3);
    assert_eq!(forward(&mut table.iter(COMPACTION)).unwrap(), rows);
    // Reads are of whole blocks, so there may be one more of them.
    let data = table.properties().data_bytes.div_ceil(AHEAD as u64) + 1;
    let reads = fixture.purpose_ops(Purpose::Compaction);
    assert!(
        reads <= data + partitions,
        "{reads} reads of {partitions} partitions"
    );
}

/// The helper threads belong to the process. Other tests may keep all of them busy for a moment,
/// and a scan then reads only when it comes to the window.
#[test]
fn a_scan_to_the_end_has_its_next_read_begun_while_it_goes_through_the_last() {
    let rows = simple(20_000, 100);
    let fixture = Fixture::new(options(4096), 0, 1 << 20);
    let table = fixture.open(&fixture.write(1, &rows)).unwrap();
    let (reads, read) = std::sync::mpsc::channel();
    fixture.store.on_read(move |offset, _| {
        reads.send(offset).unwrap();
        Ok(())
    });
    // A scan that may end anywhere reads nothing that nobody has asked for.
    let mut iter = table.iter(ScanOptions {
        to_end: false,
        ..COMPACTION
    });
    iter.seek_to_first().unwrap();
    assert_eq!(read.try_iter().collect::<Vec<_>>(), [0]);

    // These scans go to the end, but never come to their second window here.
    let is_begun = (0..100).any(|_| {
        let mut iter = table.iter(COMPACTION);
        iter.seek_to_first().unwrap();
        let next = || read.recv_timeout(std::time::Duration::from_millis(100));
        std::iter::from_fn(|| next().ok()).any(|offset| offset > 0 && offset <= AHEAD as u64)
    });
    assert!(
        is_begun,
        "the second window was never read before it was needed"
    );
}

/// A read that is begun before the scan starts is the scan's first, not one more.
#[test]
fn a_scan_that_was_begun_has_its_first_read_under_way() {
    let rows = simple(20_000, 100);
    let fixture = Fixture::new(options(4096), 0, 1 << 20);
    let table = fixture.open(&fixture.write(1, &rows)).unwrap();
    let (reads, read) = std::sync::mpsc::channel();
    fixture.store.on_read(move |offset, _| {
        // The end of the scan may come before that of this closure.
        let _ = reads.send(offset);
        Ok(())
    });
    // As above, the helpers may be busy.
    let is_begun = (0..100).any(|_| {
        // Held meanwhile: what is dropped before a helper comes to it is never read.
        let mut iter = table.iter(COMPACTION);
        iter.begin().unwrap();
        read.recv_timeout(std::time::Duration::from_millis(100)) == Ok(0)
    });
    assert!(
        is_begun,
        "the first window was never read before it was needed"
    );
    let before = fixture.purpose_ops(Purpose::Compaction);
    let mut iter = table.iter(COMPACTION);
    iter.begin().unwrap();
    assert!(!iter.has_read_all());
    assert_eq!(forward(&mut iter).unwrap(), rows);
    assert!(iter.has_read_all());
    let expected = table.properties().data_bytes.div_ceil(AHEAD as u64);
    assert_eq!(fixture.purpose_ops(Purpose::Compaction) - before, expected);
    // Whoever goes elsewhere first does without it.
    let mut iter = table.iter(COMPACTION);
    iter.begin().unwrap();
    let (key, seq, ..) = &rows[15_000];
    iter.seek(InternalKey::new(key, *seq, Kind::Put)).unwrap();
    assert_eq!(row(&iter), rows.get(15_000).cloned());
}

/// Before a value that is too large to be read ahead, nothing is under way either: the first read
/// of the next table was begun there, and its buffer held beside the two that a scan may have.
#[test]
fn a_scan_has_read_all_only_once_nothing_is_left_to_read() {
    let mut rows = simple(20_000, 100);
    for large in [0, 10_000, 15_000] {
        rows[large].3 = vec![7; 2 * AHEAD];
    }
    let fixture = Fixture::new(options(4096), 0, 1 << 20);
    let table = fixture.open(&fixture.write(1, &rows)).unwrap();
    let mut iter = table.iter(COMPACTION);
    iter.seek_to_first().unwrap();
    while !iter.has_read_all() {
        iter.next().unwrap();
        assert!(iter.valid(), "the scan came to its end and did not know");
    }
    let reads = fixture.purpose_ops(Purpose::Compaction);
    while iter.valid() {
        iter.next().unwrap();
    }
    assert_eq!(fixture.purpose_ops(Purpose::Compaction), reads);
}

#[test]
fn an_error_of_a_read_begun_early_comes_where_its_records_would() {
    let rows = simple(20_000, 100);
    let fixture = Fixture::new(options(4096), 0, 1 << 20);
    let table = fixture.open(&fixture.write(1, &rows)).unwrap();
    fixture.store.on_read(|offset, _| match offset {
        0 => Ok(()),
        _ => Err(Error::io("read", "1.sst", std::io::Error::other("planted"))),
    });
    let mut iter = table.iter(COMPACTION);
    iter.seek_to_first().unwrap();
    let mut seen = 0;
    let error = loop {
        assert_eq!(row(&iter), rows.get(seen).cloned());
        seen += 1;
        if let Err(error) = iter.next() {
            break error;
        }
    };
    assert!(error.to_string().contains("planted"), "{error}");
    // All records of the first window: each has its 100 bytes and at most 100 more.
    assert!((AHEAD / 200..AHEAD / 100).contains(&seen), "{seen}");
}

#[test]
fn a_read_that_panics_in_a_helper_is_done_again_by_the_scan() {
    let rows = simple(20_000, 100);
    let fixture = Fixture::new(options(4096), 0, 1 << 20);
    let table = fixture.open(&fixture.write(1, &rows)).unwrap();
    fixture.store.on_read(|_, _| {
        let thread = std::thread::current();
        assert!(
            !thread
                .name()
                .unwrap_or_default()
                .starts_with("thermocline-io"),
            "planted"
        );
        Ok(())
    });
    assert_eq!(forward(&mut table.iter(COMPACTION)).unwrap(), rows);
}

#[test]
fn a_users_scan_reads_ahead_more_and_more() {
    let rows = simple(20_000, 100);
    let fixture = Fixture::new(options(4096), 8 << 20, 1 << 20);
    let table = fixture.open(&fixture.write(1, &rows)).unwrap();
    let mut iter = table.iter(USERS);
    iter.seek(InternalKey::seek_to(&rows[100].0, MAX_SEQ))
        .unwrap();
    let bytes = fixture.tier.io(Purpose::UserRead).read_bytes;
    assert!(
        bytes < 5000,
        "a short scan costs a block, not {bytes} bytes"
    );
    assert_eq!(forward(&mut iter).unwrap(), rows);
    let blocks = table.verify().unwrap().blocks;
    assert!(u64::from(iter.trace().device_reads[0]) < blocks / 10);
}

/// A scan that was to leave the block cache alone put into it all that it found in the flash cache
/// below. With a data set larger than memory, that was nearly all that it read.
#[test]
fn a_scan_that_leaves_the_cache_alone_brings_nothing_up_from_flash() {
    let rows = simple(5_000, 100);
    let kept = Arc::new(Kept::default());
    // Nothing is pinned, so that indexes are blocks of the cache as well.
    let mut fixture = Fixture::new(options(1024), 0, 0);
    fixture.cache = above(&kept, 4 << 20);
    let meta = fixture.write(1, &rows);
    let table = fixture.open(&meta).unwrap();
    assert_eq!(forward(&mut table.iter(USERS)).unwrap(), rows);

    // As if memory had given up all of them.
    fixture.cache = above(&kept, 4 << 20);
    let table = fixture.open(&meta).unwrap();
    let before = fixture.purpose_ops(Purpose::UserRead);
    let how = ScanOptions {
        fill_cache: false,
        ..USERS
    };
    assert_eq!(forward(&mut table.iter(how)).unwrap(), rows);
    assert_eq!(backward(&mut table.iter(how)).unwrap(), rows);
    assert_eq!(fixture.cache.used_bytes(), 0);
    assert_eq!(forward(&mut table.iter(USERS)).unwrap(), rows);
    assert!(fixture.cache.used_bytes() > 5_000 * 100);
    assert_eq!(
        fixture.purpose_ops(Purpose::UserRead),
        before,
        "flash has them"
    );
}

/// A page of a scan leaves its last block in the cache, and the next page begins there. That page
/// then read the rest block by block: sixteen times as many reads of a slow disk.
#[test]
fn a_scan_that_begins_in_a_cached_block_reads_ahead_all_the_same() {
    let rows = simple(20_000, 100);
    let fixture = Fixture::new(options(4096), 8 << 20, 1 << 20);
    let table = fixture.open(&fixture.write(1, &rows)).unwrap();
    assert!(get(&table, &rows[0].0, MAX_SEQ).unwrap().is_some());
    let mut iter = table.iter(USERS);
    assert_eq!(forward(&mut iter).unwrap(), rows);
    let blocks = table.verify().unwrap().blocks;
    assert!(u64::from(iter.trace().device_reads[0]) < blocks / 10);
}

/// The index of the next partition is read to see how far a read may go. Its error was reported as
/// one of the scan, which failed up to 256 KiB before the first lost record.
#[test]
fn a_damaged_index_costs_a_users_scan_no_record_before_it() {
    let rows = simple(20_000, 100);
    let fixture = Fixture::new(options(512), 0, 0);
    let meta = fixture.write(1, &rows);
    let table = fixture.open(&meta).unwrap();
    let partition = |row: &Row| {
        let key = InternalKey::new(&row.0, row.1, row.2);
        table.top.find(key.user_key, key.trailer())
    };
    let intact = rows.partition_point(|row| partition(row) < Some(2));
    let index = table.top.get(2).unwrap().index.offset;
    let mut bytes = fixture.store.content(&meta.file_name());
    bytes[index as usize + 3] ^= 1;
    fixture.store.put(&meta.file_name(), bytes);

    let damaged = fixture.open(&meta).unwrap();
    let (seen, error) = until_the_error(&mut damaged.iter(USERS));
    assert!(error.is_corruption(), "{error}");
    assert_eq!(seen.len(), intact);
    assert_eq!(seen, rows[..intact]);
}

/// Many blocks are read at once. If a sector of one of them could not be read, the first block's
/// read failed: a scan failed up to 256 KiB before the first lost record.
#[test]
fn an_unreadable_sector_costs_a_users_scan_no_record_before_it() {
    let rows = simple(20_000, 100);
    let fixture = Fixture::new(options(4096), 0, u64::MAX);
    let table = fixture.open(&fixture.write(1, &rows)).unwrap();
    let block = |row: &Row| {
        let found = table.locate(&HashedKey::new(&row.0), MAX_SEQ, &mut ReadTrace::default());
        let Located::Read(handle) = found.unwrap() else {
            panic!("nothing is cached");
        };
        handle.offset
    };
    let bad = block(&rows[10_000]);
    let intact = rows.partition_point(|row| block(row) < bad);
    fixture.store.fail_at(bad);
    let (seen, error) = until_the_error(&mut table.iter(USERS));
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert_eq!(seen.len(), intact);
    assert_eq!(seen, rows[..intact]);
}
