//! `thermocline destroy`.

use std::io::{IsTerminal, Write};

use thermocline::Db;

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
    if !args.yes && !confirmed(&args.store)? {
        return Err(Failure::usage("nothing was removed"));
    }
    Ok(Db::destroy(&args.store.offline_options())?)
}

fn confirmed(store: &StoreArgs) -> Result<bool, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Failure::usage(
            "this removes the store for good; add --yes to do it without being asked",
        ));
    }
    let mut places = store.fast.display().to_string();
    for slow in store.slow() {
        places.push_str(&format!(" and {}", slow.display()));
    }
    let answer_io = |source| Failure::Io {
        what: "cannot ask for confirmation".to_owned(),
        source,
    };
    let mut err = std::io::stderr();
    write!(err, "Remove the store at {places} and all its data? [y/N] ")
        .and_then(|()| err.flush())
        .map_err(answer_io)?;
    let mut answer = String::new();
    stdin.read_line(&mut answer).map_err(answer_io)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
