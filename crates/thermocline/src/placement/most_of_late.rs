//! The most of something that comes and goes.

use std::collections::VecDeque;
use std::time::Duration;

/// Over how long.
const LATE: Duration = Duration::from_secs(30);

/// What was seen of late, and when; each is more than all later ones.
#[derive(Debug, Default)]
pub(super) struct MostOfLate(VecDeque<(Duration, f64)>);

impl MostOfLate {
    /// Takes note of `amount` at `now`. Returns the most of late.
    pub(super) fn note(&mut self, now: Duration, amount: f64) -> f64 {
        while self.0.back().is_some_and(|(_, other)| *other <= amount) {
            self.0.pop_back();
        }
        self.0.push_back((now, amount));
        let is_old = |&(at, _): &(Duration, f64)| now.saturating_sub(at) > LATE;
        while self.0.front().is_some_and(is_old) {
            self.0.pop_front();
        }
        self.0.front().map_or(amount, |(_, most)| *most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_of_late_counts() {
        let mut late = MostOfLate::default();
        let mut most = |second, amount| late.note(Duration::from_secs(second), amount);
        assert_eq!(most(0, 5.0), 5.0);
        assert_eq!(most(10, 9.0), 9.0);
        assert_eq!(most(20, 7.0), 9.0);
        assert_eq!(most(40, 1.0), 9.0);
        assert_eq!(most(41, 2.0), 7.0);
        assert_eq!(most(51, 2.0), 2.0);
    }
}
