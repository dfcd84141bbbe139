//! `thermocline repair`.

use serde_json::{Value as Json, json};
use thermocline::{Loss, RepairReport};

use crate::failure::Failure;
use crate::given_up::{GivenUp, give_up};
use crate::output::{self, Out};
use crate::progress;
use crate::store::StoreArgs;
use crate::text::Notation;

/// Make a store that no longer opens one that does, and say what could not be saved
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline repair --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB --dry-run
  thermocline repair --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB
  thermocline repair --one-tier --fast /nvme/db --json | jq '.losses'
  thermocline repair --fast /nvme/db --slow /new-hdd/db --fast-capacity 1GiB --give-up slow

The manifest is made anew from what is left of it, the tables and the log. A store that is
sound is not changed. What the repaired store does not use is in the directory `lost` of each
tier: remove it once nothing is missed. A backup or a checkpoint that is recent enough is the
better choice.

Keys of a loss may be missing, may show an older value, or be back though they were deleted. A
tier that is given up, and a manifest that cannot be read to its end, are losses by
themselves: what they named, and is gone as well, nothing tells. What the store may cost (its
target) is kept where it can be read, and is no loss where it cannot. Exit code 4 says that there
are losses; with --dry-run, that there is something to repair. What a restore or a checkpoint
has left that was cut short is refused, with exit code 3.")]
pub(crate) struct Args {
    #[command(flatten)]
    store: StoreArgs,

    /// Say what is wrong and what would be lost; change nothing
    #[arg(long)]
    dry_run: bool,

    /// Go on without what this tier held: its device is lost for good. First make sure that it is
    /// not only unmounted
    #[arg(long, value_name = "TIER")]
    give_up: Option<GivenUp>,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let builder = args.store.builder(args.store.online_options(false)?);
    let builder = give_up(builder, &args.store, args.give_up)?;
    let bar = progress::spinner("reading every file");
    let result = builder.repair(args.dry_run);
    bar.finish_and_clear();
    let report = result.map_err(|error| args.store.not_opened(error))?;
    let mut out = Out::of_verdict();
    if args.json {
        out.pretty_json(&to_json(&report))?;
    } else {
        print(&mut out, args, &report)?;
    }
    out.finish()?;
    match (args.dry_run, report.problems.len(), report.losses.len()) {
        (true, 0, _) | (false, _, 0) => Ok(()),
        (true, problems, _) => Err(Failure::Damaged { problems }),
        (false, _, losses) => Err(Failure::Lost { losses }),
    }
}

fn print(out: &mut Out, args: &Args, report: &RepairReport) -> Result<(), Failure> {
    for problem in &report.problems {
        out.line(format!("problem: {problem}"))?;
    }
    for loss in &report.losses {
        out.line(format!("lost: {loss}"))?;
    }
    if let Some(said) = &report.target {
        out.line(format!("target: {said}"))?;
    }
    for file in &report.set_aside {
        out.line(format!("set aside: {}", file.display()))?;
    }
    let done = match (report.problems.is_empty(), args.dry_run) {
        (true, _) => return out.line("the store is sound, nothing was changed"),
        (false, true) => "would be",
        (false, false) => "are",
    };
    if report.rebuilt {
        out.line("no manifest can be used: all records are merged anew")?;
    }
    out.line(format!(
        "keyspaces: {}; {} tables {done} kept, {} {done} written anew; the log holds {} writes; {} {}",
        report.keyspaces.join(", "),
        report.kept,
        report.rewritten,
        report.logged,
        report.losses.len(),
        if report.losses.len() == 1 { "loss" } else { "losses" }
    ))
}

fn to_json(report: &RepairReport) -> Json {
    json!({
        "repaired": report.repaired,
        "rebuilt": report.rebuilt,
        "problems": report.problems,
        "keyspaces": report.keyspaces,
        "kept_tables": report.kept,
        "rewritten_tables": report.rewritten,
        "logged_writes": report.logged,
        "losses": report.losses.iter().map(loss_to_json).collect::<Vec<_>>(),
        "target": report.target,
        "set_aside": report.set_aside.iter().map(|file| output::path(file)).collect::<Vec<_>>(),
    })
}

/// Keys are shown in hexadecimal, because they may hold any bytes.
fn loss_to_json(loss: &Loss) -> Json {
    let hex = |key: &[u8]| Notation::Hex.show(key);
    json!({
        "file": output::path(&loss.file),
        "offset": loss.offset,
        "problem": loss.what,
        "keyspace": loss.keyspace,
        "first_key_hex": loss.keys.as_ref().map(|(first, _)| hex(first)),
        "last_key_hex": loss.keys.as_ref().map(|(_, last)| hex(last)),
        "first_seq": loss.seqs.map(|(first, _)| first),
        "last_seq": loss.seqs.map(|(_, last)| last),
    })
}
