//! When a client's operations are due, if a rate is offered.
//!
//! The schedule is fixed when the run begins. It does not wait for answers, as clients of a service
//! do not wait for those of others. What an operation waits for its turn behind a slow one is part
//! of its latency.

use std::thread;
use std::time::{Duration, Instant};

/// The longest that a waiting client does not see that the run is over.
const LOOK: Duration = Duration::from_millis(50);

/// The schedule of one client.
#[derive(Debug)]
pub(super) struct Pace {
    /// When the run began.
    begin: Instant,
    /// Operations a second of all clients.
    rate: u64,
    clients: u64,
    /// Number of its next operation among those of all clients. They take turns, so that not all of
    /// them come at once.
    next: u64,
}

impl Pace {
    /// The schedule of client `number` of `clients`, which together offer `rate` operations a
    /// second.
    pub(super) fn new(begin: Instant, rate: u64, clients: usize, number: u64) -> Self {
        wake_in_time();
        Self {
            begin,
            rate: rate.max(1),
            clients: clients as u64,
            next: number,
        }
    }

    /// Waits until the next operation is due, and returns when that was. An operation that is late
    /// does not wait. Returns early if the run `is_over`.
    pub(super) fn wait(&mut self, is_over: impl Fn() -> bool) -> Instant {
        let due = self.begin + self.due();
        self.next += self.clients;
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() || is_over() {
                return due;
            }
            thread::sleep(left.min(LOOK));
        }
    }

    /// Time from the beginning until the next operation is due. It is not summed up, because then
    /// errors would be too.
    fn due(&self) -> Duration {
        let nanos = u128::from(self.next % self.rate) * 1_000_000_000 / u128::from(self.rate);
        Duration::new(self.next / self.rate, nanos as u32)
    }
}

/// By default the kernel may wake a thread 50 us late to save a wake-up, and that would count as
/// latency of the store.
fn wake_in_time() {
    #[cfg(target_os = "linux")]
    // Where the kernel refuses, latencies are a little longer.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use super::super::Measured;
    use super::super::tests::{on_new_store, replay};
    use super::*;
    use crate::engines::memory::Lie;
    use crate::plan::tests::parse;

    fn run(flags: &str) -> Measured {
        let flags = format!("--data-size 400KB --record-size 200 {flags}");
        let plan = parse(&flags).unwrap().plan().unwrap();
        on_new_store(&plan, Lie::None, &mut ())
    }

    /// When the first three operations are due, in microseconds.
    fn due(rate: u64, clients: usize, number: u64) -> [u128; 3] {
        let mut pace = Pace::new(Instant::now(), rate, clients, number);
        [(); 3].map(|()| {
            let due = pace.due().as_micros();
            pace.wait(|| true);
            due
        })
    }

    #[test]
    fn clients_share_the_rate_and_take_turns() {
        assert_eq!(due(1000, 1, 0), [0, 1000, 2000]);
        assert_eq!(due(1000, 4, 0), [0, 4000, 8000]);
        assert_eq!(due(1000, 4, 3), [3000, 7000, 11_000]);
        assert_eq!(due(2, 3, 1), [500_000, 2_000_000, 3_500_000]);
    }

    /// A period of 333.3 us must not become one of 333.
    #[test]
    fn a_rate_that_divides_nothing_is_kept_all_the_same() {
        let mut pace = Pace::new(Instant::now(), 3000, 1, 0);
        pace.next = 3_000_002_999;
        assert_eq!(pace.due(), Duration::new(1_000_000, 999_666_666));
    }

    #[test]
    fn a_late_operation_was_due_when_it_was_due() {
        let begin = Instant::now();
        let long_ago = begin.checked_sub(Duration::from_secs(60)).unwrap();
        let mut pace = Pace::new(long_ago, 10, 1, 0);
        let waits = [(); 3].map(|()| pace.wait(|| panic!("it does not wait")));
        let tenth = Duration::from_millis(100);
        assert_eq!(waits, [long_ago, long_ago + tenth, long_ago + 2 * tenth]);
    }

    /// The last of 200 operations, and of as many before, is due after 199 periods.
    #[test]
    fn no_operation_comes_before_it_is_due_warming_up_or_measured() {
        let least = 199.0 / 2000.0;
        let stages = "--distribution hotspot-5,uniform";
        let measured = run(&format!("--rate 2000 --ops 200 --warm-up 200 {stages}"));
        let warm_up = measured.warm_up.unwrap();
        assert_eq!((warm_up.ops, measured.ops), (200, 200));
        assert!(warm_up.seconds >= least && measured.seconds >= least);
        assert_eq!(measured.stages.len(), 2);
        let replayed = replay("--rate 2000 --ops 200", Lie::None);
        assert!(replayed.seconds >= least, "{}", replayed.seconds);
        assert_eq!((replayed.ops, replayed.wrongs.count()), (200, 0));
    }

    #[test]
    fn a_run_that_time_ends_does_no_more_than_was_due() {
        let measured = run("--rate 500 --duration 200ms");
        let due = measured.seconds * 500.0 + 1.0;
        let ops = measured.ops as f64;
        assert!(ops > 0.0 && ops <= due, "{ops} of {due}");
    }

    /// All operations are due at the beginning. Without the time that they wait for their turn, one
    /// client's latencies could not be longer together than the run.
    #[test]
    fn waiting_for_ones_turn_is_part_of_the_latency() {
        let flags = "--rate 1000000000000 --ops 20000 --threads 1";
        let measured = run(flags);
        assert_eq!(measured.ops, 20_000, "none is skipped");
        let sum = |latency: &hdrhistogram::Histogram<u64>| latency.mean() * latency.len() as f64;
        let together: f64 = measured.latencies.iter().map(sum).sum();
        assert!(together / 1e9 > 10.0 * measured.seconds, "{together} ns");
    }

    /// Eight clients at one operation a second: the last would begin after seven.
    #[test]
    fn clients_that_wait_see_the_end_of_the_run() {
        for end in ["--duration 100ms", "--ops 1"] {
            let measured = run(&format!("--rate 1 --threads 8 {end}"));
            assert_eq!(measured.ops, 1, "{end}");
            assert!(measured.seconds < 6.0, "{end}: {}", measured.seconds);
        }
    }
}
