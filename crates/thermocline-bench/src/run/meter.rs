//! Processor time of a client's calls, by sampling.
//!
//! The clock of a thread's processor time is a system call. It costs more than many a read that the
//! cache answers. So if there are many calls, only few of them are measured. The call to measure
//! next is drawn at random before any of the calls up to it is made, and it stands for all of
//! these. Neither what a call takes nor when it comes makes it more likely to be measured. If time
//! decided, the first call after a wait, which finds cold caches, would be more likely. If there
//! are few calls, all are measured, because then the cost of the clock does not matter. Whole
//! [`WINDOW`]s tell how many calls there are, so that this hardly depends on the position in a
//! burst. The calls after the last measured one are missing, fewer than twice [`EVERY`].

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rustix::time::{ClockId, clock_gettime};

use super::shared::Tally;

/// If there are many calls of a kind, one in this many is measured, on average.
const EVERY: u32 = 32;

/// If there are fewer, one is measured this often, on average. If they come no more often than
/// this, all are measured.
const SOON: Duration = Duration::from_millis(1);

/// The time over which calls are counted.
const WINDOW: Duration = Duration::from_millis(100);

/// What a client asks of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Call {
    /// A point read or a scan.
    Read,
    /// A write.
    Write,
}

/// Which calls of a kind are measured.
#[derive(Debug, Clone, Copy)]
struct Sampling {
    /// How many calls the next measured one stands for, itself included.
    gap: u32,
    /// How many of these are still to come. At least one.
    left: u32,
    /// Mean of the gaps that are drawn.
    mean: u32,
    /// When the present window began, and the calls in it.
    window: Option<(Instant, u32)>,
}

impl Sampling {
    /// Every call is measured until a window has told how many there are.
    const EVERY_CALL: Self = Self {
        gap: 1,
        left: 1,
        mean: 1,
        window: None,
    };

    /// For a call at `now`: how many calls it stands for, if it is to be measured.
    fn due(&mut self, now: Instant, rng: &mut SmallRng) -> Option<u32> {
        self.count(now);
        self.left -= 1;
        if self.left > 0 {
            return None;
        }
        let stands_for = self.gap;
        // Drawn now, because it must not follow from the calls that it is about.
        self.gap = rng.random_range(1..=2 * self.mean - 1);
        self.left = self.gap;
        Some(stands_for)
    }

    fn count(&mut self, now: Instant) {
        let (begin, calls) = self.window.get_or_insert((now, 0));
        let lasted = now.saturating_duration_since(*begin);
        if lasted >= WINDOW {
            let mean = f64::from(*calls) * SOON.as_secs_f64() / lasted.as_secs_f64();
            self.mean = (mean.round() as u32).clamp(1, EVERY);
            (*begin, *calls) = (now, 0);
        }
        *calls += 1;
    }
}

/// Measures the calls of one client.
pub(super) struct Meter<'a> {
    tally: &'a Tally,
    /// One for each kind.
    sampling: [Sampling; 2],
    rng: SmallRng,
    /// What reading the clock itself adds to a measurement.
    clock_nanos: u64,
}

impl<'a> Meter<'a> {
    /// `seed` is for the numbers that decide which calls are measured. These are not the numbers
    /// that choose the calls.
    pub(super) fn new(tally: &'a Tally, seed: u64) -> Self {
        Self {
            tally,
            sampling: [Sampling::EVERY_CALL; 2],
            rng: SmallRng::seed_from_u64(seed),
            clock_nanos: clock_nanos(),
        }
    }

