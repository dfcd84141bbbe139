//! Which commits the programs behind a result directory were built from.
//!
//! A directory may be filled in several sittings, and the program may change in between. Then bars
//! beside each other are of different programs, and a reader has to be told.

use std::collections::BTreeMap;
use std::fmt;

use super::Cell;

/// Commits, each with the number of its runs. A run does not always know its commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commits(BTreeMap<Option<String>, usize>);

impl Commits {
    /// The commits behind the runs of `cells`.
    pub(crate) fn of(cells: &[Cell]) -> Self {
        let mut commits = BTreeMap::new();
        for run in cells.iter().flat_map(|cell| &cell.runs) {
            *commits.entry(run.commit.clone()).or_default() += 1;
        }
        Self(commits)
    }

    /// Whether the runs are of more than one program.
    pub(crate) fn differ(&self) -> bool {
        self.0.len() > 1
    }
}

/// A commit in words.
fn named(commit: Option<&str>) -> &str {
    commit.unwrap_or("not recorded")
}

impl fmt::Display for Commits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some((commit, _)), false) = (self.0.first_key_value(), self.differ()) {
            return write!(f, "commit {}", named(commit.as_deref()));
        }
        let each = self.0.iter().map(|(commit, runs)| {
            let plural = if *runs == 1 { "" } else { "s" };
            format!("{} ({runs} run{plural})", named(commit.as_deref()))
        });
        write!(f, "commits {}", each.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::cell;

    fn of(commits: &[Option<&str>]) -> Commits {
        let mut cell = cell("hotrap", "uniform", &vec![1.0; commits.len()]);
        for (run, commit) in cell.runs.iter_mut().zip(commits) {
            run.commit = commit.map(str::to_owned);
        }
        Commits::of(&[cell])
    }

    #[test]
    fn one_program_is_named_and_several_are_counted() {
        let one = of(&[Some("7eccfee"), Some("7eccfee")]);
        assert_eq!(
            (one.to_string().as_str(), one.differ()),
            ("commit 7eccfee", false)
        );
        // From before commits were recorded.
        assert_eq!(of(&[None]).to_string(), "commit not recorded");
        let several = of(&[Some("b"), None, Some("a-modified"), Some("b")]);
        assert!(several.differ());
        assert_eq!(
            several.to_string(),
            "commits not recorded (1 run), a-modified (1 run), b (2 runs)"
        );
    }
}
