//! Atomics and the one lock, from one place, so that a model checker can stand in for `std`.
//!
//! With `--cfg hotring_loom` they are those of `loom`, which tries every interleaving of a small
//! test and every value that the memory model lets a load return; with `--cfg hotring_shuttle`
//! those of `shuttle`, which tries many seeded schedules of a larger one. Counters that only feed
//! statistics stay those of `std` everywhere: no other access is ordered by them, and every one
//! would multiply the interleavings.

#[cfg(hotring_loom)]
use loom::sync as imp;
#[cfg(all(hotring_shuttle, not(hotring_loom)))]
use shuttle::sync as imp;
#[cfg(not(any(hotring_loom, hotring_shuttle)))]
use std::sync as imp;

use std::sync::TryLockError;

pub(crate) use imp::MutexGuard;

/// Atomics of the chosen implementation.
pub(crate) mod atomic {
    pub(crate) use super::imp::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
}

/// Atomics that only count: the standard ones in every build.
pub(crate) mod counting {
    pub(crate) use std::sync::atomic::{AtomicIsize, AtomicU16, AtomicU64, AtomicUsize, Ordering};
}

/// A lock that is tried and never waited for.
#[derive(Debug)]
pub(crate) struct TryLock<T>(imp::Mutex<T>);

impl<T> TryLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(imp::Mutex::new(value))
    }

    /// The lock, if nobody holds it. A panic of an earlier holder does not poison it. A holder runs
    /// what may panic, destructors of what was retired, only when what the lock guards is
    /// consistent.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// What it guards, for whoever has it alone.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        match self.0.get_mut() {
            Ok(value) => value,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

/// Lets other threads run.
pub(crate) fn yield_now() {
    #[cfg(hotring_loom)]
    loom::thread::yield_now();
    #[cfg(all(hotring_shuttle, not(hotring_loom)))]
    shuttle::thread::yield_now();
    #[cfg(not(any(hotring_loom, hotring_shuttle)))]
    std::thread::yield_now();
}
