//! `thermocline backups`.

use std::path::PathBuf;

use serde_json::json;
use thermocline::{Backups, Error, GenerationInfo};

use super::verify::verdict;
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

    /// Read every byte of every generation, of each whether or not others can be read; exit code 4
    /// when one is damaged, 3 when one cannot be read
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
    let (mut out, mut found) = (Out::of_verdict(), Vec::new());
    for number in backups.numbers()? {
        let (generation, problems) = look(&backups, number, args.verify)?;
        let state = state(&problems, args.verify);
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        found.extend(problems);
        if args.json {
            let of = |value: fn(&GenerationInfo) -> u64| generation.as_ref().map(value);
            let is_known = args.verify || generation.is_none();
            out.json(&json!({
                "generation": number,
                "through_seq": of(|generation| generation.through),
                "tables": of(|generation| generation.tables),
                "bytes": of(|generation| generation.bytes),
                "problems": is_known.then_some(&told),
            }))?;
            continue;
        }
        let content = generation.map_or_else(String::new, |generation| {
            format!(
                "  {} tables  {}  through sequence {}",
                generation.tables,
                size::show(generation.bytes),
                generation.through
            )
        });
        out.line(format!("{state}generation {number}{content}"))?;
        for problem in told {
            out.line(format!("problem: {problem}"))?;
        }
    }
    out.finish()?;
    verdict(found)
}

/// What is printed before the number of a generation with these `problems`.
fn state(problems: &[Error], is_verified: bool) -> &'static str {
    if problems.iter().any(Error::is_corruption) {
        "DAMAGED  "
    } else if !problems.is_empty() {
        "UNREAD   "
    } else if is_verified {
        "ok       "
    } else {
        ""
    }
}

/// What generation `number` consists of, if its file can be read, and what is wrong with it, as far
/// as that was asked for.
fn look(
    backups: &Backups,
    number: u64,
    verify: bool,
) -> thermocline::Result<(Option<GenerationInfo>, Vec<Error>)> {
    let looked = if verify {
        let bar = progress::spinner("verifying");
        let verified = backups.verify(Some(number));
        bar.finish_and_clear();
        verified
    } else {
        backups
            .generation(number)
            .map(|generation| (generation, Vec::new()))
    };
    match looked {
        Ok((generation, problems)) => Ok((Some(generation), problems)),
        // If one generation cannot be read, nothing is lost of the others.
        Err(
            error @ (Error::Corruption { .. } | Error::FormatVersion { .. } | Error::Io { .. }),
        ) => Ok((None, vec![error])),
        Err(error) => Err(error),
    }
}
