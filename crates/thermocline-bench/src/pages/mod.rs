//! Reports that people look at: one HTML page, and images.

mod document;
mod overview;
mod plot;
mod sections;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::bad_arguments::BadArguments;
use crate::results::Results;
pub(crate) use document::{figure, frame};
pub(crate) use plot::{Bar, Group, Ink, Plot, Shape, Table, Unit};
pub(crate) use sections::settings::{expected, slow_disk};
use sections::{Detail, Section};

/// A page must be small enough to be mailed, and to open on a phone.
const MAX_PAGE: usize = 1 << 20;

/// The first of these with which the page is small enough is taken. Runs with stages are thinned
/// last, because they are there to show the course of each stage: with 480 points, one of
/// `dynamic@300s` stands for 5 s.
const DETAIL: [Detail; 6] = [
    Detail::new(120, 480),
    Detail::new(60, 480),
    Detail::new(30, 480),
    Detail::new(12, 480),
    Detail::new(12, 240),
    Detail::new(12, 120),
];

/// Images show every sample: their width bounds their bytes.
const EVERY_SAMPLE: Detail = Detail::new(usize::MAX, usize::MAX);

/// Makes a page and images of what a suite measured.
#[derive(Debug, Clone, clap::Args)]
pub struct ReportArgs {
    /// Result directory of a suite; report.html and plots/*.png are written there
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Writes `report.html`, one file that needs no other and no network, and `plots/*.png` into a
/// result directory. Returns what was written.
///
/// # Errors
/// [`BadArguments`] when there is no such directory, or one of another format; when no run has
/// finished, and when the files cannot be written.
pub fn report(args: &ReportArgs) -> Result<Vec<PathBuf>> {
    let results = Results::read(&args.dir).map_err(BadArguments::new)?;
    ensure!(
        !results.cells.is_empty(),
        "{}: no cell has a finished run yet",
        args.dir.display()
    );
    let (page, images) = render(&results, MAX_PAGE)?;
    let path = args.dir.join("report.html");
    write(&path, page.as_bytes())?;
    let mut written = vec![path];
    let plots = args.dir.join("plots");
    if !images.is_empty() {
        fs::create_dir_all(&plots).with_context(|| format!("cannot create {}", plots.display()))?;
    }
    for (name, image) in images {
        let path = plots.join(format!("{name}.png"));
        write(&path, &image)?;
        written.push(path);
    }
    Ok(written)
}

/// A plot's name, and its PNG.
type Image = (String, Vec<u8>);

/// A page of at most `most` bytes, and the images of its main plots in full detail.
fn render(results: &Results, most: usize) -> Result<(String, Vec<Image>)> {
    let mut len = 0;
    for detail in DETAIL {
        let sections = sections::all(results, detail);
        let page = document::page(results, &sections)?;
        if page.len() <= most {
            let images = images(&sections::all(results, EVERY_SAMPLE))?;
            return Ok((page, images));
        }
        len = page.len();
    }
    bail!(
        "{}: the page would have {len} bytes, over {most}; split the suite",
        results.path.display()
    )
}

/// The main plots of `sections`.
fn images(sections: &[Section]) -> Result<Vec<Image>> {
    let plots = sections.iter().flat_map(|section| &section.plots);
    let mut images = Vec::new();
    for plot in plots.filter(|plot| plot.main) {
        images.push((plot.id.clone(), plot.png()?));
    }
    Ok(images)
}

/// Writes a file that is either whole or not there.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = || format!("cannot write {}", path.display());
    let half = path.with_extension("half");
    fs::write(&half, bytes).with_context(failed)?;
    fs::rename(&half, path).with_context(failed)
}

#[cfg(test)]
mod whole_suite;

#[cfg(test)]
mod tests {
    use scraper::{Html, Selector};

    use super::*;
    use crate::results::tests::{value, write as write_results};

    const HOSTILE: &str = "</style><script>alert(1)</script>\"'&<img src=x>";

    /// Checks that there is nothing that a reader would fetch, and no script.
    fn assert_self_contained(html: &Html) {
        for element in select(html, "*") {
            let name = element.value().name();
            let foreign = [
                "script", "link", "img", "iframe", "object", "base", "image", "use",
            ];
            assert!(!foreign.contains(&name), "{name}");
            for (attribute, value) in element.value().attrs() {
                let reference = attribute == "src" || attribute.ends_with("href");
                assert!(!reference || value.starts_with('#'), "{attribute}={value}");
                assert!(!value.contains("url("), "{attribute}={value}");
                assert!(!attribute.starts_with("on"), "{attribute}");
            }
            if name == "style" {
                let rules: String = element.text().collect();
                for reference in ["url(", "@import", "://"] {
                    assert!(!rules.contains(reference), "{reference}");
                }
            }
        }
    }

