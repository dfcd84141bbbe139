//! `thermocline scan`.

use thermocline::Range;

use crate::failure::Failure;
use crate::fields;
use crate::output::Out;
use crate::selection::SelectionArgs;
use crate::store::DataArgs;
use crate::text::ESCAPES;

/// Print records in key order, as `key<TAB>value` lines that `load` reads back
#[derive(Debug, clap::Args)]
#[command(after_help = format!("\
Examples:
  thermocline scan --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB --prefix city:
  thermocline scan --one-tier --fast /nvme/db --from a --to b --reverse --limit 10
  thermocline scan --one-tier --fast /nvme/db --keys-only | wc -l
  thermocline scan --one-tier --fast /nvme/db --json > backup.jsonl

{ESCAPES}"))]
pub(crate) struct Args {
    #[command(flatten)]
    data: DataArgs,

    #[command(flatten)]
    selection: SelectionArgs,

    /// Print the last key first
    #[arg(long)]
    reverse: bool,

    /// Print at most this many records
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Print keys without their values
    #[arg(long)]
    keys_only: bool,

    /// Print one JSON object a line: {"key": ..., "value": ...}. What is no UTF-8, and with --hex
    /// everything, is called "key_hex" or "value_hex" and hexadecimal
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let bounds = args.selection.bounds(&args.data)?;
    let session = args.data.open_to_read()?;
    let printed = print(args, session.keyspace.range(bounds));
    session.close()?;
    printed
}

fn print(args: &Args, mut records: Range) -> Result<(), Failure> {
    let next = |records: &mut Range| match args.reverse {
        true => records.next_back(),
        false => records.next(),
    };
    let notation = args.data.notation();
    let mut out = Out::new();
    for _ in 0..args.limit.unwrap_or(usize::MAX) {
        let Some(record) = next(&mut records) else {
            break;
        };
        let (key, value) = record?;
        let value = (!args.keys_only).then_some(&value[..]);
        if args.json {
            out.json(&fields::record(&key, value, notation))?;
        } else {
            out.line(notation.show_record(&key, value))?;
        }
    }
    out.finish()
}
