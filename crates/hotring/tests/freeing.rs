//! When the memory of what was removed comes back. This is a process of its own: other tests'
//! guards would hold the memory up, and their threads would free it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use hotring::{HotRing, Options};

/// Lets one test run at a time, as one would free what another retires. Also waits until what the
/// last test left is freed.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let free = || {
        let map: HotRing<u64, u64> = HotRing::new();
        for _ in 0..8 * BATCH * BATCH {
            map.pin().flush();
        }
    };
    // A thread that ends does this, so that the test's own thread has taken no handle yet.
    std::thread::spawn(free).join().expect("destructors");
    alone
}

/// Counts how many values of it are alive.
#[derive(Clone, Debug, Default)]
struct Living(Arc<AtomicUsize>);

impl Living {
    fn value(&self) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(&self.0))
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

const WRITES: usize = 100_000;

/// Writes between two handles, or renewals of one.
const BATCH: usize = 64;

/// Regression: memory was given back with every 128th handle of a thread, eight bags of 64 entries
/// at a time, and not when a handle was renewed. So a thread that replaced entries under one
/// handle, which it renewed as it should, kept them all for ever. One that replaced more than four
/// entries under each handle kept most.
#[test]
fn what_is_replaced_is_freed_as_handles_are_renewed_or_taken_anew() {
    let _alone = alone();
    let living = Living::default();
    let map = HotRing::new();
    let mut ring = map.pin();
    for i in 1..=WRITES {
        ring.insert(0, living.value());
        if i % BATCH == 0 {
            ring.repin();
        }
    }
    let of_one_handle = living.count();
    drop(ring);

    let living = Living::default();
    let map = HotRing::new();
    for _ in 0..WRITES / BATCH {
        let ring = map.pin();
        for _ in 0..BATCH {
            ring.insert(0, living.value());
        }
    }
    let of_many_handles = living.count();

    let living = Living::default();
    let mut map = HotRing::new();
    map.extend((0..WRITES).map(|_| (0, living.value())));
    let of_one_extension = living.count();

    let left = [of_one_handle, of_many_handles, of_one_extension];
    assert!(left.iter().all(|&left| left < WRITES / 20), "{left:?}");
}

/// Replaces entries under a handle that is renewed, while another handle keeps them. Has that one
/// `let_go`, and then takes some handles, or renews the one. Yields how many of the replaced
/// entries are left.
fn left_after(let_go: impl FnOnce(), renews: bool) -> usize {
    let living = Living::default();
    let map = HotRing::new();
    let mut ring = map.pin();
    for i in 1..=WRITES {
        ring.insert(0, living.value());
        if i % BATCH == 0 {
            ring.repin();
        }
    }
    assert!(living.count() > WRITES / 2, "nothing was kept");
    let_go();
    if renews {
        (0..WRITES / BATCH).for_each(|_| ring.repin());
    } else {
        drop(ring);
        (0..WRITES / BATCH).for_each(|_| drop(map.pin()));
    }
    living.count()
}

/// Regression: a turn of the epochs paid for what a thread had retired, whether it freed anything
/// or not. While another thread held a handle, everything was paid for in vain. When that handle
/// was gone, nobody owed anything. A thread that went on renewing a handle then kept everything
/// that had been replaced, for ever.
#[test]
fn what_another_threads_handle_kept_is_freed_when_that_is_gone() {
    let _alone = alone();
    let other: HotRing<u64, u64> = HotRing::new();
    for renews in [true, false] {
        let left = std::thread::scope(|scope| {
            let (is_held, held) = mpsc::channel();
            let (go, may_go) = mpsc::channel::<()>();
            let other = &other;
            let holder = scope.spawn(move || {
                let _handle = other.pin();
                is_held.send(()).expect("the test waits");
                let _ = may_go.recv();
            });
            held.recv().expect("a handle");
            let let_go = || {
                drop(go);
                holder.join().expect("the handle's thread");
            };
            left_after(let_go, renews)
        });
        assert!(left < WRITES / 20, "{left}, renewals: {renews}");
    }
}

/// Regression: as above, with a handle of the same thread, to another map.
#[test]
fn what_the_threads_own_other_handle_kept_is_freed_when_that_is_gone() {
    let _alone = alone();
    let other: HotRing<u64, u64> = HotRing::new();
    for renews in [true, false] {
        let handle = other.pin();
        let left = left_after(|| drop(handle), renews);
        assert!(left < WRITES / 20, "{left}, renewals: {renews}");
    }
}

