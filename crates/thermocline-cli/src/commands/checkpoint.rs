//! `thermocline checkpoint`.

use std::path::PathBuf;

use serde_json::json;

use crate::failure::Failure;
use crate::output;
use crate::progress;
use crate::store::StoreArgs;

/// Make a copy of the store that can be opened by itself, with hard links where possible
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline checkpoint --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB \\
      --to-fast /nvme/backup --to-slow /hdd/backup
  thermocline checkpoint --one-tier --fast /nvme/db --to-fast /nvme/backup

A directory on the same filesystem as its tier costs no space at first: tables are linked.
Elsewhere they are copied. The directories must not exist or be empty. A checkpoint that is
cut short leaves no store, and every command says so: the same command again removes what is
there and begins anew.")]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,

    /// Directory for the fast tier of the copy
    #[arg(long, value_name = "DIR")]
    to_fast: PathBuf,

    /// Directory for the slow tier of the copy; of a store with several, once for each, in their
    /// order
    #[arg(long, value_name = "DIR", required_unless_present = "one_tier")]
    to_slow: Vec<PathBuf>,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if !args.to_slow.is_empty() && args.store.slow().is_empty() {
        return Err(Failure::usage("a store of one tier takes no --to-slow"));
    }
    let targets: Vec<PathBuf> = std::iter::once(&args.to_fast)
        .chain(&args.to_slow)
        .cloned()
        .collect();
    let db = args.store.open()?;
    let bar = progress::spinner("making a checkpoint");
    let result = db.checkpoint(&targets);
    bar.finish_and_clear();
    result?;
    let names: Vec<String> = targets.iter().map(|t| t.display().to_string()).collect();
    output::say(
        args.json,
        &json!({"tiers": names}),
        format!("checkpoint at {}", names.join(" and ")),
    )?;
    Ok(db.close()?)
}
