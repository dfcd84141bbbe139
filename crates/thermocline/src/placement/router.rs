//! Where a record goes that a compaction writes.

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
    /// The index in the job's list of outputs. The one on the fast tier beside the first has `room`
    /// bytes left of what is reserved for it (I8).
    fn route(&mut self, key: InternalKey<'_>, value_len: usize, source: Source, room: u64)
    -> usize;

    /// Bytes of records so far that stayed on the fast tier, and that came up to it.
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
    /// The level that the compaction is of.
    Upper,
    /// The level below it, or what joins it from before that.
    Lower,
}

/// What a job has moved, in bytes of keys and values.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moved {
    /// What stayed on the fast tier of what was to go down.
    pub(crate) retained: u64,
    /// What came up to it.
    pub(crate) brought: u64,
    /// What went past level f.
    pub(crate) bypassed: u64,
}
