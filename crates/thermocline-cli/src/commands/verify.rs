//! `thermocline verify`.

use std::path::Path;

use serde_json::{Value as Json, json};
use thermocline::{Error, VerifyProgress, VerifyReport};

use crate::failure::Failure;
use crate::output::Out;
use crate::progress;
use crate::size;
use crate::store::StoreArgs;

/// Read every block of every file and check it; exit code 4 when one is damaged
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline verify --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB
  thermocline verify --one-tier --fast /nvme/db --json | jq '.problems'

A damaged file is named with the offset of the damage. Restore it from a checkpoint.")]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let db = args.store.open()?;
    let bar = progress::bytes(0, "verifying");
    let mut files: Vec<VerifyProgress> = Vec::new();
    let result = db.verify(&mut |file: VerifyProgress| {
        // Called before each table, so the one before is done.
        bar.set_length(file.total_bytes);
        bar.inc(files.last().map_or(0, |done| done.bytes));
        files.push(file);
    });
    bar.finish_and_clear();
    let report = result?;
    let mut out = Out::new();
    if args.json {
        out.pretty_json(&to_json(&files, &report))?;
    } else {
        print(&mut out, &files, &report)?;
    }
    out.finish()?;
    db.close()?;
    match report.problems.len() {
        0 => Ok(()),
        problems => Err(Failure::Damaged { problems }),
    }
}

/// The first problem that names the file.
fn problem<'a>(file: &Path, report: &'a VerifyReport) -> Option<&'a Error> {
    report.problems.iter().find(|problem| match problem {
        Error::Corruption { path, .. } | Error::Io { path, .. } => path.as_path() == file,
        _ => false,
    })
}

fn print(out: &mut Out, files: &[VerifyProgress], report: &VerifyReport) -> Result<(), Failure> {
    for file in files {
        let state = match problem(&file.file, report) {
            None => "ok     ",
            Some(_) => "DAMAGED",
        };
        out.line(format!(
            "{state}  tier {}  {:>10}  {}",
            file.tier,
            size::show(file.bytes),
            file.file.display()
        ))?;
    }
    for problem in &report.problems {
        out.line(format!("problem: {problem}"))?;
    }
    out.line(format!(
        "{} tables, {} blocks, {} entries, {}: {} problems",
        report.tables,
        report.blocks,
        report.entries,
        size::show(report.bytes),
        report.problems.len()
    ))
}

fn to_json(files: &[VerifyProgress], report: &VerifyReport) -> Json {
    let files = files.iter().map(|file| {
        json!({
            "file": file.file,
            "tier": file.tier,
            "bytes": file.bytes,
            "ok": problem(&file.file, report).is_none(),
        })
    });
    let problems = report.problems.iter().map(|problem| match problem {
        Error::Corruption { path, offset, what } => {
            json!({"file": path, "offset": offset, "problem": what})
        }
        other => json!({"problem": other.to_string()}),
    });
    json!({
        "ok": report.problems.is_empty(),
        "tables": report.tables,
        "blocks": report.blocks,
        "entries": report.entries,
        "bytes": report.bytes,
        "files": files.collect::<Vec<_>>(),
        "problems": problems.collect::<Vec<_>>(),
    })
}
