//! The comparison for a terminal.

use std::fmt;

use super::{Comparison, Side};
use crate::pages::Unit;

/// What the figures mean.
pub(super) const METHOD: &str = "Throughput of whole runs, medians over repeats; B/A over 1: B is faster. Noise: how far from 1 \
the ratio would be by chance, 19 times of 20 (Welch's interval from the spread of the repeats; * of a single run, \
from blocks of its second half, which knows nothing of differences between runs).";

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "A  {}", named(&self.a))?;
        writeln!(f, "B  {}", named(&self.b))?;
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        let rows: Vec<[String; 8]> = self.rows();
        let mut widths = HEAD.map(|name| name.chars().count());
        for row in &rows {
            for (width, text) in widths.iter_mut().zip(row) {
                *width = (*width).max(text.chars().count());
            }
        }
        writeln!(f)?;
        line(f, &HEAD, widths)?;
        for row in &rows {
            line(f, &row.each_ref().map(String::as_str), widths)?;
        }
        write!(f, "\n{METHOD}")
    }
}

/// Names of the columns.
pub(super) const HEAD: [&str; 8] = [
    "cell", "A per s", "B per s", "B/A", "noise", "verdict", "hit rate", "CPU B/A",
];

impl Comparison {
    /// The table in words.
    pub(super) fn rows(&self) -> Vec<[String; 8]> {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        let row = |cell: &super::Compared| {
            let one_run = if cell.noise_of_one_run { " *" } else { "" };
            let noise = cell
                .noise
                .map(|noise| format!("{:.1} %{one_run}", noise * 100.0));
            let percent = |rate: f64| format!("{:.1}", rate * 100.0);
            let hit_rate = cell.a_fd_hit_rate.zip(cell.b_fd_hit_rate);
            [
                cell.cell.clone(),
                Unit::PerSecond.show(cell.a_ops_s),
                Unit::PerSecond.show(cell.b_ops_s),
                or_none(cell.ratio.map(|ratio| format!("{ratio:.3}"))),
                or_none(noise),
                cell.verdict.to_string(),
                or_none(hit_rate.map(|(a, b)| format!("{} → {} %", percent(a), percent(b)))),
                or_none(cell.cpu_ratio.map(|ratio| format!("{ratio:.2}"))),
            ]
        };
        self.cells.iter().map(row).collect()
    }
}

/// A side in one line.
pub(super) fn named(side: &Side) -> String {
    let version = if side.version.is_empty() {
        String::new()
    } else {
        format!(", version {}", side.version)
    };
    format!(
        "{} ({}{version}, {})",
        side.path.display(),
        side.suite,
        side.built_from
    )
}

/// Names to the left, numbers to the right.
fn line(f: &mut fmt::Formatter<'_>, row: &[&str; 8], widths: [usize; 8]) -> fmt::Result {
    let mut text = String::new();
    for (column, (word, width)) in row.iter().zip(widths).enumerate() {
        let padded = match column {
            0 | 5 => format!("{word:<width$}"),
            _ => format!("{word:>width$}"),
        };
        text.push_str(&padded);
        text.push_str("  ");
    }
    writeln!(f, "{}", text.trim_end())
}
