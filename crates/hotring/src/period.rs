//! Periods: one in R requests looks after the ring that it asked. The others only do what they came
//! for.
//!
//! A thread has one counter for all maps. It says how much *way* is left to the end of the period.
//! Each request goes a *stride* of it: the R-th part of the whole way, by the R of the map that is
//! asked. The request that would go further than the way ends the period, and goes the rest of its
//! stride in the next one. So the requests to each map end periods by the map's own R, whatever
//! else the thread asks. If a map is asked alone, each R-th request ends a period; with R = 1, each
//! does. If requests were counted down instead, a map with a large R would leave no ends to others.
//!
//! After one in some periods the way is drawn anew, all ways being equally likely. Otherwise one of
//! several maps that are asked in turn might get all of the ends, and the others would neither turn
//! nor grow. As most ways are not drawn, a processor may foresee where periods end.

use std::cell::Cell;

use crate::sync::counting::{AtomicU64, Ordering};

/// The fractional part of the golden ratio, in 64 bits. Its multiples are spread evenly, and so are
/// the multiples of its multiples.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The whole way. It leaves the highest bit free, to say that a request went further.
const WHOLE: u64 = 1 << 63;

/// After one in two to this power of a thread's periods, the way is drawn.
const DRAWN: u32 = 4;

/// How far a request goes on the way to a period's end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stride(u64);

impl Stride {
    /// The stride of a map whose R is `period`, at least 1.
    pub(crate) fn of(period: u32) -> Self {
        // Rounded up, so that no way takes more than R strides.
        Self(WHOLE.div_ceil(period.into()))
    }
}

/// Which one this is of the periods that a thread has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended(pub(crate) u32);

impl Ended {
    /// Whether it is one of the chosen periods, which are one in 2^`level`. Of every *k*-th period
    /// the same share is chosen: maps with R = 1 that are asked in turn have those periods.
    pub(crate) fn is_one_of(self, level: u32) -> bool {
        self.0.leading_zeros() >= level
    }
}

/// What a thread has asked for.
struct Requests {
    /// What is left of the way to the period's end, less than [`WHOLE`]. Between the period's end
    /// and [`end`] it is more.
    way: Cell<u64>,
    /// The last number that was drawn; zero before the first request.
    drawn: Cell<u64>,
    /// The last period that has ended.
    ended: Cell<u32>,
}

#[cfg(hotring_loom)]
loom::thread_local! {
    static REQUESTS: Requests = Requests::none();
}
#[cfg(all(hotring_shuttle, not(hotring_loom)))]
shuttle::thread_local! {
    static REQUESTS: Requests = Requests::none();
}
#[cfg(not(any(hotring_loom, hotring_shuttle)))]
std::thread_local! {
    static REQUESTS: Requests = const { Requests::none() };
}

impl Requests {
    const fn none() -> Self {
        Self {
            way: Cell::new(0),
            drawn: Cell::new(0),
            ended: Cell::new(0),
        }
    }

    /// Goes a stride, and says whether the way was long enough.
    #[inline(always)]
    fn go(&self, stride: Stride) -> bool {
        let left = self.way.get().wrapping_sub(stride.0);
        self.way.set(left);
        left < WHOLE
    }

    /// Ends the period and begins the next one. A thread's first request may have no period to end:
    /// it finds that no way was drawn yet.
    #[inline]
    fn end(&self, stride: Stride) -> Option<Ended> {
        if self.drawn.get() == 0 && self.begin(stride) {
            return None;
        }
        let ended = Ended(self.ended.get().wrapping_add((GOLDEN >> 32) as u32));
        self.ended.set(ended.0);
        self.way.set(if ended.is_one_of(DRAWN) {
            self.draw()
        } else {
            self.way.get() % WHOLE
        });
        Some(ended)
    }

    /// Draws a thread's first way, and says whether its first request needs no more than that.
    #[cold]
    fn begin(&self, stride: Stride) -> bool {
        self.drawn.set(seed());
        self.way.set(self.draw());
        self.go(stride)
    }

    /// A way. (Marsaglia's xorshift, which yields every number but zero.)
    fn draw(&self) -> u64 {
        let mut drawn = self.drawn.get();
        drawn ^= drawn << 13;
        drawn ^= drawn >> 7;
        drawn ^= drawn << 17;
        self.drawn.set(drawn);
        drawn % WHOLE
    }
}

