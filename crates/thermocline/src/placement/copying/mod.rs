//! Copying slow tables, or their tails, to the fast tier: byte by byte, in one sweep, so that a
//! copy costs the slow tier a few large reads. Whoever needs the room has it at once
//! ([`crate::tier`]).
//!
//! A tail has the filters and indexes of a table. Where memory does not hold them, a lookup reads
//! up to two of their blocks before the one with the record. They take about a fiftieth of a table,
//! so their copies come first (Mutant keeps them on the fast disk, §3.2).

mod candidates;
mod job;
#[cfg(test)]
mod tests;

use std::sync::Weak;

use self::job::CopyJob;
use crate::engine::Engine;
use crate::executor::Lane;
use crate::metrics::Activity;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};

/// Makes a store's copies.
#[derive(Debug)]
pub(crate) struct Copier {
    /// For jobs.
    me: Weak<Copier>,
    /// Whether it copies whole tables.
    wholes: bool,
    /// Whether something is being copied, or about to be.
    pub(in crate::placement) runs: AtomicBool,
}

impl Copier {
    /// A copier of tails, and of whole tables if `wholes`.
    pub(crate) fn new(wholes: bool) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            wholes,
            runs: AtomicBool::new(false),
        })
    }

    pub(crate) fn is_copying(&self) -> bool {
        self.runs.load(Ordering::Acquire)
    }

    /// Copies what is worth it, as far as there is room.
    pub(crate) fn schedule(&self, engine: &Engine) {
        let (Some(held), Some(copier)) = (engine.me(), self.me.upgrade()) else {
            return;
        };
        if engine.fast().free_for_copies() == 0
            || engine.background.writes_nothing()
            || self.runs.swap(true, Ordering::AcqRel)
        {
            return;
        }
        engine.spawn(
            Lane::Hotness,
            Activity::Promotion,
            CopyJob::new(held, copier),
        );
    }

    /// Drops the copies beyond `most` bytes, those of least worth first, and one of a whole table
    /// for what is worth clearly more. Has others made if there is room for any.
    pub(crate) fn keep_to(&self, engine: &Engine, most: u64) {
        let (mut copied, mut others) = (Vec::new(), Vec::new());
        for candidate in candidates::all(engine, self.wholes) {
            match candidate.is_copied() {
                true => copied.push(candidate),
                false => others.push(candidate),
            }
        }
        copied.sort_by(|a, b| a.by_worth(b));
        let mut copied = copied.into_iter();
        let fast = engine.fast();
        while fast.copied_bytes() > most
            && let Some(coldest) = copied.next()
        {
            coldest.slot().clear();
        }
        let wanted = others.iter().filter(|candidate| candidate.is_wanted());
        let Some(most) = wanted.max_by(|a, b| a.by_worth(b)) else {
            return;
        };
        if most.len() > fast.free_for_copies()
            && let Some(coldest) = copied.next()
            && most.is_worth_more_than(&coldest)
        {
            coldest.slot().clear();
        }
        if others
            .iter()
            .any(|candidate| candidate.is_wanted() && candidate.fits(fast))
        {
            self.schedule(engine);
        }
    }
}
