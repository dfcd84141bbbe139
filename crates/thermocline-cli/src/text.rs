//! Keys and values as text: UTF-8 with escapes, or hexadecimal. For bytes as fields of JSON see
//! `fields`.

/// What the help of commands that take or print keys says of [`Notation::Text`].
pub(crate) const ESCAPES: &str = r"Escapes: in keys and values \\ stands for a backslash, \t \n \r for tab, line feed and carriage
return, \xNN for the byte NN. Any other backslash stands for itself. Output has them where needed,
and gives the same bytes back. JSON needs none.";

/// How bytes are written on the command line, in files and in output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notation {
    /// UTF-8; `\\`, `\t`, `\n`, `\r` and `\xNN` stand for what would not survive a line.
    Text,
    /// Two hexadecimal digits a byte.
    Hex,
}

impl Notation {
    /// The bytes that `text` stands for, or why it stands for none.
    pub(crate) fn read(self, text: &[u8]) -> Result<Vec<u8>, String> {
        match self {
            Notation::Text => Ok(unescape(text)),
            Notation::Hex => unhex(text),
        }
    }

    /// The line of text that stands for `bytes`. [`Notation::read`] gives them back.
    pub(crate) fn show(self, bytes: &[u8]) -> String {
        match self {
            Notation::Text => escape(bytes),
            Notation::Hex => hex(bytes),
        }
    }

    /// A record as a line that `load` reads, or a key alone.
    pub(crate) fn show_record(self, key: &[u8], value: Option<&[u8]>) -> String {
        let mut line = self.show(key);
        if let Some(value) = value {
            line.push('\t');
            line.push_str(&self.show(value));
        }
        line
    }
}

/// Two hexadecimal digits a byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '\t' => out.push_str("\\t"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                // Control characters could drive the reader's terminal. A byte-order mark at the
                // start of a file is not part of its first key.
                c if c.is_control() || c == '\u{feff}' => {
                    let mut utf8 = [0; 4];
                    push_hex(&mut out, c.encode_utf8(&mut utf8).as_bytes());
                }
                c => out.push(c),
            }
        }
        push_hex(&mut out, chunk.invalid());
    }
    out
}

fn push_hex(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        out.push_str(&format!("\\x{byte:02x}"));
    }
}

/// A backslash that begins no known escape stands for itself: nothing unknown is changed.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, behind @ ..] = rest {
        let (byte, behind) = match rest {
            [b'\\', b'\\', behind @ ..] => (b'\\', behind),
            [b'\\', b't', behind @ ..] => (b'\t', behind),
            [b'\\', b'n', behind @ ..] => (b'\n', behind),
            [b'\\', b'r', behind @ ..] => (b'\r', behind),
            [b'\\', b'x', high, low, behind_digits @ ..] => match hex_byte(*high, *low) {
                Some(byte) => (byte, behind_digits),
                None => (*byte, behind),
            },
            _ => (*byte, behind),
        };
        out.push(byte);
        rest = behind;
    }
    out
}

fn unhex(text: &[u8]) -> Result<Vec<u8>, String> {
    let (pairs, rest) = text.as_chunks::<2>();
    let bytes: Option<Vec<u8>> = pairs.iter().map(|&[h, l]| hex_byte(h, l)).collect();
    match bytes {
        Some(bytes) if rest.is_empty() => Ok(bytes),
        _ => Err("hexadecimal takes two digits for each byte, like 00ff".to_owned()),
    }
}

fn hex_byte(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shown_as_it_is_and_the_rest_escaped() {
        let show = |bytes: &[u8]| Notation::Text.show(bytes);
        assert_eq!(show("grün".as_bytes()), "grün");
        assert_eq!(show(b"a\tb\nc\\"), "a\\tb\\nc\\\\");
        assert_eq!(show(b"\x00\xff\x1b[0m"), "\\x00\\xff\\x1b[0m");
        assert_eq!(Notation::Hex.show(b"\x00\xff"), "00ff");
    }

    #[test]
    fn every_byte_string_survives_both_notations() {
        let all: Vec<u8> = (0..=255).chain("ü\\x\u{85}".bytes()).collect();
        for notation in [Notation::Text, Notation::Hex] {
            let shown = notation.show(&all);
            assert!(!shown.contains(['\n', '\t', '\u{1b}', '\u{85}']));
            assert_eq!(notation.read(shown.as_bytes()), Ok(all.clone()));
        }
    }

    /// Regression: a line with `\<` was refused, and one with a Windows path lost its backslashes.
    #[test]
    fn what_is_no_escape_stays_as_it_is() {
        let read = |text: &str| Notation::Text.read(text.as_bytes()).unwrap();
        for same in [
            "\\",
            "\\<a>",
            "\\x",
            "\\x1",
            "\\x+1",
            "\\xgg",
            "C:\\dir\\",
            "\\ü",
        ] {
            assert_eq!(read(same), same.as_bytes(), "{same}");
        }
        assert_eq!(read("\\q\\\\\\t\\x41\\x4"), b"\\q\\\tA\\x4");
        for bad in ["0", "0g", "+1"] {
            assert!(Notation::Hex.read(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
