//! Why a command did not do what was asked, and the exit code that says so.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use thermocline::{Error, ErrorKind};

/// Exit codes are part of the interface; `thermocline --help` lists them.
const NOT_FOUND: u8 = 1;
const REGRESSED: u8 = 1;
#[cfg(feature = "torture")]
const BROKEN: u8 = 1;
const USAGE: u8 = 2;
const STORE: u8 = 3;
const DAMAGED: u8 = 4;

/// The reason a command ends without success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// `get` found nothing.
    KeyNotFound,
    /// `bench compare` found cells that are slower than allowed.
    Regressed { cells: String },
    /// `torture` saw promises broken, and has already printed them.
    #[cfg(feature = "torture")]
    Broken { broken: usize },
    /// The command line or the input is wrong.
    Usage(String),
    /// The engine refused. The hint says what helps on this command line.
    Store { error: Error, hint: Option<String> },
    /// Damage was found and has already been printed.
    Damaged { problems: usize },
    /// A repair was done and could not save everything. What it could not save has already been
    /// printed.
    Lost { losses: usize },
    /// An input or output of the command itself failed.
    Io { what: String, source: io::Error },
    /// Standard output could not be written.
    Output(io::Error),
    /// A benchmark or the demo failed.
    Bench(anyhow::Error),
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure::Usage(message.into())
    }

    /// Wraps an I/O error with what was attempted on which file.
    pub(crate) fn io(operation: &str, path: &Path, source: io::Error) -> Self {
        Failure::Io {
            what: format!("cannot {operation} {}", path.display()),
            source,
        }
    }

    /// Prints the failure to standard error and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        // Whoever closed the pipe (`| head`) has what they wanted.
        if let Failure::Output(error) = &self
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            return ExitCode::SUCCESS;
        }
        // If nobody reads the message, the exit code is the answer. `eprintln` would panic, which
        // has a code of its own.
        let mut err = io::stderr();
        let _ = writeln!(err, "error: {self}");
        if let Failure::Store {
            hint: Some(hint), ..
        } = &self
        {
            let _ = writeln!(err, "hint: {hint}");
        }
        ExitCode::from(self.code())
    }

    fn code(&self) -> u8 {
        match self {
            Failure::KeyNotFound => NOT_FOUND,
            Failure::Regressed { .. } => REGRESSED,
            #[cfg(feature = "torture")]
            Failure::Broken { .. } => BROKEN,
            Failure::Usage(_) => USAGE,
            Failure::Store { error, .. } => store_code(error),
            Failure::Damaged { .. } | Failure::Lost { .. } => DAMAGED,
            Failure::Io { .. } | Failure::Output(_) => STORE,
            Failure::Bench(error) if error.is::<thermocline_bench::BadArguments>() => USAGE,
            Failure::Bench(error) => error.downcast_ref().map_or(STORE, store_code),
        }
    }
}

fn store_code(error: &Error) -> u8 {
    match error.kind() {
        ErrorKind::Damaged => DAMAGED,
        ErrorKind::Invalid => USAGE,
        _ => STORE,
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::KeyNotFound => f.write_str("the key does not exist"),
            Failure::Regressed { cells } => write!(f, "slower than allowed: {cells}"),
            #[cfg(feature = "torture")]
            Failure::Broken { broken } => write!(f, "{broken} promises broken"),
            Failure::Usage(message) => f.write_str(message),
            Failure::Store { error, .. } => error.fmt(f),
            Failure::Damaged { problems: 1 } => f.write_str("1 problem found"),
            Failure::Damaged { problems } => write!(f, "{problems} problems found"),
            Failure::Lost { losses: 1 } => f.write_str("the store opens now, with 1 loss"),
            Failure::Lost { losses } => write!(f, "the store opens now, with {losses} losses"),
            Failure::Io { what, source } => write!(f, "{what}: {source}"),
            Failure::Output(source) => write!(f, "cannot write the output: {source}"),
            Failure::Bench(error) => write!(f, "{error:#}"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Store { error, hint: None }
    }
}

#[cfg(test)]
mod tests {
    use thermocline::Damaged;

    use super::*;

    #[test]
    fn each_kind_of_failure_has_its_exit_code() {
        let damage = || Error::Corruption {
            path: "x.sst".into(),
            offset: 7,
            what: "checksum".into(),
            of: Damaged::Store,
        };
        let locked = || Error::Locked { path: "db".into() };
        for (failure, code) in [
            (Failure::KeyNotFound, 1),
            (Failure::Regressed { cells: "a".into() }, 1),
            (Failure::usage("no"), 2),
            (locked().into(), 3),
            (damage().into(), 4),
            (Failure::Damaged { problems: 2 }, 4),
            (Failure::Lost { losses: 2 }, 4),
            (
                Failure::Bench(anyhow::Error::new(damage()).context("run")),
                4,
            ),
            (Failure::Bench(anyhow::anyhow!("no such workload")), 3),
        ] {
            assert_eq!(failure.code(), code, "{failure}");
        }
    }
}
