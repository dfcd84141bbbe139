//! Groups of horizontal bars, because names fit beside them at any width.

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::canvas::{Area, Frame, SMALL, failed, rgb, shortened, text, text_width, units};
use super::palette::Ink;
use super::{Bar, Group};

const HEADING: f64 = 24.0;
const ROW: f64 = 19.0;
const THICK: f64 = 13.0;
const GAP: f64 = 6.0;
/// Room for the numbers along the axis.
const AXIS: f64 = 22.0;
/// Room for the value beside the longest bar.
const VALUE: f64 = 74.0;

/// Draws the bars.
pub(super) fn draw(
    frame: &Frame<'_>,
    groups: &[Group],
    legend: &[(String, Ink)],
) -> Result<String> {
    let rows: f64 = groups.iter().map(height).sum();
    frame.draw(rows + AXIS + GAP, legend, |area| {
        body(frame, groups, rows, area)
    })
}

fn height(group: &Group) -> f64 {
    HEADING + group.bars.len() as f64 * ROW + GAP
}

/// How far a bar and its whisker reach.
fn reach(bar: &Bar) -> f64 {
    bar.range
        .map_or(bar.total(), |(_, max)| max.max(bar.total()))
}

fn body(frame: &Frame<'_>, groups: &[Group], rows: f64, area: &Area<'_>) -> Result<()> {
    let bars = || groups.iter().flat_map(|group| &group.bars);
    let labels = bars()
        .map(|bar| text_width(&bar.label, SMALL))
        .fold(40.0, f64::max)
        .min(frame.width * 0.36);
    let most = bars().map(reach).fold(0.0, f64::max);
    let most = if most > 0.0 { most } else { 1.0 };
    let plot = (frame.width - labels - VALUE - 8.0).max(40.0);
    let mut chart = ChartBuilder::on(area)
        .margin_left(units(labels + 8.0))
        .margin_right(units(VALUE))
        .x_label_area_size(units(AXIS))
        .build_cartesian_2d(0.0..most, 0.0..rows.max(1.0))
        .map_err(failed)?;
    let middle = Pos::new(HPos::Center, VPos::Top);
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_labels((plot / 75.0).max(2.0) as usize)
        .x_label_formatter(&|value| frame.unit.tick(*value))
        .x_label_style(text(SMALL, Ink::Muted).pos(middle))
        .axis_style(rgb(Ink::Grid).stroke_width(units(1.0) as u32))
        .bold_line_style(rgb(Ink::Grid).stroke_width(units(0.75) as u32))
        .light_line_style(TRANSPARENT)
        .draw()
        .map_err(failed)?;
    let mut draw = Draw {
        frame,
        labels,
        chart: &mut chart,
    };
    // The axis counts upwards, but rows are laid out downwards.
    let mut y = rows;
    for group in groups {
        draw.heading(&group.label, y - HEADING / 2.0 - 2.0)?;
        y -= HEADING;
        for bar in &group.bars {
            draw.bar(bar, y - ROW / 2.0)?;
            y -= ROW;
        }
        y -= GAP;
    }
    Ok(())
}

type Chart<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

struct Draw<'a, 'b, 'c> {
    frame: &'a Frame<'a>,
    labels: f64,
    chart: &'a mut Chart<'b, 'c>,
}

impl Draw<'_, '_, '_> {
    fn words(
        &mut self,
        words: String,
        at: (f64, f64),
        offset: f64,
        style: TextStyle<'static>,
    ) -> Result<()> {
        let element = EmptyElement::at(at) + Text::new(words, (units(offset), 0), style);
        self.chart.plotting_area().draw(&element).map_err(failed)
    }

    fn heading(&mut self, label: &str, y: f64) -> Result<()> {
        let label = shortened(label, self.frame.width - 8.0, 12.5);
        let style = text(12.5, Ink::Text).pos(Pos::new(HPos::Left, VPos::Center));
        // So that the lines of the grid do not go through the words.
        let half = units(HEADING / 2.0 - 2.0);
        let end = units(text_width(&label, 12.5) - self.labels);
        let ground = [(units(-2.0), -half), (end.max(0), half)];
        let ground = Rectangle::new(ground, rgb(Ink::Ground).filled());
        let element = EmptyElement::at((0.0, y)) + ground;
        self.chart.plotting_area().draw(&element).map_err(failed)?;
        self.words(label, (0.0, y), -self.labels - 4.0, style)
    }

    fn bar(&mut self, bar: &Bar, y: f64) -> Result<()> {
        let middle = |side| Pos::new(side, VPos::Center);
        let label = shortened(&bar.label, self.labels, SMALL);
        let style = text(SMALL, Ink::Text);
        self.words(
            label,
            (0.0, y),
            -6.0,
            style.clone().pos(middle(HPos::Right)),
        )?;
        let mut from = 0.0;
        for (ink, value) in &bar.parts {
            if *value <= 0.0 {
                continue;
            }
            let corners = [(from, y - THICK / 2.0), (from + value, y + THICK / 2.0)];
            self.draw(Rectangle::new(corners, rgb(*ink).filled()))?;
            from += value;
        }
        if let Some((min, max)) = bar.range.filter(|(min, max)| max > min) {
            let line = rgb(Ink::Text).stroke_width(units(1.25) as u32);
            let ends = [
                (min, 0.0, max, 0.0),
                (min, 4.0, min, -4.0),
                (max, 4.0, max, -4.0),
            ];
            for (x1, up, x2, down) in ends {
                self.draw(PathElement::new([(x1, y + up), (x2, y + down)], line))?;
            }
        }
        let value = self.frame.unit.show(bar.total());
        self.words(value, (reach(bar), y), 6.0, style.pos(middle(HPos::Left)))
    }

    fn draw<E>(&mut self, element: E) -> Result<()>
    where
        for<'a> &'a E: plotters::element::PointCollection<'a, (f64, f64)>,
        for<'a> E: plotters::element::Drawable<SVGBackend<'a>>,
    {
        self.chart.plotting_area().draw(&element).map_err(failed)
    }
}
