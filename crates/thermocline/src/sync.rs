//! Locks and atomics, from one place, so that a model checker can stand in for `std`.
//!
//! With `--cfg thermocline_shuttle` every lock, condition and atomic of the engine is the one of
//! the `shuttle` crate, which runs a test under many seeded schedules. A panic while a lock
//! is held does not poison it: the engine's panics are bugs, and hiding the first one
//! behind a second helps nobody.

#[cfg(not(thermocline_shuttle))]
use std::sync as imp;
/// Always the standard one: the checker's has no unsized coercion, and counting references
/// is not what the models are about.
pub(crate) use std::sync::Arc;

pub(crate) use imp::MutexGuard;
#[cfg(thermocline_shuttle)]
use shuttle::sync as imp;

/// Atomics of the chosen implementation.
pub(crate) mod atomic {
    pub(crate) use super::imp::atomic::{
        AtomicBool, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
}

/// Lets other threads run.
pub(crate) fn yield_now() {
    #[cfg(thermocline_shuttle)]
    shuttle::thread::yield_now();
    #[cfg(not(thermocline_shuttle))]
    std::thread::yield_now();
}

/// A mutual exclusion lock that is never poisoned.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(imp::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(imp::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        match self.0.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// The lock, if nobody has it.
    #[cfg(test)]
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}

/// A condition variable for [`Mutex`].
#[derive(Debug, Default)]
pub(crate) struct Condvar(imp::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(imp::Condvar::new())
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        match self.0.wait(guard) {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}
