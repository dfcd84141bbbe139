//! Values over time, with the stages of the run, or over another value.

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::canvas::{Area, Frame, SMALL, failed, rgb, text, text_width, units};
use super::palette::Ink;
use super::{Line, Unit};

/// Room for the numbers beside the axes.
const LEFT: f64 = 70.0;
const BELOW: f64 = 34.0;
/// Room for the names of the stages.
const NAMES: f64 = 18.0;

/// What the lines go over, from left to right.
pub(super) struct Across<'a> {
    /// Its name.
    name: &'a str,
    /// None for seconds.
    unit: Option<Unit>,
    /// When stages begin, with their names.
    stages: &'a [(f64, String)],
}

impl<'a> Across<'a> {
    /// Time, in a run of these stages.
    pub(super) fn time(lines: &[Line], stages: &'a [(f64, String)]) -> Self {
        let mut points = lines.iter().flat_map(|line| &line.points);
        let name = match points.any(|(second, _)| *second < 0.0) {
            true => "seconds since measuring began",
            false => "seconds since the run began",
        };
        Self {
            name,
            unit: None,
            stages,
        }
    }

    /// Another value. Few points are known, so each is marked.
    pub(super) fn value(unit: Unit, name: &'a str) -> Self {
        Self {
            name,
            unit: Some(unit),
            stages: &[],
        }
    }

    fn tick(&self, value: f64) -> String {
        match self.unit {
            Some(unit) => unit.tick(value),
            // So that a number a little below 0 is not shown as "-0".
            None => format!("{}", (value * 10.0).round() / 10.0 + 0.0),
        }
    }
}

/// Draws the lines.
pub(super) fn draw(frame: &Frame<'_>, lines: &[Line], across: &Across<'_>) -> Result<String> {
    let legend: Vec<(String, Ink)> = lines
        .iter()
        .map(|line| (line.label.clone(), line.ink))
        .collect();
    let height = if frame.width > 500.0 { 260.0 } else { 215.0 };
    frame.draw(height, &legend, |area| body(frame, lines, across, area))
}

fn body(frame: &Frame<'_>, lines: &[Line], across: &Across<'_>, area: &Area<'_>) -> Result<()> {
    let points = || lines.iter().flat_map(|line| &line.points);
    // A warm-up comes before second 0.
    let begin = points().map(|(x, _)| *x).fold(0.0, f64::min);
    let end = points().map(|(x, _)| *x).fold(0.0, f64::max);
    let end = match across.unit {
        None => end.max(1.0),
        // Room for the mark of the last point.
        Some(_) if end > 0.0 => end * 1.05,
        Some(_) => 1.0,
    };
    let most = points().filter_map(|(_, y)| *y).fold(0.0, f64::max);
    let top = match frame.unit {
        Unit::Share => 1.0,
        _ if most > 0.0 => most * 1.05,
        _ => 1.0,
    };
    let mut chart = ChartBuilder::on(area)
        .margin_top(units(NAMES))
        .margin_right(units(12.0))
        .y_label_area_size(units(LEFT))
        .x_label_area_size(units(BELOW))
        .build_cartesian_2d(begin..end, 0.0..top)
        .map_err(failed)?;
    let plot = frame.width - LEFT - 12.0;
    let length = end - begin;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels((plot / 60.0).max(4.0) as usize)
        .y_labels(5)
        .x_label_formatter(&|value| across.tick(*value))
        // A hard space keeps the numbers off the axis.
        .y_label_formatter(&|value| format!("{}\u{a0}", frame.unit.tick(*value)))
        .x_desc(across.name)
        .axis_desc_style(text(SMALL, Ink::Muted).pos(Pos::new(HPos::Center, VPos::Top)))
        .x_label_style(text(SMALL, Ink::Muted).pos(Pos::new(HPos::Center, VPos::Top)))
        .y_label_style(text(SMALL, Ink::Muted).pos(Pos::new(HPos::Right, VPos::Center)))
        .axis_style(rgb(Ink::Grid).stroke_width(units(1.0) as u32))
        .bold_line_style(rgb(Ink::Grid).stroke_width(units(0.75) as u32))
        .light_line_style(TRANSPARENT)
        .draw()
        .map_err(failed)?;
    let mark = rgb(Ink::Muted).stroke_width(units(1.0) as u32);
    if begin < 0.0 {
        let line = PathElement::new([(0.0, 0.0), (0.0, top)], mark);
        chart.plotting_area().draw(&line).map_err(failed)?;
    }
    for (number, (begin, name)) in across.stages.iter().enumerate() {
        let next = across.stages.get(number + 1).map_or(end, |(next, _)| *next);
        let room = (next - begin) / length * plot - 6.0;
        // All by name. If a name does not fit, by number; the page has both.
        let name = if text_width(name, 10.5) <= room {
            name.clone()
        } else {
            (number + 1).to_string()
        };
        let at = EmptyElement::at((*begin, top))
            + Text::new(name, (units(3.0), units(-14.0)), text(10.5, Ink::Muted));
        chart.plotting_area().draw(&at).map_err(failed)?;
        if number > 0 {
            let line = PathElement::new([(*begin, 0.0), (*begin, top)], mark);
            chart.plotting_area().draw(&line).map_err(failed)?;
        }
    }
    for line in lines {
        let width = if line.limit { 1.0 } else { 1.75 };
        let style = rgb(line.ink).stroke_width(units(width) as u32);
        if across.unit.is_some() {
            let marked = line.points.iter().filter_map(|(x, y)| Some((*x, (*y)?)));
            let mark = |at| Circle::new(at, units(3.5), rgb(line.ink).filled());
            chart.draw_series(marked.map(mark)).map_err(failed)?;
        }
        for part in parts(&line.points) {
            chart
                .draw_series(LineSeries::new(part, style))
                .map_err(failed)?;
        }
    }
    Ok(())
}

/// A line's points between its gaps.
fn parts(points: &[(f64, Option<f64>)]) -> Vec<Vec<(f64, f64)>> {
    points
        .split(|(_, y)| y.is_none())
        .map(|part| part.iter().filter_map(|(x, y)| Some((*x, (*y)?))).collect())
        .filter(|part: &Vec<_>| !part.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_interrupt_a_line() {
        let points = [
            (1.0, Some(5.0)),
            (2.0, None),
            (3.0, Some(6.0)),
            (4.0, Some(7.0)),
        ];
        assert_eq!(
            parts(&points),
            [vec![(1.0, 5.0)], vec![(3.0, 6.0), (4.0, 7.0)]]
        );
    }
}
