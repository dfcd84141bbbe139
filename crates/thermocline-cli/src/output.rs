//! Standard output: buffered, and without a panic when the reader goes away.

use std::io::{self, BufWriter, StdoutLock, Write};

use serde_json::Value as Json;

use crate::failure::Failure;

/// Standard output of a command. Must be [`Out::finish`]ed, or the end may be missing.
pub(crate) struct Out(BufWriter<StdoutLock<'static>>);

impl Out {
    pub(crate) fn new() -> Self {
        Self(BufWriter::new(io::stdout().lock()))
    }

    /// Writes bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.0.write_all(bytes).map_err(Failure::Output)
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) -> Result<(), Failure> {
        self.raw(line.as_ref().as_bytes())?;
        self.raw(b"\n")
    }

    /// Writes a JSON value on one line.
    pub(crate) fn json(&mut self, value: &Json) -> Result<(), Failure> {
        self.line(value.to_string())
    }

    /// Writes a JSON value over several lines.
    pub(crate) fn pretty_json(&mut self, value: &Json) -> Result<(), Failure> {
        self.line(format!("{value:#}"))
    }

    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.0.flush().map_err(Failure::Output)
    }
}

/// Writes one line, or one JSON value instead of it.
pub(crate) fn say(json: bool, value: &Json, line: impl AsRef<str>) -> Result<(), Failure> {
    let mut out = Out::new();
    if json {
        out.json(value)?;
    } else {
        out.line(line)?;
    }
    out.finish()
}
