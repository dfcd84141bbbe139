//! Eviction: a hand goes round the entries, like that of CLOCK, and takes out those that were not
//! used since its last visit.
//!
//! The index is the clock's face: its entries come in the order of their hashes, and the hand is a
//! hash. The counts are the entries' own ([`super::entry::Used`]), not those that HotRing keeps:
//! HotRing counts only in the rounds that turn a ring, and there are none where the head already
//! serves the hottest item.

use super::entry::{Entry, Sought};
use super::{Left, RecordCache};
use crate::sync::atomic::Ordering;

/// Most entries that the hand passes for one fill.
const MOST_STEPS: usize = 128;

impl RecordCache {
    /// Takes entries out until there is room for `bytes`, or the hand has gone as far as one fill
    /// pays for. `left` is told of each entry, with the accesses that were not logged yet.
    pub(super) fn make_room(&self, bytes: u64, left: &mut Left<'_>) {
        let ring = self.index.pin();
        let room = self.room_for_entries();
        let has_room = || self.live.load(Ordering::Relaxed).saturating_add(bytes) <= room;
        let mut steps = 0;
        // Goes past the last hash at most once.
        for _ in 0..2 {
            let hand = self.hand.load(Ordering::Relaxed);
            for entry in ring.entries_from(hand) {
                if has_room() || steps == MOST_STEPS {
                    return;
                }
                steps += 1;
                // The lowest bit of a hash does not count.
                let next = (entry.hash() | 1).wrapping_add(1);
                self.hand.store(next, Ordering::Relaxed);
                let header = entry.header();
                // A pending place is about to hold a record.
                if !header.is_complete() || header.used.halve() {
                    continue;
                }
                let is_it = |now: &Entry| std::ptr::eq(now, header);
                if self.remove(&ring, &Sought::of(entry), is_it).is_some() {
                    self.evictions.fetch_add(1, Ordering::Relaxed);
                    self.gate.has_left(header.used.was_found());
                    let accesses = header.accesses.take();
                    left(header.keyspace, entry.key(), entry.value().len(), accesses);
                }
            }
            self.hand.store(0, Ordering::Relaxed);
        }
    }
}
