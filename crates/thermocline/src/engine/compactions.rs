//! How many compactions run, and how many ever began.

use crate::sync::atomic::{AtomicU64, Ordering};

/// Both counts over all keyspaces, in one word: the lower half counts the compactions that are
/// queued or run, the upper half those that ever began. With two words, one could look when a
/// compaction was counted in one of them and not yet in the other. One would then believe that no
/// compaction runs, and take a lack of space, which that compaction is about to end, for an error.
#[derive(Debug, Default)]
pub(crate) struct Compactions(AtomicU64);

/// The counts at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen(u64);

const RUNNING: u64 = 1;
const BEGUN: u64 = 1 << 32;

impl Compactions {
    /// Counts a compaction that is queued.
    pub(crate) fn begin(&self) {
        self.0.fetch_add(BEGUN + RUNNING, Ordering::SeqCst);
    }

    /// Takes off a compaction that has ended.
    pub(crate) fn end(&self) {
        self.0.fetch_sub(RUNNING, Ordering::SeqCst);
    }

    pub(crate) fn look(&self) -> Seen {
        Seen(self.0.load(Ordering::SeqCst))
    }
}

impl Seen {
    /// How many compactions were queued or ran.
    pub(crate) fn running(self) -> usize {
        (self.0 % BEGUN) as usize
    }

    /// Whether a compaction ended between this look and a `later` one, or none was left to end.
    pub(crate) fn may_have_ended_by(self, later: Self) -> bool {
        let ended = |seen: Self| (seen.0 / BEGUN).wrapping_sub(seen.0 % BEGUN) % BEGUN;
        later.running() == 0 || ended(self) != ended(later)
    }

    /// Whether a compaction began between this look and a `later` one.
    pub(crate) fn has_begun_by(self, later: Self) -> bool {
        self.0 / BEGUN != later.0 / BEGUN
    }
}

#[cfg(all(test, not(thermocline_shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn one_that_begins_is_not_taken_for_one_that_ends() {
        let compactions = Compactions::default();
        compactions.begin();
        let before = compactions.look();
        let may_have_ended = || before.may_have_ended_by(compactions.look());
        assert!(!may_have_ended());
        compactions.begin();
        assert!(!may_have_ended());
        compactions.end();
        assert!(may_have_ended());
        compactions.end();
        assert!(may_have_ended(), "none is left");
    }

    #[test]
    fn one_that_came_and_went_has_begun_and_does_not_run() {
        let compactions = Compactions::default();
        let before = compactions.look();
        compactions.begin();
        let during = compactions.look();
        compactions.end();
        let after = compactions.look();
        assert_eq!([before, during, after].map(Seen::running), [0, 1, 0]);
        assert!(before.has_begun_by(after) && !during.has_begun_by(after));
    }
}

/// Every order of looks and counts. Needs the checker's own atomics:
/// `RUSTFLAGS="--cfg thermocline_shuttle" cargo test -p thermocline --lib model`
#[cfg(all(test, thermocline_shuttle))]
mod model {
    use super::*;
    use crate::sync::Arc;

    /// Regression: a flush and a compaction by hand failed with `NoSpace` while another compaction
    /// was making room. When they looked first, one count said that it had begun, and the other did
    /// not say yet that it ran. When they looked again, it ran. So neither look had seen it begin.
    fn one_looks_twice_while_another_begins() {
        let compactions = Arc::new(Compactions::default());
        let begins = Arc::clone(&compactions);
        let other = shuttle::thread::spawn(move || {
            begins.begin();
            begins.end();
        });
        let first = compactions.look();
        let second = compactions.look();
        if second.running() > 0 {
            assert!(first.running() > 0 || first.has_begun_by(second));
        }
        other.join().unwrap();
    }

    #[test]
    fn one_that_runs_at_the_second_look_ran_at_the_first_or_began_since() {
        shuttle::check_random(one_looks_twice_while_another_begins, 1000);
    }
}
