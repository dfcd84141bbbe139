//! Large values do not take more memory than the budget and what callers hold. This binary's
//! allocator counts what lives on the heap.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]
#![allow(unsafe_code, reason = "an allocator is unsafe to be one")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use thermocline::{Db, Options};

/// The system's allocator, with what it has given out counted.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn count(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

// Safety: every call is passed on as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // Safety: passed on as it is.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // Safety: passed on as it is.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // Safety: passed on as it is.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        // The old and the new memory may both be there while one is copied to the other.
        count(len);
        // Safety: passed on as it is.
        let moved = unsafe { System.realloc(memory, layout, len) };
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        moved
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const MIB: usize = 1 << 20;
const MEMORY: usize = 12 * MIB;
const LARGEST: usize = 4 * MIB;

/// Bytes that nothing compresses.
fn noise(state: &mut u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        bytes.push(*state as u8);
    }
    bytes
}

/// A turnover of values up to a third of the memory took several times the budget: compactions, two
/// at once, had each of their inputs' values in memory twice, and three memtables had a large value
/// each.
#[test]
fn large_values_stay_within_the_budget_and_what_callers_hold() {
    let dir = tempfile::tempdir().unwrap();
    let fast = dir.path().join("fast");
    let mut options = Options::two_tiers(fast, 24 << 20, dir.path().join("slow"));
    options.memory = MEMORY as u64;
    let db = Db::open(options).unwrap();
    let before = LIVE.load(Ordering::Relaxed);
    let (mut state, mut live, mut unaccounted) = (11, VecDeque::new(), 0);
    for n in 0..60 {
        let len = match n % 10 {
            0 => LARGEST,
            1 | 2 => LARGEST / 10,
            _ => 10_000,
        };
        let key = format!("mail{:03}", n * 7919 % 1009);
        let value = noise(&mut state, len);
        db.put(&key, &value).unwrap();
        let memory = db.metrics().memory;
        let told = memory.memtables
            + memory.block_cache
            + memory.record_cache
            + memory.pinned
            + memory.large_buffers;
        let beside =
            (LIVE.load(Ordering::Relaxed) - before).saturating_sub(len + told as usize * 5 / 4);
        unaccounted = unaccounted.max(beside);
        live.push_back((key, len));
        if live.len() > 15 {
            let (key, len) = live.pop_front().unwrap();
            let found = db.get(&key).unwrap().map(|value| value.len());
            assert_eq!(found, Some(len));
            db.delete(&key).unwrap();
        }
    }
    db.wait_idle().unwrap();
    let peak = PEAK.load(Ordering::Relaxed) - before;
    // The value that is written, and one that is read.
    let most = (MEMORY + 2 * LARGEST) / 4 * 5;
    assert!(unaccounted < 8 * MIB, "{} KiB", unaccounted >> 10);
    assert!(peak <= most, "{} of {} MiB", peak / MIB, most / MIB);
    db.close().unwrap();
}
