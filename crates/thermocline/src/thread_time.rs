//! The processor time of a thread, with what other threads used for it.

use std::cell::Cell;

thread_local! {
    /// What other threads have used for this one.
    static FROM_OTHERS: Cell<u64> = const { Cell::new(0) };
}

/// Nanoseconds of processor time that this thread has used, and that others have used for it.
pub(crate) fn used() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let nanos = time
        .tv_sec
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec);
    u64::try_from(nanos)
        .unwrap_or(0)
        .saturating_add(FROM_OTHERS.get())
}

/// Counts nanoseconds that another thread used for this one.
pub(crate) fn add(nanos: u64) {
    FROM_OTHERS.set(FROM_OTHERS.get().saturating_add(nanos));
}

/// Uses the processor for so many nanoseconds.
#[cfg(test)]
pub(crate) fn burn(nanos: u64) {
    let end = used() + nanos;
    while used() < end {
        std::hint::black_box(0);
    }
}
