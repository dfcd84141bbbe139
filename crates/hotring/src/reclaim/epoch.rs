//! Reclamation by the epochs of `crossbeam-epoch`.

use std::ptr::NonNull;

/// Keeps what is reachable now, or was since it was taken, from being freed.
#[derive(Debug)]
pub(crate) struct Guard(crossbeam_epoch::Guard);

/// Takes a guard.
#[inline]
pub(crate) fn pin() -> Guard {
    Guard(crossbeam_epoch::pin())
}

impl Guard {
    /// Lets go of everything and begins anew.
    pub(crate) fn repin(&mut self) {
        self.0.repin();
    }

    /// Hands what this thread has retired to all threads, and frees what is due.
    pub(crate) fn flush(&self) {
        self.0.flush();
    }
}

/// Notes that `guard` reaches the object at `at`; the models check it.
#[inline(always)]
pub(crate) fn reached<T>(_guard: &Guard, _at: NonNull<T>) {}

/// Calls `free` on the object at `at` when every guard that exists now is gone. `parts` are
/// the addresses by which it is reached; only the models need them.
///
/// # Safety
///
/// No guard taken later can reach the object, it is retired once, and `free` may be called
/// on it from any thread at any later time.
pub(crate) unsafe fn retire<T: 'static>(
    guard: &Guard,
    at: NonNull<T>,
    _parts: impl Iterator<Item = usize>,
    free: unsafe fn(NonNull<T>),
) {
    // SAFETY: the caller's promise is the one `defer_unchecked` and `free` ask for.
    unsafe { guard.0.defer_unchecked(move || free(at)) }
}

/// Calls `then` when every guard that exists now is gone.
pub(crate) fn after_grace(guard: &Guard, then: impl FnOnce() + Send + 'static) {
    guard.0.defer(then);
    guard.0.flush();
}
