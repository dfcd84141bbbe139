//! Eviction: a hand goes round the entries, as that of CLOCK does, and takes out what was not used
//! since it came by last.
//!
//! The index is the clock's face: its entries come in the order of their hashes, and the hand is a
//! hash. The counts are the entries' own ([`super::entry::Used`]) and not those HotRing keeps: it
//! counts only in the rounds that turn a ring, of which there are none where the head serves the
//! hottest item already.

use super::{Left, RecordCache};
use crate::sync::atomic::Ordering;

/// Entries that the hand passes for one fill at most.
const MOST_STEPS: usize = 128;

impl RecordCache {
    /// Takes entries out until `bytes` find room, or the hand has gone as far as one fill pays for.
    /// `left` hears of each, with the accesses that were not logged yet.
    pub(super) fn make_room(&self, bytes: u64, left: &mut Left<'_>) {
        let ring = self.index.pin();
        let room = self.room_for_entries();
        let has_room = || self.live.load(Ordering::Relaxed).saturating_add(bytes) <= room;
        let mut steps = 0;
        // Over the end of the hashes once.
        for _ in 0..2 {
            let hand = self.hand.load(Ordering::Relaxed);
            for entry in ring.entries_from(hand) {
                if has_room() || steps == MOST_STEPS {
                    return;
                }
                steps += 1;
                // Hashes count without their lowest bit.
                let next = (entry.hash() | 1).wrapping_add(1);
                self.hand.store(next, Ordering::Relaxed);
                let (key, slot) = (entry.key(), entry.value());
                // What is pending is about to be something.
                let Some(cached) = &slot.cached else { continue };
                if cached.used.halve() {
                    continue;
                }
                let is_it = |now: &super::entry::Slot| now.token == slot.token;
                if let Some(slot) = ring.remove_if(&key.sought(), is_it) {
                    self.live.fetch_sub(slot.charge.bytes(), Ordering::Relaxed);
                    self.evictions.fetch_add(1, Ordering::Relaxed);
                    self.gate.has_left(cached.used.was_found());
                    let accesses = cached.accesses.take();
                    left(key.keyspace, &key.key, cached.value.len(), accesses);
                }
            }
            self.hand.store(0, Ordering::Relaxed);
        }
    }
}
