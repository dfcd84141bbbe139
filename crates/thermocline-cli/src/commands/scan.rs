//! `thermocline scan`.

use std::ops::Bound;

use serde_json::json;

use crate::failure::Failure;
use crate::output::Out;
use crate::store::{DataArgs, Records, Session};

/// Print records in key order, as `key<TAB>value` lines that `load` reads back
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline scan --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB --prefix city:
  thermocline scan --one-tier --fast /nvme/db --from a --to b --reverse --limit 10
  thermocline scan --one-tier --fast /nvme/db --keys-only | wc -l
  thermocline scan --one-tier --fast /nvme/db --json > backup.jsonl")]
pub(crate) struct Args {
    #[command(flatten)]
    data: DataArgs,

    /// Only keys that start with this
    #[arg(long, value_name = "PREFIX", conflicts_with_all = ["from", "to"])]
    prefix: Option<String>,

    /// Only this key and those after it
    #[arg(long, value_name = "KEY")]
    from: Option<String>,

    /// Only keys before this one
    #[arg(long, value_name = "KEY")]
    to: Option<String>,

    /// Print the last key first
    #[arg(long)]
    reverse: bool,

    /// Print at most this many records
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Print keys without their values
    #[arg(long)]
    keys_only: bool,

    /// Print one JSON object a line: {"key": ..., "value": ...}
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let selection = Selection::new(args)?;
    let session = args.data.open()?;
    let printed = print(args, selection.open(&session));
    // Before the store is closed the records, which hold it open, must be gone.
    session.close()?;
    printed
}

enum Selection {
    Prefix(Vec<u8>),
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>),
}

impl Selection {
    fn new(args: &Args) -> Result<Self, Failure> {
        if let Some(prefix) = &args.prefix {
            return Ok(Selection::Prefix(args.data.read("prefix", prefix)?));
        }
        let read = |key: &Option<String>| -> Result<Option<Vec<u8>>, Failure> {
            key.as_ref().map(|k| args.data.read("key", k)).transpose()
        };
        let (from, to) = (read(&args.from)?, read(&args.to)?);
        if let (Some(from), Some(to)) = (&from, &to)
            && from > to
        {
            return Err(Failure::usage(
                "--from is after --to, so no key is between them; for the opposite order use --reverse",
            ));
        }
        Ok(Selection::Range(
            from.map_or(Bound::Unbounded, Bound::Included),
            to.map_or(Bound::Unbounded, Bound::Excluded),
        ))
    }

    fn open(self, session: &Session) -> Records {
        match self {
            Selection::Prefix(prefix) => session.prefix(&prefix),
            Selection::Range(from, to) => session.range((from, to)),
        }
    }
}

fn print(args: &Args, records: Records) -> Result<(), Failure> {
    let records: Records = if args.reverse {
        Box::new(records.rev())
    } else {
        records
    };
    let notation = args.data.notation();
    let mut out = Out::new();
    for record in records.take(args.limit.unwrap_or(usize::MAX)) {
        let (key, value) = record?;
        let key = notation.show(&key);
        match (args.json, args.keys_only) {
            (true, true) => out.json(&json!({"key": key}))?,
            (true, false) => out.json(&json!({"key": key, "value": notation.show(&value)}))?,
            (false, true) => out.line(key)?,
            (false, false) => out.line(format!("{key}\t{}", notation.show(&value)))?,
        }
    }
    out.finish()
}