/// Regression: of a million entries that were removed at once, the last was freed with the
/// 250,000th handle after that.
#[test]
fn what_was_removed_under_one_handle_is_freed_by_those_that_follow_it() {
    let _alone = alone();
    let living = Living::default();
    // The table stays: while it changes, a head of the old one may keep an entry.
    let options = Options::default().buckets(4096).grow_above(f64::INFINITY);
    let map = HotRing::with_options(options).expect("a table");
    let ring = map.pin();
    for key in 0..WRITES {
        ring.insert(key, living.value());
    }
    ring.clear();
    let take_handles = |handles: usize| (0..handles).for_each(|_| drop(map.pin()));
    take_handles(WRITES / BATCH);
    assert_eq!(living.count(), WRITES, "kept for the first handle");
    drop(ring);
    // Fewer than the epochs want to see before they free anything by themselves.
    take_handles(100);
    let left = living.count();
    assert!(left < WRITES / 20, "{left}");
    take_handles(WRITES / BATCH);
    assert_eq!(living.count(), 0);
}

/// Regression: the end of a grace period stood in the queue behind all that had been removed
/// before. Each look at it freed eight bags of that, and after sixteen looks a change of the table
/// counted as held up. So a map that had been cleared refused to change its size again, though
/// nobody held a handle and there was no other thread. Besides, freeing so much leaves bags of its
/// own in the queue, and no look said that it freed some of those: so the change after the next one
/// was refused.
#[test]
fn a_map_that_was_cleared_changes_its_size_again_and_again() {
    let _alone = alone();
    let options = Options::default().buckets(4096).grow_above(f64::INFINITY);
    let map = HotRing::with_options(options).expect("a table");
    let ring = map.pin();
    for key in 0..2 * WRITES {
        ring.insert(key, ());
    }
    ring.clear();
    drop(ring);
    assert_eq!((map.shrink_to(64), map.buckets()), (Ok(()), 64));
    assert_eq!((map.reserve(1024), map.buckets()), (Ok(()), 1024));
    assert_eq!((map.shrink_to(64), map.buckets()), (Ok(()), 64));
}

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static DEEPEST: Cell<usize> = const { Cell::new(0) };
}

/// A value whose destructor writes to a map, and renews its handle.
struct Writes(Arc<HotRing<u64, u64>>);

impl Drop for Writes {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() + 1);
        DEEPEST.set(DEEPEST.get().max(DEPTH.get()));
        let mut ring = self.0.pin();
        for i in 0..2 * BATCH as u64 {
            ring.insert(0, i);
        }
        ring.repin();
        drop(ring);
        DEPTH.set(DEPTH.get() - 1);
    }
}

#[test]
fn a_destructor_that_writes_to_a_map_runs_no_other_one() {
    let _alone = alone();
    let other = Arc::new(HotRing::new());
    let map = HotRing::new();
    let ring = map.pin();
    for _ in 0..64 * BATCH {
        ring.insert(0, Writes(Arc::clone(&other)));
    }
    drop(ring);
    for _ in 0..64 {
        drop(map.pin());
    }
    assert_eq!(DEEPEST.get(), 1);
}

/// Regression: a destructor that was run by a flush, or by the epochs themselves, and not by a turn
/// that the thread owed, took turns when it renewed a handle. So it ran other destructors within
/// itself.
#[test]
fn a_destructor_that_writes_to_a_map_runs_no_other_one_within_a_flush() {
    let _alone = alone();
    let other = Arc::new(HotRing::new());
    let map = HotRing::new();
    let ring = map.pin();
    for _ in 0..=16 {
        // A bag each.
        ring.insert(0, Writes(Arc::clone(&other)));
        ring.flush();
    }
    drop(ring);
    for _ in 0..8 {
        map.pin().flush();
    }
    assert_eq!(DEEPEST.get(), 1);
}

/// A value whose destructor panics, if it is the one.
struct Value {
    panics: bool,
    _counted: Counted,
}

impl Drop for Value {
    fn drop(&mut self) {
        assert!(!self.panics, "a destructor that panics");
    }
}

#[test]
fn a_destructor_that_panics_does_not_keep_the_next_handles_from_freeing() {
    let _alone = alone();
    let living = Living::default();
    let map = HotRing::new();
    let replace = |panics: bool| {
        let ring = map.pin();
        for i in 0..BATCH {
            let value = Value {
                panics: panics && i == 0,
                _counted: living.value(),
            };
            ring.insert(0, value);
        }
    };
    replace(true);
    let mut panics = 0;
    for _ in 0..WRITES / BATCH {
        panics += usize::from(catch_unwind(AssertUnwindSafe(|| replace(false))).is_err());
    }
    assert_eq!(panics, 1);
    assert!(living.count() < WRITES / 20, "{}", living.count());
}
