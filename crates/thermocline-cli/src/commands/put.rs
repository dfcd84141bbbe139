//! `thermocline put`.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::store::DataArgs;

/// Write a value under a key
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline put --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB --create city:berlin 3.6M
  thermocline put --one-tier --fast /nvme/db photo:7 --value-file photo.jpg
  thermocline put --one-tier --fast /nvme/db --hex 00ff 2a")]
pub(crate) struct Args {
    #[command(flatten)]
    data: DataArgs,

    /// Make the store, and the keyspace, if they do not exist
    #[arg(long)]
    create: bool,

    /// Take the value from a file as it is; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "value")]
    value_file: Option<PathBuf>,

    /// The key
    #[arg(allow_negative_numbers = true)]
    key: String,

    /// The value
    #[arg(allow_negative_numbers = true, required_unless_present = "value_file")]
    value: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let key = args.data.read("key", &args.key)?;
    let value = match (&args.value_file, &args.value) {
        (Some(path), _) => read_file(path)?,
        (None, Some(value)) => args.data.read("value", value)?,
        (None, None) => return Err(Failure::usage("give a value, or --value-file")),
    };
    let session = args.data.open_or_create(args.create)?;
    session.keyspace.put(&key, &value)?;
    session.close()
}

fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    let read = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    read.map_err(|e| Failure::io("read", path, e))
}
