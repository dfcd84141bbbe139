//! `thermocline inspect`.

mod json;

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use thermocline::inspect::{self, Content, Entry, Group, PlacedBy};

use crate::failure::Failure;
use crate::output::{self, Out};
use crate::store::StoreArgs;
use json::{access_records, change, content, contents, entry, table_entry, write};

/// Print the manifest, the tables, the write-ahead log or the files of the access records
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline inspect --fast /nvme/db --slow /hdd/db manifest
  thermocline inspect --one-tier --fast /nvme/db tables --json
  thermocline inspect --one-tier --fast /nvme/db wal --file 00000007.wal

Nothing is changed, not even recovered, so this also works on a store that does not open. No
lock is taken: beside a program that has the store open, what is said may be of a moment ago.
A file that the program has replaced since is told from one that is missing. Damage is printed
where it stands, and makes the exit code 4. JSON comes as one object a line.")]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,

    /// Only the file of this name
    #[arg(long, value_name = "NAME")]
    file: Option<String>,

    /// Print JSON lines
    #[arg(long)]
    json: bool,

    /// What to print
    #[arg(value_enum)]
    what: What,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum What {
    /// Every edit of the manifest
    Manifest,
    /// Every table: place, size, range of keys
    Tables,
    /// Every write of the write-ahead log
    Wal,
    /// How records are placed, and every file of the access records, which say what is hot: limits,
    /// thresholds and fill
    Hotness,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut printer = Printer {
        out: Out::of_verdict(),
        file: args.file.as_deref(),
        json: args.json,
        matched: false,
        problems: 0,
    };
    match args.what {
        What::Manifest => printer.manifest(&args.store)?,
        What::Tables => printer.tables(&args.store)?,
        What::Wal => printer.wal(&args.store)?,
        What::Hotness => printer.hotness(&args.store)?,
    }
    printer.finish()
}

struct Printer<'a> {
    out: Out,
    /// The only file to print, unless all are printed.
    file: Option<&'a str>,
    json: bool,
    /// Whether any file had that name.
    matched: bool,
    problems: usize,
}