/// Where a thread's draws begin. This differs between threads, so that threads that live for a few
/// requests end periods as often as others do. Never zero.
fn seed() -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(1);
    // A model checker repeats what it has seen, and must find it unchanged.
    let thread = if cfg!(any(hotring_loom, hotring_shuttle)) {
        1
    } else {
        THREADS.fetch_add(1, Ordering::Relaxed)
    };
    thread.wrapping_mul(GOLDEN)
}

/// Counts a request of this thread to a map of this stride, and says whether the period goes on. If
/// it does not, [`end`] is next.
///
/// Most requests do nothing more than this. What is to be done at an end does not return into a
/// lookup, because the lookup would then have to save what it knows across a call.
#[inline(always)]
pub(crate) fn goes_on(stride: Stride) -> bool {
    REQUESTS
        .try_with(|requests| requests.go(stride))
        // The thread is ending and its counter is gone: no period ends any more.
        .unwrap_or(true)
}

/// Ends the period of this thread, which does not go on. None if the thread had no period yet.
#[inline]
pub(crate) fn end(stride: Stride) -> Option<Ended> {
    REQUESTS
        .try_with(|requests| requests.end(stride))
        .unwrap_or(None)
}

#[cfg(all(test, not(any(hotring_loom, hotring_shuttle))))]
mod tests {
    use super::*;

    /// The period that a request to a map with this R ends.
    fn ask(requests: &Requests, r: u32) -> Option<Ended> {
        let stride = Stride::of(r);
        if requests.go(stride) {
            return None;
        }
        requests.end(stride)
    }

    /// How many requests the next period takes.
    fn length(requests: &Requests, r: u32) -> u32 {
        1 + (0..).take_while(|_| ask(requests, r).is_none()).count() as u32
    }

    #[test]
    #[cfg_attr(miri, ignore = "counts millions of requests, in safe code only")]
    fn periods_of_a_map_alone_have_r_requests_but_for_one_of_some() {
        const PERIODS: usize = 40_000;
        for r in [1, 2, 5, 50] {
            let requests = Requests::none();
            // With 4,000 periods, one run in thirty missed, by chance, a length that one period in
            // 16 has one time in 50.
            let lengths: Vec<_> = (0..PERIODS).map(|_| length(&requests, r)).collect();
            assert!(lengths.iter().all(|length| (1..=r).contains(length)));
            let whole = lengths.iter().filter(|&&length| length == r).count();
            assert!(whole >= PERIODS / 16 * 14, "{whole} for {r}");
            for length in 1..=r.min(5) {
                assert!(lengths.contains(&length), "{length} for {r}");
            }
        }
    }

    /// So threads that live for only a few requests do their part.
    #[test]
    fn any_of_a_threads_first_requests_is_as_likely_to_end_a_period() {
        for r in [1, 2, 5] {
            let mut ends = vec![0; 5];
            for _ in 0..5000 {
                let requests = Requests::none();
                for ends in &mut ends {
                    *ends += u32::from(ask(&requests, r).is_some());
                }
            }
            let expected = 5000 / r;
            assert!(
                ends.iter()
                    .all(|ends| ends.abs_diff(expected) <= expected / 5),
                "{ends:?} for {r}"
            );
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "counts millions of requests, in safe code only")]
    fn maps_that_are_asked_in_turn_end_periods_by_their_own_r() {
        const ROUNDS: u32 = 40_000;
        for turn in [
            vec![5, 5],
            vec![4, 4, 4, 4],
            vec![1, 5],
            vec![100, 5, 1, 5],
            vec![u32::MAX, 5],
        ] {
            let requests = Requests::none();
            let mut ends = vec![0; turn.len()];
            for _ in 0..ROUNDS {
                for (&r, ends) in turn.iter().zip(&mut ends) {
                    *ends += u32::from(ask(&requests, r).is_some());
                }
            }
            for (&r, &ends) in turn.iter().zip(&ends) {
                let expected = ROUNDS / r;
                assert!(
                    ends.abs_diff(expected) <= expected / 4 + 1,
                    "{ends} with {r} of {turn:?}"
                );
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "counts millions of requests, in safe code only")]
    fn of_each_kth_period_so_many_are_one_of_2_to_a_power_as_of_all() {
        for (k, level) in (1..=8).flat_map(|k| [0, 1, 2, 5, 7].map(|level| (k, level))) {
            let requests = Requests::none();
            let of_all = 1 << 14;
            let found = (1..=k * of_all)
                .filter(|i| {
                    ask(&requests, 1).is_some_and(|period| period.is_one_of(level)) && i % k == 0
                })
                .count();
            let expected = of_all >> level;
            assert!(
                found.abs_diff(expected) <= expected / 8,
                "{found} for {k} and {level}"
            );
        }
    }
}
