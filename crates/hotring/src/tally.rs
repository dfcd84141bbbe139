//! Counters of a map: entries, bytes and what accesses cost.
//!
//! Each is kept in stripes. A thread always uses the same stripe, so that threads that count do not
//! pass cache lines about. A sum over the stripes is exact when no operation runs.

use crossbeam_utils::CachePadded;

use crate::sync::counting::{AtomicIsize, AtomicU64, AtomicUsize, Ordering};

const STRIPES: usize = 16;

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static STRIPE: usize = THREADS.fetch_add(1, Ordering::Relaxed) % STRIPES;
}

#[derive(Debug, Default)]
struct Stripe {
    entries: AtomicIsize,
    bytes: AtomicIsize,
    /// The running window, as [`Cost`] packs it.
    running: AtomicU64,
    /// The last full window.
    full: AtomicU64,
}

/// Sampled accesses and the items they visited, in one word: 24 bits and 40 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) accesses: u64,
    pub(crate) visits: u64,
}

impl Cost {
    const SHIFT: u32 = 40;
    const VISITS: u64 = (1 << Self::SHIFT) - 1;

    fn unpack(word: u64) -> Self {
        Self {
            accesses: word >> Self::SHIFT,
            visits: word & Self::VISITS,
        }
    }

    fn one(visits: u32) -> u64 {
        // Windows have at most 2^20 accesses: capped like this, their visits fit 40 bits.
        (1 << Self::SHIFT) | u64::from(visits.min(1 << 19))
    }

    /// Items visited an access; zero if there was none.
    pub(crate) fn mean(self) -> f64 {
        if self.accesses == 0 {
            0.0
        } else {
            self.visits as f64 / self.accesses as f64
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    stripes: [CachePadded<Stripe>; STRIPES],
    table_bytes: AtomicIsize,
}

impl Tally {
    fn stripe(&self) -> &Stripe {
        let stripe = STRIPE.try_with(|&stripe| stripe).unwrap_or(0);
        &self.stripes[stripe % STRIPES]
    }

    /// An entry of `bytes` came.
    pub(crate) fn came(&self, bytes: usize) {
        let stripe = self.stripe();
        stripe.entries.fetch_add(1, Ordering::Relaxed);
        stripe.bytes.fetch_add(bytes as isize, Ordering::Relaxed);
    }

    /// An entry of `bytes` went.
    pub(crate) fn went(&self, bytes: usize) {
        let stripe = self.stripe();
        stripe.entries.fetch_sub(1, Ordering::Relaxed);
        stripe.bytes.fetch_sub(bytes as isize, Ordering::Relaxed);
    }

    /// The tables' bytes changed.
    pub(crate) fn tables(&self, change: isize) {
        self.table_bytes.fetch_add(change, Ordering::Relaxed);
    }

    pub(crate) fn table_bytes(&self) -> usize {
        usize::try_from(self.table_bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    pub(crate) fn entries(&self) -> usize {
        let sum: isize = self
            .stripes
            .iter()
            .map(|s| s.entries.load(Ordering::Relaxed))
            .sum();
        usize::try_from(sum).unwrap_or(0)
    }

    pub(crate) fn bytes(&self) -> usize {
        let nodes: isize = self
            .stripes
            .iter()
            .map(|s| s.bytes.load(Ordering::Relaxed))
            .sum();
        usize::try_from(nodes + self.table_bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Records what a sampled access cost. Yields the cost of a window that this fills.
    pub(crate) fn sample(&self, visits: u32, window: u32) -> Option<Cost> {
        let stripe = self.stripe();
        let added = Cost::one(visits);
        // Two instructions: an atomic addition would hold back the loads of the thread's next
        // requests. If another thread of the stripe comes between them, a sample is lost.
        let word = stripe.running.load(Ordering::Relaxed) + added;
        stripe.running.store(word, Ordering::Relaxed);
        let cost = Cost::unpack(word);
        if cost.accesses < u64::from(window) {
            return None;
        }
        // Of the threads that share the stripe, one closes the window.
        stripe
            .running
            .compare_exchange(word, 0, Ordering::Relaxed, Ordering::Relaxed)
            .ok()?;
        stripe.full.store(word, Ordering::Relaxed);
        Some(cost)
    }

    /// What sampled accesses cost lately: the running windows and the last full ones.
    pub(crate) fn cost(&self) -> Cost {
        let mut sum = Cost::default();
        for stripe in &self.stripes {
            for word in [&stripe.running, &stripe.full] {
                let cost = Cost::unpack(word.load(Ordering::Relaxed));
                sum.accesses += cost.accesses;
                sum.visits += cost.visits;
            }
        }
        sum
    }

    /// Forgets what accesses cost: the table has another size now.
    pub(crate) fn forget_cost(&self) {
        for stripe in &self.stripes {
            stripe.running.store(0, Ordering::Relaxed);
            stripe.full.store(0, Ordering::Relaxed);
        }
    }
}
