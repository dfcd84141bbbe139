//! `thermocline destroy`.

use thermocline::Db;

use crate::confirm::confirmed;
use crate::failure::Failure;
use crate::store::StoreArgs;

/// Remove a store from every tier
#[derive(Debug, clap::Args)]
#[command(after_help = "\
What a repair set aside, in the directories `lost`, stays.

Examples:
  thermocline destroy --fast /nvme/db --slow /hdd/db
  thermocline destroy --one-tier --fast /tmp/db --yes")]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,

    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let store = &args.store;
    let mut places = store.fast.display().to_string();
    for slow in store.slow() {
        places.push_str(&format!(" and {}", slow.display()));
    }
    let question = format!("Remove the store at {places} and all its data?");
    if !args.yes && !confirmed("removes the store", &question)? {
        return Err(Failure::usage("nothing was removed"));
    }
    Ok(Db::destroy(&store.offline_options())?)
}
