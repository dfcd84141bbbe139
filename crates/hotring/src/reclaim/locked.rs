//! Reclamation by a lock, for Miri. `crossbeam-epoch` makes pointers of integers, so it does not
//! run under strict provenance. This frees as early as the rule allows, so that Miri sees who
//! breaks it.

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

type Deferred = Box<dyn FnOnce() + Send>;

struct Ledger {
    clock: u64,
    guards: Vec<u64>,
    waiting: Vec<(u64, Deferred)>,
}

static LEDGER: Mutex<Ledger> = Mutex::new(Ledger {
    clock: 0,
    guards: Vec::new(),
    waiting: Vec::new(),
});

fn ledger() -> MutexGuard<'static, Ledger> {
    LEDGER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps what is reachable now, or was since it was taken, from being freed.
#[derive(Debug)]
pub(crate) struct Guard {
    stamp: u64,
}

/// Takes a guard.
pub(crate) fn pin() -> Guard {
    let mut ledger = ledger();
    let stamp = ledger.clock;
    ledger.guards.push(stamp);
    Guard { stamp }
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
        let mut ledger = ledger();
        if let Some(at) = ledger.guards.iter().position(|&stamp| stamp == self.stamp) {
            ledger.guards.swap_remove(at);
        }
        let oldest = ledger.guards.iter().copied().min().unwrap_or(u64::MAX);
        let due: Vec<_> = ledger
            .waiting
            .extract_if(.., |(stamp, _)| *stamp <= oldest)
            .collect();
        drop(ledger);
        for (_, then) in due {
            then();
        }
    }
}

/// Notes that `guard` reaches the object at `at`; the models check it.
pub(crate) fn reached<T>(_guard: &Guard, _at: NonNull<T>) {}

/// A pointer that goes to the thread that frees what is there.
struct Retired<T>(NonNull<T>);

// SAFETY: the caller of `retire` says that it may be freed by any thread.
unsafe impl<T> Send for Retired<T> {}

impl<T> Retired<T> {
    fn get(self) -> NonNull<T> {
        self.0
    }
}

/// Calls `free` on the object at `at` when every guard that exists now is gone.
///
/// # Safety
///
/// As for the epochs' `retire`.
pub(crate) unsafe fn retire<T: 'static>(
    guard: &Guard,
    at: NonNull<T>,
    _parts: impl Iterator<Item = usize>,
    free: unsafe fn(NonNull<T>),
) {
    let at = Retired(at);
    // SAFETY: the caller's promise.
    after_grace(guard, move || unsafe { free(at.get()) });
}

/// How many objects this thread has freed that had to wait for others' turn: here none have to.
pub(crate) fn freed() -> u64 {
    0
}

/// Calls `then` when every guard that exists now is gone.
pub(crate) fn after_grace(_guard: &Guard, then: impl FnOnce() + Send + 'static) {
    let mut ledger = ledger();
    ledger.clock += 1;
    let stamp = ledger.clock;
    ledger.waiting.push((stamp, Box::new(then)));
}
