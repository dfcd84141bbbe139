//! Whether the next dollar saves more as room for hot records, or for tables on a tier between.
//!
//! Over two tiers there is no question: what does not come up stays on the slowest, and of its
//! tables few are hot. A tier between may be so cheap that all of the rest should lie there before
//! another record comes up. Both sides know what their next byte saves for its price: the organizer
//! of the best step that it has no money for, RALT of the coldest records that are up. While these
//! differ clearly, room changes sides a little at a time.

use super::HotRap;
use super::ralt::Mass;
use crate::engine::Engine;
use crate::sync::Mutex;

/// How much of what records have changes sides in a second.
const STEP: f64 = 1.0 / 16.0;

/// By how much one side has to save more, as a part.
const CLEARLY: f64 = 0.2;

/// What records leave to tables of tiers between.
#[derive(Debug, Default)]
pub(super) struct Between {
    /// The most bytes of the last fast levels; none if tables want nothing of them.
    most: Mutex<Option<f64>>,
}

impl Between {
    /// Of `worth` bytes as many as may be.
    pub(super) fn limit(&self, worth: f64) -> f64 {
        self.most.lock().map_or(worth, |most| worth.min(most))
    }

    /// The target has changed.
    pub(super) fn forget(&self) {
        *self.most.lock() = None;
    }

    /// Records take `now` bytes, and the coldest of them save `records` for each dollar. The best
    /// step of a table that there is no money for would save `tables`. At most `step` bytes change
    /// sides.
    fn settle(&self, now: f64, records: f64, tables: f64, step: f64) {
        let mut most = self.most.lock();
        // What was taken from records has to go down first.
        let has_followed = most.is_none_or(|most| now <= most + step);
        if tables > records * (1.0 + CLEARLY) && has_followed {
            *most = Some((now - step).max(0.0));
        } else if records > tables * (1.0 + CLEARLY) {
            *most = most.map(|most| most + step);
        }
    }
}

/// Reads of the record at `bytes`, for each byte, of records by their hotness. 0 behind
/// the last.
fn density_at(masses: &[Mass], bytes: f64) -> f64 {
    let mut left = bytes;
    let reaches = |mass: &&Mass| {
        left -= mass.bytes;
        left < 0.0
    };
    let found = masses.iter().find(reaches);
    found.map_or(0.0, |mass| mass.reads / mass.bytes)
}

impl HotRap {
    /// Moves room to where it saves more. For a dollar a month and 10⁻⁹ bytes, the best step of a
    /// table that there is no money for would save `tables` seconds in a second. A record that does
    /// not come up takes `slow` seconds to read.
    pub(super) fn settle_between(&self, engine: &Engine, tables: f64, slow: f64) {
        let Some(prices) = engine.target.prices() else {
            return;
        };
        let reads = self.governor.reads.lock();
        let (rate, fast) = (reads.rate().unwrap_or(0.0), reads.latencies()[0]);
        drop(reads);
        let now = engine.bytes_of_last_levels() as f64;
        let density = density_at(&self.tracked_masses(engine), now);
        let density = density * rate * self.ralt.accesses_of_score();
        let records = density * (slow - fast).max(0.0) / prices[0];
        let step = (now * STEP).max(2.0 * engine.sizes.table_size as f64);
        self.between.settle(now, records, tables, step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_goes_to_the_side_that_saves_clearly_more_a_step_at_a_time() {
        let between = Between::default();
        assert_eq!(between.limit(500.0), 500.0);
        between.settle(400.0, 1.0, 1.1, 10.0);
        assert_eq!(between.limit(500.0), 500.0, "about the same");
        between.settle(400.0, 1.0, 2.0, 10.0);
        assert_eq!(between.limit(500.0), 390.0);
        between.settle(405.0, 1.0, 2.0, 10.0);
        assert_eq!(between.limit(500.0), 390.0, "nothing has gone down yet");
        between.settle(395.0, 1.0, 2.0, 10.0);
        assert_eq!(between.limit(500.0), 385.0);
        between.settle(390.0, 2.0, 1.0, 10.0);
        assert_eq!(between.limit(500.0), 395.0);
        assert_eq!(between.limit(100.0), 100.0);
        between.settle(5.0, 0.0, 2.0, 10.0);
        assert_eq!(between.limit(500.0), 0.0);
        between.forget();
        assert_eq!(between.limit(500.0), 500.0);
    }

    #[test]
    fn the_coldest_record_that_is_up_counts() {
        let mass = |bytes, reads| Mass { bytes, reads };
        let masses = [mass(100.0, 300.0), mass(200.0, 100.0)];
        for (bytes, density) in [
            (0.0, 3.0),
            (99.0, 3.0),
            (100.0, 0.5),
            (299.0, 0.5),
            (300.0, 0.0),
        ] {
            assert_eq!(density_at(&masses, bytes), density, "{bytes}");
        }
    }
}
