//! Placement by table: each table lies on the tier that its heat is worth (Mutant).
//!
//! Levels say nothing about tiers here. Flushes go to the fast tier, merges write each table where
//! it belongs, and tables that have become hotter or colder are written anew on another tier, one
//! at a time.

mod job;
mod outlook;
mod policy;
#[cfg(test)]
mod tests;

use std::sync::Weak;

use super::copying::Copier;
use super::epochs::Epochs;
use super::organizing::Migrations;
use super::price::Reads;
use crate::options::TableSwitches;
use crate::sync::atomic::{AtomicBool, AtomicU64};
use crate::sync::{Arc, Mutex};
use crate::table::Cooling;

/// What is left of a table's temperature after a second without a read (Mutant's α). Half of it is
/// left after 693 seconds.
const KEPT_PER_SECOND: f64 = 0.999;

/// Placement by table.
pub(crate) struct ByTable {
    /// For jobs, which keep it alive while they run.
    me: Weak<ByTable>,
    epochs: Epochs,
    migrations: Migrations,
    /// Whether the organizer is queued or runs.
    organizes: AtomicBool,
    /// Whether it is to run again after that: something has changed since it looked.
    is_stale: AtomicBool,
    reads: Mutex<Reads>,
    /// Of tails. The tables themselves move.
    copier: Arc<Copier>,
    switches: TableSwitches,
    /// Epochs that have ended.
    ended: AtomicU64,
}

impl ByTable {
    pub(crate) fn new(switches: TableSwitches) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            epochs: Epochs::default(),
            migrations: Migrations::default(),
            organizes: AtomicBool::new(false),
            is_stale: AtomicBool::new(false),
            reads: Mutex::default(),
            copier: Copier::new(false),
            switches,
            ended: AtomicU64::new(0),
        })
    }

    fn cooling(&self) -> Cooling {
        Cooling {
            kept: KEPT_PER_SECOND,
            plain: self.switches.plain_cooling,
        }
    }
}
