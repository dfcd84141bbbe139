//! When the memory of a table comes back that another has replaced. A process of its own: other tests' guards would hold it
//! up, and their threads would free it.
#![cfg(target_os = "linux")]

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

use hotring::{HotRing, Options};

/// One test at a time, as they share one address space.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Less than a table takes here, and more than all else that comes meanwhile, in bytes.
const SLACK: usize = 8 << 20;

/// A map whose table is a mapping of its own and changes when it is told to, by the end of a period with every request.
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

/// Regression: a table that was retired lay in the bag of the thread that had ended the change, as one object of 64, and
/// was owed for like one: a thread that only read then kept it as long as it lived. Of half a gigabyte that had been
/// made 2 KiB, by a thread without a handle, and was settled, all stayed.
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

/// Regression: as above, where the thread whose requests had made the change took no handle any more, and others did.
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
