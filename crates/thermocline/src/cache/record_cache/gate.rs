//! How many of the records that may come in do come in. Taking a record in costs a copy, an
//! eviction and some allocations. It pays only if the record is found in the cache before it has to
//! leave.
//!
//! A hot set far larger than the cache passes the door all the time, and leaves again unused. At
//! least half of the records that leave should have been found at least once. While fewer were,
//! half as many come in, down to one in sixteen: records then stay longer, and the ones that are
//! asked for most often still come in first. While more than seven eighths were found, twice as
//! many come in. While readers keep what was taken out from being freed, a record that comes in may
//! find no memory; it counts as one that left without having been found.

use crate::sync::atomic::{AtomicU32, Ordering};

/// Number of records that leave, or find no memory, between two judgements.
const JUDGED: u32 = 256;

/// At least one in 2^NARROWEST comes in, because what is hot may change.
const NARROWEST: u32 = 4;

/// Bits of the tally that count the records that have left. The other bits count those of them that
/// were found.
const LEFT_BITS: u32 = 16;

/// One in 2^`narrowness` comes in.
#[derive(Debug, Default)]
pub(super) struct Gate {
    narrowness: AtomicU32,
    asked: AtomicU32,
    tally: AtomicU32,
}

impl Gate {
    /// Whether the next record comes in.
    #[inline]
    pub(super) fn lets_in(&self) -> bool {
        let narrowness = self.narrowness.load(Ordering::Relaxed);
        if narrowness == 0 {
            return true;
        }
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        asked.trailing_zeros() >= narrowness
    }

    /// Notes that a record was evicted, and whether it had been found in the cache.
    pub(super) fn has_left(&self, was_found: bool) {
        let one = 1 | u32::from(was_found) << LEFT_BITS;
        let tally = self.tally.fetch_add(one, Ordering::Relaxed) + one;
        // The record that completes the number judges. Records counted until the tally begins anew
        // are not needed.
        if tally & ((1 << LEFT_BITS) - 1) == JUDGED {
            self.tally.store(0, Ordering::Relaxed);
            self.judge(tally >> LEFT_BITS);
        }
    }

    /// Notes that a record was let in and then turned away for lack of memory.
    pub(super) fn found_no_memory(&self) {
        self.has_left(false);
    }

    fn judge(&self, found: u32) {
        let narrowness = self.narrowness.load(Ordering::Relaxed);
        let narrowness = if found < JUDGED / 2 {
            (narrowness + 1).min(NARROWEST)
        } else if found > JUDGED / 8 * 7 {
            narrowness.saturating_sub(1)
        } else {
            return;
        };
        self.narrowness.store(narrowness, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of 64 come in.
    fn come_in(gate: &Gate) -> usize {
        (0..64).filter(|_| gate.lets_in()).count()
    }

    fn leave(gate: &Gate, found_in_eight: u32) {
        for i in 0..JUDGED {
            gate.has_left(i % 8 < found_in_eight);
        }
    }

    #[test]
    fn the_fewer_are_found_the_fewer_come_in_but_some_always_do() {
        let gate = Gate::default();
        assert_eq!(come_in(&gate), 64);
        for wanted in [32, 16, 8, 4, 4] {
            leave(&gate, 3);
            assert_eq!(come_in(&gate), wanted);
        }
    }

    #[test]
    fn as_many_as_before_come_in_again_once_they_are_found() {
        let gate = Gate::default();
        leave(&gate, 0);
        leave(&gate, 0);
        for (found_in_eight, wanted) in [(4, 16), (7, 16), (8, 32), (8, 64), (8, 64)] {
            leave(&gate, found_in_eight);
            assert_eq!(come_in(&gate), wanted, "{found_in_eight} of 8 found");
        }
    }
}
