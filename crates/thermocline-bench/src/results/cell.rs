//! One cell of a suite with its repeats.

use super::{Run, Summary};

/// What was measured under one command, with all repeats.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    /// Its name in the suite.
    pub(crate) id: String,
    /// Figures and tables of the paper that it belongs to.
    pub(crate) figures: Vec<String>,
    /// The command line of one repeat.
    pub(crate) command: String,
    /// Finished repeats.
    pub(crate) runs: Vec<Run>,
}

impl Cell {
    /// The first repeat: settings are the same in all.
    pub(crate) fn first(&self) -> Option<&Run> {
        self.runs.first()
    }

    /// Median and range of what `value` finds in each repeat.
    pub(crate) fn summary(&self, value: impl Fn(&Run) -> Option<f64>) -> Option<Summary> {
        Summary::of(self.runs.iter().filter_map(value))
    }

    /// The repeat in the middle by throughput. It is the one that is shown over time.
    pub(crate) fn typical(&self) -> Option<&Run> {
        let mut runs: Vec<&Run> = self.runs.iter().collect();
        let ops = |run: &Run| run.ops_s.unwrap_or(0.0);
        runs.sort_by(|a, b| ops(a).total_cmp(&ops(b)));
        runs.get(runs.len().saturating_sub(1) / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::run::tests::value;

    #[test]
    fn the_typical_repeat_is_the_middle_one() {
        let runs = [30.0, 10.0, 20.0];
        let cell = Cell {
            id: "a".into(),
            figures: Vec::new(),
            command: String::new(),
            runs: runs
                .map(|ops| serde_json::from_value(value("hotrap", "uniform", ops)).unwrap())
                .to_vec(),
        };
        assert_eq!(cell.typical().unwrap().ops_s, Some(20.0));
        assert_eq!(cell.summary(|run| run.ops_s).unwrap().max, 30.0);
        assert_eq!(cell.summary(|_| None), None);
    }
}
