//! Standard output: buffered, and without a panic when the reader goes away.

use std::io::{self, BufWriter, Stdout, Write};
use std::path::Path;

use serde_json::Value as Json;

use crate::failure::Failure;

/// Standard output of a command. It must be [`Out::finish`]ed, or the end may be missing. It is not
/// locked between writes, so threads of the command may print by themselves.
pub(crate) struct Out {
    to: BufWriter<Stdout>,
    /// Whether the command goes on when nobody reads any more.
    outlives_reader: bool,
}

impl Out {
    /// A reader that goes away ends the command.
    pub(crate) fn new() -> Self {
        Self {
            to: BufWriter::new(io::stdout()),
            outlives_reader: false,
        }
    }

    /// For commands whose exit code is their verdict. A reader that goes away (`| head`) must not
    /// change that: what comes after is not printed, and that is no failure.
    pub(crate) fn of_verdict() -> Self {
        Self {
            outlives_reader: true,
            ..Self::new()
        }
    }

    /// Writes bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.to.write_all(bytes);
        self.unless_gone(written)
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) -> Result<(), Failure> {
        self.raw(line.as_ref().as_bytes())?;
        self.raw(b"\n")
    }

    /// Writes a JSON value on one line.
    pub(crate) fn json(&mut self, value: &Json) -> Result<(), Failure> {
        self.line(printable(value.to_string()))
    }

    /// Writes a JSON value over several lines.
    pub(crate) fn pretty_json(&mut self, value: &Json) -> Result<(), Failure> {
        self.line(printable(format!("{value:#}")))
    }

    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let flushed = self.to.flush();
        self.unless_gone(flushed)
    }

    fn unless_gone(&self, result: io::Result<()>) -> Result<(), Failure> {
        match result {
            Err(error) if self.outlives_reader && error.kind() == io::ErrorKind::BrokenPipe => {
                Ok(())
            }
            result => result.map_err(Failure::Output),
        }
    }
}

/// `json`, in which control characters are escaped that JSON allows in strings: they could drive
/// the reader's terminal.
fn printable(json: String) -> String {
    // A line feed here stands between fields: those in strings are escaped.
    let is_shown = |c: char| !c.is_control() || c == '\n';
    if json.chars().all(is_shown) {
        return json;
    }
    let escape = |c: char| match is_shown(c) {
        true => String::from(c),
        false => format!("\\u{:04x}", u32::from(c)),
    };
    json.chars().map(escape).collect()
}

/// A path as JSON, which holds text only. What is not UTF-8 in it is replaced, as in the text for
/// people.
pub(crate) fn path(path: &Path) -> Json {
    Json::from(path.to_string_lossy())
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn json_drives_no_terminal() {
        let value = serde_json::json!({"key": "\u{1b}[0m \u{7f}\u{9b}ü\n"});
        let shown = printable(format!("{value:#}"));
        assert!(shown.contains(r"\u001b[0m \u007f\u009bü\n"), "{shown}");
        assert_eq!(serde_json::from_str::<Json>(&shown).unwrap(), value);
    }

    /// Regression: `torture kill` stood still. The command held standard output, and threads of the
    /// processes that it kills print there what they have written.
    #[test]
    fn other_threads_may_print_meanwhile() {
        let out = Out::new();
        let (done, printed) = mpsc::channel();
        std::thread::spawn(move || {
            io::stdout().write_all(b"").unwrap();
            done.send(()).unwrap();
        });
        printed.recv_timeout(Duration::from_secs(60)).unwrap();
        out.finish().ok().unwrap();
    }
}
