//! Records that are held beyond their map, and everything a map of records does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::{Counted, Living};
use crate::{Exchanged, Held, NewRecord, Options, RecordRing};

fn ring(buckets: usize) -> RecordRing<Counted> {
    RecordRing::with_options(Options::default().buckets(buckets)).unwrap()
}

fn new(living: &Living, header: u64, key: &[u8], value: &[u8]) -> NewRecord<Counted> {
    NewRecord::new(hash(key), living.value(header), key, value).unwrap()
}

/// Puts all keys of one length into one ring.
fn hash(key: &[u8]) -> u64 {
    (key.len() as u64) << 60
}

fn is<'k>(sought: &'k [u8]) -> impl Fn(&Counted, &[u8]) -> bool + 'k {
    move |_, key| key == sought
}

#[test]
fn records_are_stored_found_replaced_and_removed() {
    let living = Living::default();
    let map = ring(4);
    let ring = map.pin();
    assert!(ring.get(hash(b"a"), is(b"a")).is_none());
    for (header, key) in [(1, b"a"), (2, b"b"), (3, b"c")] {
        let stored = ring.insert_if_absent(new(&living, header, key, b"first"), is(key));
        assert_eq!(stored.unwrap().header().value, header);
    }
    let again = ring.insert_if_absent(new(&living, 9, b"b", b"other"), is(b"b"));
    assert_eq!(again.unwrap_err().header().value, 2);
    let found = ring.get(hash(b"b"), is(b"b")).unwrap();
    assert_eq!((found.key(), found.value()), (&b"b"[..], &b"first"[..]));
    assert_eq!(found.hash() | 1, hash(b"b") | 1);

    let replace = |key, if_header| {
        let new = new(&living, 7, key, b"the second");
        match ring.replace_if(new, is(key), |header| header.value == if_header) {
            Exchanged::Replaced(old) => Ok(old.header().value),
            Exchanged::Differs(present) => Err(Some(present.header().value)),
            Exchanged::Absent => Err(None),
        }
    };
    assert_eq!(replace(b"b", 1), Err(Some(2)));
    assert_eq!(replace(b"b", 2), Ok(2));
    assert_eq!(replace(b"d", 2), Err(None));
    assert_eq!(found.value(), b"first", "as it was");
    let found = ring.get(hash(b"b"), is(b"b")).unwrap();
    assert_eq!(
        (found.header().value, found.value()),
        (7, &b"the second"[..])
    );

    let all = ring.entries().map(|record| record.header().value);
    assert_eq!(all.collect::<Vec<_>>(), [1, 7, 3]);
    assert_eq!(ring.entries_from(1 << 61).count(), 0);
    let remove = |if_header| {
        let removed = ring.remove_if(hash(b"b"), is(b"b"), |header| header.value == if_header);
        removed.map(|record| record.header().value)
    };
    assert_eq!([remove(2), remove(7), remove(7)], [None, Some(7), None]);
    assert_eq!((map.len(), map.is_empty()), (2, false));
}

#[test]
fn headers_are_dropped_once_whatever_is_held() {
    let living = Living::default();
    let map = ring(1);
    let held: Vec<Held> = {
        let ring = map.pin();
        drop(new(&living, 0, b"unused", b""));
        let keys = [&b"a"[..], b"b", b"c"];
        let held = keys.map(|key| {
            let stored = ring.insert_if_absent(new(&living, 0, key, key), is(key));
            stored.unwrap().hold()
        });
        ring.remove_if(hash(b"a"), is(b"a"), |_| true);
        let _ = ring.replace_if(new(&living, 1, b"b", b"new"), is(b"b"), |_| true);
        held.into_iter()
            .flat_map(|held| [held.clone(), held])
            .collect()
    };
    drop(map);
    // What was removed may wait for threads of other tests.
    let mut turns = 0;
    while living.count() > 0 {
        turns += 1;
        assert!(turns < 1_000_000, "{} headers are left", living.count());
        ring(1).pin().flush();
        thread::yield_now();
    }
    let values: Vec<&[u8]> = held.iter().map(|held| &held[..]).collect();
    assert_eq!(values, [b"a", b"a", b"b", b"b", b"c", b"c"]);
    assert_eq!(format!("{:?}", held[0]), "[97]");
    assert_eq!(held[0].as_ref(), b"a");
}

#[test]
#[cfg_attr(miri, ignore = "maps 4 GiB")]
fn what_is_too_large_is_an_error_and_drops_its_header() {
    let living = Living::default();
    // Nothing of it is read before the lengths are.
    let len = u32::MAX as usize + 1;
    let Ok(large) = memmap2::MmapMut::map_anon(len) else {
        return;
    };
    let error = NewRecord::new(0, living.value(0), b"key", &large).unwrap_err();
    let (key, value) = (3, len);
    assert_eq!(error, crate::StoreError::TooLarge { key, value });
    assert_eq!(living.count(), 0);
}

/// The last to let go is the map at one time, and a reader at another.
#[test]
fn values_are_held_while_their_records_are_replaced_and_removed() {
    const SEEN: usize = if cfg!(miri) { 20 } else { 20_000 };
    let living = Living::default();
    let map = ring(1);
    let readers = AtomicUsize::new(2);
    thread::scope(|scope| {
        for writer in 0..2 {
            let (map, living, readers) = (&map, &living, &readers);
            scope.spawn(move || {
                for turn in 0.. {
                    if readers.load(Ordering::Relaxed) == 0 {
                        break;
                    }
                    let ring = map.pin();
                    let new = new(living, turn, b"k", &[turn as u8; 40]);
                    match turn % 3 {
                        0 => drop(ring.insert_if_absent(new, is(b"k"))),
                        1 => drop(ring.replace_if(new, is(b"k"), |_| true)),
                        _ if writer == 0 => {
                            ring.remove_if(hash(b"k"), is(b"k"), |_| true);
                        }
                        _ => {}
                    }
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let mut seen = 0;
                let mut kept: Option<(u8, Held)> = None;
                while seen < SEEN {
                    let ring = map.pin();
                    let found = ring.get(hash(b"k"), is(b"k"));
                    let held = found.map(|record| (record.header().value as u8, record.hold()));
                    drop(ring);
                    if let Some((header, value)) = std::mem::replace(&mut kept, held) {
                        assert_eq!(*value, [header; 40]);
                        seen += 1;
                    }
                    thread::yield_now();
                }
                readers.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
}
