//! `thermocline bench`.

use thermocline_bench::BenchArgs;

use crate::failure::Failure;

/// Measure a workload on a store made for it, and print a report
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline bench --help")]
pub(crate) struct Args {
    #[command(flatten)]
    bench: BenchArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    thermocline_bench::run(&args.bench).map_err(Failure::Bench)?;
    Ok(())
}
