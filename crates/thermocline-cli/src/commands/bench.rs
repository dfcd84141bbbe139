//! `thermocline bench`.

use clap::Subcommand;
use thermocline_bench::{BenchArgs, ProbeArgs, SuiteArgs};

use crate::failure::Failure;
use crate::output::Out;

/// Measure a workload on a store made for it, and print a report
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  thermocline bench --workload rw --slow-iops 2000
  thermocline bench --fast /nvme/bench --slow /hdd/bench --data-size 10GiB --json result.json
  thermocline bench --fast /nvme/bench --slow /hdd/bench --keep --engine leveled
  thermocline bench --slow-iops 2000 --warm-up 20s --warm-up-unthrottled
  thermocline bench --distribution uniform@60s,hotspot-5@60s,hotspot-5+5@60s
  thermocline bench --workload a --distribution zipfian:0.99 --threads 8 --duration 60s
  thermocline bench suite smoke --out results
  thermocline bench probe --fast /nvme/bench --slow /hdd/bench

Without --fast and --slow the store lies in temporary directories. Values do not compress,
and every answer is checked."
)]
pub(crate) struct Args {
    #[command(flatten)]
    bench: BenchArgs,

    #[command(subcommand)]
    command: Option<Command>,
}

/// What there is beside measuring one workload.
#[derive(Debug, Subcommand)]
enum Command {
    Suite(SuiteArgs),
    Probe(ProbeArgs),
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let text = match &args.command {
        None => thermocline_bench::bench(&args.bench).map(|report| report.to_string()),
        Some(Command::Suite(args)) => thermocline_bench::suite(args),
        Some(Command::Probe(args)) => thermocline_bench::probe(args).map(|probe| probe.to_string()),
    };
    let mut out = Out::new();
    out.line(text.map_err(Failure::Bench)?)?;
    out.finish()
}