    fn page(cells: &[(&str, &[&str], Vec<serde_json::Value>)]) -> (String, Html) {
        let home = tempfile::tempdir().unwrap();
        write_results(home.path(), cells);
        let written = report(&ReportArgs {
            dir: home.path().to_owned(),
        })
        .unwrap();
        for path in &written[1..] {
            let png = fs::read(path).unwrap();
            assert!(png.starts_with(b"\x89PNG") && png.len() < 200 << 10);
        }
        let page = fs::read_to_string(&written[0]).unwrap();
        let html = Html::parse_document(&page);
        (page, html)
    }

    fn select<'a>(html: &'a Html, what: &str) -> Vec<scraper::ElementRef<'a>> {
        html.select(&Selector::parse(what).unwrap()).collect()
    }

    #[test]
    fn a_page_is_well_formed_and_needs_nothing_else() {
        let (_, html) = page(&[
            (
                "a",
                &["6", "8"],
                vec![
                    value("hotrap", "uniform", 9.0),
                    value("hotrap", "uniform", 7.0),
                ],
            ),
            ("b", &["6"], vec![value("leveled", "uniform", 3.0)]),
        ]);
        assert_eq!(html.errors, Vec::<std::borrow::Cow<'_, str>>::new());
        assert_self_contained(&html);
        let figures = select(&html, "figure");
        assert!(figures.len() >= 5, "{}", figures.len());
        for figure in figures {
            let has = |what: &str| {
                let found: Vec<_> = figure.select(&Selector::parse(what).unwrap()).collect();
                !found.is_empty()
            };
            for what in [
                "svg[role=img][aria-label]",
                "h3",
                ".settings",
                "details table td",
                "details pre",
            ] {
                assert!(has(what), "{what} in {}", figure.html());
            }
            let axis: String = figure
                .select(&Selector::parse("svg text").unwrap())
                .flat_map(|text| text.text())
                .collect();
            assert!(
                axis.contains("second")
                    || axis.contains("percent")
                    || axis.contains("time")
                    || axis.contains("bytes"),
                "no unit: {axis}"
            );
        }
    }

    #[test]
    fn what_is_not_finished_is_counted_and_named_on_demand() {
        let (_, html) = page(&[
            ("a", &["6"], vec![value("hotrap", "uniform", 9.0)]),
            ("b", &["6"], vec![]),
            ("c", &["6"], vec![]),
        ]);
        let folded = select(&html, "details");
        let text = folded.iter().map(|d| d.text().collect::<String>());
        let text: Vec<_> = text.filter(|t| t.starts_with("Not finished")).collect();
        assert_eq!(text, ["Not finished: 2 cellsb, c."]);
    }

    #[test]
    fn cells_of_different_programs_are_told_apart() {
        let of = |commit: &str| {
            let mut run = value("hotrap", "uniform", 9.0);
            run["commit"] = commit.into();
            vec![run]
        };
        let text = |html: &Html| html.root_element().text().collect::<String>();
        let (_, html) = page(&[("a", &["6"], of("first")), ("b", &["6"], of("first"))]);
        let same = text(&html);
        assert!(
            same.contains("commit first. ") && !same.contains("different"),
            "{same}"
        );
        let (_, html) = page(&[("a", &["6"], of("first")), ("b", &["6"], of("second"))]);
        let summary = "commits first (1 run), second (1 run). Cells of different commits";
        assert!(text(&html).contains(summary), "{}", text(&html));
        let last = select(&html, "#cells td:last-child");
        let last: Vec<String> = last.iter().map(|cell| cell.text().collect()).collect();
        assert_eq!(last, ["commit first", "commit second"]);
    }

    /// Regression: the table showed the suite's settings, whatever a group had instead. It said
    /// that a cell with a cache of 600 MiB had one of 64 MiB, and that a cell with a warm-up of 120
    /// s had one of 20.
    #[test]
    fn what_a_group_was_given_instead_is_not_said_of_every_cell() {
        let home = tempfile::tempdir().unwrap();
        let of = |cache: &str| {
            let mut run = value("hotrap", "uniform", 9.0);
            let command = format!("thermocline bench --cache {cache} --threads 4 --keep");
            run["command"] = command.into();
            vec![run]
        };
        let cells: [(&str, &[&str], _); 2] = [("a", &[], of("64MiB")), ("b", &[], of("600MiB"))];
        write_results(home.path(), &cells);
        let path = home.path().join("suite.json");
        let suite = fs::read_to_string(&path).unwrap();
        let mut suite: serde_json::Value = serde_json::from_str(&suite).unwrap();
        suite["budget"] = serde_json::json!({"cache": "64MiB", "threads": "4"});
        fs::write(&path, suite.to_string()).unwrap();
        let (page, _) = render(&Results::read(home.path()).unwrap(), MAX_PAGE).unwrap();
        let html = Html::parse_document(&page);
        let rows = select(&html, "#machine tbody tr");
        let rows: Vec<String> = rows.iter().map(|row| row.text().collect()).collect();
        assert!(rows.contains(&"threads4".to_owned()), "{rows:?}");
        assert!(!rows.iter().any(|row| row.contains("cache")), "{rows:?}");
    }

    /// Regression: the table said that RocksDB was given the memory too, though it is not held to
    /// it.
    #[test]
    fn memory_that_an_engine_does_not_take_is_not_said_of_every_cell() {
        let home = tempfile::tempdir().unwrap();
        let rows = |engine: &str| -> Vec<String> {
            let mut run = value(engine, "uniform", 9.0);
            run["command"] = "thermocline bench --memory 1".into();
            let mut own = value("hotrap", "uniform", 9.0);
            own["command"] = run["command"].clone();
            write_results(home.path(), &[("a", &[], vec![own]), ("b", &[], vec![run])]);
            let path = home.path().join("suite.json");
            let suite = fs::read_to_string(&path).unwrap();
            let mut suite: serde_json::Value = serde_json::from_str(&suite).unwrap();
            suite["budget"]["memory"] = "1".into();
            fs::write(&path, suite.to_string()).unwrap();
            let (page, _) = render(&Results::read(home.path()).unwrap(), MAX_PAGE).unwrap();
            let html = Html::parse_document(&page);
            let rows = select(&html, "#machine tbody tr");
            rows.iter().map(|row| row.text().collect()).collect()
        };
        let is_said = |rows: &[String]| rows.contains(&"memory1".to_owned());
        assert!(is_said(&rows("leveled")));
        assert!(!is_said(&rows("rocksdb")));
    }

    #[test]
    fn hostile_names_are_text() {
        let (_, html) = page(&[(
            "a",
            &[HOSTILE],
            vec![value(HOSTILE, HOSTILE, 9.0), value(HOSTILE, HOSTILE, 7.0)],
        )]);
        assert_self_contained(&html);
        assert!(select(&html, "script, img").is_empty());
        assert_eq!(html.errors, Vec::<std::borrow::Cow<'_, str>>::new());
        assert!(
            html.root_element()
                .text()
                .any(|text| text.contains("<script>alert(1)"))
        );
    }

    #[test]
    fn a_large_suite_stays_below_the_limit() {
        let mut run = value("hotrap", "uniform", 9.0);
        let series: Vec<_> = (1..=600)
            .map(|second| serde_json::json!({"second": second, "ops_s": 12345.0 + f64::from(second), "fd_hit_rate": 0.5,
                "hot_set_bytes": 123_456 * second, "hot_set_limit_bytes": 300_000_000}))
            .collect();
        run["series"] = series.into();
        let mut cells = Vec::new();
        let names: Vec<String> = (0..64).map(|n| format!("cell-{n}")).collect();
        for (n, name) in names.iter().enumerate() {
            let mut run = run.clone();
            run["distribution"] = format!("hotspot-{}", n / 4).into();
            run["engine"] = ["hotrap", "leveled", "rocksdb", "fjall"][n % 4].into();
            cells.push((name.as_str(), &["6", "14"][..], vec![run]));
        }
        let (page, html) = page(&cells);
        assert!(page.len() <= MAX_PAGE);
        assert!(select(&html, "figure").len() > 40);
    }

    #[test]
    fn a_directory_without_a_finished_run_is_refused() {
        let home = tempfile::tempdir().unwrap();
        write_results(home.path(), &[("a", &[], vec![])]);
        let args = ReportArgs {
            dir: home.path().to_owned(),
        };
        let error = report(&args).unwrap_err().to_string();
        assert!(error.contains("no cell has a finished run"), "{error}");
    }
}
