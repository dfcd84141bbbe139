//! Placement by level: recent records on the fast tier, older ones on the slow one.

use super::{Brought, Choice, PlacementPolicy, Router, Source};
use crate::key::InternalKey;
use crate::version::edit::PlacedBy;

/// Every level has its tier. Also for a store of one tier, where there is nothing to decide.
pub(crate) struct ByLevel {
    /// What the manifest has to say; nothing if the options ask for another policy, which a store
    /// of one tier does not need.
    pub(super) placed_by: Option<PlacedBy>,
}

impl PlacementPolicy for ByLevel {
    fn placed_by(&self) -> Option<PlacedBy> {
        self.placed_by
    }
}

/// Sends everything to the first output: that of a job with one, and of a crossing the one on the
/// slow tier.
#[derive(Debug)]
pub(crate) struct NoChoice;

impl Router for NoChoice {
    fn route(
        &mut self,
        _key: InternalKey<'_>,
        _value_len: usize,
        _source: Source,
        _room: u64,
    ) -> usize {
        0
    }

    fn moved(&self) -> (u64, u64) {
        (0, 0)
    }

    fn brought(&mut self) -> Brought {
        Brought::default()
    }
}

impl Choice for NoChoice {
    fn goes_up(&mut self, _key: &[u8], _source: Source) -> bool {
        false
    }
}
