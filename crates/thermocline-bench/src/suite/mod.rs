//! Suites: declared sets of benchmarks, measured one after the other into one directory.

mod catalogue;
mod cells;
mod definition;
mod flags;

use std::path::PathBuf;

use anyhow::Result;

use crate::bench::BadArguments;
use cells::Places;

/// Measures a whole set of engines and workloads.
#[derive(Debug, Clone, clap::Args)]
pub struct SuiteArgs {
    /// Name of the suite, or a file NAME.toml
    pub suite: String,

    /// Only show the cells and their commands
    #[arg(long, required = true)]
    pub list: bool,

    /// Directory on the fast disk
    #[arg(long, value_name = "DIR")]
    pub fast: Option<PathBuf>,

    /// Directory on the slow disk
    #[arg(long, value_name = "DIR")]
    pub slow: Option<PathBuf>,
}

/// Shows what a suite consists of.
///
/// # Errors
/// [`BadArguments`]: there is no such suite, or something in it makes no sense.
pub fn suite(args: &SuiteArgs) -> Result<String> {
    let text = list(args).map_err(BadArguments::new)?;
    Ok(text)
}

fn list(args: &SuiteArgs) -> Result<String> {
    let definition = catalogue::find(&args.suite)?;
    let places = Places {
        fast: args.fast.clone().unwrap_or_else(|| "FAST".into()),
        slow: args.slow.clone().unwrap_or_else(|| "SLOW".into()),
        data: "DATA".into(),
    };
    let cells = cells::cells(&definition, &places)?;
    let lines = cells.iter().map(|cell| {
        format!(
            "{} ({} times)\n    {}\n",
            cell.id,
            cell.repeats,
            cell.command()
        )
    });
    Ok(format!(
        "{}: {}\n\n{}",
        definition.name,
        definition.description,
        lines.collect::<String>()
    ))
}
