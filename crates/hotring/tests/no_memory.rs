//! What becomes of a map when there is no memory. This is a process of its own, whose allocator
//! refuses what a test has it refuse.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;

use hotring::{BytesRing, CompareAndSwap, HotRing, Options, StoreError, TableError};

thread_local! {
    /// This thread gets no memory of this many bytes or more.
    static LEAST: Cell<usize> = const { Cell::new(usize::MAX) };
    /// How often it was refused memory.
    static REFUSED: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, but for what a thread is refused.
struct Refusing;

// SAFETY: what it gives out is the system's allocator's, and goes back there.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LEAST.get() {
            REFUSED.set(REFUSED.get() + 1);
            return null_mut();
        }
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above, and `alloc` got it there.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// Calls `call` while this thread gets no memory of `least` bytes or more. Yields also how often it
/// asked for some.
fn without<T>(least: usize, call: impl FnOnce() -> T) -> (T, usize) {
    let before = REFUSED.get();
    LEAST.set(least);
    let result = call();
    LEAST.set(usize::MAX);
    (result, REFUSED.get() - before)
}

/// The length of a value. Nothing that a map needs beside its entries is as long here.
const LONG: usize = 1 << 16;

#[test]
fn what_is_not_to_be_stored_asks_for_no_memory() {
    let map = BytesRing::new();
    let ring = map.pin();
    assert_eq!(ring.insert(b"there", b"short"), Ok(None));
    let long = vec![7u8; LONG];
    let (tried, refused) = without(LONG, || {
        assert_eq!(ring.update(b"absent", &long), Ok(None));
        [
            ring.compare_and_swap(b"there", b"other", &long),
            ring.compare_and_swap(b"absent", b"short", &long),
            ring.insert_if_absent(b"there", &long)
                .map(|present| CompareAndSwap::Differs(present.unwrap_or_default())),
        ]
    });
    let differs = || Ok(CompareAndSwap::Differs(&b"short"[..]));
    assert_eq!(tried, [differs(), Ok(CompareAndSwap::Absent), differs()]);
    assert_eq!(refused, 0);

    // An entry whose box is as long.
    let map: HotRing<u64, [u8; LONG]> = HotRing::new();
    let ring = map.pin();
    assert!(ring.insert(1, [1; LONG]).is_none());
    let ((kept, absent), refused) = without(LONG, || {
        (ring.try_insert(1, [2; LONG]), ring.update(2, [2; LONG]))
    });
    assert!(kept.is_err_and(|(present, key, new)| (present[0], key, new[0]) == (1, 1, 2)));
    assert_eq!((absent, refused), (None, 0));
}

#[test]
fn a_byte_string_that_has_no_memory_changes_nothing() {
    let map = BytesRing::new();
    let ring = map.pin();
    for n in 0..100u8 {
        assert_eq!(ring.insert(&[n], b"short"), Ok(None));
    }
    let used = map.memory_used();
    let long = vec![7u8; LONG];
    let bytes = 32 + 1 + LONG;
    let no_memory = Err(StoreError::OutOfMemory { bytes });
    let (present, absent) = ([7u8], [200]);
    let tried = without(LONG, || {
        let swapped = ring.compare_and_swap(&present, b"short", &long);
        assert_eq!(swapped, Err(StoreError::OutOfMemory { bytes }));
        [
            ring.insert(&present, &long),
            ring.update(&present, &long),
            ring.insert(&absent, &long),
            ring.insert_if_absent(&absent, &long),
        ]
    });
    assert_eq!(tried, ([no_memory; 4], 5));
    assert_eq!((map.len(), map.memory_used()), (100, used));
    assert!((0..100u8).all(|n| ring.get(&[n]) == Some(&b"short"[..])));
    assert_eq!((ring.get(&[200]), ring.iter().count()), (None, 100));
    // As soon as there is memory it is stored.
    assert_eq!(ring.insert(&[7], &long), Ok(Some(&b"short"[..])));
    assert_eq!(ring.insert(&[200], &long), Ok(None));
    assert!(
        [[7u8], [200]]
            .iter()
            .all(|key| ring.get(key) == Some(&long[..]))
    );
}

const BUCKETS: usize = 512;

/// The bytes of a table twice as large. Nothing else is as long here.
const DOUBLED: usize = 2 * BUCKETS * 16;

#[test]
fn a_table_that_has_no_memory_to_grow_serves_on_and_grows_when_there_is_some() {
    let options = Options::default().buckets(BUCKETS).period(1).window(16);
    let map: HotRing<u64, u64> = HotRing::with_options(options.grow_above(1.5)).expect("memory");
    let ring = map.pin();
    let keys = 0..8 * BUCKETS as u64;
    let right = || {
        keys.clone()
            .filter(|key| ring.get(key) == Some(key))
            .count()
    };

    let (stored, refused) = without(DOUBLED, || {
        let new = keys.clone().filter(|&key| ring.insert(key, key).is_none());
        new.count()
    });
    assert!(refused > 0, "nothing was to grow");
    assert_eq!((stored, map.len()), (8 * BUCKETS, 8 * BUCKETS));
    let (right_without, refused) = without(DOUBLED, right);
    assert!(refused > 1, "it is not tried again");
    assert_eq!(right_without, 8 * BUCKETS);
    let size = || (map.buckets(), map.table_memory(), map.is_resizing());
    assert_eq!(size(), (BUCKETS, 16 * BUCKETS, false));

    // Whoever asks for a table is told.
    let no_memory = TableError::OutOfMemory { bytes: DOUBLED };
    let (asked, _) = without(DOUBLED, || [map.grow(), map.reserve(2 * BUCKETS)]);
    assert_eq!(asked, [Err(no_memory); 2]);
    let large = Options::default().buckets(2 * BUCKETS);
    let (map_of_its_own, _) = without(DOUBLED, || HotRing::<u64, u64>::with_options(large));
    assert_eq!(map_of_its_own.err(), Some(no_memory));
    assert_eq!(size(), (BUCKETS, 16 * BUCKETS, false));

    assert_eq!([right(), right()], [8 * BUCKETS; 2]);
    // Twice as large and no larger: the handle keeps the change from being over.
    assert_eq!(map.buckets(), 2 * BUCKETS);
}
