//! What may be copied, and what that is worth.

use std::cmp::Ordering;

use crate::engine::Engine;
use crate::sync::Arc;
use crate::table::Table;
use crate::tier::{CopySlot, Tier};
use crate::version::TableHandle;

/// How much hotter a table has to be than one that has a copy to take its place.
const HOTTER: f64 = 1.1;

/// A slow table, or its tail.
pub(super) struct Candidate {
    /// Keeps the table's file in its place.
    handle: Arc<TableHandle>,
    pub(super) table: Arc<Table>,
    /// Where in the table it begins.
    pub(super) start: u64,
    /// Reads a second of the table's blocks on a device, for each byte of its keys and values.
    pub(super) density: f64,
}

impl Candidate {
    fn new(handle: &Arc<TableHandle>, table: &Arc<Table>, start: u64) -> Self {
        Self {
            handle: Arc::clone(handle),
            table: Arc::clone(table),
            start,
            density: handle.density(),
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.start == 0
    }

    /// Where its copy is kept.
    pub(super) fn slot(&self) -> &Arc<CopySlot> {
        match self.is_whole() {
            true => &self.table.copies().whole,
            false => &self.table.copies().tail,
        }
    }

    pub(super) fn is_copied(&self) -> bool {
        self.slot().get().is_some()
    }

    /// Bytes of a copy of it.
    pub(super) fn len(&self) -> u64 {
        self.handle.meta.len - self.start
    }

    /// Whether it is read, and has no copy.
    pub(super) fn is_wanted(&self) -> bool {
        self.density > 0.0 && self.slot().is_open()
    }

    pub(super) fn fits(&self, fast: &Tier) -> bool {
        self.len() <= fast.free_for_copies()
    }

    /// Whether it may take the place of `copied`: of tables, only one that is clearly hotter.
    pub(super) fn is_worth_more_than(&self, copied: &Self) -> bool {
        copied.is_whole() && (!self.is_whole() || self.density > copied.density * HOTTER)
    }

    /// The order of what a byte of their copies saves. Any tail saves more than any whole table.
    pub(super) fn by_worth(&self, other: &Self) -> Ordering {
        let tail = other.is_whole().cmp(&self.is_whole());
        tail.then(self.density.total_cmp(&other.density))
    }
}

/// All that may be copied or is: tails, and whole tables if `wholes`. Tables that nobody has opened
/// are read by nobody. Tails that are in memory by now, or in the copy of a whole table, lose their
/// copies.
pub(super) fn all(engine: &Engine, wholes: bool) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for tree in engine.all_trees() {
        let pinned = tree.pin();
        let slow = pinned.version.tables().filter(|table| table.meta.tier > 0);
        for handle in slow {
            let Some(table) = handle.lazy.opened() else {
                continue;
            };
            let copies = table.copies();
            match table.tail_on_device() {
                Some(start) if copies.whole.get().is_none() => {
                    candidates.push(Candidate::new(handle, table, start));
                }
                _ => {
                    let _bytes = copies.tail.clear();
                }
            }
            if wholes {
                candidates.push(Candidate::new(handle, table, 0));
            }
        }
    }
    candidates
}

/// Of what is wanted and fits, that which is worth most.
pub(super) fn most_worth(engine: &Engine, wholes: bool) -> Option<Candidate> {
    let candidates = all(engine, wholes).into_iter();
    candidates
        .filter(|candidate| candidate.is_wanted() && candidate.fits(engine.fast()))
        .max_by(|a, b| a.by_worth(b))
}
