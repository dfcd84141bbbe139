//! `thermocline destroy`.

use crate::confirm::confirmed;
use crate::failure::Failure;
use crate::given_up::{GivenUp, give_up};
use crate::store::StoreArgs;

/// Remove a store from every tier
#[derive(Debug, clap::Args)]
#[command(after_help = "\
What a repair or an opening set aside, in the directories `lost`, stays. One that was cut
short is gone on with: name the same tiers again. What a restore or a checkpoint left that was
cut short is removed, too.

Examples:
  thermocline destroy --fast /nvme/db --slow /hdd/db
  thermocline destroy --one-tier --fast /tmp/db --yes
  thermocline destroy --fast /new-nvme/db --slow /hdd/db --give-up fast")]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,

    /// Do not ask
    #[arg(long)]
    yes: bool,

    /// Go on though nothing is left of the store on this tier: its device is lost for good. First
    /// make sure that it is not only unmounted
    #[arg(long, value_name = "TIER")]
    give_up: Option<GivenUp>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let store = &args.store;
    let builder = give_up(store.builder(store.offline_options()), store, args.give_up)?;
    let mut places = store.fast.display().to_string();
    for slow in store.slow() {
        places.push_str(&format!(" and {}", slow.display()));
    }
    let question = format!("Remove the store at {places} and all its data?");
    if !args.yes && !confirmed("removes the store", &question)? {
        return Err(Failure::usage("nothing was removed"));
    }
    builder.destroy().map_err(|error| store.not_opened(error))
}
