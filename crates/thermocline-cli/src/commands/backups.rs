//! `thermocline backups`.

use std::path::PathBuf;

use serde_json::json;
use thermocline::Backups;

use crate::failure::Failure;
use crate::output::Out;
use crate::progress;
use crate::size;

/// List the backups in a directory, verify them, or remove old ones
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline backups --in /backup/db
  thermocline backups --in /backup/db --verify
  thermocline backups --in /backup/db --keep 7")]
pub(crate) struct Args {
    /// Directory of the backups
    #[arg(long = "in", value_name = "DIR")]
    dir: PathBuf,

    /// Read every byte of every generation; exit code 4 when one is damaged
    #[arg(long)]
    verify: bool,

    /// Remove all generations but so many first
    #[arg(long, value_name = "GENERATIONS", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,

    /// Print the result as JSON, a line for each generation
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let backups = Backups::open_existing(&args.dir)?;
    if let Some(keep) = args.keep {
        backups.prune(keep as usize)?;
    }
    let (mut out, mut damaged) = (Out::of_verdict(), 0);
    for generation in backups.generations()? {
        let problems = if args.verify {
            let bar = progress::spinner("verifying");
            let verified = backups.verify(Some(generation.generation));
            bar.finish_and_clear();
            verified?.1
        } else {
            Vec::new()
        };
        damaged += problems.len();
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        if args.json {
            out.json(&json!({
                "generation": generation.generation,
                "through_seq": generation.through,
                "tables": generation.tables,
                "bytes": generation.bytes,
                "problems": args.verify.then_some(&problems),
            }))?;
            continue;
        }
        let state = match (args.verify, problems.len()) {
            (false, _) => "",
            (true, 0) => "ok       ",
            (true, _) => "DAMAGED  ",
        };
        out.line(format!(
            "{state}generation {}  {} tables  {}  through sequence {}",
            generation.generation,
            generation.tables,
            size::show(generation.bytes),
            generation.through
        ))?;
        for problem in problems {
            out.line(format!("problem: {problem}"))?;
        }
    }
    out.finish()?;
    match damaged {
        0 => Ok(()),
        problems => Err(Failure::Damaged { problems }),
    }
}
