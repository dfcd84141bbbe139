//! What samples of the counters say about hit rates over time.

use crate::counters::Counters;

/// Counters at a time, in seconds since the run began.
pub(super) type Sample = (f64, Counters);

/// Seconds over which a hit rate is taken when the question is when it got somewhere. A single
/// second may hold few reads.
const WINDOW: f64 = 3.0;

/// How close to its goal a settled hit rate stays.
const NEAR: f64 = 0.03;

/// Hit rate between two times. It is taken between the nearest samples that are at least half as
/// far apart, because the last sample of a run comes when the run ends, and may hold next to
/// nothing.
pub(super) fn between(samples: &[Sample], from: f64, to: f64) -> Option<f64> {
    let last = samples.get(nearest(samples, to)?)?;
    let far = samples.partition_point(|(at, _)| *at <= last.0 - (to - from) / 2.0);
    let first = nearest(samples.get(..far)?, from)?;
    rate(samples.get(first)?, last)
}

/// Hit rate in the last tenth of what `samples` span.
pub(super) fn in_last_tenth(samples: &[Sample]) -> Option<f64> {
    let (begin, end) = (samples.first()?.0, samples.last()?.0);
    between(samples, end - (end - begin) * 0.1, end)
}

/// Seconds from the first sample until the hit rate first was at least `goal`.
pub(super) fn seconds_to(samples: &[Sample], goal: f64) -> Option<f64> {
    let begin = samples.first()?.0;
    let at = windows(samples).find(|(_, rate)| *rate >= goal)?.0;
    Some(at - begin)
}

/// Seconds from the first sample until the hit rate was within 3 points of `goal` for good.
pub(super) fn seconds_to_stay(samples: &[Sample], goal: f64) -> Option<f64> {
    let begin = samples.first()?.0;
    let mut since = None;
    for (at, rate) in windows(samples) {
        if (rate - goal).abs() > NEAR {
            since = None;
        } else {
            since.get_or_insert(at);
        }
    }
    Some(since? - begin)
}

/// For each sample except the first, its time and the hit rate over the seconds before it.
fn windows(samples: &[Sample]) -> impl Iterator<Item = (f64, f64)> {
    samples.iter().enumerate().filter_map(|(index, sample)| {
        let earlier = samples.get(..index)?;
        // Samples come a little late, but not later each time.
        let from = earlier.partition_point(|(at, _)| *at <= sample.0 - WINDOW + 0.1);
        Some((
            sample.0,
            rate(earlier.get(from.saturating_sub(1))?, sample)?,
        ))
    })
}

fn nearest(samples: &[Sample], to: f64) -> Option<usize> {
    let distances = samples.iter().map(|(at, _)| (at - to).abs());
    let nearest = distances.enumerate().min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(nearest.0)
}

fn rate(earlier: &Sample, later: &Sample) -> Option<f64> {
    later.1.since(&earlier.1).fd_hit_rate()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample a second with 100 reads, of which the given number are hits.
    fn samples(hits: &[u64]) -> Vec<Sample> {
        let mut sum = 0;
        let mut samples = vec![(10.0, counters(0, 0))];
        for (hits, second) in hits.iter().zip(1..) {
            sum += hits;
            samples.push((10.0 + second as f64, counters(100 * second, sum)));
        }
        samples
    }

    fn counters(gets: u64, hits: u64) -> Counters {
        Counters {
            gets: Some(gets),
            gets_without_slow: Some(hits),
            ..Counters::default()
        }
    }

    #[test]
    fn a_rate_between_two_times() {
        let samples = samples(&[0, 10, 20, 30, 40, 50, 60, 70, 80, 90]);
        assert_eq!(between(&samples, 11.0, 13.0), Some(0.15));
        assert_eq!(in_last_tenth(&samples), Some(0.9));
        assert_eq!(in_last_tenth(&samples[..1]), None);
        let mut with_end = samples.clone();
        with_end.push((20.01, counters(1001, 450)));
        assert_eq!(in_last_tenth(&with_end), Some(90.0 / 101.0));
    }

    #[test]
    fn a_goal_is_reached_over_a_window_and_not_by_one_second() {
        let samples = samples(&[0, 90, 0, 60, 90, 90, 90, 90]);
        // Seconds 4 to 6 hold 60, 90 and 90.
        assert_eq!(seconds_to(&samples, 0.8), Some(6.0));
        assert_eq!(seconds_to(&samples, 0.95), None);
        assert_eq!(seconds_to(&samples, 0.0), Some(1.0));
    }

    #[test]
    fn a_rate_stays_near_from_when_it_does_not_leave_again() {
        let samples = samples(&[90, 90, 90, 90, 0, 90, 90, 90, 90, 90]);
        // The dip in second 5 is in the windows up to the seventh.
        assert_eq!(seconds_to_stay(&samples, 0.9), Some(8.0));
        assert_eq!(seconds_to_stay(&samples, 0.2), None);
    }
}
