//! Memory that does not belong to entries: the door, and the index's table, which grows with the
//! cost of searches.
//!
//! Left alone, the index would grow whatever the memory. So that the cache keeps its bound, growth
//! is paid for before it begins, and what an old table took is given back when the table is gone.

use super::{Left, RecordCache};

/// Items that a search may visit on average. If they are more, a larger table is worth its cost.
pub(super) const VISITS: f64 = 2.0;

impl RecordCache {
    /// Bytes of the door and of the index's tables.
    pub(super) fn fixed_bytes(&self) -> u64 {
        self.door.bytes() + self.index.table_memory() as u64
    }

    /// Doubles the index's table if its searches are long and there is room for the new one. If
    /// there is no room, makes some for the next time.
    pub(super) fn tend_tables(&self, left: &mut Left<'_>) {
        let mut tables = self.tables.lock();
        tables.shrink_to(self.fixed_bytes());
        // No other change can begin before this one is over, so no entry is to leave for it.
        if self.index.is_resizing() {
            return;
        }
        let buckets = self.index.buckets();
        // With more than two buckets per entry, long searches come from keys with the same hash.
        if self.index.mean_visits() <= VISITS || buckets >= 2 * self.index.len() {
            return;
        }
        let larger = 2 * self.index.table_memory() as u64;
        self.make_room(larger, left);
        let Some(paid) = self.charge(larger) else {
            return;
        };
        tables.add(paid);
        if self.index.grow().is_err() {
            tables.shrink_to(self.fixed_bytes());
        }
    }
}
