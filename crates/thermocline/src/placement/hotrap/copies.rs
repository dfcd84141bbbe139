//! When tables are copied, and into which room: what placement by hotness leaves free for flushes
//! and compactions, a sixth of a fast tier of 1 GB. While nobody writes, it stays empty
//! ([`crate::placement::copying`]).

use std::time::Duration;

use super::HotRap;
use crate::engine::Engine;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::table::{Cooling, ReadTrace};

/// Looks in a span of time. Room that was free all through a span is free for copies.
const LOOKS: u64 = 32;

/// The length of a span: the slow tier is read once for every so many of the blocks that lie there.
/// A slow disk needs about as long to copy a table as to read that part of its blocks one by one.
/// So in a span, reads of a table cost about what its copy costs.
pub(super) const BLOCKS_IN_A_SWEEP: u64 = 8;

/// What is left of a table's temperature after a second without a read: half of it after 69 s.
pub(super) const COOLING: Cooling = Cooling::keeping(0.99);

/// How far copying is. Time is counted in reads of the slow tier, for that is what copies save.
#[derive(Debug, Default)]
pub(crate) struct Copying {
    /// Blocks read from slow tiers' devices by users.
    reads: AtomicU64,
    /// The number of reads at which the next look is due, and how many lie between looks.
    due: AtomicU64,
    between: AtomicU64,
    looks: AtomicU64,
}

impl Copying {
    /// Counts reads. If a look is due, it is the caller's to make, and its number is returned.
    fn count(&self, reads: u64) -> Option<u64> {
        let now = self.reads.fetch_add(reads, Ordering::Relaxed) + reads;
        let due = self.due.load(Ordering::Relaxed);
        if now < due {
            return None;
        }
        let next = now + self.between.load(Ordering::Relaxed).max(1);
        let taken = self
            .due
            .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed);
        taken.ok()?;
        Some(self.looks.fetch_add(1, Ordering::Relaxed))
    }
}

impl HotRap {
    /// Takes note of a read that took `trace`.
    #[inline]
    pub(super) fn note_slow_reads(&self, engine: &Engine, trace: &ReadTrace) {
        let slow: u32 = trace.device_reads[1..].iter().sum();
        if slow > 0 && self.may_copy(engine) {
            self.count_slow_reads(engine, u64::from(slow));
        }
    }

    fn may_copy(&self, engine: &Engine) -> bool {
        self.switches.copies && !engine.background.writes_nothing()
    }

    pub(super) fn count_slow_reads(&self, engine: &Engine, reads: u64) {
        let Some(look) = self.copying.count(reads) else {
            return;
        };
        if look % LOOKS == 0 {
            self.begin_span(engine);
        }
        self.copier.schedule(engine);
    }

    /// Keeps to `most` bytes of copies.
    pub(super) fn keep_to_copies(&self, engine: &Engine, most: u64) {
        if self.may_copy(engine) {
            self.copier.keep_to(engine, most);
        }
    }

    fn begin_span(&self, engine: &Engine) {
        engine.fast().begin_span();
        let mut data = 0;
        for tree in engine.all_trees() {
            let pinned = tree.pin();
            let slow = pinned.version.tables().filter(|table| table.meta.tier > 0);
            data += slow.map(|table| table.meta.len).sum::<u64>();
        }
        let blocks = data
            / engine.tiers[usize::from(engine.level_tiers()[1])]
                .options
                .block_size as u64;
        let between = blocks / BLOCKS_IN_A_SWEEP / LOOKS;
        self.copying.between.store(between, Ordering::Relaxed);
    }
}

/// Ends an epoch of all tables' temperatures that took `length`. They fall faster than where tables
/// are placed by them: when the hot records of a table have come up, the rest of it is cold.
pub(super) fn end_epoch(engine: &Engine, length: Duration) {
    for tree in engine.all_trees() {
        let version = tree.version();
        let heats = version.tables().map(|table| table.lazy.heat());
        heats.for_each(|heat| heat.end_epoch(length, COOLING));
    }
}

#[cfg(test)]
mod tests;
