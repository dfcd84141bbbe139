//! Which cells of a suite are measured.

use anyhow::{Context, Result, bail};
use glob::Pattern;

use super::cell::Cell;

/// Cells by patterns of their names.
pub(crate) struct Choice(Vec<Pattern>);

impl Choice {
    /// The cells that match any of `patterns`. All cells if there are no patterns.
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
        let numbered = cells.iter().enumerate();
        Ok(numbered
            .filter(|(_, cell)| self.fits(cell))
            .map(|(number, _)| number)
            .collect())
    }

    /// Whether `cell` is chosen.
    pub(crate) fn fits(&self, cell: &Cell) -> bool {
        self.0.is_empty() || self.0.iter().any(|pattern| pattern.matches(&cell.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::cells::tests::of_small;

    fn of(patterns: &[&str]) -> Result<Vec<usize>> {
        let patterns: Vec<String> = patterns.iter().map(|text| (*text).to_owned()).collect();
        Choice::new(&patterns)?.of(&of_small())
    }

    #[test]
    fn cells_are_chosen_by_name() {
        assert_eq!(of(&[]).unwrap().len(), 9);
        assert_eq!(of(&["*-ro-hotspot-5"]).unwrap(), [0, 1]);
        assert_eq!(
            of(&["other*", "reads-hotrap-ro-hotspot-5"]).unwrap(),
            [0, 8]
        );
    }

    #[test]
    fn a_pattern_that_fits_nothing_is_refused() {
        let error = of(&["*", "fig99*"]).unwrap_err().to_string();
        assert!(
            error.contains("fig99*") && error.contains("--list"),
            "{error}"
        );
        let error = of(&["[a"]).unwrap_err().to_string();
        assert!(error.contains("no pattern"), "{error}");
    }
}
