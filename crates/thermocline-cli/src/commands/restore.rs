//! `thermocline restore`.

use std::path::PathBuf;

use serde_json::json;
use thermocline::Backups;

use crate::failure::Failure;
use crate::output;
use crate::progress;
use crate::size;
use crate::store::StoreArgs;

/// Make a store of a backup, every byte checked
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline restore --from /backup/db --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB
  thermocline restore --from /backup/db --generation 3 --one-tier --fast /nvme/db

The directories of the store must not exist or be empty. Give as many tiers as the store had
that was backed up; its tables go where they were, and what is too much for --fast-capacity
goes down when the store is next opened for writing. A restore that is cut short leaves no store, and every
command says so: the same command again removes what is there and begins anew, `thermocline
destroy` removes it.")]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,

    /// Directory of the backups
    #[arg(long, value_name = "DIR")]
    from: PathBuf,

    /// Which backup [default: the newest]
    #[arg(long, value_name = "NUMBER")]
    generation: Option<u64>,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let options = args.store.online_options(true)?;
    let backups = Backups::open_existing(&args.from)?;
    let bar = progress::spinner("restoring");
    let restored = backups.restore(args.generation, &options);
    bar.finish_and_clear();
    let restored = restored?;
    output::say(
        args.json,
        &json!({
            "generation": restored.generation,
            "through_seq": restored.through,
            "tables": restored.tables,
            "bytes": restored.bytes,
        }),
        format!(
            "generation {} restored: {} tables of {}",
            restored.generation,
            restored.tables,
            size::show(restored.bytes)
        ),
    )
}
