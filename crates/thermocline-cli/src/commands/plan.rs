//! `thermocline plan`.

use thermocline_bench::SizingArgs;

use crate::failure::Failure;
use crate::output::Out;

/// Tell what disks at given prices would buy, before you buy them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline plan --keys 100000000 --value-size 1000 --distribution zipfian:0.99 --reads 5000 \\
      --price-fast 0.528 --price-slow 0.045 --latency 2ms
  thermocline plan --trace kvcache.csv --format metakv --price-fast 0.528 --price-slow 0.045
  thermocline plan --curve cost.json --latency 2ms

cost.json is what a program that reads a store writes of its `Db::cost`; docs/cost.md has the fields.

For ten prices from the least to all on the fast disk: what the data cost in a month, how much of the
fast disk they take, and which part of the reads needs no slow disk. Prices are dollars per GB (10^9
bytes) and month. What is assumed is printed below.")]
pub(crate) struct Args {
    #[command(flatten)]
    sizing: SizingArgs,

    /// Print JSON; sizes in bytes, times in microseconds, hit rates as parts of 1
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let sizing = thermocline_bench::sizing(&args.sizing).map_err(Failure::Bench)?;
    let mut out = Out::new();
    if args.json {
        let json = serde_json::to_value(&sizing).map_err(|error| Failure::Bench(error.into()))?;
        out.pretty_json(&json)?;
    } else {
        out.line(sizing.to_string())?;
    }
    out.finish()
}
