//! The comparison as a page.

use anyhow::Result;
use maud::html;

use super::text::{HEAD, METHOD, named};
use super::{Compared, Comparison, Verdict};
use crate::pages::{self, Bar, Group, Ink, Plot, Shape, Table, Unit};

/// The whole page.
///
/// # Errors
/// The drawing library's own.
pub(super) fn page(comparison: &Comparison) -> Result<String> {
    let figure = pages::figure(&plot(comparison))?;
    let count = |verdict| {
        let cells = comparison.cells.iter();
        cells.filter(|cell| cell.verdict == verdict).count()
    };
    let title = "Thermocline: comparison";
    let body = html! {
        header {
            h1 { (title) }
            p { "A: " (named(&comparison.a)) br; "B: " (named(&comparison.b)) }
            p {
                (count(Verdict::Slower)) " slower, " (count(Verdict::Faster)) " faster, "
                (count(Verdict::WithinNoise)) " within noise, " (count(Verdict::Unknown)) " without an estimate of noise."
            }
            @for warning in &comparison.warnings { p.note { "Warning: " (warning) } }
        }
        main {
            (figure)
            section id="cells" {
                h2 { "Cells" }
                div.scroll {
                    table {
                        thead { tr { @for name in HEAD { th { (name) } } } }
                        tbody {
                            @for (cell, row) in comparison.cells.iter().zip(comparison.rows()) {
                                tr class=(class(cell.verdict)) { @for text in row { td { (text) } } }
                            }
                        }
                    }
                }
            }
        }
    };
    Ok(pages::frame(title, body).into_string())
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::WithinNoise | Verdict::Unknown => "same",
    }
}

/// Ratios by engine, with the noise around each.
fn plot(comparison: &Comparison) -> Plot {
    let mut groups: Vec<Group> = Vec::new();
    let mut table = Table::new(&["cell", "B over A", "noise", "repeats"]);
    for cell in &comparison.cells {
        let Some(ratio) = cell.ratio else { continue };
        let noise = cell.noise.unwrap_or(0.0);
        table.rows.push(vec![
            cell.cell.clone(),
            Unit::Share.show(ratio),
            cell.noise
                .map_or_else(|| "–".to_owned(), |noise| Unit::Share.show(noise)),
            format!("{} and {}", cell.a_repeats, cell.b_repeats),
        ]);
        let bar = Bar {
            label: cell.cell.clone(),
            parts: vec![(ink(cell), ratio)],
            range: (noise > 0.0).then_some(((ratio - noise).max(0.0), ratio + noise)),
        };
        match groups.iter_mut().find(|group| group.label == cell.engine) {
            Some(group) => group.bars.push(bar),
            None => groups.push(Group {
                label: cell.engine.clone(),
                bars: vec![bar],
            }),
        }
    }
    let legend = [
        ("slower", Verdict::Slower),
        ("faster", Verdict::Faster),
        ("neither", Verdict::WithinNoise),
    ];
    Plot {
        id: "ratios".to_owned(),
        title: "Throughput of B over A".to_owned(),
        unit: Unit::Share,
        axis: "percent of A's operations a second; whiskers: noise".to_owned(),
        notes: vec![METHOD.to_owned()],
        settings: String::new(),
        shape: Shape::Bars {
            groups,
            legend: legend
                .map(|(word, verdict)| (word.to_owned(), of_verdict(verdict)))
                .to_vec(),
        },
        table,
        commands: Vec::new(),
        main: false,
    }
}

fn ink(cell: &Compared) -> Ink {
    of_verdict(cell.verdict)
}

/// Everyone can tell orange and blue apart.
fn of_verdict(verdict: Verdict) -> Ink {
    match verdict {
        Verdict::Slower => Ink::Series(1),
        Verdict::Faster => Ink::Series(0),
        Verdict::WithinNoise | Verdict::Unknown => Ink::Muted,
    }
}
