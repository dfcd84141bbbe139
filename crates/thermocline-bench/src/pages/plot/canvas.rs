//! What all drawings share: the frame, fonts, and colours that follow the page's theme.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::legend;
use super::palette::{Ink, PALETTE};
use super::unit::Unit;

/// The drawing library counts in whole units. This many make a pixel, so that lines are smooth.
pub(super) const SCALE: f64 = 4.0;

/// Height of small text in pixels.
pub(super) const SMALL: f64 = 11.5;

/// The area that is drawn on.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// What surrounds the data.
pub(super) struct Frame<'a> {
    /// Width in pixels.
    pub(super) width: f64,
    /// Shown above the plot, if nothing else shows it.
    pub(super) title: Option<&'a str>,
    /// What the values are.
    pub(super) axis: &'a str,
    /// Their unit.
    pub(super) unit: Unit,
}

impl Frame<'_> {
    /// Draws `body`, `height` pixels high, under title, axis name and legend.
    pub(super) fn draw(
        &self,
        height: f64,
        legend: &[(String, Ink)],
        body: impl FnOnce(&Area<'_>) -> Result<()>,
    ) -> Result<String> {
        let title = if self.title.is_some() { 28.0 } else { 0.0 };
        let rows = legend::rows(legend, self.width);
        let top = title + 20.0 + rows.len() as f64 * legend::ROW;
        let mut svg = String::new();
        {
            let size = (units(self.width) as u32, units(top + height) as u32);
            let all = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            if let Some(title) = self.title {
                all.fill(&rgb(Ink::Ground)).map_err(failed)?;
                let title = shortened(title, self.width - 8.0, 15.0);
                write(&all, &title, (4.0, 4.0), text(15.0, Ink::Text))?;
            }
            let axis = shortened(self.axis, self.width - 8.0, SMALL);
            write(&all, &axis, (4.0, title + 3.0), text(SMALL, Ink::Muted))?;
            legend::draw(&all, &rows, title + 20.0)?;
            let (_, below) = all.split_vertically(units(top));
            body(&below)?;
            all.present().map_err(failed)?;
        }
        Ok(svg)
    }
}

/// Pixels in the drawing library's units.
pub(super) fn units(pixels: f64) -> i32 {
    (pixels * SCALE).round() as i32
}

/// The colour of an ink in light mode. [`themed`] recognises it.
pub(super) fn rgb(ink: Ink) -> RGBColor {
    let (r, g, b) = ink.colour().light;
    RGBColor(r, g, b)
}

/// Text of this many pixels. The place where it is put is its top left corner.
pub(super) fn text(pixels: f64, ink: Ink) -> TextStyle<'static> {
    // The SVG back end divides by 1.24.
    ("sans-serif", pixels * SCALE * 1.24)
        .into_font()
        .color(&rgb(ink))
        .pos(Pos::new(HPos::Left, VPos::Top))
}

/// Puts text at a place in pixels.
pub(super) fn write(
    area: &Area<'_>,
    words: &str,
    (x, y): (f64, f64),
    style: TextStyle<'static>,
) -> Result<()> {
    let element = Text::new(printable(words), (units(x), units(y)), style);
    area.draw(&element).map_err(failed)
}

/// About how wide text is. Fonts differ.
pub(super) fn text_width(words: &str, pixels: f64) -> f64 {
    words.chars().count() as f64 * pixels * 0.57
}

/// Text cut off so that it fits into `width` pixels.
pub(super) fn shortened(words: &str, width: f64, pixels: f64) -> String {
    if text_width(words, pixels) <= width {
        return printable(words);
    }
    let fit = (width / (pixels * 0.57)).floor().max(1.0) as usize;
    let mut cut: String = words.chars().take(fit.saturating_sub(1)).collect();
    cut.push('…');
    printable(&cut)
}

/// Replaces control characters, because XML has no way to write them.
fn printable(words: &str) -> String {
    let seen = |c: char| {
        if c.is_control() || c == '\u{fffe}' || c == '\u{ffff}' {
            '\u{fffd}'
        } else {
            c
        }
    };
    words.chars().map(seen).collect()
}

/// Errors of the drawing library borrow from it.
pub(super) fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw: {error}")
}

/// Colours as CSS variables. Size and font are left to the page.
pub(super) fn themed(svg: &str) -> String {
    let mut svg = svg.to_owned();
    for colour in PALETTE {
        let (r, g, b) = colour.light;
        // With the quotes, so that only attributes match: quotes in text are escaped.
        let light = format!("\"#{r:02X}{g:02X}{b:02X}\"");
        svg = svg.replace(&light, &format!("\"var({})\"", colour.variable));
    }
    for (verbose, short) in [
        (" opacity=\"1\"", ""),
        (" font-family=\"sans-serif\"", ""),
        (" stroke=\"none\"", ""),
        // Inherited from the drawing itself.
        (" font-size=\"46\"", ""),
        (" fill=\"var(--text)\"", ""),
        (">\n", ">"),
    ] {
        svg = svg.replace(verbose, short);
    }
    let Some((_, view)) = svg.split_once("viewBox=") else {
        return svg;
    };
    format!("<svg fill=\"var(--text)\" font-size=\"46\" viewBox={view}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_off() {
        assert_eq!(shortened("hotrap", 100.0, 11.0), "hotrap");
        let cut = shortened("rocksdb-fast-only", 50.0, 11.0);
        assert!(
            cut.ends_with('…') && text_width(&cut, 11.0) <= 50.0,
            "{cut}"
        );
    }

    #[test]
    fn colours_in_words_stay() {
        let themed = themed(
            "<svg viewBox=\"0 0 1 1\"><text fill=\"#0072B2\">#0072B2 &quot;#0072B2&quot;</text></svg>",
        );
        assert_eq!(
            themed,
            "<svg fill=\"var(--text)\" font-size=\"46\" viewBox=\"0 0 1 1\"><text fill=\"var(--blue)\">#0072B2 &quot;#0072B2&quot;</text></svg>"
        );
    }
}
