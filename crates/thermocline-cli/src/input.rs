//! Records to load: `key<TAB>value` lines, or JSON lines.

use std::io::{self, BufRead, Read};

use serde_json::{Map, Value as Json};
use thermocline::{MAX_KEY_LEN, MAX_VALUE_LEN};

use crate::fields;
use crate::text::Notation;

/// The most that a byte of a key or a value takes in a line: `\u0000`, as a JSON encoder writes it.
const MOST_PER_BYTE: usize = 6;

/// No line of a record is longer than this, its end included. What is added is for the text around
/// key and value.
const LONGEST_LINE: u64 = (MOST_PER_BYTE * (MAX_KEY_LEN + MAX_VALUE_LEN) + 4096) as u64;

/// What some editors put at the beginning of a UTF-8 file.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// How the lines of an input are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// `key<TAB>value`
    Tsv,
    /// `{"key": "…", "value": "…"}`; bytes that are no UTF-8 as "key_hex", "value_hex"
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
    /// The input cannot be read. No line is at fault.
    Input(io::Error),
    /// The line is no record.
    Line(String),
}

/// Reads records from lines and counts the lines for messages.
pub(crate) struct Reader<R> {
    input: R,
    format: Format,
    /// How keys and values are written. None if they are taken as they are.
    notation: Option<Notation>,
    line: Vec<u8>,
    number: u64,
    /// The most bytes that a line may have, its end included.
    longest: u64,
}