impl Printer<'_> {
    fn wants(&mut self, file: &Path) -> bool {
        let name = file.file_name().and_then(|name| name.to_str());
        let wanted = self.file.is_none_or(|wanted| name == Some(wanted));
        self.matched |= wanted;
        wanted
    }

    /// Prints `json` or `line`, whichever was asked for.
    fn print(&mut self, json: impl FnOnce() -> Json, line: impl Display) -> Result<(), Failure> {
        if self.json {
            self.out.json(&json())
        } else {
            self.out.line(line.to_string())
        }
    }

    fn manifest(&mut self, store: &StoreArgs) -> Result<(), Failure> {
        let report = inspect::manifest(&store.offline_options())?;
        if !self.wants(&report.file) {
            return Ok(());
        }
        self.problems += report.damaged();
        let database = report.database.map(|id| format!("{id:032x}"));
        let of = database.as_deref().unwrap_or("unknown");
        let placed_by = report.placed_by.map(|by| by.to_string());
        self.print(
            || {
                json!({
                    "file": output::path(&report.file),
                    "bytes": report.bytes,
                    "database": database,
                    "placed_by": placed_by,
                })
            },
            format_args!(
                "{}: {} bytes, database {of}, {}",
                report.file.display(),
                report.bytes,
                placement(report.placed_by)
            ),
        )?;
        for edit in &report.edits {
            self.print(
                || {
                    entry(
                        edit,
                        |e| json!({"changes": e.changes.iter().map(change).collect::<Vec<_>>()}),
                    )
                },
                format_args!("{:>10}  {}", edit.offset, edit.content),
            )?;
        }
        Ok(())
    }

    fn tables(&mut self, store: &StoreArgs) -> Result<(), Failure> {
        let report = inspect::tables(&store.offline_options())?;
        for table in &report.tables {
            if !self.wants(&table.file) {
                continue;
            }
            self.problems += usize::from(table.contents.is_damaged());
            self.print(
                || {
                    let mut json = content(&table.contents, contents);
                    json.insert("file".into(), output::path(&table.file));
                    json.insert("keyspace_name".into(), json!(table.keyspace));
                    json.extend(table_entry(&table.meta));
                    Json::Object(json)
                },
                format_args!(
                    "{}\n    {}\n    {}",
                    table.file.display(),
                    table.meta,
                    table.contents
                ),
            )?;
        }
        for file in &report.unnamed {
            if self.wants(&file.file) {
                self.print(
                    || {
                        json!({
                            "file": output::path(&file.file),
                            "tier": file.tier,
                            "bytes": file.bytes,
                            "unnamed": true,
                        })
                    },
                    format_args!(
                        "{}\n    {} bytes that the manifest does not name; the next opening removes them",
                        file.file.display(),
                        file.bytes
                    ),
                )?;
            }
        }
        // The problems concern the list as a whole, whichever file was asked for.
        self.problems += report.problems.len();
        for problem in &report.problems {
            self.print(
                || json!({"damaged": problem}),
                format_args!("DAMAGED: {problem}"),
            )?;
        }
        Ok(())
    }

    fn wal(&mut self, store: &StoreArgs) -> Result<(), Failure> {
        for segment in inspect::wal(&store.offline_options())? {
            let segment = segment?;
            if !self.wants(&segment.file) {
                continue;
            }
            self.problems += segment.damaged();
            self.print(
                || {
                    let mut json = content(&segment.header, |header| {
                        json!({
                            "segment": header.number,
                            "database": format!("{:032x}", header.database),
                            "continues": header.previous.map(|(number, _)| number),
                            "base_seq": header.base_seq,
                        })
                    });
                    json.insert("file".into(), output::path(&segment.file));
                    json.insert("bytes".into(), json!(segment.bytes));
                    Json::Object(json)
                },
                format_args!(
                    "{}: {} bytes\n{:>10}  {}",
                    segment.file.display(),
                    segment.bytes,
                    0,
                    segment.header
                ),
            )?;
            for group in &segment.groups {
                self.group(group)?;
            }
        }
        Ok(())
    }

    fn hotness(&mut self, store: &StoreArgs) -> Result<(), Failure> {
        let placed_by = inspect::manifest(&store.offline_options())?.placed_by;
        let report = inspect::access_records(&store.offline_options())?;
        let mut files = files_in(&store.ralt_dir())?;
        if let Some(report) = &report
            && !files.iter().any(|(file, _)| *file == report.file)
        {
            files.push((report.file.clone(), report.bytes));
        }
        if self.file.is_none() {
            self.print(
                || json!({"placed_by": placed_by.map(|by| by.to_string())}),
                placement(placed_by),
            )?;
        }
        let mut total = 0;
        for (file, bytes) in &files {
            if !self.wants(file) {
                continue;
            }
            total += bytes;
            let report = report.as_ref().filter(|report| report.file == *file);
            let state = report.map(|report| &report.contents);
            self.problems += usize::from(state.is_some_and(Content::is_damaged));
            self.print(
                || {
                    let state = state.map(|state| content(state, access_records));
                    let mut json = state.unwrap_or_default();
                    json.insert("file".into(), output::path(file));
                    json.insert("bytes".into(), json!(bytes));
                    Json::Object(json)
                },
                format_args!(
                    "{bytes:>10}  {}{}",
                    file.display(),
                    state.map_or_else(String::new, |state| format!("\n            {state}"))
                ),
            )?;
        }
        // As for the list of tables.
        let problems = report.iter().flat_map(|report| &report.problems);
        for problem in problems {
            self.problems += 1;
            self.print(
                || json!({"damaged": problem}),
                format_args!("DAMAGED: {problem}"),
            )?;
        }
        if !self.json {
            self.out
                .line(format!("{total:>10}  bytes of access records"))?;
        }
        Ok(())
    }

    fn group(&mut self, group: &Entry<Group>) -> Result<(), Failure> {
        self.print(
            || {
                entry(group, |group| {
                    json!({
                        "first_seq": group.first_seq,
                        "older_durable": group.older_durable,
                        "durable_bytes": group.durable_bytes,
                        "writes": group.writes().map(write).collect::<Vec<_>>(),
                    })
                })
            },
            format_args!("{:>10}  {}", group.offset, group.content),
        )?;
        if self.json {
            return Ok(());
        }
        for write in group.content.valid().into_iter().flat_map(Group::writes) {
            self.out.line(format!("            {write}"))?;
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Failure> {
        self.out.finish()?;
        match (self.problems, self.file) {
            (0, Some(file)) if !self.matched => Err(Failure::usage(format!(
                "there is no file named {file} among them"
            ))),
            (0, _) => Ok(()),
            (problems, _) => Err(Failure::Damaged { problems }),
        }
    }
}

fn placement(placed_by: Option<PlacedBy>) -> String {
    match placed_by {
        Some(by) => format!("records live by {by}"),
        None => "nothing says how records are placed".to_owned(),
    }
}

/// The files of the access records with their lengths. None if hotness is not tracked.
fn files_in(dir: &Path) -> Result<Vec<(PathBuf, u64)>, Failure> {
    let failed = |error| Failure::io("list", dir, error);
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        match entry.metadata() {
            // The file was replaced since it was listed: somebody has the store open.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            metadata => files.push((entry.path(), metadata.map_err(failed)?.len())),
        }
    }
    files.sort();
    Ok(files)
}
