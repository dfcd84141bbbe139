//! The loop that measures, and the comparison of contenders by it.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::contenders::{Handle, Table};

/// What a request does: the two high bits of its word, above the key.
pub(crate) const READ: u32 = 0;
pub(crate) const PUT: u32 = 1 << 30;
/// The key is not the request's, but a new one.
pub(crate) const INSERT: u32 = 2 << 30;
const KEY: u32 = PUT - 1;

/// Prepared requests.
pub(crate) struct Work {
    /// One stream a thread, repeated from its end.
    pub(crate) streams: Vec<Vec<u32>>,
    /// Requests under one handle before it lets go of what it has seen.
    pub(crate) batch: usize,
    /// The processor knows a request's key only when the request before it was answered.
    pub(crate) dependent: bool,
}

/// A table with a name, whatever its type.
pub(crate) trait Contender: Sync {
    fn name(&self) -> &str;

    /// Inserts these keys.
    fn load(&self, keys: &[u32]);

    /// Runs the work for about `time`. Yields the nanoseconds of processor time that a request
    /// took.
    ///
    /// Processor time and not the clock's, because it does not count what other processes took.
    fn run(&self, work: &Work, time: Duration) -> f64;
}

/// A table that takes part.
pub(crate) struct Entrant<T> {
    pub(crate) name: String,
    pub(crate) table: T,
    /// The next new key of each thread, and where its stream goes on.
    places: Vec<(AtomicU64, AtomicU64)>,
}

impl<T: Table> Entrant<T> {
    pub(crate) fn new(name: impl Into<String>, table: T) -> Self {
        // New keys of a thread lie behind all that fit a request.
        let places = (1..=64)
            .map(|thread| (AtomicU64::new(thread << 40), AtomicU64::new(0)))
            .collect();
        Self {
            name: name.into(),
            table,
            places,
        }
    }

    fn requests(&self, work: &Work, thread: usize, until: Instant) -> f64 {
        let stream = &work.streams[thread];
        let (new_key, place) = &self.places[thread];
        let mut key = new_key.load(Ordering::Relaxed);
        let mut at = place.load(Ordering::Relaxed) as usize % stream.len();
        let (mut done, mut sum) = (0u64, 0u64);
        // No bit of an answer remains, but that cannot be known before the answer is there.
        let kept = black_box(0u32);
        let mut carried = 0;
        let mut handle = self.table.handle();
        let begun = processor_time();
        while Instant::now() < until {
            for _ in 0..(4096 / work.batch).max(1) {
                let end = stream.len().min(at + work.batch);
                for &request in &stream[at..end] {
                    let request = request ^ carried;
                    match request & !KEY {
                        READ => {
                            let answer = handle.get((request & KEY).into()).unwrap_or(0);
                            sum ^= answer;
                            if work.dependent {
                                carried = answer as u32 & kept;
                            }
                        }
                        PUT => handle.put((request & KEY).into(), done),
                        _ => {
                            handle.insert(key, done);
                            key += 1;
                        }
                    }
                }
                done += (end - at) as u64;
                at = end % stream.len();
                handle.repin();
            }
        }
        let took = processor_time() - begun;
        black_box(sum);
        new_key.store(key, Ordering::Relaxed);
        place.store(at as u64, Ordering::Relaxed);
        took.as_secs_f64() * 1e9 / done.max(1) as f64
    }
}

impl<T: Table> Contender for Entrant<T> {
    fn name(&self) -> &str {
        &self.name
    }

    fn load(&self, keys: &[u32]) {
        let mut handle = self.table.handle();
        for batch in keys.chunks(64) {
            for &key in batch {
                handle.insert(key.into(), key.into());
            }
            handle.repin();
        }
    }

    fn run(&self, work: &Work, time: Duration) -> f64 {
        let threads = work.streams.len();
        let ready = Barrier::new(threads);
        let costs: Vec<f64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads)
                .map(|thread| {
                    let ready = &ready;
                    scope.spawn(move || {
                        ready.wait();
                        self.requests(work, thread, Instant::now() + time)
                    })
                })
                .collect();
            threads.into_iter().flat_map(|t| t.join()).collect()
        });
        costs.iter().sum::<f64>() / costs.len() as f64
    }
}

/// The processor time that this thread has had.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The times of a contender in nanoseconds, sorted.
pub(crate) struct Times(pub(crate) Vec<f64>);

impl Times {
    pub(crate) fn median(&self) -> f64 {
        self.0[self.0.len() / 2]
    }
}

/// Loads all of them by two threads, some keys of each in turn, so that their items lie mixed in
/// memory. When equal tables were loaded one after the other, they differed by a quarter, and the
/// first was the slowest.
pub(crate) fn load(contenders: &[&dyn Contender], keys: &[u32]) {
    std::thread::scope(|scope| {
        for half in keys.chunks(keys.len().div_ceil(2).max(1)) {
            scope.spawn(move || {
                for some in half.chunks(1024) {
                    for contender in contenders {
                        contender.load(some);
                    }
                }
            });
        }
    });
}

/// How contenders take turns.
pub(crate) struct Turns {
    /// How long each works first, without being measured.
    pub(crate) warm_up: Duration,
    /// How often each has its turn.
    pub(crate) repeats: usize,
    /// How long a turn takes.
    pub(crate) time: Duration,
}

/// Every contender in turn.
pub(crate) fn compare(contenders: &[&dyn Contender], work: &Work, turns: &Turns) -> Vec<Times> {
    for contender in contenders {
        contender.run(work, turns.warm_up);
    }
    let mut times: Vec<Vec<f64>> = contenders.iter().map(|_| Vec::new()).collect();
    for _ in 0..turns.repeats.max(1) {
        for (contender, times) in contenders.iter().zip(&mut times) {
            times.push(contender.run(work, turns.time));
        }
    }
    times
        .into_iter()
        .map(|mut times| {
            times.sort_by(f64::total_cmp);
            Times(times)
        })
        .collect()
}
