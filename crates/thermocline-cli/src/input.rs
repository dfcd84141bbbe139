//! Records to load: `key<TAB>value` lines, or JSON lines.

use std::io::{self, BufRead, Read};

use serde_json::Value as Json;
use thermocline::{MAX_KEY_LEN, MAX_VALUE_LEN};

use crate::text::Notation;

/// What a byte of a key or a value takes in a line at most: `\u0000`, of a JSON encoder. Where it stands in the notation of `scan`, a backslash
/// is escaped once more: `\\x00`.
const MOST_PER_BYTE: usize = 6;

/// No line of a record is longer, its end included. The rest is for what stands around key and value.
const LONGEST_LINE: u64 = (MOST_PER_BYTE * (MAX_KEY_LEN + MAX_VALUE_LEN) + 4096) as u64;

/// How the lines of an input are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// `key<TAB>value`.
    Tsv,
    /// `{"key": "…", "value": "…"}`.
    Jsonl,
}

/// A key and its value.
pub(crate) type Record = (Vec<u8>, Vec<u8>);

/// What a line of input gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A record, and the bytes of input it took.
    Record { record: Record, bytes: u64 },
    /// An empty line.
    Blank,
    /// The end of the input.
    End,
}

/// Why there is no next line.
#[derive(Debug)]
pub(crate) enum Bad {
    /// The input cannot be read, which is no line's fault.
    Input(io::Error),
    /// The line is no record.
    Line(String),
}

/// Reads records from lines and counts the lines for messages.
pub(crate) struct Reader<R> {
    input: R,
    format: Format,
    notation: Notation,
    line: Vec<u8>,
    number: u64,
    /// Bytes that a line may have, its end included.
    longest: u64,
}

impl<R: BufRead> Reader<R> {
    pub(crate) fn new(input: R, format: Format, notation: Notation) -> Self {
        Self {
            input,
            format,
            notation,
            line: Vec::new(),
            number: 0,
            longest: LONGEST_LINE,
        }
    }

    /// The number of the line that was read last, from 1.
    pub(crate) fn line_number(&self) -> u64 {
        self.number
    }

    /// Reads the next line.
    ///
    /// # Errors
    /// Why the line is no record, or why the input cannot be read.
    pub(crate) fn next_line(&mut self) -> Result<Line, Bad> {
        self.line.clear();
        // The byte behind the longest line tells that this one is longer. A device, or a file without lines, goes on for ever.
        let mut input = self.input.by_ref().take(self.longest + 1);
        let bytes = input.read_until(b'\n', &mut self.line);
        let bytes = bytes.map_err(Bad::Input)? as u64;
        if bytes == 0 {
            return Ok(Line::End);
        }
        self.number += 1;
        if bytes > self.longest {
            return Err(Bad::Line("the line is longer than any record".to_owned()));
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return Ok(Line::Blank);
        }
        let record = match self.format {
            Format::Tsv => tsv(line, self.notation),
            Format::Jsonl => jsonl(line, self.notation),
        };
        Ok(Line::Record {
            record: record.map_err(Bad::Line)?,
            bytes,
        })
    }
}

fn tsv(line: &[u8], notation: Notation) -> Result<Record, String> {
    let tab = line
        .iter()
        .position(|&b| b == b'\t')
        .ok_or("there is no tab between key and value")?;
    let (key, value) = line.split_at(tab);
    let value = value.strip_prefix(b"\t").unwrap_or(value);
    Ok((notation.read(key)?, notation.read(value)?))
}

fn jsonl(line: &[u8], notation: Notation) -> Result<Record, String> {
    let json: Json = serde_json::from_slice(line).map_err(|e| format!("not JSON: {e}"))?;
    let field = |name: &str| {
        let text = json.get(name).and_then(Json::as_str);
        let text = text.ok_or_else(|| format!("there is no string {name:?}"))?;
        notation.read(text.as_bytes())
    };
    Ok((field("key")?, field("value")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &str, format: Format, notation: Notation) -> Result<Vec<Record>, String> {
        read_all(&mut Reader::new(input.as_bytes(), format, notation))
    }

    fn read_all(reader: &mut Reader<&[u8]>) -> Result<Vec<Record>, String> {
        let mut records = Vec::new();
        loop {
            match reader.next_line() {
                Ok(Line::Record { record, .. }) => records.push(record),
                Ok(Line::Blank) => {}
                Ok(Line::End) => return Ok(records),
                Err(Bad::Line(why)) => {
                    return Err(format!("{}: {why}", reader.line_number()));
                }
                Err(Bad::Input(error)) => panic!("memory can be read: {error}"),
            }
        }
    }

    fn record(key: &[u8], value: &[u8]) -> Record {
        (key.to_vec(), value.to_vec())
    }

    #[test]
    fn lines_are_split_at_the_first_tab() {
        let found = read("a\t1\r\n\nb\\x00\tx\ty", Format::Tsv, Notation::Text);
        assert_eq!(found, Ok(vec![record(b"a", b"1"), record(b"b\0", b"x\ty")]));
        let hex = read("6b\t00ff\n", Format::Tsv, Notation::Hex);
        assert_eq!(hex, Ok(vec![record(b"k", b"\x00\xff")]));
    }

    #[test]
    fn json_lines_hold_a_key_and_a_value() {
        let input = "{\"key\":\"a\\\\x00\",\"value\":\"1\"}\n";
        let found = read(input, Format::Jsonl, Notation::Text);
        assert_eq!(found, Ok(vec![record(b"a\0", b"1")]));
    }

    /// A line was read to its end, wherever that was: an input without any, such as a device, filled the memory.
    #[test]
    fn a_line_is_read_no_further_than_a_record_can_go() {
        let input = b"a\t12\nb\t12345678\n";
        let mut reader = Reader::new(&input[..], Format::Tsv, Notation::Text);
        reader.longest = 5;
        let error = read_all(&mut reader).expect_err("the second is longer");
        assert_eq!(error, "2: the line is longer than any record");
        assert_eq!(reader.input, b"5678\n");
    }

    #[test]
    fn no_line_that_scan_prints_is_too_long() {
        for byte in 0..=u8::MAX {
            for notation in [Notation::Text, Notation::Hex] {
                let shown = notation.show(&[byte]);
                let quoted = Json::from(shown).to_string();
                assert!(quoted.len() - 2 <= MOST_PER_BYTE, "{quoted}");
            }
        }
    }

    #[test]
    fn a_bad_line_is_named_by_its_number() {
        for (input, format, words) in [
            ("a\t1\nb", Format::Tsv, "2: there is no tab"),
            ("a\\q\t1", Format::Tsv, "1: a backslash"),
            (
                "{\"key\":\"a\"}",
                Format::Jsonl,
                "1: there is no string \"value\"",
            ),
            ("\n[", Format::Jsonl, "2: not JSON"),
        ] {
            let error = read(input, format, Notation::Text).expect_err("bad");
            assert!(error.starts_with(words), "{error}");
        }
    }
}
