//! What the demo showed, in two lines.

use super::LANES;
use crate::report::Report;

/// One line for each store: the end of its run, when what is hot has been found.
pub(super) fn verdict(reports: &[Report; 2]) -> String {
    let [hot, level] = reports;
    let speed = |report: &Report| report.last_tenth.as_ref().map_or(0.0, |last| last.ops_s);
    let ratio = speed(hot) / speed(level).max(1e-9);
    let ops = hot.ops.unwrap_or(0) + level.ops.unwrap_or(0);
    let wrong = hot.wrong_answers + level.wrong_answers;
    format!(
        "{}: {ratio:.1} times as fast\n{}; {wrong} wrong answers in {ops} reads",
        line(hot, LANES[0].1),
        line(level, LANES[1].1)
    )
}

fn line(report: &Report, name: &str) -> String {
    let name = format!("{name}:");
    let Some(last) = &report.last_tenth else {
        return format!("{name:<11} nothing was read");
    };
    let rate = last.fd_hit_rate.unwrap_or(0.0) * 100.0;
    format!(
        "{name:<11} at the end {rate:.1} % of the reads without the slow disk, {:.0} reads/s",
        last.ops_s
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::LastTenth;

    #[test]
    fn both_stores_are_told_in_two_lines() {
        let reports = LANES.map(|(engine, _)| {
            let mut report = Report::new(&super::super::plan(engine, 1).unwrap(), false, None);
            let report = report.as_mut().unwrap();
            let hot = engine == "hotrap";
            report.ops = Some(if hot { 900 } else { 100 });
            report.last_tenth = Some(LastTenth {
                seconds: 1.0,
                ops_s: if hot { 9000.0 } else { 2000.0 },
                mean_us: 1.0,
                fd_hit_rate: Some(if hot { 0.95 } else { 0.11 }),
                latencies: Vec::new(),
            });
            report.clone()
        });
        let text = verdict(&reports);
        assert_eq!(text.lines().count(), 2, "{text}");
        for words in [
            "by hotness: at the end 95.0 % of the reads without the slow disk, 9000 reads/s: 4.5 times as fast",
            "by level:   at the end 11.0 % of the reads without the slow disk, 2000 reads/s; 0 wrong answers in 1000 reads",
        ] {
            assert!(text.contains(words), "{text}");
        }
    }
}
