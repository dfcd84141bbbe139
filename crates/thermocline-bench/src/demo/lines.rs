//! Lines of a demonstration on standard output.

use std::fmt;
use std::io::{self, Write};

/// Prints lines. Whoever prints one is in the middle of something, so a failure is kept.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Why lines could not be written.
    failed: Option<io::Error>,
}

impl Lines {
    /// Prints a line. [`Lines::shown`] tells whether that succeeded.
    pub(super) fn say(&mut self, line: &str) {
        if self.failed.is_none() {
            let mut out = io::stdout();
            let said = writeln!(out, "{line}").and_then(|()| out.flush());
            self.failed = said.err();
        }
    }

    /// Whether nobody reads them any more.
    pub(super) fn is_gone(&self) -> bool {
        self.failed.is_some()
    }

    /// # Errors
    /// A line could not be written.
    pub(super) fn shown(&mut self) -> Result<(), NotShown> {
        self.failed
            .take()
            .map_or(Ok(()), |error| Err(NotShown(error)))
    }
}

/// The demo's lines could not be written to standard output, and it has ended.
#[derive(Debug)]
pub struct NotShown(pub io::Error);

impl fmt::Display for NotShown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write the output: {}", self.0)
    }
}

impl std::error::Error for NotShown {}
