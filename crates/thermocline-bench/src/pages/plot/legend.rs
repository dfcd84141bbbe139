//! Which colour is what.

use anyhow::Result;
use plotters::prelude::*;

use super::canvas::{self, Area, SMALL, failed, rgb, text, text_width, units, write};
use super::palette::Ink;

/// Height of a row in pixels.
pub(super) const ROW: f64 = 18.0;

const MARK: f64 = 11.0;

/// An entry and where it begins.
pub(super) type Placed = (f64, String, Ink);

/// Spreads entries over rows of `width` pixels.
pub(super) fn rows(legend: &[(String, Ink)], width: f64) -> Vec<Vec<Placed>> {
    let mut rows: Vec<Vec<Placed>> = Vec::new();
    let mut x = width;
    for (label, ink) in legend {
        let label = canvas::shortened(label, width - MARK - 20.0, SMALL);
        let needs = MARK + 5.0 + text_width(&label, SMALL) + 12.0;
        if x + needs > width {
            rows.push(Vec::new());
            x = 4.0;
        }
        if let Some(row) = rows.last_mut() {
            row.push((x, label, *ink));
        }
        x += needs;
    }
    rows
}

/// Draws the rows from `top` on.
pub(super) fn draw(area: &Area<'_>, rows: &[Vec<Placed>], top: f64) -> Result<()> {
    for (number, row) in rows.iter().enumerate() {
        let y = top + number as f64 * ROW;
        for (x, label, ink) in row {
            let corners = [
                (units(*x), units(y + 2.0)),
                (units(x + MARK), units(y + 2.0 + MARK)),
            ];
            area.draw(&Rectangle::new(corners, rgb(*ink).filled()))
                .map_err(failed)?;
            write(
                area,
                label,
                (x + MARK + 5.0, y + 2.0),
                text(SMALL, Ink::Text),
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_do_not_fit_go_to_the_next_row() {
        let legend: Vec<(String, Ink)> = ["hotrap", "leveled", "rocksdb", "rocksdb-fast-only"]
            .map(|name| (name.to_owned(), Ink::Text))
            .to_vec();
        let rows = rows(&legend, 200.0);
        assert!(rows.len() > 1);
        assert_eq!(rows.iter().map(Vec::len).sum::<usize>(), 4);
        for (x, label, _) in rows.iter().flatten() {
            assert!(
                x + MARK + 5.0 + text_width(label, SMALL) <= 200.0,
                "{label}"
            );
        }
    }
}
