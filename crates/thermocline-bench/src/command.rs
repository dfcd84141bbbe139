//! The subcommands of `thermocline bench`, beside measuring one workload.

use anyhow::Result;
use clap::Subcommand;

use crate::probe::{ProbeArgs, probe};
#[cfg(feature = "lab")]
use crate::{compare, pages, suite};

/// What `thermocline bench` can do beside measuring one workload. All but the probe need the
/// feature `lab`.
#[derive(Debug, Subcommand)]
#[allow(missing_docs, reason = "each has the text of its arguments")]
pub enum Command {
    Probe(ProbeArgs),
    #[cfg(feature = "lab")]
    Suite(suite::SuiteArgs),
    #[cfg(feature = "lab")]
    Report(pages::ReportArgs),
    #[cfg(feature = "lab")]
    Compare(compare::CompareArgs),
}

/// What a subcommand has to say.
#[derive(Debug)]
pub struct Answer {
    /// For standard output.
    pub text: String,
    /// Whether the exit code is a verdict, so that it counts even if nobody reads the text.
    pub is_verdict: bool,
    /// Cells that are slower than allowed.
    pub regressions: Vec<String>,
}

impl Command {
    /// Does it.
    ///
    /// # Errors
    /// What keeps it from being done; [`crate::BadArguments`] for what the command line has wrong.
    pub fn run(&self) -> Result<Answer> {
        match self {
            Command::Probe(args) => Ok(Answer::of(probe(args)?.to_string())),
            #[cfg(feature = "lab")]
            Command::Suite(args) => Ok(Answer::of(suite::suite(args)?)),
            #[cfg(feature = "lab")]
            Command::Report(args) => {
                let files = pages::report(args)?;
                let lines: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
                Ok(Answer::of(lines.join("\n")))
            }
            #[cfg(feature = "lab")]
            Command::Compare(args) => compared(args),
        }
    }
}

impl Answer {
    fn of(text: String) -> Self {
        Self {
            text,
            is_verdict: false,
            regressions: Vec::new(),
        }
    }
}

#[cfg(feature = "lab")]
fn compared(args: &compare::CompareArgs) -> Result<Answer> {
    let comparison = compare::compare(args)?;
    let text = match args.json {
        true => serde_json::to_string_pretty(&comparison)?,
        false => comparison.to_string(),
    };
    let percent = args.fail_on_regression;
    Ok(Answer {
        text,
        is_verdict: true,
        regressions: percent.map_or_else(Vec::new, |percent| comparison.regressions(percent)),
    })
}
