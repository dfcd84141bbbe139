//! Plots: what is shown, and its drawing as SVG and PNG.
//!
//! A [`Plot`] is data with units. It can be drawn at any width, so a page has one drawing for desks
//! and one for phones. In both, colours are CSS variables.

mod bars;
mod canvas;
mod compact;
mod legend;
mod lines;
mod palette;
mod png;
mod unit;

use anyhow::Result;

pub(crate) use palette::{Colour, Ink, PALETTE, of_activity, of_engine};
pub(crate) use unit::{Unit, thousands};

/// The width in pixels of a drawing for desks.
pub(crate) const WIDE: u32 = 760;

/// The width in pixels of a drawing for phones.
pub(crate) const NARROW: u32 = 330;

/// One plot and everything that belongs beside it.
#[derive(Debug, Clone)]
pub(crate) struct Plot {
    /// Name of its PNG and of its anchor: lower-case letters, digits and hyphens.
    pub(crate) id: String,
    /// What it shows.
    pub(crate) title: String,
    /// What its values are.
    pub(crate) unit: Unit,
    /// What the values are, in words that include the unit, as in "in the last tenth of the run".
    pub(crate) axis: String,
    /// What a reader has to know about it.
    pub(crate) notes: Vec<String>,
    /// Settings of what was measured.
    pub(crate) settings: String,
    /// The values.
    pub(crate) shape: Shape,
    /// The data behind it.
    pub(crate) table: Table,
    /// Names and command lines of the cells in it.
    pub(crate) commands: Vec<(String, String)>,
    /// Whether a README might show it. Then it gets a PNG.
    pub(crate) main: bool,
}

/// How values are drawn.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    /// Groups of horizontal bars.
    Bars {
        /// Groups from top to bottom.
        groups: Vec<Group>,
        /// What the parts of bars mean, if bars have several.
        legend: Vec<(String, Ink)>,
    },
    /// Values over time.
    Lines {
        /// One line each.
        lines: Vec<Line>,
        /// When stages begin, in seconds, with their names.
        stages: Vec<(f64, String)>,
    },
    /// Values over another value than time.
    Curves {
        /// One line each, through marked points.
        lines: Vec<Line>,
        /// What the values across are.
        unit: Unit,
        /// The same in words.
        across: &'static str,
    },
}

/// Bars that are compared with each other.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// What they have in common.
    pub(crate) label: String,
    /// From top to bottom.
    pub(crate) bars: Vec<Bar>,
}

/// One bar, of one or several parts.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    /// What the bar stands for.
    pub(crate) label: String,
    /// From left to right.
    pub(crate) parts: Vec<(Ink, f64)>,
    /// Least and greatest of several repeats.
    pub(crate) range: Option<(f64, f64)>,
}

impl Bar {
    /// Its length.
    fn total(&self) -> f64 {
        // Not `sum`, which makes -0 of nothing.
        let values = self.parts.iter().map(|(_, value)| value);
        values.fold(0.0, |sum, value| sum + value)
    }
}

/// One line.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// What the line stands for.
    pub(crate) label: String,
    /// Its colour.
    pub(crate) ink: Ink,
    /// Whether it is a limit and not a measurement. A limit is drawn thin.
    pub(crate) limit: bool,
    /// Seconds, or what is across instead, and values. If there is no value, there is a gap.
    pub(crate) points: Vec<(f64, Option<f64>)>,
}

/// Rows and columns of text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Table {
    /// Names of the columns.
    pub(crate) head: Vec<String>,
    /// The rows. Each has as many cells as there are columns.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(head: &[&str]) -> Self {
        Self {
            head: head.iter().map(ToString::to_string).collect(),
            rows: Vec::new(),
        }
    }
}

impl Plot {
    /// The drawing for an HTML page with the style sheet. Colours are CSS variables.
    ///
    /// # Errors
    /// The drawing library's own.
    pub(crate) fn themed_svg(&self, width: u32) -> Result<String> {
        let themed = canvas::themed(&self.draw(width, false)?);
        Ok(compact::compact(&themed))
    }

    /// The drawing as a PNG in light colours, with its title.
    ///
    /// # Errors
    /// The drawing or rendering library's own.
    pub(crate) fn png(&self) -> Result<Vec<u8>> {
        png::render(&self.draw(WIDE, true)?)
    }

