//! Where a compaction writes each of its records.

use super::Brought;
use crate::key::InternalKey;

/// One of the places that a compaction may write to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) level: u8,
    pub(crate) tier: u8,
}

/// Decides, record by record, which of a job's outputs a record goes to. Called in key
/// order, all versions of a user key one after the other, newest first.
pub(crate) trait Router: Send {
    /// The index of the record's output in the job's list. The output on the fast tier, if it is
    /// not the first, has `room` bytes left of what is reserved for it (I8).
    fn route(&mut self, key: InternalKey<'_>, value_len: usize, source: Source, room: u64)
    -> usize;

    /// Bytes of the records so far that stayed on the fast tier, and of those that came up to it.
    fn moved(&self) -> (u64, u64);

    /// The records that came up to it; asked for once, at the end.
    fn brought(&mut self) -> Brought;
}

/// Where a crossing's router sends a record that stays on, or comes to, the fast tier: the second
/// output.
pub(crate) const UP: usize = 1;

/// Where it sends all else: the first output.
pub(super) const DOWN: usize = 0;

/// Which of a job's inputs a record came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The level that is being compacted.
    Upper,
    /// The level below it, or the promotion cache, whose records join the merge.
    Lower,
}

/// What a job has moved, in bytes of keys and values.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moved {
    /// Records that were to go down and stayed on the fast tier.
    pub(crate) retained: u64,
    /// Records that came up to it.
    pub(crate) brought: u64,
    /// Records that went past level f.
    pub(crate) bypassed: u64,
}