impl<R: BufRead> Reader<R> {
    /// Keys and values are in `notation`. If there is none, they are taken as they are.
    pub(crate) fn new(input: R, format: Format, notation: Option<Notation>) -> Self {
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
        // If there is a byte behind the longest line, this line is too long. A device, or a file
        // without lines, goes on for ever.
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
        let mut line = &self.line[..];
        if self.number == 1 {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        // Files of some systems end a line like this. It is kept if the line is to be taken as it
        // is.
        let is_literal = self.format == Format::Tsv && self.notation.is_none();
        let line = match is_literal {
            true => line,
            false => line.strip_suffix(b"\r").unwrap_or(line),
        };
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

fn tsv(line: &[u8], notation: Option<Notation>) -> Result<Record, String> {
    let tab = line
        .iter()
        .position(|&b| b == b'\t')
        .ok_or("there is no tab between key and value")?;
    let (key, value) = line.split_at(tab);
    let value = value.strip_prefix(b"\t").unwrap_or(value);
    match notation {
        Some(notation) => Ok((notation.read(key)?, notation.read(value)?)),
        None => Ok((key.to_vec(), value.to_vec())),
    }
}

fn jsonl(line: &[u8], notation: Option<Notation>) -> Result<Record, String> {
    let object: Map<String, Json> =
        serde_json::from_slice(line).map_err(|e| format!("not a JSON object: {e}"))?;
    let field = |name| fields::bytes(&object, name, notation.unwrap_or(Notation::Text));
    Ok((field("key")?, field("value")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &str, format: Format, notation: Notation) -> Result<Vec<Record>, String> {
        read_all(&mut Reader::new(input.as_bytes(), format, Some(notation)))
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

    /// Regression: the notation of the command line was also applied to JSON strings, after JSON's
    /// own escapes. So `C:\new\table` was stored with a line feed and a tab.
    #[test]
    fn json_strings_are_what_json_says() {
        let input = r#"{"key":"p\u0000","value":"C:\\new\\table"}"#;
        let found = read(input, Format::Jsonl, Notation::Text);
        assert_eq!(found, Ok(vec![record(b"p\0", br"C:\new\table")]));
        let input = r#"{"key_hex":"00ff","value":"\ud83d\ude00","more":1}"#;
        let found = read(input, Format::Jsonl, Notation::Text);
        assert_eq!(found, Ok(vec![record(b"\0\xff", "😀".as_bytes())]));
        let input = r#"{"key":"6b","value_hex":"00"}"#;
        let found = read(input, Format::Jsonl, Notation::Hex);
        assert_eq!(found, Ok(vec![record(b"k", b"\0")]));
    }

    #[test]
    fn lines_that_are_literal_have_no_escapes() {
        let input = b"C:\\new\tC:\\x41\xff\r\n";
        let mut reader = Reader::new(&input[..], Format::Tsv, None);
        let found = read_all(&mut reader);
        // The end of a line is not more than the line feed either.
        assert_eq!(found, Ok(vec![record(br"C:\new", b"C:\\x41\xff\r")]));
    }

    #[test]
    fn a_carriage_return_before_the_line_feed_is_no_part_of_a_line() {
        let found = read("k\tv\r\nl\tw\\r\r\n", Format::Tsv, Notation::Text);
        assert_eq!(found, Ok(vec![record(b"k", b"v"), record(b"l", b"w\r")]));
    }

    /// Regression: the mark became a part of the first key.
    #[test]
    fn a_byte_order_mark_is_no_part_of_a_key() {
        let mark = "\u{feff}";
        let lines = format!("{mark}a\t1\n{mark}b\t2\n");
        let found = read(&lines, Format::Tsv, Notation::Text);
        let marked = format!("{mark}b");
        let others = record(marked.as_bytes(), b"2");
        assert_eq!(found, Ok(vec![record(b"a", b"1"), others]));
        let line = format!("{mark}{{\"key\":\"a\",\"value\":\"1\"}}");
        let found = read(&line, Format::Jsonl, Notation::Text);
        assert_eq!(found, Ok(vec![record(b"a", b"1")]));
    }

    proptest::proptest! {
        /// `load` reads back what `scan` prints, whatever the bytes.
        #[test]
        fn lines_of_a_scan_are_its_records(
            records in proptest::collection::vec((bytes(), bytes()), 0..8),
        ) {
            for notation in [Notation::Text, Notation::Hex] {
                let tsv = |(key, value): &Record| notation.show_record(key, Some(value));
                let json = |(key, value): &Record| {
                    fields::record(key, Some(value), notation).to_string()
                };
                let lines: Vec<String> = records.iter().map(tsv).collect();
                let found = read(&lines.join("\n"), Format::Tsv, notation);
                proptest::prop_assert_eq!(found.as_ref(), Ok(&records));
                let lines: Vec<String> = records.iter().map(json).collect();
                for notation in [notation, Notation::Text] {
                    let found = read(&lines.join("\r\n"), Format::Jsonl, notation);
                    proptest::prop_assert_eq!(found.as_ref(), Ok(&records));
                }
            }
        }
    }

    /// Bytes, many of which mean something in one notation or the other.
    fn bytes() -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
        use proptest::prelude::*;
        let special = prop::sample::select(&b"\\\\\\xtnr<0f\t\n\r\"{\xef\xbb\xbf\x00\x1b"[..]);
        let byte = prop_oneof![3 => special, 1 => any::<u8>()];
        prop_oneof![
            proptest::collection::vec(byte, 0..12),
            any::<String>().prop_map(String::into_bytes),
        ]
    }

    /// Regression: a line was read to its end, wherever that was. An input without line ends, such
    /// as a device, filled the memory.
    #[test]
    fn a_line_is_read_no_further_than_a_record_can_go() {
        let input = b"a\t12\nb\t12345678\n";
        let mut reader = Reader::new(&input[..], Format::Tsv, Some(Notation::Text));
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
                assert!(shown.len() <= MOST_PER_BYTE, "{shown}");
                let json = fields::record(&[byte], None, notation).to_string();
                let around = r#"{"key_hex":""}"#.len();
                assert!(json.len() <= MOST_PER_BYTE + around, "{json}");
            }
        }
    }

    #[test]
    fn a_bad_line_is_named_by_its_number() {
        for (input, format, words) in [
            ("a\t1\nb", Format::Tsv, "2: there is no tab"),
            ("{\"key\":\"a\"}", Format::Jsonl, "1: there is no \"value\""),
            ("{\"key\":1}", Format::Jsonl, "1: \"key\" is no string"),
            ("{\"key_hex\":\"0\"}", Format::Jsonl, "1: \"key_hex\": hex"),
            (
                "{\"key\":\"a\",\"key_hex\":\"61\"}",
                Format::Jsonl,
                "1: there are both",
            ),
            ("\n[", Format::Jsonl, "2: not a JSON object"),
        ] {
            let error = read(input, format, Notation::Text).expect_err("bad");
            assert!(error.starts_with(words), "{error}");
        }
    }
}
