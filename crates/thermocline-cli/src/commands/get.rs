//! `thermocline get`.

use crate::failure::Failure;
use crate::fields;
use crate::output::Out;
use crate::store::DataArgs;
use crate::text::ESCAPES;

/// Print the value of a key; exit code 1 when there is none
#[derive(Debug, clap::Args)]
#[command(after_help = format!("\
Examples:
  thermocline get --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB city:berlin
  thermocline get --one-tier --fast /nvme/db --raw photo:7 > photo.jpg
  thermocline get --one-tier --fast /nvme/db --json 'bin\\x00key'

{ESCAPES}"))]
pub(crate) struct Args {
    #[command(flatten)]
    data: DataArgs,

    /// Print the bytes of the value as they are, without a newline
    #[arg(long, conflicts_with = "json")]
    raw: bool,

    /// Print {"key": ..., "value": ...}, as `scan --json` does
    #[arg(long)]
    json: bool,

    /// The key
    #[arg(allow_negative_numbers = true)]
    key: String,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let key = args.data.read("key", &args.key)?;
    let session = args.data.open_to_read()?;
    let value = session.keyspace.get(&key)?;
    let notation = args.data.notation();
    let printed = match &value {
        None => Err(Failure::KeyNotFound),
        Some(value) => {
            let mut out = Out::new();
            if args.raw {
                out.raw(value)?;
            } else if args.json {
                out.json(&fields::record(&key, Some(value), notation))?;
            } else {
                out.line(notation.show(value))?;
            }
            out.finish()
        }
    };
    session.close()?;
    printed
}
