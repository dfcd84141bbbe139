//! `thermocline backup`.

use std::path::PathBuf;

use serde_json::json;
use thermocline::Backups;

use crate::failure::Failure;
use crate::output;
use crate::progress;
use crate::size;
use crate::store::StoreArgs;

/// Back the store up to a directory; only tables that are new are copied
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline backup --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB --to /backup/db
  thermocline backup --one-tier --fast /nvme/db --to /backup/db --keep 7

Each backup is a generation of its own, a whole store; generations share tables. One that is
cut short leaves those before it as they were. Every table is verified before it is copied.
`thermocline backups` lists and verifies them, `thermocline restore` makes a store of one.")]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,

    /// Directory of the backups; made if it is missing
    #[arg(long, value_name = "DIR")]
    to: PathBuf,

    /// Remove all generations but so many, once the new one is there
    #[arg(long, value_name = "GENERATIONS", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let db = args.store.open()?;
    let bar = progress::spinner("backing up");
    let taken = Backups::open(&args.to).and_then(|backups| {
        let report = backups.take(&db)?;
        let pruned = match args.keep {
            Some(keep) => backups.prune(keep as usize)?,
            None => Vec::new(),
        };
        Ok((report, pruned))
    });
    bar.finish_and_clear();
    let (report, pruned) = taken?;
    output::say(
        args.json,
        &json!({
            "generation": report.generation,
            "through_seq": report.through,
            "tables": report.tables,
            "bytes": report.bytes,
            "copied_tables": report.copied_tables,
            "copied_bytes": report.copied_bytes,
            "pruned": pruned,
        }),
        format!(
            "generation {} at {}: {} tables of {}, {} of them ({}) copied; {} generations pruned",
            report.generation,
            args.to.display(),
            report.tables,
            size::show(report.bytes),
            report.copied_tables,
            size::show(report.copied_bytes),
            pruned.len()
        ),
    )?;
    Ok(db.close()?)
}
