//! `thermocline demo`.

use thermocline_bench::{DemoArgs, NotShown};

use crate::failure::Failure;

/// Show in a minute what placement by hotness does, beside placement by level; needs nothing,
/// leaves nothing
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline demo
  thermocline demo --cost")]
pub(crate) struct Args {
    #[command(flatten)]
    demo: DemoArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    // The demo prints as it goes; its report has been shown by then.
    let shown = match args.demo.cost {
        true => thermocline_bench::demo_cost(&args.demo).map(drop),
        false => thermocline_bench::demo(&args.demo).map(drop),
    };
    shown.map_err(|error| match error.downcast() {
        Ok(NotShown(error)) => Failure::Output(error),
        Err(error) => Failure::Bench(error),
    })
}
