//! `thermocline inspect`.

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use thermocline::inspect::{
    self, Content, Contents, Group, ManifestReport, SegmentReport, TableEntry, TableReport,
    TablesReport,
};

use crate::failure::Failure;
use crate::output::Out;
use crate::size;
use crate::store::StoreArgs;
use crate::text::Notation;

/// Print the manifest, the tables or the write-ahead log in readable form
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline inspect --fast /nvme/db --slow /hdd/db manifest
  thermocline inspect --one-tier --fast /nvme/db tables --json
  thermocline inspect --one-tier --fast /nvme/db wal --writes --file 00000007.wal

The files are read as they are: nothing is replayed, repaired or locked. Damage is shown in
its place; the exit code is 4 then. Close the store first, or files may come and go meanwhile.")]
pub(crate) struct Args {
    /// What to print
    what: What,

    #[command(flatten)]
    store: StoreArgs,

    /// Only the table or the log segment of this name
    #[arg(long, value_name = "NAME")]
    file: Option<PathBuf>,

    /// Print every write of the log, not just its groups
    #[arg(long)]
    writes: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Every edit of the manifest in force
    Manifest,
    /// Every table: place, range, size, blocks
    Tables,
    /// Every group of the write-ahead log
    Wal,
}

impl Args {
    fn wants(&self, file: &Path) -> bool {
        let name = self.file.as_ref().and_then(|wanted| wanted.file_name());
        name.is_none() || file.file_name() == name
    }

