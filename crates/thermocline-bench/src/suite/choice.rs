//! Which cells of a suite are measured.

use anyhow::{Context, Result, bail};
use glob::Pattern;

use super::cells::Cell;

/// Cells by patterns of their names.
pub(crate) struct Choice(Vec<Pattern>);

impl Choice {
    /// Those that fit any of `patterns`; all if there is none.
    ///
    /// # Errors
    /// A pattern that makes no sense.
    pub(crate) fn new(patterns: &[String]) -> Result<Self> {
        let patterns = patterns.iter().map(|text| {
            Pattern::new(text).with_context(|| format!("--only: `{text}` is no pattern"))
        });
        Ok(Self(patterns.collect::<Result<_>>()?))
    }

    /// Numbers of the cells that are chosen.
    ///
    /// # Errors
    /// A pattern that fits none.
    pub(crate) fn of(&self, cells: &[Cell]) -> Result<Vec<usize>> {
        for pattern in &self.0 {
            if !cells.iter().any(|cell| pattern.matches(&cell.id)) {
                bail!("--only: no cell fits `{pattern}`; --list shows their names");
            }
        }
        let is_chosen = |cell: &Cell| {
            self.0.is_empty() || self.0.iter().any(|pattern| pattern.matches(&cell.id))
        };
        let numbered = cells.iter().enumerate();
        Ok(numbered
            .filter(|(_, cell)| is_chosen(cell))
            .map(|(number, _)| number)
            .collect())
    }
}
