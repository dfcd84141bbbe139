//! Tables as a whole: what was written is read back, and damage is detected.

mod large;
mod pins;
mod scans;
mod unreadable;

use proptest::prelude::*;

use super::testing::{DATABASE, Fixture, Row};
use super::{HashedKey, Located, ReadTrace, ScanOptions, Table, TableIter, TableMeta};
use crate::error::{Error, Result};
use crate::iter::InternalIterator;
use crate::key::{InternalKey, Kind, MAX_KEY_LEN, MAX_SEQ};
use crate::metrics::Purpose;
use crate::options::{Compression, FilterPolicy, TierOptions};
use crate::storage::operation::MAX_OPERATION;
use crate::sync::Arc;

const SCAN: ScanOptions = ScanOptions {
    purpose: Purpose::UserRead,
    readahead: 0,
    fill_cache: true,
    to_end: false,
};

/// Bytes that a compaction reads at once.
const AHEAD: usize = MAX_OPERATION as usize;

const COMPACTION: ScanOptions = ScanOptions {
    purpose: Purpose::Compaction,
    readahead: AHEAD,
    fill_cache: false,
    to_end: true,
};

fn options(block_size: usize) -> TierOptions {
    TierOptions::fast("t").block_size(block_size)
}

fn row(iter: &TableIter) -> Option<Row> {
    iter.valid().then(|| {
        let key = iter.key();
        assert_eq!(iter.value_bytes(), iter.value());
        (
            key.user_key.to_vec(),
            key.seq,
            key.kind,
            iter.value().to_vec(),
        )
    })
}

fn forward(iter: &mut TableIter) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    iter.seek_to_first()?;
    while let Some(row) = row(iter) {
        rows.push(row);
        iter.next()?;
    }
    Ok(rows)
}

fn backward(iter: &mut TableIter) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    iter.seek_to_last()?;
    while let Some(row) = row(iter) {
        rows.push(row);
        iter.prev()?;
    }
    rows.reverse();
    Ok(rows)
}

fn get(table: &Table, key: &[u8], seq: u64) -> Result<Option<Row>> {
    let found = table.get(&HashedKey::new(key), seq, &mut ReadTrace::default())?;
    Ok(found.map(|r| (key.to_vec(), r.seq, r.kind, r.value.to_vec())))
}

/// `count` keys with one version each.
fn simple(count: u32, value: usize) -> Vec<Row> {
    let row = |i: u32| {
        let key = format!("user{i:08}").into_bytes();
        (key, u64::from(i) + 1, Kind::Put, vec![i as u8; value])
    };
    (0..count).map(row).collect()
}

fn sorted(rows: Vec<Row>) -> Vec<Row> {
    let mut rows = rows;
    rows.sort_by(|a, b| InternalKey::new(&a.0, a.1, a.2).cmp(&InternalKey::new(&b.0, b.1, b.2)));
    rows.dedup_by(|a, b| (&a.0, a.1) == (&b.0, b.1));
    rows
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let kind = prop_oneof![3 => Just(Kind::Put), 1 => Just(Kind::Delete)];
    let value = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        (any::<u8>(), 0usize..3000).prop_map(|(byte, len)| vec![byte; len]),
    ];
    let row = ("[ab]{0,3}[a-d]{0,3}", 0u64..30, kind, value)
        .prop_map(|(key, seq, kind, value)| (key.into_bytes(), seq, kind, value));
    prop::collection::vec(row, 1..150).prop_map(sorted)
}