    /// Makes a call. `now` is the present time, or that of a moment ago.
    pub(super) fn call<T>(&mut self, call: Call, now: Instant, make: impl FnOnce() -> T) -> T {
        let Some(stands_for) = self.sampling[call as usize].due(now, &mut self.rng) else {
            return make();
        };
        let before = thread_nanos();
        let outcome = make();
        let after = thread_nanos();
        let took = after.saturating_sub(before);
        let took = took.saturating_sub(self.clock_nanos) * u64::from(stands_for);
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

/// The least time between two readings of the clock.
fn clock_nanos() -> u64 {
    let between = (0..8).map(|_| {
        let before = thread_nanos();
        thread_nanos().saturating_sub(before)
    });
    between.min().unwrap_or(0)
}

/// Processor time that this thread has used.
fn thread_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses the processor until this thread's clock says so. Returns how much it used.
    fn burn(nanos: u64) -> u64 {
        let begin = thread_nanos();
        loop {
            let used = thread_nanos() - begin;
            if used >= nanos {
                return used;
            }
        }
    }

    fn seconds(tally: &Tally) -> [f64; 2] {
        let nanos = |call: Call| tally.call_nanos[call as usize].load(Ordering::Relaxed);
        [Call::Read, Call::Write].map(|call| nanos(call) as f64 / 1e9)
    }

    #[test]
    fn few_of_many_calls_stand_for_all() {
        let tally = Tally::new();
        let mut meter = Meter::new(&tally, 7);
        let mut now = Instant::now();
        // How many were measured in the first window, and how many after it.
        let mut measured = [0, 0];
        for n in 0..12_800 {
            let before = tally.call_nanos[0].load(Ordering::Relaxed);
            meter.call(Call::Read, now, || burn(20_000));
            let after = tally.call_nanos[0].load(Ordering::Relaxed);
            measured[n / 6400] += u32::from(after > before);
            if n % 4 == 0 {
                meter.call(Call::Write, now, || burn(40_000));
            }
            now += SOON / 64;
        }
        // All, and then 200 with a deviation of 8.
        assert_eq!(measured[0], 6400);
        assert!((160..240).contains(&measured[1]), "{measured:?}");
        let [reads, writes] = seconds(&tally);
        // 12,800 calls of 20 us, and 3200 of 40 us. The clock adds a little, and fewer than 64
        // calls are missing for the last gap.
        assert!((0.25..0.5).contains(&reads), "{reads}");
        assert!((0.125..0.25).contains(&writes), "{writes}");
    }

    /// Regression: the first call of a burst was always measured, and stood for the calls at the
    /// end of the burst before.
    #[test]
    fn the_first_call_after_a_wait_counts_no_more_than_others() {
        let tally = Tally::new();
        let mut meter = Meter::new(&tally, 7);
        let begin = Instant::now();
        let mut burnt = 0;
        for burst in 0..500 {
            for n in 0..40 {
                let now = begin + Duration::from_millis(4) * burst + Duration::from_micros(10) * n;
                let nanos = if n == 0 { 100_000 } else { 10_000 };
                burnt += meter.call(Call::Read, now, || burn(nanos));
            }
        }
        let [reads, _] = seconds(&tally);
        let ratio = reads * 1e9 / burnt as f64;
        // Its deviation is 0.03.
        assert!((1.0 / 1.2..1.2).contains(&ratio), "{ratio}");
    }

    #[test]
    fn calls_far_apart_are_all_measured_and_what_is_between_them_is_not() {
        let tally = Tally::new();
        let mut meter = Meter::new(&tally, 7);
        let mut now = Instant::now();
        let mut measured = 0;
        // Two windows and a half.
        for _ in 0..250 {
            now += SOON;
            let before = tally.call_nanos[1].load(Ordering::Relaxed);
            meter.call(Call::Write, now, || burn(20_000));
            let after = tally.call_nanos[1].load(Ordering::Relaxed);
            measured += u32::from(after > before);
            burn(80_000);
        }
        assert_eq!(measured, 250);
        let [reads, writes] = seconds(&tally);
        assert_eq!(reads, 0.0);
        // 250 calls of 20 us. With what is between them it would be 0.025.
        assert!((0.005..0.02).contains(&writes), "{writes}");
        drop(meter);
        let all = tally.thread_nanos.load(Ordering::Relaxed);
        assert!(all >= 25_000_000, "{all}");
    }
}
