//! `thermocline bench`.

use thermocline_bench::{BenchArgs, Command};

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
  thermocline bench probe --fast /nvme/bench --slow /hdd/bench

Suites of measurements, reports with plots and comparisons need a build with `--features lab`.
Without --fast and --slow the store lies in temporary directories. Values do not compress,
and every answer is checked."
)]
pub(crate) struct Args {
    #[command(flatten)]
    bench: BenchArgs,

    #[command(subcommand)]
    command: Option<Command>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Some(command) = &args.command else {
        let report = thermocline_bench::bench(&args.bench).map_err(Failure::Bench)?;
        let mut out = Out::new();
        out.line(report.to_string())?;
        return out.finish();
    };
    let answer = command.run().map_err(Failure::Bench)?;
    let mut out = match answer.is_verdict {
        true => Out::of_verdict(),
        false => Out::new(),
    };
    out.line(answer.text)?;
    out.finish()?;
    if answer.regressions.is_empty() {
        return Ok(());
    }
    Err(Failure::Regressed {
        cells: answer.regressions.join(", "),
    })
}
