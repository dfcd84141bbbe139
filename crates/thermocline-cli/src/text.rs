//! Keys and values as text: UTF-8 with `\xNN` escapes, or hexadecimal.

/// What the help of commands that take or print keys says of [`Notation::Text`].
pub(crate) const ESCAPES: &str =
    r"Text may hold the escapes \\ \t \n \r and \xNN; output holds them where needed.";

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
            Notation::Text => unescape(text),
            Notation::Hex => unhex(text),
        }
    }

    /// The text that stands for `bytes`; [`Notation::read`] gives them back.
    pub(crate) fn show(self, bytes: &[u8]) -> String {
        match self {
            Notation::Text => escape(bytes),
            Notation::Hex => bytes.iter().map(|b| format!("{b:02x}")).collect(),
        }
    }
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
                // Control characters could drive the reader's terminal.
                c if c.is_control() => {
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

fn unescape(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match rest.next() {
            Some(b'\\') => b'\\',
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b'x') => rest
                .next()
                .zip(rest.next())
                .and_then(|(high, low)| hex_byte(high, low))
                .ok_or("`\\x` takes two hexadecimal digits, like \\x00")?,
            _ => {
                return Err(
                    "a backslash begins \\\\, \\t, \\n, \\r or \\xNN; write \\\\ for itself".into(),
                );
            }
        });
    }
    Ok(out)
}

fn unhex(text: &[u8]) -> Result<Vec<u8>, String> {
    let (pairs, rest) = text.as_chunks::<2>();
    let bytes: Option<Vec<u8>> = pairs.iter().map(|&[h, l]| hex_byte(h, l)).collect();
    match bytes {
        Some(bytes) if rest.is_empty() => Ok(bytes),
        _ => Err("with --hex, give two hexadecimal digits for each byte".to_owned()),
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

    #[test]
    fn what_is_not_in_the_notation_is_refused() {
        for bad in ["\\", "\\q", "\\x", "\\x1", "\\x+1", "\\xgg"] {
            assert!(Notation::Text.read(bad.as_bytes()).is_err(), "{bad}");
        }
        for bad in ["0", "0g", "+1"] {
            assert!(Notation::Hex.read(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
