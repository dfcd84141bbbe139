//! `thermocline put`.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thermocline::MAX_VALUE_LEN;

use crate::failure::Failure;
use crate::store::DataArgs;
use crate::text::ESCAPES;

/// Write a value under a key
#[derive(Debug, clap::Args)]
#[command(after_help = format!("\
Examples:
  thermocline put --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB --create city:berlin 3.6M
  thermocline put --one-tier --fast /nvme/db photo:7 --value-file photo.jpg
  thermocline put --one-tier --fast /nvme/db --hex 00ff 2a

{ESCAPES}"))]
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
        read_value(io::stdin())
    } else {
        File::open(path).and_then(read_value)
    };
    read.map_err(|e| Failure::io("read", path, e))
}

/// Reads a value. If it is too large, reads only one byte more than a value may have: the store
/// refuses that.
fn read_value(input: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input
        .take(MAX_VALUE_LEN as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: all of the value was read first. A device has no end, and filled the memory.
    #[test]
    fn no_more_of_a_value_is_read_than_tells_that_it_is_too_large() {
        let mut input = io::repeat(b'x').take(MAX_VALUE_LEN as u64 + 10);
        let read = read_value(&mut input).expect("memory can be read");
        assert_eq!(read.len(), MAX_VALUE_LEN + 1);
        assert_eq!(input.limit(), 9, "are left");
    }
}
