//! Processor time of a client's calls, by sampling.
//!
//! The clock of a thread's processor time is a system call, dearer than many a read that the cache
//! answers. So one call in [`EVERY`] is measured and stands for those before it; when calls are
//! few, all are, because then the clock costs nothing that counts. Which calls are measured follows
//! from what was before them, never from themselves, so the estimate leans to no side.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use super::shared::Tally;

/// Calls of a kind of which at least one is measured.
const EVERY: u32 = 32;

/// Time after which the next call of a kind is measured.
const SOON: Duration = Duration::from_millis(1);

/// What a client asks of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Call {
    /// A point read or a scan.
    Read,
    /// A write.
    Write,
}

/// Measures the calls of one client.
pub(super) struct Meter<'a> {
    tally: &'a Tally,
    /// By kind: calls since one was measured, and when that was.
    since: [(u32, Option<Instant>); 2],
    /// What reading the clock itself adds to a measurement.
    clock_nanos: u64,
}

impl<'a> Meter<'a> {
    pub(super) fn new(tally: &'a Tally) -> Self {
        Self {
            tally,
            since: [(0, None); 2],
            clock_nanos: clock_nanos(),
        }
    }

    /// Makes a call. `now` is the time, or was a moment ago.
    pub(super) fn call<T>(&mut self, call: Call, now: Instant, make: impl FnOnce() -> T) -> T {
        let (calls, measured) = &mut self.since[call as usize];
        *calls += 1;
        let is_due = *calls >= EVERY
            || measured.is_none_or(|measured| now.saturating_duration_since(measured) >= SOON);
        if !is_due {
            return make();
        }
        let calls = std::mem::take(calls);
        *measured = Some(now);
        let before = thread_nanos();
        let outcome = make();
        let after = thread_nanos();
        let took = after.saturating_sub(before);
        let took = took.saturating_sub(self.clock_nanos) * u64::from(calls);
        self.tally.call_nanos[call as usize].fetch_add(took, Ordering::Relaxed);
        self.tally.thread_nanos.store(after, Ordering::Relaxed);
        outcome
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        let all = thread_nanos();
        self.tally.thread_nanos.store(all, Ordering::Relaxed);
    }
}

/// The least that lies between two readings of the clock.
fn clock_nanos() -> u64 {
    let between = (0..8).map(|_| {
        let before = thread_nanos();
        thread_nanos().saturating_sub(before)
    });
    between.min().unwrap_or(0)
}

/// Processor time that this thread has used; 0 where the system does not tell.
fn thread_nanos() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from);
    time.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses the processor until this thread's clock says so.
    fn burn(nanos: u64) {
        let end = thread_nanos() + nanos;
        while thread_nanos() < end {
            std::hint::black_box(0);
        }
    }

    fn seconds(tally: &Tally) -> [f64; 2] {
        let nanos = |call: Call| tally.call_nanos[call as usize].load(Ordering::Relaxed);
        [Call::Read, Call::Write].map(|call| nanos(call) as f64 / 1e9)
    }

    #[test]
    fn few_calls_stand_for_all() {
        let tally = Tally::new();
        let mut meter = Meter::new(&tally);
        let now = Instant::now();
        let mut measured = 0;
        // At one time, so that only counting makes one due; the first of each kind always is.
        for n in 0..=640 {
            let before = tally.call_nanos[0].load(Ordering::Relaxed);
            meter.call(Call::Read, now, || burn(20_000));
            measured += u32::from(tally.call_nanos[0].load(Ordering::Relaxed) > before);
            if n % 4 == 0 {
                meter.call(Call::Write, now, || burn(40_000));
            }
        }
        assert_eq!(measured, 21);
        let [reads, writes] = seconds(&tally);
        // 641 calls of 20 us, 161 of 40 us; a little more for the clock.
        assert!((0.0128..0.026).contains(&reads), "{reads}");
        assert!((0.0064..0.013).contains(&writes), "{writes}");
    }

    #[test]
    fn calls_far_apart_are_all_measured_and_what_is_between_them_is_not() {
        let tally = Tally::new();
        let mut meter = Meter::new(&tally);
        let mut now = Instant::now();
        for _ in 0..10 {
            now += SOON;
            meter.call(Call::Write, now, || burn(100_000));
            burn(1_000_000);
        }
        let [reads, writes] = seconds(&tally);
        assert_eq!(reads, 0.0);
        assert!((0.001..0.005).contains(&writes), "{writes}");
        drop(meter);
        let all = tally.thread_nanos.load(Ordering::Relaxed);
        assert!(all >= 11_000_000, "{all}");
    }
}
