//! The error for a request that cannot be fulfilled.

use std::fmt;

/// Flags that do not go together, or that name what does not exist. Nothing was run.
#[derive(Debug)]
pub struct BadArguments(pub(crate) anyhow::Error);

impl BadArguments {
    /// Says that `reason` kept everything from running.
    pub(crate) fn new(reason: anyhow::Error) -> Self {
        Self(reason)
    }
}

impl fmt::Display for BadArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for BadArguments {}
