//! What the organizer has found, until it looks again.

use std::collections::VecDeque;
use std::time::Duration;

use crate::ids::{FileId, KeyspaceId};

/// What is paid for besides tables that may move goes up and down: L0 fills and empties, jobs come
/// and go. The most of so long counts.
const MOST_OF: Duration = Duration::from_secs(30);

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
    /// What was paid for besides, and when; each is more than all later ones.
    beside: VecDeque<(Duration, f64)>,
}

impl Queue {
    /// Takes note of what is paid for besides at `now`. Returns the most of late.
    pub(super) fn note_beside(&mut self, now: Duration, beside: f64) -> f64 {
        while self
            .beside
            .back()
            .is_some_and(|(_, other)| *other <= beside)
        {
            self.beside.pop_back();
        }
        self.beside.push_back((now, beside));
        let is_old = |&(at, _): &(Duration, f64)| now.saturating_sub(at) > MOST_OF;
        while self.beside.front().is_some_and(is_old) {
            self.beside.pop_front();
        }
        self.beside.front().map_or(beside, |(_, most)| *most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_of_late_counts() {
        let mut queue = Queue::default();
        let mut most = |second, beside| queue.note_beside(Duration::from_secs(second), beside);
        assert_eq!(most(0, 5.0), 5.0);
        assert_eq!(most(10, 9.0), 9.0);
        assert_eq!(most(20, 7.0), 9.0);
        assert_eq!(most(40, 1.0), 9.0);
        assert_eq!(most(41, 2.0), 7.0);
        assert_eq!(most(51, 2.0), 2.0);
    }
}
