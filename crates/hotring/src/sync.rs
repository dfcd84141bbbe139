//! Atomics and the one lock, from one place, so that a model checker can stand in for `std`.
//!
//! With the feature `loom` they are those of `loom`, which tries every interleaving of a
//! small test and every value that the memory model lets a load return; with `shuttle`
//! those of `shuttle`, which tries many seeded schedules of a larger one. Counters that only
//! feed statistics stay those of `std` everywhere: no other access is ordered by them, and
//! every one would multiply the interleavings.

#[cfg(feature = "loom")]
use loom::sync as imp;
#[cfg(all(feature = "shuttle", not(feature = "loom")))]
use shuttle::sync as imp;
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
use std::sync as imp;

use std::cell::Cell;
use std::sync::TryLockError;

pub(crate) use imp::MutexGuard;

/// Atomics of the chosen implementation.
pub(crate) mod atomic {
    pub(crate) use super::imp::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
}

/// Atomics that only count: the standard ones in every build.
pub(crate) mod counting {
    pub(crate) use std::sync::atomic::{
        AtomicIsize, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
    };
}

/// A lock that nobody waits for.
#[derive(Debug)]
pub(crate) struct TryLock<T>(imp::Mutex<T>);

impl<T> TryLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(imp::Mutex::new(value))
    }

    /// The lock, if nobody holds it. A panic of an earlier holder does not poison it: whoever holds it calls
    /// what may panic, destructors of what was retired, only when what it guards says how things are.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// What it guards, for who has it alone.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        match self.0.get_mut() {
            Ok(value) => value,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

/// Lets other threads run.
pub(crate) fn yield_now() {
    #[cfg(feature = "loom")]
    loom::thread::yield_now();
    #[cfg(all(feature = "shuttle", not(feature = "loom")))]
    shuttle::thread::yield_now();
    #[cfg(not(any(feature = "loom", feature = "shuttle")))]
    std::thread::yield_now();
}

/// What a thread has asked for.
struct Requests {
    /// How many are left of the period, with the one that ends it; zero before the first.
    left: Cell<u32>,
    /// Periods that have ended.
    periods: Cell<u32>,
}

impl Requests {
    const fn none() -> Self {
        Self {
            left: Cell::new(0),
            periods: Cell::new(0),
        }
    }
}

#[cfg(feature = "loom")]
loom::thread_local! {
    static REQUESTS: Requests = Requests::none();
}
#[cfg(all(feature = "shuttle", not(feature = "loom")))]
shuttle::thread_local! {
    static REQUESTS: Requests = Requests::none();
}
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
std::thread_local! {
    static REQUESTS: Requests = const { Requests::none() };
}

/// Counts a request of this thread, and says whether it is the last of a period. It counts down, so
/// that most requests only compare with a constant.
#[inline(always)]
pub(crate) fn ends_period(period: u32) -> bool {
    REQUESTS
        .try_with(|requests| {
            let left = requests.left.get();
            if left > 1 {
                requests.left.set(left - 1);
                return false;
            }
            let (ends, left) = next_period(left, period);
            requests.left.set(left);
            ends
        })
        // The thread is ending and its counter is gone: no period ends any more.
        .unwrap_or(false)
}

/// Whether a request ends a period before which `left` were left, and how many are left for the
/// next one. A thread's first request begins a period, every other one that comes here ends one.
#[cold]
fn next_period(left: u32, period: u32) -> (bool, u32) {
    match left == 1 || period <= 1 {
        true => (true, period.max(1)),
        false => (false, period - 1),
    }
}

/// How many periods of this thread have ended, with the one that does now.
pub(crate) fn count_period() -> u32 {
    REQUESTS
        .try_with(|requests| {
            let periods = requests.periods.get().wrapping_add(1);
            requests.periods.set(periods);
            periods
        })
        .unwrap_or(0)
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;

    #[test]
    fn a_threads_first_period_is_as_long_as_every_other() {
        for (period, expected) in [
            (5, vec![5, 10]),
            (4, vec![4, 8, 12]),
            (1, (1..=12).collect()),
        ] {
            let ends = move || -> Vec<u32> { (1..=12).filter(|_| ends_period(period)).collect() };
            // A thread of its own: one that has asked for nothing yet.
            assert_eq!(std::thread::spawn(ends).join().unwrap(), expected);
        }
    }
}
