//! `thermocline demo`.

use thermocline_bench::DemoArgs;

use crate::failure::Failure;

/// Show what the store does, on this machine, without any preparation
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  thermocline demo")]
pub(crate) struct Args {
    #[command(flatten)]
    demo: DemoArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    thermocline_bench::demo(&args.demo).map_err(Failure::Bench)?;
    Ok(())
}
