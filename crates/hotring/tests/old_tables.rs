//! When the memory of a table that was replaced comes back. This is a process of its own: other
//! tests' guards would hold the memory up, and their threads would free it.
#![cfg(target_os = "linux")]

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

use hotring::{HotRing, Options};

/// One test at a time, as they share one address space.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Less than a table takes here, and more than everything else that is mapped meanwhile, in bytes.
const SLACK: usize = 8 << 20;

/// A map whose table is a mapping of its own. The table changes when it is told to. Every request
/// ends a period and so brings the change forward.
fn map(buckets: usize) -> HotRing<u64, u64> {
    let options = Options::default().buckets(buckets).period(1);
    HotRing::with_options(options.grow_above(f64::INFINITY)).expect("a table")
}

/// How much of the address space is mapped beside the map's tables, in bytes.
fn mapped_beside(map: &HotRing<u64, u64>) -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("what the kernel says");
    let kib: usize = status
        .lines()
        .find_map(|line| line.strip_prefix("VmSize:")?.strip_suffix("kB"))
        .and_then(|kib| kib.trim().parse().ok())
        .expect("a number of KiB");
    1024 * kib - map.table_memory()
}

/// Regression: a retired table lay in the bag of the thread that had ended the change, as one
/// object of 64, and no more was owed for it than for any other. So a thread that only read from
/// then on kept it as long as the thread lived. When a thread without a handle shrank half a
/// gigabyte to 2 KiB and settled the change, all of it stayed.
#[test]
fn a_change_that_is_settled_gives_the_old_table_back() {
    let _alone = alone();
    let map = map(1 << 20);
    let before = mapped_beside(&map);
    assert_eq!((map.shrink_to(1), map.settle()), (Ok(()), true));
    let after = mapped_beside(&map);
    assert!(after < before + SLACK, "{before} bytes, then {after}");
}

/// Regression: as above, where requests had made the change.
#[test]
fn a_reader_whose_requests_end_a_change_gives_the_old_table_back() {
    let _alone = alone();
    let map = map(1 << 19);
    let before = mapped_beside(&map);
    map.grow().expect("memory");
    let mut ring = map.pin();
    while map.is_resizing() {
        ring.get(&0);
        ring.repin();
    }
    // While a handle is renewed the epochs free nothing by themselves.
    for _ in 0..8 {
        ring.repin();
    }
    let after = mapped_beside(&map);
    assert!(after < before + SLACK, "{before} bytes, then {after}");
}

/// Regression: as above, where the thread whose requests had made the change took no handle any
/// more, and others did.
#[test]
fn a_thread_that_rests_after_a_change_keeps_no_old_table() {
    let _alone = alone();
    let map = &map(1 << 19);
    std::thread::scope(|scope| {
        let (is_over, over) = mpsc::channel();
        let (go, may_go) = mpsc::channel::<()>();
        scope.spawn(move || {
            // With its first handle the thread takes memory for itself.
            drop(map.pin());
            let before = mapped_beside(map);
            map.grow().expect("memory");
            while map.is_resizing() {
                map.pin().get(&0);
            }
            is_over.send(before).expect("the other thread listens");
            // Lives until the other thread has looked.
            let _ = may_go.recv();
        });
        let before = over.recv().expect("the change was made");
        for _ in 0..1000 {
            drop(map.pin());
        }
        let after = mapped_beside(map);
        drop(go);
        assert!(after < before + SLACK, "{before} bytes, then {after}");
    });
}

/// Has requests double a table, almost to the end. Then has another thread replace entries: they
/// have to be freed before the old table. That thread has ended when `end` ends the change and
/// gives the old table back.
fn assert_comes_back_behind_replaced_entries(end: impl FnOnce(&HotRing<u64, u64>)) {
    const BUCKETS: usize = 1 << 19;
    let map = map(BUCKETS);
    map.grow().expect("memory");
    let mut ring = map.pin();
    let mut request = || {
        ring.get(&0);
        ring.repin();
    };
    while map.buckets() == BUCKETS {
        request();
    }
    // Each treats 64 of the old buckets, and then 64 of the new ones.
    for _ in 0..3 * BUCKETS / 64 - 500 {
        request();
    }
    drop(ring);
    assert!(map.is_resizing());
    let other = HotRing::new();
    // In all less than a table takes, and more than the epochs free by themselves before the change
    // ends.
    let replace = || {
        let ring = other.pin();
        for i in 0..50_000u64 {
            ring.insert(0, i);
        }
    };
    std::thread::scope(|scope| scope.spawn(replace).join().expect("only numbers"));
    let before = mapped_beside(&map);
    end(&map);
    let after = mapped_beside(&map);
    assert!(after < before + SLACK, "{before} bytes, then {after}");
}

/// Regression: the thread that had ended a change owed a turn for the old table, and paid with the
/// first turn that freed something, whoever had retired that. So if another thread had replaced
/// many entries before, the table stayed as long as the first thread only read and renewed its
/// handle.
#[test]
fn a_reader_gives_the_old_table_back_behind_what_others_have_replaced() {
    let _alone = alone();
    assert_comes_back_behind_replaced_entries(|map| {
        let mut ring = map.pin();
        while map.is_resizing() {
            ring.get(&0);
            ring.repin();
        }
        for _ in 0..1000 {
            ring.get(&0);
            ring.repin();
        }
    });
}

/// Regression: settling took three turns at its end, which free two dozen bags, whatever was in the
/// queue before the old table.
#[test]
fn settling_gives_the_old_table_back_behind_what_others_have_replaced() {
    let _alone = alone();
    assert_comes_back_behind_replaced_entries(|map| assert!(map.settle()));
}
