//! Drawings in fewer bytes, for a page with many of them.
//!
//! The drawing library repeats things with each element. The page's style sheet (`style.css`) says
//! them once, or browsers do them anyway.

/// Attributes as the drawing library writes them, and what replaces them. They include quotes, so
/// that only attributes match: quotes in text are escaped.
const SHORTER: [(&str, &str); 10] = [
    (" xmlns=\"http://www.w3.org/2000/svg\"", ""),
    ("\n</text>", "</text>"),
    (" text-anchor=\"start\"", ""),
    // These come last in their element, which has one class.
    (
        " text-anchor=\"middle\" fill=\"var(--muted)\">",
        " class=\"c\">",
    ),
    (
        " text-anchor=\"end\" fill=\"var(--muted)\">",
        " class=\"r\">",
    ),
    (" text-anchor=\"end\">", " class=\"e\">"),
    (" fill=\"var(--muted)\">", " class=\"m\">"),
    (" stroke=\"var(--grid)\" stroke-width=\"3\"", " class=\"g\""),
    (
        " fill=\"none\" stroke=\"var(--grid)\" stroke-width=\"4\"",
        AXIS,
    ),
    (" fill=\"none\"", ""),
];

/// The class of axes.
const AXIS: &str = " class=\"a\"";

const OPEN: &str = "<polyline";
const CLOSE: &str = "/>";

/// The same drawing, for a page with the style sheet.
pub(super) fn compact(svg: &str) -> String {
    let mut svg = svg.to_owned();
    for (long, short) in SHORTER {
        svg = svg.replace(long, short);
    }
    let mut compact = String::with_capacity(svg.len());
    let mut rest = &svg[..];
    while let Some((before, from)) = rest.split_once(OPEN) {
        compact.push_str(before);
        rest = match from.split_once(CLOSE) {
            Some((line, after)) => {
                compact.push_str(&path(line));
                after
            }
            None => {
                compact.push_str(OPEN);
                from
            }
        };
    }
    compact.push_str(rest);
    compact
}

/// A line by its steps, which are shorter than its points. Marks at an axis, in the colour of the
/// grid and a pixel long, are dropped.
fn path(line: &str) -> String {
    let parts = line.split_once(" points=\"");
    let read = parts.and_then(|(style, points)| Some((style, read_points(points)?)));
    let Some((style, points)) = read else {
        return format!("{OPEN}{line}{CLOSE}");
    };
    match points[..] {
        [] => String::new(),
        [a, b] if style == AXIS && (a.0 - b.0).abs() + (a.1 - b.1).abs() < 8 => String::new(),
        [first, ref more @ ..] => {
            let mut steps = format!("M{},{}", first.0, first.1);
            let (mut at, mut gap) = (first, 'l');
            for next in more {
                for step in [next.0 - at.0, next.1 - at.1] {
                    // A sign separates numbers, too.
                    if gap == 'l' || step >= 0 {
                        steps.push(gap);
                    }
                    steps.push_str(&step.to_string());
                    gap = ' ';
                }
                at = *next;
            }
            format!("<path{style} d=\"{steps}\"{CLOSE}")
        }
    }
}

fn read_points(points: &str) -> Option<Vec<(i32, i32)>> {
    let points = points.strip_suffix('"')?.split_whitespace();
    let point = |point: &str| -> Option<(i32, i32)> {
        let (x, y) = point.split_once(',')?;
        Some((x.parse().ok()?, y.parse().ok()?))
    };
    points.map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_drawn_by_its_steps() {
        let line = |points: &str| {
            let svg = format!(
                "<g><polyline fill=\"none\" stroke=\"var(--blue)\" stroke-width=\"7\" points=\"{points}\"/></g>"
            );
            compact(&svg)
        };
        let path = |steps: &str| {
            format!("<g><path stroke=\"var(--blue)\" stroke-width=\"7\" d=\"{steps}\"/></g>")
        };
        let steps = path("M10,20l3-5 0 10-13-25");
        assert_eq!(line("10,20 13,15 13,25 0,0 "), steps);
        assert_eq!(line("10,20 "), path("M10,20"));
        // A line that it does not know is left as it is.
        assert!(line("10 20").contains("points=\"10 20\""));
    }

    #[test]
    fn axes_stay_and_their_marks_go() {
        let axis = |points: &str| {
            compact(&format!(
                "<polyline fill=\"none\" stroke=\"var(--grid)\" stroke-width=\"4\" points=\"{points}\"/>"
            ))
        };
        assert_eq!(axis("478,1116 478,1121 "), "");
        let whole = "<path class=\"a\" d=\"M478,1116l2265 0\"/>";
        assert_eq!(axis("478,1116 2743,1116 "), whole);
    }

    #[test]
    fn words_are_left_alone() {
        let text =
            |words: &str, attributes: &str| format!("<text x=\"1\"{attributes}>{words}</text>");
        let words = "text-anchor=&quot;end&quot; &lt;polyline/&gt;";
        let long = text(words, " text-anchor=\"end\" fill=\"var(--muted)\"");
        assert_eq!(compact(&long), text(words, " class=\"r\""));
        let large = text(
            words,
            " text-anchor=\"end\" font-size=\"42\" fill=\"var(--muted)\"",
        );
        let one_class = text(words, " text-anchor=\"end\" font-size=\"42\" class=\"m\"");
        assert_eq!(compact(&large), one_class);
    }
}
