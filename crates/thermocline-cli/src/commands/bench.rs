//! `thermocline bench`.

use thermocline_bench::BenchArgs;

use crate::failure::Failure;
use crate::output::Out;

/// Measure a workload on a store made for it, and print a report
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline bench --workload rw --slow-iops 2000
  thermocline bench --fast /nvme/bench --slow /hdd/bench --data-size 10GiB --json result.json
  thermocline bench --fast /nvme/bench --slow /hdd/bench --keep --engine leveled
  thermocline bench --slow-iops 2000 --warm-up 20s --warm-up-unthrottled
  thermocline bench --distribution uniform@60s,hotspot-5@60s,hotspot-5+5@60s
  thermocline bench --workload a --distribution zipfian:0.99 --threads 8 --duration 60s

Without --fast and --slow the store lies in temporary directories. Values do not compress,
and every answer is checked.")]
pub(crate) struct Args {
    #[command(flatten)]
    bench: BenchArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let report = thermocline_bench::bench(&args.bench).map_err(Failure::Bench)?;
    let mut out = Out::new();
    out.line(report.to_string())?;
    out.finish()
}
