//! When faults are planted, and how often.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// What goes wrong with the disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weather {
    /// Nothing.
    Calm,
    /// Reads and writes fail now and then.
    Errors,
    /// Writes find no space now and then.
    Full,
    /// Writes stop half way now and then.
    ShortWrites,
    /// The next sync fails.
    SyncFails,
}

impl Weather {
    /// Its name in the series.
    pub(super) fn name(self) -> &'static str {
        match self {
            Weather::Calm => "calm",
            Weather::Errors => "errors",
            Weather::Full => "no space",
            Weather::ShortWrites => "short writes",
            Weather::SyncFails => "a failed sync",
        }
    }
}

/// A kind of call to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Read,
    Write,
    Sync,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Good,
    Fails,
    NoSpace,
    Short,
}

/// In bad weather, one in this many calls fails.
const ONE_OF: u32 = 40;

/// The weather over the disks of a soak, and what the disks did in it.
#[derive(Debug)]
pub(super) struct Sky {
    now: Mutex<(Weather, SmallRng)>,
    planted: AtomicU64,
    syncs_failed: AtomicU64,
    /// Nanoseconds that calls for the log took.
    busy: AtomicU64,
}

impl Sky {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            now: Mutex::new((Weather::Calm, SmallRng::seed_from_u64(seed))),
            planted: AtomicU64::new(0),
            syncs_failed: AtomicU64::new(0),
            busy: AtomicU64::new(0),
        }
    }

    /// Changes the weather.
    pub(super) fn set(&self, weather: Weather) {
        self.now.lock().unwrap_or_else(|e| e.into_inner()).0 = weather;
    }

    /// The weather.
    pub(super) fn weather(&self) -> Weather {
        self.now.lock().unwrap_or_else(|e| e.into_inner()).0
    }

    /// What is to become of `call`.
    pub(super) fn fate(&self, call: Call) -> Fate {
        let mut now = self.now.lock().unwrap_or_else(|e| e.into_inner());
        let (weather, rng) = &mut *now;
        let fate = match (*weather, call) {
            (Weather::SyncFails, Call::Sync) => {
                // One failed sync is enough: it is final (I9).
                *weather = Weather::Calm;
                self.syncs_failed.fetch_add(1, Ordering::Relaxed);
                Fate::Fails
            }
            (_, Call::Sync) | (Weather::Calm | Weather::SyncFails, _) => Fate::Good,
            (Weather::Full | Weather::ShortWrites, Call::Read) => Fate::Good,
            _ if rng.random_range(0..ONE_OF) > 0 => Fate::Good,
            (Weather::Errors, _) => Fate::Fails,
            (Weather::Full, _) => Fate::NoSpace,
            (Weather::ShortWrites, _) => Fate::Short,
        };
        if fate != Fate::Good {
            self.planted.fetch_add(1, Ordering::Relaxed);
        }
        fate
    }

    /// Counts the time that a `call` for the log takes.
    pub(super) fn timed<T>(&self, call: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let done = call();
        let took = begun.elapsed().as_nanos() as u64;
        self.busy.fetch_add(took, Ordering::Relaxed);
        done
    }

    /// Faults planted so far.
    pub(super) fn planted(&self) -> u64 {
        self.planted.load(Ordering::Relaxed)
    }

    /// Failed syncs among them.
    pub(super) fn syncs_failed(&self) -> u64 {
        self.syncs_failed.load(Ordering::Relaxed)
    }

    /// Time that calls for the log took.
    pub(super) fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy.load(Ordering::Relaxed))
    }
}
