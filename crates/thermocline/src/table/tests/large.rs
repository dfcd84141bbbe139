//! Blocks of large values: a value that was let go of can be loaded again, and little of them is in
//! memory at once.

use bytes::Bytes;

use super::*;
use crate::cache::BlockCache;

const LARGE: usize = 2 << 20;

/// Some small records, a large one, and so on. The bytes of a large value are random unless it
/// `shrinks`.
fn mixed(shrinks: bool) -> Vec<Row> {
    let mut state = 7u64;
    let mut noise = |shrinks: bool| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        if shrinks { 7 } else { (state >> 33) as u8 }
    };
    let mut row = |i: u64| {
        let len = if i % 4 == 3 { LARGE } else { 100 };
        let value = (0..len).map(|_| noise(shrinks)).collect();
        (format!("user{i:04}").into_bytes(), i + 1, Kind::Put, value)
    };
    (0..16).map(&mut row).collect()
}

/// Each cursor of a merge had its large value in memory, and the last one had a second copy of it.
#[test]
fn a_cursor_lets_go_of_a_large_value_and_has_it_again() {
    for compression in [Compression::None, Compression::Lz4] {
        for shrinks in [false, true] {
            let rows = mixed(shrinks);
            let options = options(4096).compression(compression);
            let fixture = Fixture::new(options, 8 << 20, 1 << 20);
            let table = fixture.open(&fixture.write(1, &rows)).unwrap();
            let held = || table.tier().large.bytes();
            let mut iter = table.iter(COMPACTION);
            iter.seek_to_first().unwrap();
            for expected in &rows {
                let is_large = expected.3.len() == LARGE;
                assert_eq!(held() >= LARGE as u64, is_large);
                assert!(held() < LARGE as u64 + (64 << 10), "{}", held());
                iter.let_go();
                assert_eq!(held(), 0);
                assert_eq!(iter.key().user_key, expected.0);
                assert_eq!(iter.value_len(), expected.3.len());
                // Every second large one is passed over without its value.
                if expected.1 % 8 != 0 {
                    iter.load().unwrap();
                    assert!(row(&iter).as_ref() == Some(expected));
                }
                iter.next().unwrap();
            }
            assert!(!iter.valid());
            drop(iter);
            assert_eq!(held(), 0);
            assert!(forward(&mut table.iter(SCAN)).unwrap() == rows);
            assert!(backward(&mut table.iter(SCAN)).unwrap() == rows);
        }
    }
}

#[test]
fn damage_of_a_large_value_is_seen_when_it_is_read_again() {
    let rows = mixed(false);
    let fixture = Fixture::new(options(4096), 8 << 20, 1 << 20);
    let table = fixture.open(&fixture.write(1, &rows)).unwrap();
    let mut iter = table.iter(COMPACTION);
    iter.seek_to_first().unwrap();
    while iter.value_len() < LARGE {
        iter.next().unwrap();
    }
    iter.let_go();
    fixture.store.fail_at(1 << 20);
    assert!(iter.load().is_err());
}

/// A writer of a large value had it in memory twice. The cache pays for such memory: without a
/// copy, it must not give up anything.
#[test]
fn a_large_value_that_does_not_shrink_is_written_without_a_copy() {
    for (compression, shrinks, copied) in [
        (Compression::None, true, false),
        (Compression::Lz4, false, false),
        (Compression::Lz4, true, true),
    ] {
        let fixture = Fixture::new(options(4096).compression(compression), 8 << 20, 1 << 20);
        let cache = Arc::new(BlockCache::new(1 << 20));
        for offset in 0..1000 {
            cache.insert(7, offset, Bytes::from(vec![0; 4096]));
        }
        let full = cache.used_bytes();
        fixture.tier.large.take_from(&cache, 0);
        fixture.write(1, &mixed(shrinks));
        assert_eq!(
            cache.used_bytes() < full,
            copied,
            "{compression:?} {shrinks}"
        );
    }
}