    /// Refuses a `--file` that nothing was found for.
    fn check_found(&self, found: usize) -> Result<(), Failure> {
        match &self.file {
            Some(name) if found == 0 => Err(Failure::usage(format!(
                "the store has no such file as {}",
                name.display()
            ))),
            _ => Ok(()),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let damaged = match args.what {
        What::Manifest => manifest(args)?,
        What::Tables => tables(args)?,
        What::Wal => wal(args)?,
    };
    match damaged {
        0 => Ok(()),
        problems => Err(Failure::Damaged { problems }),
    }
}

fn manifest(args: &Args) -> Result<usize, Failure> {
    let report = inspect::manifest(&args.store.offline_options())?;
    args.check_found(usize::from(args.wants(&report.file)))?;
    let mut out = Out::new();
    if args.json {
        out.pretty_json(&manifest_json(&report))?;
    } else {
        out.line(format!("{}, {} bytes", report.file.display(), report.bytes))?;
        match report.database {
            Some(database) => out.line(format!("database {database:032x}"))?,
            None => out.line("database unknown")?,
        }
        for edit in &report.edits {
            out.line(format!("{:>10}  {}", edit.offset, edit.content))?;
        }
    }
    out.finish()?;
    Ok(report.damaged())
}

fn manifest_json(report: &ManifestReport) -> Json {
    let edits = report.edits.iter().map(|edit| {
        let changes = edit.content.valid().map(|edit| {
            let changes = edit.changes.iter().map(ToString::to_string);
            changes.collect::<Vec<_>>()
        });
        json!({
            "offset": edit.offset,
            "changes": changes,
            "problem": problem(&edit.content),
        })
    });
    json!({
        "file": report.file,
        "bytes": report.bytes,
        "database": report.database.map(|database| format!("{database:032x}")),
        "edits": edits.collect::<Vec<_>>(),
    })
}

fn problem<T: std::fmt::Display>(content: &Content<T>) -> Option<String> {
    match content {
        Content::Valid(_) => None,
        other => Some(other.to_string()),
    }
}

fn tables(args: &Args) -> Result<usize, Failure> {
    let mut report = inspect::tables(&args.store.offline_options())?;
    report.tables.retain(|table| args.wants(&table.file));
    report.unnamed.retain(|file| args.wants(&file.file));
    args.check_found(report.tables.len() + report.unnamed.len())?;
    let mut out = Out::new();
    if args.json {
        out.pretty_json(&tables_json(&report))?;
    } else {
        print_tables(&mut out, &report)?;
    }
    out.finish()?;
    Ok(report.damaged())
}

fn print_tables(out: &mut Out, report: &TablesReport) -> Result<(), Failure> {
    for table in &report.tables {
        out.line(format!("{} ({:?})", table.file.display(), table.keyspace))?;
        out.line(format!("    {}", table.meta))?;
        out.line(format!("    {}", table.contents))?;
    }
    for file in &report.unnamed {
        out.line(format!(
            "{}: not part of the store, {}",
            file.file.display(),
            size::show(file.bytes)
        ))?;
    }
    for problem in &report.problems {
        out.line(format!("problem: {problem}"))?;
    }
    Ok(())
}

fn tables_json(report: &TablesReport) -> Json {
    let unnamed = report
        .unnamed
        .iter()
        .map(|file| json!({"file": file.file, "tier": file.tier, "bytes": file.bytes}));
    json!({
        "tables": report.tables.iter().map(table_json).collect::<Vec<_>>(),
        "unnamed": unnamed.collect::<Vec<_>>(),
        "problems": report.problems,
    })
}

fn table_json(table: &TableReport) -> Json {
    let TableEntry {
        number,
        level,
        tier,
        epoch,
        bytes,
        entries,
        deletes,
        first_seq,
        last_seq,
        ..
    } = table.meta;
    json!({
        "file": table.file,
        "number": number,
        "keyspace": table.keyspace,
        "level": level,
        "tier": tier,
        "epoch": epoch,
        "bytes": bytes,
        "entries": entries,
        "deletes": deletes,
        "first_seq": first_seq,
        "last_seq": last_seq,
        "first_key": Notation::Text.show(&table.meta.first_key),
        "last_key": Notation::Text.show(&table.meta.last_key),
        "contents": table.contents.valid().map(contents_json),
        "problem": problem(&table.contents),
    })
}

fn contents_json(contents: &Contents) -> Json {
    json!({
        "written_level": contents.written_level,
        "written_tier": contents.written_tier,
        "replaces": contents.replaces,
        "data_blocks": contents.data_blocks,
        "partitions": contents.partitions,
        "data_bytes": contents.data_bytes,
        "index_bytes": contents.index_bytes,
        "filter_bytes": contents.filter_bytes,
        "raw_key_bytes": contents.raw_key_bytes,
        "raw_value_bytes": contents.raw_value_bytes,
    })
}

/// One JSON value a segment: a log may be long.
fn wal(args: &Args) -> Result<usize, Failure> {
    let (mut found, mut damaged) = (0, 0);
    let mut out = Out::new();
    for segment in inspect::wal(&args.store.offline_options())? {
        let segment = segment?;
        if !args.wants(&segment.file) {
            continue;
        }
        found += 1;
        damaged += segment.damaged();
        if args.json {
            out.json(&segment_json(&segment, args.writes))?;
        } else {
            print_segment(&mut out, &segment, args.writes)?;
        }
    }
    out.finish()?;
    args.check_found(found)?;
    Ok(damaged)
}

fn print_segment(out: &mut Out, segment: &SegmentReport, writes: bool) -> Result<(), Failure> {
    out.line(format!(
        "{}, {} bytes",
        segment.file.display(),
        segment.bytes
    ))?;
    out.line(format!("{:>10}  {}", 0, segment.header))?;
    for group in &segment.groups {
        out.line(format!("{:>10}  {}", group.offset, group.content))?;
        let group = group.content.valid().filter(|_| writes);
        for write in group.into_iter().flat_map(Group::writes) {
            out.line(format!("{:>14}{write}", ""))?;
        }
    }
    Ok(())
}

fn segment_json(segment: &SegmentReport, writes: bool) -> Json {
    let header = segment.header.valid().map(|header| {
        json!({
            "number": header.number,
            "database": format!("{:032x}", header.database),
            "previous": header.previous.map(|(number, bytes)| json!({"number": number, "bytes": bytes})),
            "base_seq": header.base_seq,
        })
    });
    let groups = segment.groups.iter().map(|entry| {
        let mut json = json!({"offset": entry.offset, "problem": problem(&entry.content)});
        if let (Some(group), Some(fields)) = (entry.content.valid(), json.as_object_mut()) {
            fields.extend(group_fields(group, writes));
        }
        json
    });
    json!({
        "file": segment.file,
        "bytes": segment.bytes,
        "header": header,
        "problem": problem(&segment.header),
        "groups": groups.collect::<Vec<_>>(),
    })
}

fn group_fields(group: &Group, writes: bool) -> Vec<(String, Json)> {
    let mut fields = vec![
        ("first_seq".to_owned(), json!(group.first_seq)),
        ("count".to_owned(), json!(group.count)),
        ("batches".to_owned(), json!(group.batches.len())),
        ("older_durable".to_owned(), json!(group.older_durable)),
        ("durable_bytes".to_owned(), json!(group.durable_bytes)),
    ];
    if writes {
        let writes = group.writes().map(|write| {
            json!({
                "seq": write.seq,
                "keyspace": write.keyspace,
                "kind": format!("{:?}", write.kind).to_lowercase(),
                "key": Notation::Text.show(&write.key),
                "value_bytes": write.value_bytes,
            })
        });
        fields.push(("writes".to_owned(), Json::Array(writes.collect())));
    }
    fields
}
