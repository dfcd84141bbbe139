//! Points of lines over time, no more than a plot has room for, and the same as the rows of a
//! table.

use super::super::plot::{Line, Table, Unit};

/// Times and values; a gap where there is none.
pub(super) type Points = Vec<(f64, Option<f64>)>;

/// The whole seconds that a point has to stand for so that no run has more than `most` points. It
/// is the same for all runs of a plot, so that their points are at the same times. `None` if no run
/// has more samples than that. `runs` gives for each run the number of its samples and the seconds
/// that they cover.
pub(super) fn step(runs: &[(usize, f64)], most: usize) -> Option<f64> {
    let samples = runs.iter().map(|(samples, _)| *samples).max()?;
    let seconds = runs.iter().map(|(_, seconds)| *seconds);
    let longest = seconds.fold(0.0, f64::max);
    (samples > most).then(|| (longest.round() / most.max(1) as f64).ceil().max(1.0))
}

/// A last sample shorter than this only shows what was still under way when time was up. Alone it
/// says nothing of the run.
const SHORTEST_LAST: f64 = 0.5;

/// Means of what lies within the same `step` seconds, each at the end of these. Each sample counts
/// for its time. The first sample begins at `begin`.
pub(super) fn thinned(points: Points, begin: f64, step: Option<f64>) -> Points {
    let points = without_short_last(points);
    let (Some(step), Some((end, _))) = (step, points.last().copied()) else {
        return points;
    };
    // A sample comes a little after its second.
    let end_of = |second: f64| (second.round() / step).ceil() * step;
    let mut before = begin;
    points
        .chunk_by(|(a, _), (b, _)| end_of(*a) == end_of(*b))
        .filter_map(|part| {
            let (mut sum, mut time) = (0.0, 0.0);
            for (second, value) in part {
                let took = second - before;
                before = *second;
                if let Some(value) = value {
                    sum += value * took;
                    time += took;
                }
            }
            let second = end_of(part.last()?.0).min(end);
            Some((second, (time > 0.0).then_some(sum / time)))
        })
        .collect()
}

fn without_short_last(mut points: Points) -> Points {
    if let [.., (before, _), (last, _)] = points[..]
        && last - before < SHORTEST_LAST
    {
        points.pop();
    }
    points
}

/// One row for each time of the line that has most points. One column for each line, with the
/// line's value nearest to that time.
pub(super) fn table(lines: &[Line], unit: Unit) -> Table {
    let mut table = Table::new(&["second"]);
    table
        .head
        .extend(lines.iter().map(|line| line.label.clone()));
    let times = lines.iter().map(|line| &line.points);
    let Some(times) = times.max_by_key(|points| points.len()) else {
        return table;
    };
    for (second, _) in times {
        // So that a number a little below 0 is not shown as "-0".
        let mut row = vec![format!("{:.0}", second.round_ties_even() + 0.0)];
        row.extend(lines.iter().map(|line| {
            // If it is farther away than half a step, it belongs to another row, or the line is
            // over.
            let step = spacing(times).max(spacing(&line.points));
            let value = nearest(&line.points, *second, step / 2.0);
            value.map_or_else(|| "–".to_owned(), |value| unit.show(value))
        }));
        table.rows.push(row);
    }
    table
}

/// Seconds from one point to the next, on average.
fn spacing(points: &[(f64, Option<f64>)]) -> f64 {
    match points {
        [(first, _), .., (last, _)] => (last - first) / (points.len() - 1) as f64,
        [(only, _)] => *only,
        [] => 0.0,
    }
}

/// The value of the point nearest to `second`, if that is at most `within` seconds away.
fn nearest(points: &[(f64, Option<f64>)], second: f64, within: f64) -> Option<f64> {
    let after = points.partition_point(|(x, _)| *x < second);
    let around = points.get(after.saturating_sub(1)..)?.iter().take(2);
    let distances = around.map(|(x, y)| ((x - second).abs(), *y));
    let (distance, value) = distances.min_by(|a, b| a.0.total_cmp(&b.0))?;
    value.filter(|_| distance <= within)
}

