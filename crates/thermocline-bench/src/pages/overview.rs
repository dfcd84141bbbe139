//! What was measured, where, and every cell in one table.

use maud::{Markup, html};
use serde_json::Value;

use super::document::{anchor, table};
use super::plot::{Table, Unit};
use super::sections::{engine_label, work_label};
use crate::results::{Cell, Commits, Results, Run};

/// The head of a report.
pub(super) fn summary(results: &Results) -> Markup {
    let runs: usize = results.cells.iter().map(|cell| cell.runs.len()).sum();
    let commits = Commits::of(&results.cells);
    let wrong = |cell: &Cell| -> u64 {
        let answers = cell.runs.iter().map(|run| run.wrong_answers);
        answers.fold(0, u64::saturating_add)
    };
    let wrong = results.cells.iter().map(wrong).fold(0, u64::saturating_add);
    html! {
        p {
            (results.cells.len()) " cells, " (runs) " runs, version " (results.version) ", " (commits) ". "
            @if commits.differ() { "Cells of different commits are of different programs: the table says which. " }
            @if wrong == 0 { "Every answer was checked; none was wrong." }
            @else { strong { (wrong) " answers were wrong." } }
        }
        @if !results.missing.is_empty() {
            // When a large suite was only begun, there are many of them.
            details {
                summary { "Not finished: " (results.missing.len()) @if results.missing.len() == 1 { " cell" } @else { " cells" } }
                p.note { (results.missing.join(", ")) "." }
            }
        }
    }
}

/// One row for each cell.
pub(super) fn cells(results: &Results) -> Markup {
    let mut all = Table::new(&[
        "cell",
        "figures",
        "engine",
        "work",
        "record",
        "runs",
        "operations a second",
        "least",
        "greatest",
        "last tenth",
        "without slow disk",
        "without disk",
        "p50",
        "p99",
        "p99.9",
        "processor time each",
        "memory",
        "write amplification",
    ]);
    let by_commit = Commits::of(&results.cells).differ();
    if by_commit {
        all.head.push("commit".to_owned());
    }
    for cell in &results.cells {
        let mut row = row(cell);
        if by_commit {
            row.push(Commits::of(std::slice::from_ref(cell)).to_string());
        }
        all.rows.push(row);
    }
    html! {
        section id="cells" {
            h2 { "All cells" }
            p {
                "Medians over repeats. Operations are those of the whole run, or records of a load; the last tenth and the rate of reads
                without the slow disk are of its end; latencies are of reads, or of the first kind of operation."
            }
            (table(&all))
            h3 { "Commands" }
            @for cell in &results.cells {
                pre id=(anchor(&cell.id)) { "# " (cell.id) "\n" (cell.command) }
            }
        }
    }
}

fn row(cell: &Cell) -> Vec<String> {
    let show = |unit: Unit, value: fn(&Run) -> Option<f64>| {
        let summary = cell.summary(value);
        summary.map_or_else(|| "–".to_owned(), |summary| unit.show(summary.median))
    };
    let speed = cell.summary(|run| run.ops_s.or(run.load_ops_s));
    let speed = |part: fn(&crate::results::Summary) -> f64| {
        speed.map_or_else(|| "–".to_owned(), |s| Unit::PerSecond.show(part(&s)))
    };
    let first = cell.first();
    vec![
        cell.id.clone(),
        cell.figures.join(", "),
        engine_label(cell),
        work_label(cell),
        first.map_or_else(String::new, |run| format!("{} B", run.record_bytes)),
        cell.runs.len().to_string(),
        speed(|s| s.median),
        speed(|s| s.min),
        speed(|s| s.max),
        show(Unit::PerSecond, Run::final_ops_s),
        show(Unit::Share, |run| run.final_hit_rate().or(run.fd_hit_rate)),
        show(Unit::Share, |run| run.dram_hit_rate),
        show(Unit::Micros, |run| Some(run.of_reads()?.p50_us)),
        show(Unit::Micros, |run| Some(run.of_reads()?.p99_us)),
        show(Unit::Micros, |run| Some(run.of_reads()?.p999_us)),
        show(Unit::CpuPerOp, |run| run.cpu_us_per_op),
        show(Unit::Bytes, |run| Some(run.max_rss_bytes? as f64)),
        cell.summary(|run| run.write_amplification)
            .map_or_else(|| "–".to_owned(), |s| format!("{:.1}", s.median)),
    ]
}

/// The machine, its disks, and what all cells were given alike.
pub(super) fn machine(results: &Results) -> Markup {
    let alike = given_alike(results);
    let parts = [
        ("Machine", &results.host),
        ("Disks, as measured before the suite", &results.probe),
        ("Given to every cell alike", &alike),
    ];
    html! {
        section id="machine" {
            h2 { "Machine" }
            @for (title, value) in parts {
                @let rows = flat(value);
                @if !rows.is_empty() {
                    h3 { (title) }
                    (table(&Table { head: vec!["what".to_owned(), "value".to_owned()], rows }))
                }
            }
        }
    }
}

/// Those of the suite's settings that are in the command line of each cell: engines and groups may
/// have others instead. For an engine that is not held to the memory, that setting is there without
/// effect.
fn given_alike(results: &Results) -> Value {
    let commands = results.cells.iter();
    let commands: Vec<Vec<String>> = commands
        .map(|cell| shlex::split(&cell.command).unwrap_or_default())
        .collect();
    let settings = results.budget.as_object().into_iter().flatten();
    let mut runs = results.cells.iter().filter_map(Cell::first);
    let are_held = runs.all(Run::is_held_to_memory);
    let settings = settings.filter(|(name, _)| are_held || *name != "memory");
    let alike = settings.filter(|(name, value)| {
        let (flag, value) = (format!("--{name}"), value.as_str());
        let has = |words: &Vec<String>| {
            let mut rest = words.iter().skip_while(|word| **word != flag);
            value.is_some() && rest.nth(1).map(String::as_str) == value
        };
        commands.iter().all(has)
    });
    let alike = alike.map(|(name, value)| (name.clone(), value.clone()));
    Value::Object(alike.collect())
}

/// The leaves of a JSON value with their paths.
fn flat(value: &Value) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    collect(String::new(), value, &mut rows);
    rows
}

fn collect(path: String, value: &Value, rows: &mut Vec<Vec<String>>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace('_', " ");
                let path = if path.is_empty() {
                    name
                } else {
                    format!("{path}, {name}")
                };
                collect(path, value, rows);
            }
        }
        Value::Null => {}
        Value::Number(number) => rows.push(vec![path.clone(), figure(&path, number)]),
        Value::String(text) => rows.push(vec![path, text.clone()]),
        other => rows.push(vec![path, other.to_string()]),
    }
}

/// A number in the unit with which its name ends.
fn figure(path: &str, number: &serde_json::Number) -> String {
    let value = number.as_f64().unwrap_or(f64::NAN);
    if path.ends_with("bytes s") {
        Unit::BytesPerSecond.show(value)
    } else if path.ends_with("bytes") {
        Unit::Bytes.show(value)
    } else if path.ends_with(" us") {
        Unit::Micros.show(value)
    } else if path.ends_with("iops") {
        Unit::PerSecond.show(value)
    } else {
        number.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_of_any_depth_become_rows() {
        let value = json!({"cores": 2, "fast": {"probe": {"iops": 61234.6, "mean_us": 120.0}, "refused": null}});
        assert_eq!(
            flat(&value),
            [
                ["cores", "2"],
                ["fast, probe, iops", "61,235"],
                ["fast, probe, mean us", "120 µs"],
            ]
        );
    }
}
