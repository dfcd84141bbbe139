//! The command line: what the subcommands are called.

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

#[cfg(feature = "torture")]
use crate::commands::torture;
use crate::commands::{
    backup, backups, bench, checkpoint, compact, completions, cost, delete, demo, destroy, get,
    hot, inspect, keyspaces, load, plan, put, repair, restore, scan, stats, trace, verify,
};
use crate::failure::Failure;
use crate::store;

const EXAMPLES: &str = "\
Examples:
  thermocline demo
  thermocline put  --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB --create city:berlin 3.6M
  thermocline get  --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB city:berlin
  thermocline scan --fast /nvme/db --slow /hdd/db --fast-capacity 1GiB --prefix city:

The flags of the store may come from the environment instead:
  export THERMOCLINE_FAST=/nvme/db THERMOCLINE_SLOW=/hdd/db THERMOCLINE_FAST_CAPACITY=1GiB
  thermocline get city:berlin

Exit codes:
  0  done
  1  `get` found no such key; `bench compare` a regression that is not allowed;
     `torture` a broken promise
  2  the command line or the input is wrong
  3  the store or a device refused (not found, locked, full, I/O error)
  4  bytes on disk are damaged; the message names file and offset";

/// Use, inspect, check and measure Thermocline stores: one ordered key-value data set over
/// memory, a fast disk and a slow disk.
#[derive(Debug, Parser)]
#[command(
    name = "thermocline",
    version,
    after_help = EXAMPLES,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The command line of this process. If it is not valid, ends the process.
pub(crate) fn parse() -> Cli {
    let matches = Cli::command().get_matches();
    if let Some(what) = store::contradiction(&matches) {
        Cli::command()
            .error(ErrorKind::ArgumentConflict, what)
            .exit();
    }
    let matches = match store::has_capacity_of_another(&matches) {
        Some(name) => without_environment(name, store::FAST_CAPACITY).get_matches(),
        None => matches,
    };
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// The command line, without what the environment says of the flag `arg` of the subcommand `name`.
fn without_environment(name: &str, arg: &str) -> clap::Command {
    let forget = |arg: clap::Arg| arg.env(None::<&'static str>);
    Cli::command().mut_subcommand(name, |command| command.mut_arg(arg, forget))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::Args),
    Bench(Box<bench::Args>),
    Trace(trace::Args),
    Load(load::Args),
    Get(get::Args),
    Put(put::Args),
    Delete(delete::Args),
    Scan(scan::Args),
    Stats(stats::Args),
    Hot(hot::Args),
    Cost(cost::Args),
    Plan(plan::Args),
    Verify(verify::Args),
    Repair(repair::Args),
    Checkpoint(checkpoint::Args),
    Backup(backup::Args),
    Backups(backups::Args),
    Restore(restore::Args),
    Compact(compact::Args),
    Keyspaces(keyspaces::Args),
    Inspect(inspect::Args),
    Destroy(destroy::Args),
    Completions(completions::Args),
    #[cfg(feature = "torture")]
    Torture(torture::Args),
}

impl Command {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Command::Demo(args) => demo::run(&args),
            Command::Bench(args) => bench::run(&args),
            Command::Trace(args) => trace::run(&args),
            Command::Load(args) => load::run(&args),
            Command::Get(args) => get::run(&args),
            Command::Put(args) => put::run(&args),
            Command::Delete(args) => delete::run(&args),
            Command::Scan(args) => scan::run(&args),
            Command::Stats(args) => stats::run(&args),
            Command::Hot(args) => hot::run(&args),
            Command::Cost(args) => cost::run(&args),
            Command::Plan(args) => plan::run(&args),
            Command::Verify(args) => verify::run(&args),
            Command::Repair(args) => repair::run(&args),
            Command::Checkpoint(args) => checkpoint::run(&args),
            Command::Backup(args) => backup::run(&args),
            Command::Backups(args) => backups::run(&args),
            Command::Restore(args) => restore::run(&args),
            Command::Compact(args) => compact::run(&args),
            Command::Keyspaces(args) => keyspaces::run(&args),
            Command::Inspect(args) => inspect::run(&args),
            Command::Destroy(args) => destroy::run(&args),
            Command::Completions(args) => completions::run(&args),
            #[cfg(feature = "torture")]
            Command::Torture(args) => torture::run(&args),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_has_no_contradiction() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_subcommand_shows_an_example() {
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string);
            let name = command.get_name();
            assert!(
                help.is_some_and(|h| h.contains(&format!("thermocline {name}"))),
                "{name} has no example"
            );
        }
    }
}
