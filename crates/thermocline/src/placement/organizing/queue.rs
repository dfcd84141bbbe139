//! What the organizer has found, until it looks again.

use std::collections::VecDeque;

use crate::ids::{FileId, KeyspaceId};
use crate::placement::most_of_late::MostOfLate;

/// A table that is to be written anew on another tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) keyspace: KeyspaceId,
    pub(super) table: FileId,
    pub(super) to: u8,
}

/// What the organizer has found.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// What is to move, the most urgent first.
    pub(super) moves: VecDeque<Wanted>,
    /// The faster tiers, the fastest first, each with the density from which on a table belongs
    /// there, and how many bytes of tables may still come there. Empty until the first look.
    pub(super) tiers: Vec<(u8, f64, u64)>,
    /// Whether the bill is above the target.
    pub(super) is_over: bool,
    /// Tables from this number on were written since the target was set.
    pub(super) since_target: FileId,
    /// Jobs that began since a table last went down.
    pub(super) since_migration: u32,
    /// What is paid for besides tables that may move goes up and down: L0 fills and empties, jobs
    /// come and go.
    pub(super) beside: MostOfLate,
}