fn tier() -> impl Strategy<Value = TierOptions> {
    let compression = prop_oneof![
        Just(Compression::None),
        Just(Compression::Lz4),
        Just(Compression::Zstd(3))
    ];
    let filter = prop_oneof![
        Just(FilterPolicy::Fuse8),
        Just(FilterPolicy::Fuse16),
        Just(FilterPolicy::None)
    ];
    (512usize..8192, compression, filter).prop_map(|(size, compression, filter)| {
        options(size).compression(compression).filter(filter)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_table_answers_like_an_ordered_map(
        rows in rows(), tier in tier(), pinned: bool, cached: bool, readahead in 0usize..9000,
        probes in prop::collection::vec(("[ab]{0,3}[a-e]{0,3}", 0u64..32), 1..40),
    ) {
        let fixture = Fixture::new(
            tier, if cached { 1 << 20 } else { 0 }, if pinned { 1 << 20 } else { 0 });
        let meta = fixture.write(7, &rows);
        prop_assert_eq!(meta.entries, rows.len() as u64);
        let table = fixture.open(&meta).unwrap();
        prop_assert_eq!(table.is_pinned(), pinned);
        prop_assert_eq!(table.verify().unwrap().entries, meta.entries);

        let how = ScanOptions { readahead, ..SCAN };
        prop_assert_eq!(&forward(&mut table.iter(how)).unwrap(), &rows);
        prop_assert_eq!(&backward(&mut table.iter(how)).unwrap(), &rows);
        prop_assert_eq!(&forward(&mut table.iter(COMPACTION)).unwrap(), &rows);
        prop_assert_eq!(&backward(&mut table.iter(COMPACTION)).unwrap(), &rows);

        let mut iter = table.iter(how);
        for (key, seq) in &probes {
            let key = key.as_bytes();
            let target = InternalKey::seek_to(key, *seq);
            let before = |r: &Row| InternalKey::new(&r.0, r.1, r.2) < target;
            let split = rows.partition_point(before);
            let visible = rows.get(split).filter(|r| r.0 == key);
            prop_assert_eq!(get(&table, key, *seq).unwrap(), visible.cloned());
            iter.seek(target).unwrap();
            prop_assert_eq!(row(&iter), rows.get(split).cloned());
            if iter.valid() {
                iter.next().unwrap();
                prop_assert_eq!(row(&iter), rows.get(split + 1).cloned());
            }
            iter.seek_for_prev(target).unwrap();
            let below = split.checked_sub(1);
            prop_assert_eq!(row(&iter), below.and_then(|i| rows.get(i)).cloned());
            if iter.valid() {
                iter.prev().unwrap();
                let below = split.checked_sub(2);
                prop_assert_eq!(row(&iter), below.and_then(|i| rows.get(i)).cloned());
            }
        }
        for r in &rows {
            prop_assert_eq!(get(&table, &r.0, r.1).unwrap(), Some(r.clone()));
            iter.seek_for_prev(InternalKey::new(&r.0, r.1, r.2)).unwrap();
            prop_assert_eq!(row(&iter), Some(r.clone()));
        }
    }
}

/// Reads everything there is, compares it with `rows`, and fails if anything was found wrong.
fn read_all(fixture: &Fixture, meta: &TableMeta, rows: &[Row]) -> Result<()> {
    let table = fixture.open(meta)?;
    let verified = table.verify();
    for r in rows {
        // Damage that a read does not notice must not change its answer.
        assert_eq!(get(&table, &r.0, r.1)?.as_ref(), Some(r));
    }
    assert_eq!(get(&table, b"user0000000", MAX_SEQ)?, None);
    assert_eq!(forward(&mut table.iter(SCAN))?, rows);
    assert_eq!(backward(&mut table.iter(COMPACTION))?, rows);
    verified.map(|_| ())
}

#[test]
fn every_flipped_byte_is_detected() {
    for (compression, pins) in [(Compression::None, 1 << 20), (Compression::Lz4, 0)] {
        let rows = simple(24, 60);
        let tier = options(512).compression(compression);
        let writer = Fixture::new(tier.clone(), 0, 0);
        let meta = writer.write(3, &rows);
        let content = writer.store.content(&meta.file_name());
        for at in 0..content.len() {
            let fixture = Fixture::new(tier.clone(), 0, pins);
            let mut damaged = content.clone();
            damaged[at] ^= 1 << (at % 8);
            fixture.store.put(&meta.file_name(), damaged);
            let error = read_all(&fixture, &meta, &rows).expect_err("a flipped byte goes unseen");
            assert!(error.is_corruption(), "byte {at}: {error}");
        }
        let intact = Fixture::new(tier, 0, pins);
        intact.store.put(&meta.file_name(), content);
        read_all(&intact, &meta, &rows).unwrap();
    }
}

#[test]
fn every_truncation_is_refused_at_opening() {
    let rows = simple(24, 60);
    let fixture = Fixture::new(options(512), 0, 0);
    let meta = fixture.write(3, &rows);
    let content = fixture.store.content(&meta.file_name());
    for len in 0..content.len() {
        fixture
            .store
            .put(&meta.file_name(), content[..len].to_vec());
        assert!(fixture.open(&meta).unwrap_err().is_corruption());
        // This holds even if the manifest agrees with the length.
        let short = TableMeta {
            len: len as u64,
            ..meta.clone()
        };
        assert!(
            fixture.open(&short).unwrap_err().is_corruption(),
            "{len} bytes"
        );
    }
}

#[test]
fn a_table_of_another_database_keyspace_or_number_is_refused() {
    let fixture = Fixture::new(options(4096), 0, 0);
    let meta = fixture.write(3, &simple(5, 10));
    let content = fixture.store.content(&meta.file_name());
    fixture.store.put("00000004.sst", content);
    let wrong_id = TableMeta {
        id: 4,
        ..meta.clone()
    };
    let error = fixture.open(&wrong_id).unwrap_err();
    assert!(error.to_string().contains("table 3, not 4"), "{error}");
    let wrong_keyspace = TableMeta {
        keyspace: 9,
        ..meta.clone()
    };
    let error = fixture.open(&wrong_keyspace).unwrap_err();
    assert!(error.to_string().contains("keyspace 0, not 9"), "{error}");
    let (cache, pins) = (Arc::clone(&fixture.cache), Arc::clone(&fixture.pins));
    let error = Table::open(&fixture.tier, meta, DATABASE + 1, cache, pins).unwrap_err();
    assert!(error.to_string().contains("belongs to database"), "{error}");
}

#[test]
fn versions_of_a_key_that_span_blocks_and_partitions_are_all_found() {
    // 64 KiB of index are more than a partition holds: long keys, one record per block.
    let key = vec![b'k'; 2000];
    let version = |seq: u64| (key.clone(), seq, Kind::Put, vec![seq as u8; 600]);
    let mut rows: Vec<Row> = (1..=80).rev().map(version).collect();
    // Another key is in the last partition, so that its filter must hold both.
    rows.push((b"l".to_vec(), 1, Kind::Put, Vec::new()));
    for pins in [0, 1 << 20] {
        let fixture = Fixture::new(options(512), 0, pins);
        let table = fixture.open(&fixture.write(5, &rows)).unwrap();
        assert!(table.top.len() > 1, "the versions span partitions");
        for r in &rows {
            assert_eq!(get(&table, &r.0, r.1).unwrap().as_ref(), Some(r));
        }
        assert_eq!(get(&table, &key, 0).unwrap(), None);
        assert_eq!(get(&table, &key, u64::MAX).unwrap().as_ref(), rows.first());
        assert_eq!(forward(&mut table.iter(COMPACTION)).unwrap(), rows);
        assert_eq!(backward(&mut table.iter(SCAN)).unwrap(), rows);
        table.verify().unwrap();
    }
}

#[test]
fn the_builder_drops_exact_duplicates_and_refuses_disorder_and_nothing() {
    let fixture = Fixture::new(options(4096), 0, 0);
    let mut builder = fixture.builder(1);
    let key = InternalKey::new(b"k", 5, Kind::Put);
    builder.add(key, b"v").unwrap();
    builder.add(key, b"v").unwrap();
    assert_eq!(builder.entries(), 1);
    let newer = InternalKey::new(b"k", 6, Kind::Put);
    assert!(builder.add(newer, b"v").unwrap_err().is_corruption());
    let lower = InternalKey::new(b"a", 9, Kind::Put);
    assert!(builder.add(lower, b"v").unwrap_err().is_corruption());
    let long = vec![0xff; 65_536];
    let long = builder.add(InternalKey::new(&long, 9, Kind::Put), b"v");
    assert!(matches!(long, Err(Error::TooLarge { what: "key", .. })));
    let before = builder.estimated_len();
    builder
        .add(InternalKey::new(b"l", 9, Kind::Delete), &[])
        .unwrap();
    assert!(builder.estimated_len() > before);
    let meta = builder.finish().unwrap();
    assert_eq!(
        (meta.entries, meta.deletes, meta.min_seq, meta.max_seq),
        (2, 1, 5, 9)
    );
    assert_eq!(
        fixture.store.content(&meta.file_name()).len() as u64,
        meta.len
    );
    assert!(fixture.builder(2).finish().is_err());
}

/// `count` keys of the greatest length that differ only in their last bytes. Each has a partition
/// of its own, and is in full in the top-level index.
fn longest_keys(count: u32) -> impl Iterator<Item = Row> {
    (0..count).map(|i| {
        let mut key = vec![b'k'; MAX_KEY_LEN - 4];
        key.extend(i.to_be_bytes());
        (key, u64::from(i) + 1, Kind::Put, Vec::new())
    })
}

/// Only data blocks were counted. So tables of long keys were cut only when they were three times
/// the wanted size, and no compaction made a too long top-level index any shorter.
#[test]
fn the_length_of_a_table_under_way_counts_what_is_written_last() {
    let (usual, long) = (simple(5000, 20), longest_keys(30).collect());
    for (rows, rest) in [(usual, 8 << 10), (long, 6 * MAX_KEY_LEN as u64)] {
        let fixture = Fixture::new(options(4096), 0, 0);
        let mut builder = fixture.builder(1);
        for (key, seq, kind, value) in &rows {
            let key = InternalKey::new(key, *seq, *kind);
            builder.add(key, value).unwrap();
        }
        let told = builder.estimated_len();
        let len = builder.finish().unwrap().len;
        assert!(told <= len && told + rest >= len, "{told} of {len}");
    }
}

/// Such a table was written and then refused, because its top-level index is longer than the
/// longest block of records. A batch of 72 MB turned the memtable into one, which could then not be
/// flushed any more.
#[test]
#[ignore = "takes a GiB of memory; table/footer.rs tests the limit alone"]
fn a_table_whose_top_level_index_is_longer_than_any_record_can_be_read() {
    let fixture = Fixture::new(options(4096).compression(Compression::Lz4), 0, 0);
    let mut builder = fixture.builder(1);
    for (key, seq, kind, value) in longest_keys(1100) {
        let key = InternalKey::new(&key, seq, kind);
        builder.add(key, &value).unwrap();
    }
    let table = fixture.open(&builder.finish().unwrap()).unwrap();
    assert_eq!(table.verify().unwrap().entries, 1100);
    for row in longest_keys(1100).step_by(99) {
        assert_eq!(get(&table, &row.0, MAX_SEQ).unwrap(), Some(row));
    }
}

#[test]
fn records_of_unsupported_kinds_are_named() {
    let fixture = Fixture::new(options(4096), 0, 0);
    let row = (b"k".to_vec(), 5, Kind::RangeDelete, b"z".to_vec());
    let table = fixture.open(&fixture.write(1, [&row])).unwrap();
    for error in [
        get(&table, b"k", 9).unwrap_err(),
        forward(&mut table.iter(SCAN)).unwrap_err(),
        table.verify().unwrap_err(),
    ] {
        assert!(
            error.is_corruption() && error.to_string().contains("RangeDelete"),
            "{error}"
        );
    }
}

#[test]
fn opening_is_one_read_and_a_pinned_get_at_most_one_more() {
    let rows = simple(20_000, 100);
    let fixture = Fixture::new(options(512), 1 << 20, 1 << 20);
    let meta = fixture.write(1, &rows);
    let table = fixture.open(&meta).unwrap();
    assert!(table.top.len() > 3);
    assert_eq!(fixture.purpose_ops(Purpose::Open), 1);
    let mut trace = ReadTrace::default();
    for _ in 0..2 {
        assert!(
            table
                .get(&HashedKey::new(b"user00007777"), MAX_SEQ, &mut trace)
                .unwrap()
                .is_some()
        );
    }
    assert_eq!(
        fixture.purpose_ops(Purpose::Open),
        2,
        "all partitions come at once"
    );
    assert_eq!(
        (trace.device_reads[0], trace.cache_hits, trace.cache_misses),
        (1, 1, 1)
    );
    assert_eq!(fixture.purpose_ops(Purpose::UserRead), 1);

    let mut skipped = ReadTrace::default();
    for i in 0..1000 {
        let absent = format!("user{i:08}x");
        assert!(
            table
                .get(&HashedKey::new(absent.as_bytes()), MAX_SEQ, &mut skipped)
                .unwrap()
                .is_none()
        );
    }
    assert!(skipped.filter_skips > 980, "{skipped:?}");
    assert_eq!(skipped.filter_skips + skipped.filter_false_positives, 1000);
    let region = table.properties().filter_bytes + table.properties().index_bytes;
    assert_eq!(fixture.pins.taken(), table.top.memory() + region);
    drop(table);
    assert_eq!(fixture.pins.taken(), 0, "the budget gets its bytes back");
}

#[test]
fn without_room_to_pin_partitions_go_through_the_cache() {
    let rows = simple(20_000, 100);
    let fixture = Fixture::new(options(4096), 1 << 20, 0);
    let table = fixture.open(&fixture.write(1, &rows)).unwrap();
    assert!(!table.is_pinned());
    let mut trace = ReadTrace::default();
    for _ in 0..2 {
        assert!(
            table
                .get(&HashedKey::new(b"user00007777"), MAX_SEQ, &mut trace)
                .unwrap()
                .is_some()
        );
    }
    assert_eq!(
        (trace.cache_misses, trace.cache_hits),
        (3, 3),
        "filter, index, data"
    );
    assert_eq!(trace.device_reads[0], 3);
}

#[test]
fn many_lookups_may_share_their_reads() {
    let rows = simple(1000, 100);
    let fixture = Fixture::new(options(4096), 1 << 20, 1 << 20);
    let table = fixture.open(&fixture.write(1, &rows)).unwrap();
    let mut trace = ReadTrace::default();
    let Located::Read(handle) = table
        .locate(&HashedKey::new(&rows[500].0), MAX_SEQ, &mut trace)
        .unwrap()
    else {
        panic!("nothing is cached yet");
    };
    let source = table.source();
    let request = table.read_request(&source, handle);
    let read = fixture.tier.tables.read_many(&[request]).remove(0);
    let payload = table.receive(handle, &source, read, &mut trace).unwrap();
    let found = table.search(payload, handle, &rows[500].0, MAX_SEQ, &mut trace);
    assert_eq!(found.unwrap().unwrap().value, rows[500].3[..]);
    let again = table
        .locate(&HashedKey::new(&rows[500].0), MAX_SEQ, &mut trace)
        .unwrap();
    assert!(
        matches!(again, Located::Found(_)),
        "the block is in the cache"
    );
    let absent = table
        .locate(&HashedKey::new(b"zzz"), MAX_SEQ, &mut trace)
        .unwrap();
    assert!(matches!(absent, Located::Absent));
}

#[test]
fn verification_sees_a_manifest_that_disagrees() {
    let rows = simple(100, 100);
    let fixture = Fixture::new(options(512), 0, 1 << 20);
    let meta = fixture.write(1, &rows);
    let spoil: [fn(&mut TableMeta); 5] = [
        |meta| meta.entries += 1,
        |meta| meta.deletes += 1,
        |meta| meta.max_seq += 1,
        |meta| meta.range.first = "user".into(),
        |meta| meta.range.last = "zzz".into(),
    ];
    for spoil in spoil {
        let mut wrong = meta.clone();
        spoil(&mut wrong);
        let error = fixture.open(&wrong).unwrap().verify().unwrap_err();
        assert!(error.is_corruption(), "{wrong:?}");
    }
    let check = fixture.open(&meta).unwrap().verify().unwrap();
    assert_eq!((check.entries, check.bytes), (100, meta.len));
    assert!(check.blocks > 10);
}