#[cfg(test)]
mod tests {
    use super::super::super::plot::Ink;
    use super::*;

    #[test]
    fn thinned_lines_keep_their_mean_and_their_gaps() {
        let points: Points = (1..=7)
            .map(|x| (f64::from(x), (x < 5).then_some(f64::from(x))))
            .collect();
        assert_eq!(
            thinned(points.clone(), 0.0, Some(2.0)),
            [(2.0, Some(1.5)), (4.0, Some(3.5)), (6.0, None), (7.0, None)]
        );
        assert_eq!(thinned(points.clone(), 0.0, Some(1.0)), points);
        assert_eq!(thinned(points.clone(), 0.0, None), points);
        assert!(thinned(Points::new(), 0.0, Some(3.0)).is_empty());
    }

    /// Regression: the last sample shows what was under way when time was up: few operations, in
    /// some hundredths of a second. It counted as much as a whole second, so the last point of a
    /// line fell by up to a third.
    #[test]
    fn a_moment_at_the_end_does_not_pull_the_last_point_down() {
        let samples = [(1.0, 7000.0), (2.0, 7000.0), (3.0, 7000.0), (3.026, 623.0)];
        let points: Points = samples.map(|(second, value)| (second, Some(value))).into();
        for step in [Some(3.0), Some(1.0), None] {
            let thinned = thinned(points.clone(), 0.0, step);
            let last = thinned.last().unwrap().1.unwrap();
            assert!((last - 7000.0).abs() < 140.0, "{step:?}: {thinned:?}");
        }
        // A longer last sample counts for its time.
        let points: Points = vec![(1.0, Some(100.0)), (2.0, Some(100.0)), (2.6, Some(500.0))];
        let mean = thinned(points, 0.0, Some(3.0))[0].1.unwrap();
        assert!(
            (mean - (100.0 + 100.0 + 0.6 * 500.0) / 2.6).abs() < 1e-9,
            "{mean}"
        );
    }

    /// The table of runs with this many samples, one every so many seconds. A value is a hundred
    /// times its time.
    fn rows(runs: [(f64, u32); 2], most: usize) -> Vec<Vec<String>> {
        let lengths = runs.map(|(every, samples)| (samples as usize, f64::from(samples) * every));
        let step = step(&lengths, most);
        let lines = runs.map(|(every, samples)| {
            let times = (1..=samples).map(|number| f64::from(number) * every);
            let points = times.map(|second| (second, Some(second * 100.0)));
            Line {
                label: String::new(),
                ink: Ink::Text,
                limit: false,
                points: thinned(points.collect(), 0.0, step),
            }
        });
        table(&lines, Unit::PerSecond).rows
    }

    /// Regression: a row had the values with the same number of values before them, but each engine
    /// has a little less than one sample a second. After 300 s the last rows had values of other
    /// times. If a point was four samples of one engine and five of another, all rows did.
    #[test]
    fn a_row_has_values_of_its_own_time() {
        for (most, step) in [(5, 2.0), (100, 1.0)] {
            let rows = rows([(1.0, 10), (0.9, 11)], most);
            assert!(rows.len() >= 5, "{rows:?}");
            for row in &rows {
                let number = |text: &String| text.replace(',', "").parse::<f64>().unwrap();
                let second = number(&row[0]);
                for value in &row[1..] {
                    let time = number(value) / 100.0;
                    assert!((time - second).abs() < step, "{rows:?}");
                }
            }
        }
    }

    #[test]
    fn a_line_that_is_over_has_no_more_values() {
        let joined = |most| -> Vec<String> {
            let rows = rows([(1.0, 8), (1.0, 4)], most);
            rows.iter().map(|row| row.join(" ")).collect()
        };
        let expected = ["2 150 150", "4 350 350", "6 550 –", "8 750 –"];
        assert_eq!(joined(4), expected);
        assert_eq!(joined(8)[3..5], ["4 400 400", "5 500 –"]);
    }
}
