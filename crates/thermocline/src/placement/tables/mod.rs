//! Placement by table: each table lies on the tier that its heat is worth (Mutant).
//!
//! Levels say nothing about tiers here. Flushes go to the fast tier, merges write each table where
//! it belongs, and tables that have become hotter or colder are written anew on another tier, one
//! at a time.

mod candidates;
mod counted;
mod job;
mod organizer;
mod outlook;
mod policy;
mod queue;
#[cfg(test)]
mod tests;

use std::sync::Weak;

use super::copying::Copier;
use super::epochs::Epochs;
use super::price::Reads;
use crate::sync::atomic::{AtomicBool, AtomicU64};
use crate::sync::{Arc, Mutex};
use counted::Counted;
use queue::Queue;

/// A part of the money for fast tiers. A table comes up only if it is among the hottest of the
/// rest, so that tables of about the same heat do not change places without end. Mutant has 5 %,
/// half of it on each side.
const RESISTANCE: f64 = 0.02;

/// What is left of a table's temperature after a second without a read (Mutant's α). Half of it is
/// left after 693 seconds.
const KEPT_PER_SECOND: f64 = 0.999;

/// Placement by table.
pub(crate) struct ByTable {
    /// For jobs, which keep it alive while they run.
    me: Weak<ByTable>,
    epochs: Epochs,
    queue: Mutex<Queue>,
    /// Whether the organizer is queued or runs.
    organizes: AtomicBool,
    /// Whether it is to run again after that: something has changed since it looked.
    is_stale: AtomicBool,
    reads: Mutex<Reads>,
    counted: Counted,
    /// Of tails. The tables themselves move.
    copier: Arc<Copier>,
    /// Epochs that have ended.
    ended: AtomicU64,
}

impl ByTable {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            epochs: Epochs::default(),
            queue: Mutex::default(),
            organizes: AtomicBool::new(false),
            is_stale: AtomicBool::new(false),
            reads: Mutex::default(),
            counted: Counted::default(),
            copier: Copier::new(false),
            ended: AtomicU64::new(0),
        })
    }
}
