//! `thermocline verify`.

use std::path::Path;

use serde_json::{Value as Json, json};
use thermocline::{Error, VerifyProgress, VerifyReport};

use crate::failure::Failure;
use crate::output::{self, Out};
use crate::progress;
use crate::size;
use crate::store::StoreArgs;

/// Read every table and check it; exit code 4 when one is damaged
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline verify --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB
  thermocline verify --one-tier --fast /nvme/db --json | jq '.problems'

A damaged table is named with the offset where its damage begins, also in a store that no
longer opens. Restore the store from a backup, or see what `thermocline repair --dry-run`
would save.")]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let db = match args.store.open_to_read() {
        Ok(db) => db,
        Err(failure) => return closed(args, failure),
    };
    let bar = progress::bytes(0, "verifying");
    let mut files: Vec<VerifyProgress> = Vec::new();
    let result = db.verify(&mut |file: VerifyProgress| {
        // This is called before each table, so the table before is done.
        bar.set_length(file.total_bytes);
        bar.inc(files.last().map_or(0, |done| done.bytes));
        files.push(file);
    });
    bar.finish_and_clear();
    let report = result?;
    let mut out = Out::of_verdict();
    if args.json {
        out.pretty_json(&to_json(&files, &report))?;
    } else {
        print(&mut out, &files, &report)?;
    }
    out.finish()?;
    db.close()?;
    verdict(report.problems)
}

/// Damage has an exit code of its own. What could not be read may be whole.
pub(super) fn verdict(problems: Vec<Error>) -> Result<(), Failure> {
    if problems.iter().any(Error::is_corruption) {
        let problems = problems.len();
        return Err(Failure::Damaged { problems });
    }
    match problems.into_iter().next() {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// What is wrong with the files of a store that does not open: `failure` names only the first
/// problem. For it, a damaged `TIER` is a wrong tier. If a directory belongs to another store or
/// has nothing, a repair would be refused, and `failure` stands.
fn closed(args: &Args, failure: Failure) -> Result<(), Failure> {
    let Failure::Store {
        error: Error::Corruption { .. } | Error::WrongTier { .. },
        ..
    } = &failure
    else {
        return Err(failure);
    };
    let options = args.store.online_options(false)?;
    let found = args.store.builder(options).repair(true);
    let problems = match found {
        Ok(report) if !report.problems.is_empty() => report.problems,
        _ => return Err(failure),
    };
    let mut out = Out::of_verdict();
    if args.json {
        let problems: Vec<Json> = problems
            .iter()
            .map(|problem| json!({"problem": problem}))
            .collect();
        out.pretty_json(&json!({"ok": false, "opens": false, "problems": problems}))?;
    } else {
        for problem in &problems {
            out.line(format!("problem: {problem}"))?;
        }
        out.line(format!("the store does not open ({failure})"))?;
        out.line("see `thermocline repair --dry-run` for what can be saved")?;
    }
    out.finish()?;
    Err(Failure::Damaged {
        problems: problems.len(),
    })
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
            Some(error) if error.is_corruption() => "DAMAGED",
            Some(_) => "UNREAD ",
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
            "file": output::path(&file.file),
            "tier": file.tier,
            "bytes": file.bytes,
            "ok": problem(&file.file, report).is_none(),
        })
    });
    let problems = report.problems.iter().map(|problem| match problem {
        Error::Corruption {
            path, offset, what, ..
        } => {
            json!({"file": output::path(path), "offset": offset, "problem": what})
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

#[cfg(test)]
mod tests {
    use std::io;

    use thermocline::Damaged;

    use super::*;

    /// Regression: a read that a device refused counted as damage.
    #[test]
    fn what_cannot_be_read_is_not_damaged() {
        let path = Path::new("/fast/00000001.sst");
        let unread = || Error::Io {
            operation: "read",
            path: path.to_path_buf(),
            source: io::Error::from(io::ErrorKind::Other).into(),
        };
        let damaged = Error::Corruption {
            path: path.to_path_buf(),
            offset: 0,
            what: "a bit".to_owned(),
            of: Damaged::Store,
        };
        assert!(verdict(Vec::new()).is_ok());
        let refused = verdict(vec![unread()]);
        assert!(matches!(refused, Err(Failure::Store { .. })), "{refused:?}");
        let both = verdict(vec![unread(), damaged]);
        assert!(matches!(both, Err(Failure::Damaged { problems: 2 })));
    }
}