    fn draw(&self, width: u32, titled: bool) -> Result<String> {
        let frame = canvas::Frame {
            width: f64::from(width),
            title: titled.then_some(self.title.as_str()),
            axis: &self.axis,
            unit: self.unit,
        };
        match &self.shape {
            Shape::Bars { groups, legend } => bars::draw(&frame, groups, legend),
            Shape::Lines { lines, stages } => {
                lines::draw(&frame, lines, &lines::Across::time(lines, stages))
            }
            Shape::Curves {
                lines,
                unit,
                across,
            } => lines::draw(&frame, lines, &lines::Across::value(*unit, across)),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn plot(unit: Unit, shape: Shape) -> Plot {
        Plot {
            id: "a".into(),
            title: "Reads <fast> & \"slow\"".into(),
            unit,
            axis: "operations a second".to_owned(),
            notes: Vec::new(),
            settings: "2 threads".into(),
            shape,
            table: Table::new(&["engine"]),
            commands: Vec::new(),
            main: true,
        }
    }

    fn bars() -> Plot {
        let bar = |label: &str, value| Bar {
            label: label.into(),
            parts: vec![(Ink::Series(0), value), (Ink::Series(1), 5.0)],
            range: Some((value * 0.9, value * 1.1)),
        };
        plot(
            Unit::PerSecond,
            Shape::Bars {
                groups: vec![Group {
                    label: "ro <script>alert(1)</script>".into(),
                    bars: vec![bar("hotrap", 900.0), bar("\u{1}level'ed", 400.0)],
                }],
                legend: vec![
                    ("read".into(), Ink::Series(0)),
                    ("other".into(), Ink::Series(1)),
                ],
            },
        )
    }

    fn lines() -> Plot {
        let points = vec![
            (1.0, Some(0.1)),
            (2.0, None),
            (3.0, Some(0.5)),
            (4.0, Some(0.6)),
        ];
        plot(
            Unit::Share,
            Shape::Lines {
                lines: vec![Line {
                    label: "hotrap".into(),
                    ink: Ink::Series(0),
                    limit: false,
                    points,
                }],
                stages: vec![(0.0, "uniform".into()), (2.0, "hotspot-5".into())],
            },
        )
    }

    fn curves() -> Plot {
        let points = vec![(0.1, Some(5000.0)), (0.4, Some(9000.0))];
        plot(
            Unit::PerSecond,
            Shape::Curves {
                lines: vec![Line {
                    label: "hotrap".into(),
                    ink: Ink::Series(0),
                    limit: false,
                    points,
                }],
                unit: Unit::Dollars,
                across: "dollars",
            },
        )
    }

    #[test]
    fn points_of_curves_are_marked_and_no_seconds_are_said() {
        let svg = curves().themed_svg(WIDE).unwrap();
        assert_eq!(svg.matches("<circle").count(), 2, "{svg}");
        assert!(svg.contains("$0.2") && svg.contains("dollars") && !svg.contains("second since"));
        assert!(!lines().themed_svg(WIDE).unwrap().contains("<circle"));
    }

    #[test]
    fn drawings_are_well_formed_themed_and_escaped() {
        for plot in [bars(), lines(), curves()] {
            for width in [WIDE, NARROW] {
                let svg = plot.themed_svg(width).unwrap();
                let document = roxmltree::Document::parse(&svg).unwrap();
                for node in document.descendants().filter(roxmltree::Node::is_element) {
                    assert!(!node.has_tag_name("script"));
                    for name in ["fill", "stroke"] {
                        let ink = node.attribute(name).unwrap_or("none");
                        assert!(ink == "none" || ink.starts_with("var(--"), "{ink}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_unit_is_in_every_drawing() {
        assert!(
            bars()
                .themed_svg(NARROW)
                .unwrap()
                .contains("operations a second")
        );
        assert!(lines().themed_svg(NARROW).unwrap().contains("50 %"));
    }

    #[test]
    fn nothing_is_drawn_outside() {
        for plot in [bars(), lines(), curves()] {
            let svg = plot.themed_svg(NARROW).unwrap();
            let document = roxmltree::Document::parse(&svg).unwrap();
            let size = document.root_element().attribute("viewBox").unwrap();
            let size: Vec<f64> = size.split(' ').map(|n| n.parse().unwrap()).collect();
            for node in document.descendants() {
                for (name, most) in [("x", size[2]), ("y", size[3]), ("x2", size[2])] {
                    let at = node.attribute(name).map_or(0.0, |n| n.parse().unwrap());
                    assert!((0.0..=most).contains(&at), "{name}={at} of {most}");
                }
            }
        }
    }

    #[test]
    fn the_grid_does_not_go_through_a_heading_that_is_longer_than_the_labels() {
        let svg = bars().themed_svg(WIDE).unwrap();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let number = |node: roxmltree::Node<'_, '_>, name| -> f64 {
            node.attribute(name).unwrap().parse().unwrap()
        };
        let heading = document.descendants().find(|node| {
            let text = node.text().unwrap_or_default();
            node.has_tag_name("text") && text.starts_with("ro <script>")
        });
        let y = number(heading.unwrap(), "y");
        let covers = |node: roxmltree::Node<'_, '_>| {
            let (top, height) = (number(node, "y"), number(node, "height"));
            node.attribute("fill") == Some("var(--ground)") && (top..top + height).contains(&y)
        };
        assert!(
            document
                .descendants()
                .any(|n| n.has_tag_name("rect") && covers(n))
        );
    }

    #[test]
    fn empty_plots_are_drawn_too() {
        let none = plot(
            Unit::Bytes,
            Shape::Bars {
                groups: Vec::new(),
                legend: Vec::new(),
            },
        );
        roxmltree::Document::parse(&none.themed_svg(NARROW).unwrap()).unwrap();
        let none = plot(
            Unit::Bytes,
            Shape::Lines {
                lines: Vec::new(),
                stages: Vec::new(),
            },
        );
        roxmltree::Document::parse(&none.themed_svg(NARROW).unwrap()).unwrap();
    }
}
