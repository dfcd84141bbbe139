//! When the leader of a group that will be synced waits for more writers before it begins.

use std::time::Duration;

use crate::clock::Clock;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Part of a sync's duration that may be spent on gathering its group.
const SHARE: u32 = 8;

/// Most looks at the queue, for clocks that stand still.
const MOST_LOOKS: u32 = 256;

/// What the last synced group was like.
///
/// After a sync all its writers come back at about the same time. If a leader began with the first
/// of them, it would leave the others to the next sync, and groups would be half as large as they
/// could be.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    writers: AtomicUsize,
    sync_nanos: AtomicU64,
}

impl Gathering {
    /// Remembers a group of `writers` whose sync took `duration`.
    pub(crate) fn note(&self, writers: usize, duration: Duration) {
        self.writers.store(writers, Ordering::Relaxed);
        self.sync_nanos
            .store(duration.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Gives a function that says of a number of waiting writers whether more are worth waiting
    /// for. The time that it allows begins with the first look.
    pub(crate) fn wait_for_more<'a>(
        &'a self,
        clock: &'a dyn Clock,
    ) -> impl FnMut(usize) -> bool + 'a {
        let mut until = None;
        let mut looks = 0;
        move |waiting| {
            if waiting >= self.writers.load(Ordering::Relaxed) {
                return false;
            }
            let sync = Duration::from_nanos(self.sync_nanos.load(Ordering::Relaxed));
            let until = *until.get_or_insert_with(|| clock.now() + sync / SHARE);
            looks += 1;
            looks < MOST_LOOKS && clock.now() < until
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn waits_for_as_many_as_last_time_and_an_eighth_of_the_sync() {
        let (clock, gathering) = (ManualClock::default(), Gathering::default());
        assert!(!gathering.wait_for_more(&clock)(1), "nothing is known yet");
        gathering.note(4, Duration::from_millis(8));
        let mut more = gathering.wait_for_more(&clock);
        assert!(more(3));
        assert!(!more(4), "all are there");
        assert!(more(3));
        clock.advance(Duration::from_millis(1));
        assert!(!more(3), "an eighth of the sync has passed");
    }

    #[test]
    fn a_clock_that_stands_still_does_not_hold_the_group_up() {
        let (clock, gathering) = (ManualClock::default(), Gathering::default());
        gathering.note(2, Duration::from_secs(1));
        let mut more = gathering.wait_for_more(&clock);
        assert!((0..MOST_LOOKS).any(|_| !more(1)));
    }
}
