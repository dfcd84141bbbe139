//! `thermocline bench`.

use std::path::PathBuf;

use clap::Subcommand;
use thermocline_bench::{BenchArgs, CompareArgs, ProbeArgs, ReportArgs, SuiteArgs};

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
  thermocline bench report results
  thermocline bench compare results/before results/after --fail-on-regression 5

Without --fast and --slow the store lies in temporary directories. Values do not compress,
and every answer is checked."
)]
pub(crate) struct Args {
    #[command(flatten)]
    bench: BenchArgs,

    #[command(subcommand)]
    command: Option<Command>,
}

/// The subcommands beside measuring one workload.
#[derive(Debug, Subcommand)]
enum Command {
    Suite(SuiteArgs),
    Probe(ProbeArgs),
    Report(ReportArgs),
    Compare(CompareArgs),
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let text = match &args.command {
        None => thermocline_bench::bench(&args.bench).map(|report| report.to_string()),
        Some(Command::Suite(args)) => thermocline_bench::suite(args),
        Some(Command::Probe(args)) => thermocline_bench::probe(args).map(|probe| probe.to_string()),
        Some(Command::Report(args)) => thermocline_bench::report_page(args).map(written),
        Some(Command::Compare(args)) => return compare(args),
    };
    let mut out = Out::new();
    out.line(text.map_err(Failure::Bench)?)?;
    out.finish()
}

/// The files that a report consists of, one a line.
fn written(files: Vec<PathBuf>) -> String {
    let lines: Vec<String> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    lines.join("\n")
}

/// Prints the comparison. Then fails if there is a regression that must not be.
fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let comparison = thermocline_bench::compare(args).map_err(Failure::Bench)?;
    let mut out = Out::of_verdict();
    if args.json {
        let json = serde_json::to_string_pretty(&comparison);
        out.line(json.map_err(|error| Failure::Bench(error.into()))?)?;
    } else {
        out.line(comparison.to_string())?;
    }
    out.finish()?;
    let regressions = args
        .fail_on_regression
        .map_or_else(Vec::new, |percent| comparison.regressions(percent));
    if regressions.is_empty() {
        return Ok(());
    }
    Err(Failure::Regressed {
        cells: regressions.join(", "),
    })
}
