//! Reclamation that checks its rule, for the models.
//!
//! The bookkeeping is a thread-local of the operating system's thread on which a model runs all its
//! threads. So it is no part of what is modelled and adds no interleavings. Guards and retirements
//! are stamped by one counter. The fences are in the same places as those of an epoch scheme. The
//! models need them to know that a guard taken after a retirement sees what made the object
//! unreachable.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ptr::NonNull;

#[cfg(hotring_loom)]
use loom::sync::atomic::{Ordering, fence};
#[cfg(not(hotring_loom))]
use shuttle::sync::atomic::{Ordering, fence};

type Deferred = Box<dyn FnOnce()>;

#[derive(Default)]
struct Ledger {
    clock: u64,
    guards: Vec<u64>,
    retired: HashMap<usize, u64>,
    garbage: Vec<Deferred>,
    waiting: Vec<(u64, Deferred)>,
}

thread_local! {
    static LEDGER: RefCell<Ledger> = RefCell::default();
}

/// Keeps what is reachable now, or was since it was taken, from being freed.
#[derive(Debug)]
pub(crate) struct Guard {
    stamp: u64,
}

/// Takes a guard.
pub(crate) fn pin() -> Guard {
    fence(Ordering::SeqCst);
    LEDGER.with_borrow_mut(|ledger| {
        let stamp = ledger.clock;
        ledger.guards.push(stamp);
        Guard { stamp }
    })
}

impl Guard {
    /// Lets go of everything and begins anew.
    pub(crate) fn repin(&mut self) {
        *self = pin();
    }

    /// Does nothing: what is due is run as guards go.
    pub(crate) fn flush(&self) {}

    /// Does nothing: there is nothing to hand over.
    pub(crate) fn hand_over(&self) {}
}

impl Drop for Guard {
    fn drop(&mut self) {
        fence(Ordering::SeqCst);
        let due: Vec<Deferred> = LEDGER.with_borrow_mut(|ledger| {
            if let Some(at) = ledger.guards.iter().position(|&stamp| stamp == self.stamp) {
                ledger.guards.swap_remove(at);
            }
            let oldest = ledger.guards.iter().copied().min().unwrap_or(u64::MAX);
            ledger
                .waiting
                .extract_if(.., |(stamp, _)| *stamp <= oldest)
                .map(|(_, then)| then)
                .collect()
        });
        for then in due {
            then();
        }
    }
}

/// Fails the run if `guard` was taken after the object at `at` was retired. It does not do so while
/// the run is failing already: a map that is dropped then would end the process instead of the
/// test.
pub(crate) fn reached<T>(guard: &Guard, at: NonNull<T>) {
    LEDGER.with_borrow(|ledger| {
        if let Some(&stamp) = ledger.retired.get(&at.addr().get()) {
            assert!(
                guard.stamp < stamp || std::thread::panicking(),
                "reached after it was retired: guard {}, retired {stamp}",
                guard.stamp,
            );
        }
    });
}

/// Notes that the object at `at` is retired; it is freed at the [`end`] of the run.
///
/// # Safety
///
/// As for the epochs' `retire`; here a breach of the first two promises fails the run.
pub(crate) unsafe fn retire<T: 'static>(
    _guard: &Guard,
    at: NonNull<T>,
    parts: impl Iterator<Item = usize>,
    free: unsafe fn(NonNull<T>),
) {
    fence(Ordering::SeqCst);
    LEDGER.with_borrow_mut(|ledger| {
        ledger.clock += 1;
        let stamp = ledger.clock;
        for address in parts {
            let before = ledger.retired.insert(address, stamp);
            assert!(before.is_none(), "retired twice");
        }
        // SAFETY: run by `end`, when no guard is left, and once.
        ledger.garbage.push(Box::new(move || unsafe { free(at) }));
    });
}

/// How many objects this thread has freed that had to wait for others' turn: here none have to.
pub(crate) fn freed() -> u64 {
    0
}

/// Calls `then` when every guard that exists now is gone.
pub(crate) fn after_grace(_guard: &Guard, then: impl FnOnce() + Send + 'static) {
    fence(Ordering::SeqCst);
    LEDGER.with_borrow_mut(|ledger| {
        ledger.clock += 1;
        let stamp = ledger.clock;
        ledger.waiting.push((stamp, Box::new(then)));
    });
}

/// Begins a run with an empty ledger; an earlier run that failed may have left one.
#[cfg(test)]
pub(crate) fn begin() {
    LEDGER.with_borrow_mut(|ledger| std::mem::forget(std::mem::take(ledger)));
}

/// Ends a run: frees everything that was retired.
#[cfg(test)]
pub(crate) fn end() {
    let (garbage, waiting) = LEDGER.with_borrow_mut(|ledger| {
        assert!(ledger.guards.is_empty(), "a guard outlives the run");
        let ledger = std::mem::take(ledger);
        (ledger.garbage, ledger.waiting)
    });
    for (_, then) in waiting {
        then();
    }
    for free in garbage {
        free();
    }
}
