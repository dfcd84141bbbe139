//! `thermocline trace`.

use thermocline_bench::TraceStatsArgs;

use crate::failure::Failure;
use crate::output::Out;

/// Look at recorded accesses before they are replayed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline trace stats cluster17.zst --format twitter
  thermocline trace stats kvcache.csv --format metakv --fast-share 20% --json
  thermocline bench --trace cluster17.zst --format twitter")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Stats(StatsArgs),
}

/// Print what a trace is made of, and how many of its reads promotion can help: those of records
/// that sank to the slow disk and are hot
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline trace stats cluster17.zst --format twitter
  thermocline trace stats orm-busy.trace.xz --format cache2k --record-size 200

A read is of a sunk record when more was written since this record's last write than half of
the fast disk, and of a hot one when less was read since its last read (HotRAP paper, 4.3). A
record that the trace has not written yet counts as sunk: a replay loads all records first.")]
struct StatsArgs {
    #[command(flatten)]
    stats: TraceStatsArgs,

    /// Print JSON; sizes in bytes, shares as parts of 1
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Command::Stats(args) = &args.command;
    let stats = thermocline_bench::trace_stats(&args.stats).map_err(Failure::Bench)?;
    let mut out = Out::new();
    if args.json {
        let json = serde_json::to_value(&stats).map_err(|error| Failure::Bench(error.into()))?;
        out.pretty_json(&json)?;
    } else {
        out.line(stats.to_string())?;
    }
    out.finish()
}
