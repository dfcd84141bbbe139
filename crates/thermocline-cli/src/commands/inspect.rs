//! `thermocline inspect`.

use std::path::PathBuf;

use crate::failure::Failure;
use crate::store::StoreArgs;

/// Print the manifest, the tables or the write-ahead log in readable form
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline inspect --fast /nvme/db --slow /hdd/db manifest
  thermocline inspect --one-tier --fast /nvme/db tables --json
  thermocline inspect --one-tier --fast /nvme/db wal --file 00000007.log")]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,

    /// Only the file of this name
    #[arg(long, value_name = "NAME")]
    file: Option<PathBuf>,
}

pub(crate) fn run(_: &Args) -> Result<(), Failure> {
    todo!()
}
