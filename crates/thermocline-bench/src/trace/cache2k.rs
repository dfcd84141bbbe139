//! Traces of the cache2k benchmarks: one little-endian 32-bit integer per access, a read.

use std::io::{Cursor, Read};

use anyhow::{Context, Result, ensure};

use super::access::Access;
use super::input::{Input, Records};

/// This much of a file tells whether it is a text: no trace has a thousand keys in a row all of
/// whose bytes are letters or the like.
const BEGIN: u64 = 4 << 10;

/// The accesses of `input`.
///
/// # Errors
/// It is a text, of which any four characters would be a key; or it cannot be read.
pub(super) fn read(mut input: Input) -> Result<impl Iterator<Item = Result<Access>>> {
    let mut begin = Vec::new();
    let mut limited = input.by_ref().take(BEGIN);
    limited.read_to_end(&mut begin).context("cannot read")?;
    ensure!(
        !is_text(&begin),
        "it is a text, not integers of 4 bytes; name its format with --format"
    );
    let mut records = Records::<4>::new(Box::new(Cursor::new(begin).chain(input)));
    Ok(std::iter::from_fn(move || {
        let key = records.next().transpose()?;
        Some(key.map(|key| Access::read(u64::from(u32::from_le_bytes(key)))))
    }))
}

/// Whether these are lines of ASCII.
fn is_text(bytes: &[u8]) -> bool {
    let is_of_a_line = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    bytes.contains(&b'\n') && bytes.iter().all(is_of_a_line)
}

#[cfg(test)]
mod tests {
    use crate::trace::tests::{decode, refusal};
    use crate::trace::{Access, Format::Cache2k};

    /// `[131208, 16777456, 131208]`, packed by xz.
    const PACKED: &[u8] = include_bytes!("fixtures/cache2k.trace.xz");

    #[test]
    fn plain_and_packed_traces_are_the_same() {
        let keys = [131_208u32, 16_777_456, 131_208];
        let plain: Vec<u8> = keys.iter().flat_map(|key| key.to_le_bytes()).collect();
        let expected = keys.map(|key| Access::read(u64::from(key)));
        assert_eq!(decode(Cache2k, &plain), expected);
        assert_eq!(decode(Cache2k, PACKED), expected);
    }

    #[test]
    fn bad_files_are_refused() {
        let error = refusal(Cache2k, &[1, 0, 0, 0, 2]);
        assert!(error.contains("1 bytes at offset 4"), "{error}");
        refusal(Cache2k, &PACKED[..PACKED.len() - 20]);
        let mut damaged = PACKED.to_vec();
        damaged[30] ^= 0x10;
        refusal(Cache2k, &damaged);
    }

    /// Regression: one text in four has a length of whole accesses. Without --format it was
    /// replayed, with four characters a key.
    #[test]
    fn a_text_is_not_taken_for_integers() {
        let line = b"0,a,1,76,1,get,0\n";
        for text in [&line.repeat(4)[..], &line.repeat(1000)[..]] {
            assert!(text.len().is_multiple_of(4));
            let error = refusal(Cache2k, text);
            assert!(error.contains("--format"), "{error}");
        }
        // Four letters may be a key, and a line end may be part of one.
        assert_eq!(decode(Cache2k, b"abcd").len(), 1);
        let keys = [&line[..], &[0; 3]].concat();
        assert_eq!(decode(Cache2k, &keys).len(), 5);
    }
}
