//! Copying slow tables into room of the fast tier that nothing uses.
//!
//! Placement by hotness leaves room free for flushes and compactions: a sixth of a fast tier of 1
//! GB. While nobody writes, it stays empty. The tables that are read most from the slow tier are
//! copied there: byte by byte, in one sweep, so that a copy costs the slow tier a few large reads.
//! Whoever needs the room has it at once ([`crate::tier`]).

use super::HotRap;
use std::time::Duration;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::executor::{Job, Lane, Step};
use crate::metrics::{Activity, Purpose};
use crate::points::point;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::table::{ReadTrace, Table};
use crate::tier::CopyWriter;
use crate::version::TableHandle;

/// Bytes copied in a step.
const PART: u64 = 1 << 20;

/// Looks in a span of time. Room that was free all through a span is free for copies.
const LOOKS: u64 = 32;

/// The length of a span: the slow tier is read once for every so many of the blocks that lie there.
/// A slow disk needs about as long to copy a table as to read that part of its blocks one by one.
/// So in a span, reads of a table cost about what its copy costs.
const PART_READ: u64 = 8;

/// What is left of a table's temperature after a second without a read: half of it after 69 s.
const KEPT_PER_SECOND: f64 = 0.99;

/// How far copying is. Time is counted in reads of the slow tier, for that is what copies save.
#[derive(Debug, Default)]
pub(crate) struct Copying {
    /// Blocks read from slow tiers' devices by users.
    reads: AtomicU64,
    /// The number of reads at which the next look is due, and how many lie between looks.
    due: AtomicU64,
    between: AtomicU64,
    looks: AtomicU64,
    /// Whether a table is being copied, or about to be.
    pub(super) runs: AtomicBool,
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
        if engine.fast().free_for_copies() >= engine.sizes.table_size / 2 {
            self.schedule_copying(engine);
        }
    }

    fn begin_span(&self, engine: &Engine) {
        engine.fast().begin_span();
        let mut data = 0;
        for_each_slow_table(engine, |table| {
            data += table.meta.len;
        });
        let blocks = data
            / engine.tiers[usize::from(engine.level_tiers()[1])]
                .options
                .block_size as u64;
        let between = blocks / PART_READ / LOOKS;
        self.copying.between.store(between, Ordering::Relaxed);
    }

    pub(super) fn schedule_copying(&self, engine: &Engine) {
        let (Some(held), Some(hotrap)) = (engine.me(), self.me.upgrade()) else {
            return;
        };
        if self.copying.runs.swap(true, Ordering::AcqRel) {
            return;
        }
        let job = CopyJob {
            engine: held,
            hotrap,
            current: None,
        };
        engine.spawn(Lane::Hotness, Activity::Promotion, job);
    }
}

pub(super) fn for_each_slow_table(engine: &Engine, mut act: impl FnMut(&Arc<TableHandle>)) {
    for tree in engine.all_trees() {
        let pinned = tree.pin();
        let slow = pinned.version.tables().filter(|table| table.meta.tier > 0);
        slow.for_each(&mut act);
    }
}

/// Ends an epoch of all tables' temperatures that took `length`. They fall faster than where tables
/// are placed by them: when the hot records of a table have come up, the rest of it is cold.
pub(super) fn end_epoch(engine: &Engine, length: Duration) {
    for tree in engine.all_trees() {
        let version = tree.version();
        let heats = version.tables().map(|table| table.lazy.heat());
        heats.for_each(|heat| heat.end_epoch(length, KEPT_PER_SECOND));
    }
}

/// Of the tables without a copy for which there is room, the one that is read most for its size.
fn worth_a_copy(engine: &Engine) -> Option<(Arc<TableHandle>, Arc<Table>)> {
    let room = engine.fast().free_for_copies();
    let mut best = None;
    for_each_slow_table(engine, |table| {
        let Some(opened) = table.lazy.opened() else {
            return;
        };
        let worth = table.density();
        let is_better = best.as_ref().is_none_or(|(most, _, _)| worth > *most);
        if worth > 0.0 && is_better && table.meta.len <= room && opened.copy().is_open() {
            best = Some((worth, Arc::clone(table), Arc::clone(opened)));
        }
    });
    best.map(|(_, handle, table)| (handle, table))
}

/// A table on its way.
struct Copied {
    /// Keeps the table's file in its place.
    handle: Arc<TableHandle>,
    table: Arc<Table>,
    writer: CopyWriter,
    offset: u64,
}

/// Copies tables until there is no room, or none that is worth it.
struct CopyJob {
    engine: Arc<Engine>,
    hotrap: Arc<HotRap>,
    current: Option<Copied>,
}

impl CopyJob {
    /// Copies a part, or begins with the next table. Returns whether there is more to do.
    fn copy(&mut self) -> Result<bool> {
        self.engine.check_writable()?;
        let Some(mut copied) = self.current.take() else {
            return self.begin();
        };
        let table = &copied.table;
        let whole = copied.handle.meta.len;
        let len = PART.min(whole - copied.offset);
        let part = table
            .read_raw(Purpose::Copy, copied.offset, len as usize)
            // Else this table would stay the one that is most worth a copy, and no other would get
            // one.
            .inspect_err(|_| table.copy().close())?;
        if !copied.writer.append(&part)? {
            return Ok(false);
        }
        copied.offset += len;
        if copied.offset < whole {
            self.current = Some(copied);
        } else {
            point!(self.engine.points, "copying.written")?;
            copied.writer.finish(table.copy())?;
        }
        Ok(true)
    }

    fn begin(&mut self) -> Result<bool> {
        let engine = &self.engine;
        let Some((handle, table)) = worth_a_copy(engine) else {
            return Ok(false);
        };
        let writer = engine
            .fast()
            .begin_copy(engine.new_file(), handle.meta.len)?;
        self.current = writer.map(|writer| Copied {
            handle,
            table,
            writer,
            offset: 0,
        });
        Ok(self.current.is_some())
    }
}

impl Job for CopyJob {
    fn step(&mut self) -> Step {
        match self.copy() {
            Ok(true) => return Step::Again,
            Ok(false) => {}
            // Copies are advice (I7): if one fails, the next reads cost what they would have cost
            // without it.
            Err(Error::Closed) => {}
            Err(_) => self.engine.fast().refuse_copies(),
        }
        Step::Done
    }
}

impl Drop for CopyJob {
    fn drop(&mut self) {
        self.current = None;
        self.hotrap.copying.runs.store(false, Ordering::Release);
        self.engine.executor.notify();
    }
}

#[cfg(test)]
mod tests;
