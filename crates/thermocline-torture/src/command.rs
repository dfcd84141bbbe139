//! The command line of `thermocline torture`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;

use crate::cases::{Places, Plan};
use crate::child;
use crate::harness::{ALL, Harness};
use crate::verdict::Verdict;

/// Every harness, one after another.
const EVERY: &str = "all";

/// Try to make a store lose, mix up or resurrect something
#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub struct Args {
    /// What to do to the store: a harness, or `all`
    #[arg(value_parser = PossibleValuesParser::new(names()), hide_possible_values = true)]
    harness: String,

    /// Seed of the first case; case i has the seed plus i
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// How many cases, instead of the few of a small run
    #[arg(long)]
    cases: Option<u64>,

    /// The number of cases behind the figures in docs/reliability.md
    #[arg(long, conflicts_with = "cases")]
    long: bool,

    /// Threads that run cases side by side
    #[arg(long, default_value_t = 2)]
    jobs: usize,

    /// Begin no case of a harness after so many minutes
    #[arg(long)]
    minutes: Option<u64>,

    /// Print one line of JSON per harness
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    places: PlaceArgs,

    /// What a harness asks of a process that it starts
    #[arg(long, hide = true)]
    child: Option<String>,
}

/// Directories, for harnesses that use real ones.
#[derive(Debug, clap::Args)]
struct PlaceArgs {
    /// Put stores into this directory instead of the temporary one
    #[arg(long)]
    dir: Option<PathBuf>,

    /// Fast tier of a soak
    #[arg(long)]
    fast: Option<PathBuf>,

    /// Slow tier of a soak
    #[arg(long)]
    slow: Option<PathBuf>,

    /// File for what a soak measures: a line of JSON a second
    #[arg(long)]
    series: Option<PathBuf>,
}

fn names() -> Vec<&'static str> {
    let names = ALL.iter().map(|harness| harness.name);
    names.chain([EVERY]).collect()
}

fn after_help() -> String {
    let mut text = "Harnesses (cases of a small run, of a long one):\n".to_owned();
    for harness in ALL {
        let Harness {
            name,
            about,
            small,
            long,
            ..
        } = harness;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name:<14} {about} ({small}, {long})");
    }
    text.push_str(
        "
Examples:
  thermocline torture all
  thermocline torture power-cut --long
  thermocline torture power-cut --seed 4711 --cases 1

A broken promise names the seed that shows it again, and makes the exit code 1.",
    );
    text
}

impl Args {
    fn plan(&self, harness: &Harness) -> Plan {
        let usual = if self.long {
            harness.long
        } else {
            harness.small
        };
        Plan {
            seed: self.seed,
            cases: self.cases.unwrap_or(usual),
            jobs: self.jobs,
            limit: self
                .minutes
                .map(|minutes| Duration::from_secs(60 * minutes)),
            places: Places {
                dir: self.places.dir.clone(),
                fast: self.places.fast.clone(),
                slow: self.places.slow.clone(),
                series: self.places.series.clone(),
            },
        }
    }
}

/// Runs what `args` ask for; each verdict goes to `print` as soon as it is there. Returns the
/// number of broken promises.
///
/// # Errors
/// Whatever `print` returns.
pub fn run<E>(args: &Args, mut print: impl FnMut(String) -> Result<(), E>) -> Result<usize, E> {
    if let Some(task) = &args.child {
        child::run(task);
        return Ok(0);
    }
    let mut broken = 0;
    for harness in ALL {
        if args.harness != EVERY && args.harness != harness.name {
            continue;
        }
        let verdict: Verdict = (harness.run)(&args.plan(harness));
        broken += verdict.violations.len();
        print(match args.json {
            true => verdict.to_json().to_string(),
            false => verdict.to_string(),
        })?;
    }
    Ok(broken)
}
