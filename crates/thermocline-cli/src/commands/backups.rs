//! `thermocline backups`.

use std::path::PathBuf;

use serde_json::json;
use thermocline::{Backups, Error, GenerationInfo};

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

    /// Read every byte of every generation, of each whether or not others can be read; exit code 4 when one is damaged
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
    for number in backups.numbers()? {
        let looked = look(&backups, number, args.verify);
        // Of the others nothing is lost with one that cannot be read.
        let (generation, problems) = match looked {
            Ok((generation, problems)) => (Some(generation), problems),
            Err(error @ Error::Corruption { .. }) => (None, vec![error]),
            Err(error) => return Err(error.into()),
        };
        damaged += problems.len();
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        if args.json {
            let of = |value: fn(&GenerationInfo) -> u64| generation.as_ref().map(value);
            let is_known = args.verify || generation.is_none();
            out.json(&json!({
                "generation": number,
                "through_seq": of(|generation| generation.through),
                "tables": of(|generation| generation.tables),
                "bytes": of(|generation| generation.bytes),
                "problems": is_known.then_some(&problems),
            }))?;
            continue;
        }
        let state = match (args.verify, problems.len()) {
            (_, 1..) => "DAMAGED  ",
            (true, 0) => "ok       ",
            (false, 0) => "",
        };
        let content = generation.map_or_else(String::new, |generation| {
            format!(
                "  {} tables  {}  through sequence {}",
                generation.tables,
                size::show(generation.bytes),
                generation.through
            )
        });
        out.line(format!("{state}generation {number}{content}"))?;
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

/// What generation `number` consists of, and what is damaged of it as far as that is asked for.
fn look(
    backups: &Backups,
    number: u64,
    verify: bool,
) -> thermocline::Result<(GenerationInfo, Vec<Error>)> {
    if !verify {
        return Ok((backups.generation(number)?, Vec::new()));
    }
    let bar = progress::spinner("verifying");
    let verified = backups.verify(Some(number));
    bar.finish_and_clear();
    verified
}
