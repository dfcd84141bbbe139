//! `thermocline delete`.

use thermocline::Batch;

use crate::failure::Failure;
use crate::store::DataArgs;
use crate::text::ESCAPES;

/// Delete keys, all of them or, on an error, none; a key that does not exist is no error
#[derive(Debug, clap::Args)]
#[command(after_help = format!("\
Examples:
  thermocline delete --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB city:berlin
  thermocline delete --one-tier --fast /nvme/db --keyspace users alice bob

{ESCAPES}"))]
pub(crate) struct Args {
    #[command(flatten)]
    data: DataArgs,

    /// The keys
    #[arg(required = true, value_name = "KEY", allow_negative_numbers = true)]
    keys: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let keys: Vec<Vec<u8>> = args
        .keys
        .iter()
        .map(|key| args.data.read("key", key))
        .collect::<Result<_, _>>()?;
    let session = args.data.open()?;
    let mut batch = Batch::new();
    for key in &keys {
        batch.delete_in(&session.keyspace, key);
    }
    session.db.write(batch)?;
    session.close()
}
