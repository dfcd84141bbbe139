//! The HTML of a report.
//!
//! Templates are checked by the compiler and escape what is put into them. Two things go in as they
//! are: drawings, whose text the drawing library escapes, and the rows of tables, whose cells are
//! escaped one by one.

use anyhow::Result;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::overview;
use super::plot::{NARROW, PALETTE, Plot, Table, WIDE};
use super::sections::{Captioned, Section};
use crate::results::Results;

const STYLE: &str = include_str!("style.css");

/// The report on `results`.
///
/// # Errors
/// The drawing library's own.
pub(super) fn page(results: &Results, sections: &[Section]) -> Result<String> {
    let title = format!("Thermocline: {}", results.suite);
    let mut body = Vec::new();
    for section in sections {
        body.push(self::section(section)?);
    }
    let markup = frame(
        &title,
        html! {
            header {
                h1 { (title) }
                @if !results.description.is_empty() { p { (results.description) } }
                (overview::summary(results))
                nav {
                    @for section in sections { a href={ "#" (section.id) } { (section.title) } }
                    a href="#cells" { "All cells" }
                    a href="#machine" { "Machine" }
                }
            }
            main {
                @for section in &body { (section) }
                (overview::cells(results))
                (overview::machine(results))
            }
        },
    );
    Ok(markup.into_string())
}

/// A whole page around `body`.
pub(crate) fn frame(title: &str, body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(style())) }
            }
            body { (body) }
        }
    }
}

/// The style sheet: the palette in both modes, then the rules.
fn style() -> String {
    let variables = |dark: bool| -> String {
        let one = |colour: &super::plot::Colour| {
            let (r, g, b) = if dark { colour.dark } else { colour.light };
            format!("{}:#{r:02x}{g:02x}{b:02x};", colour.variable)
        };
        PALETTE.iter().map(one).collect()
    };
    format!(
        ":root{{{}}}@media(prefers-color-scheme:dark){{:root{{{}}}}}\n{STYLE}",
        variables(false),
        variables(true)
    )
}

fn section(section: &Section) -> Result<Markup> {
    let mut figures = Vec::new();
    for plot in &section.plots {
        figures.push(figure(plot)?);
    }
    Ok(html! {
        section id=(section.id) {
            h2 { (section.title) }
            p { (section.intro) }
            @for figure in &figures { (figure) }
            @for table in &section.tables { (captioned(table)) }
            @for line in &section.missing { p.note { (line) } }
        }
    })
}

/// A plot with its settings, its data and the commands behind it.
pub(crate) fn figure(plot: &Plot) -> Result<Markup> {
    let drawing = |width: u32, class: &str| -> Result<Markup> {
        let svg = plot.themed_svg(width)?;
        let inner = svg.strip_prefix("<svg").unwrap_or(&svg);
        Ok(html! {
            div class=(class) { (PreEscaped(format!("<svg role=\"img\" aria-label=\"{}\"{inner}", escaped(&plot.title)))) }
        })
    };
    Ok(html! {
        figure id=(plot.id) {
            h3 { (plot.title) }
            (drawing(WIDE, "wide")?)
            (drawing(NARROW, "narrow")?)
            @for note in &plot.notes { p.note { (note) } }
            @if !plot.settings.is_empty() { p.settings { (plot.settings) } }
            details { summary { "Data" } (table(&plot.table)) }
            (commands(&plot.commands))
        }
    })
}

fn escaped(text: &str) -> String {
    html! { (text) }.into_string()
}

fn captioned(captioned: &Captioned) -> Markup {
    html! {
        div.captioned {
            h3 { (captioned.title) }
            (table(&captioned.table))
            p.settings { (captioned.settings) }
            (commands(&captioned.commands))
        }
    }
}

/// The first command, and where the others are. All are long, and each cell is in many plots.
fn commands(commands: &[(String, String)]) -> Markup {
    html! {
        @if let Some((name, command)) = commands.first() {
            details {
                summary { "Commands" }
                pre { "# " (name) "\n" (command) }
                @if commands.len() > 1 {
                    p {
                        "and those of "
                        @for (at, (name, _)) in commands.iter().enumerate().skip(1) {
                            @if at > 1 { ", " }
                            a href={ "#" (anchor(name)) } { (name) }
                        }
                    }
                }
            }
        }
    }
}

/// Where the command of a cell is.
pub(super) fn anchor(cell: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    format!("command-{}", cell.chars().map(plain).collect::<String>())
}

/// A table that scrolls by itself if it is too wide.
pub(super) fn table(table: &Table) -> Markup {
    // The optional end tags are left out: they would be a third of what the rows take.
    let mut rows = String::new();
    for row in &table.rows {
        rows.push_str("<tr>");
        for cell in row {
            rows.push_str("<td>");
            rows.push_str(&escaped(cell));
        }
    }
    html! {
        div.scroll {
            table {
                thead { tr { @for name in &table.head { th { (name) } } } }
                tbody { (PreEscaped(rows)) }
            }
        }
    }
}
