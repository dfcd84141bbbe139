//! Command lines of `thermocline bench`, read in the same way.

use anyhow::{Result, bail};
use clap::Parser;

use super::flags::Flags;
use crate::args::BenchArgs;
use crate::plan::Plan;

#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Line {
    #[command(flatten)]
    bench: BenchArgs,
}

/// The arguments that `words` stand for.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn parse(words: &[String]) -> Result<BenchArgs> {
    match Line::try_parse_from(words) {
        Ok(line) => Ok(line.bench),
        Err(error) => {
            let text = error.to_string();
            // Usage and a hint at --help follow. They are of no use here.
            let reason = text.split("\n\n").next().unwrap_or_default();
            bail!("{}", reason.trim_start_matches("error: "))
        }
    }
}

/// Checks that this build can do without the techniques that `flags` turn off.
///
/// # Errors
/// It cannot.
pub(crate) fn check_techniques(flags: &Flags) -> Result<()> {
    if !cfg!(feature = "experiments")
        && let Some(name) = flags.experiment()
    {
        bail!(
            "flag --{name}: built without feature `experiments`; build with --features experiments"
        );
    }
    Ok(())
}

/// The arguments that `words` stand for, and the plan that they make.
///
/// # Errors
/// What is wrong with them, or an engine or a technique that is not in this build.
pub(crate) fn plan(words: &[String], flags: &Flags) -> Result<(BenchArgs, Plan)> {
    check_techniques(flags)?;
    let args = parse(words)?;
    let plan = args.plan()?;
    Ok((args, plan))
}
