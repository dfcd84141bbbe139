//! Traces of the cache2k benchmarks: one little-endian 32-bit integer per access.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use lzma_rust2::XzReader;

/// What every .xz file begins with.
const XZ_MAGIC: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];

/// Reads the keys of `path`, unpacking it when it is an .xz file.
pub(super) fn read(path: &Path) -> Result<Vec<u32>> {
    let mut file = File::open(path).context("cannot open")?;
    let mut start = Vec::new();
    let magic = XZ_MAGIC.len() as u64;
    file.by_ref()
        .take(magic)
        .read_to_end(&mut start)
        .context("cannot read")?;
    // Told by its content: a renamed file must not be taken for plain integers.
    let packed = start == XZ_MAGIC;
    let whole = start.as_slice().chain(BufReader::new(file));
    if packed {
        parse(XzReader::new(whole, true)).context("cannot unpack or parse")
    } else {
        parse(whole)
    }
}

fn parse(mut input: impl Read) -> Result<Vec<u32>> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    ensure!(!bytes.is_empty(), "there are no accesses in it");
    let (words, rest) = bytes.as_chunks::<4>();
    ensure!(
        rest.is_empty(),
        "it ends within an access: {} bytes at offset {} where an access has 4",
        rest.len(),
        bytes.len() - rest.len()
    );
    Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `[131208, 16777456, 131208]`, packed by xz.
    const PACKED: &[u8] = include_bytes!("fixture.trace.xz");

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    #[test]
    fn plain_and_packed_traces_are_the_same() {
        let plain: Vec<u8> = [131_208u32, 16_777_456, 131_208]
            .iter()
            .flat_map(|key| key.to_le_bytes())
            .collect();
        let expected = vec![131_208, 16_777_456, 131_208];
        assert_eq!(read(file(&plain).path()).unwrap(), expected);
        assert_eq!(read(file(PACKED).path()).unwrap(), expected);
    }

    #[test]
    fn bad_files_are_refused() {
        let error = read(file(&[1, 0, 0, 0, 2]).path()).unwrap_err();
        assert!(error.to_string().contains("1 bytes at offset 4"), "{error}");
        let error = read(file(&[]).path()).unwrap_err();
        assert!(error.to_string().contains("no accesses"), "{error}");
        assert!(read(file(&PACKED[..PACKED.len() - 20]).path()).is_err());
        let mut damaged = PACKED.to_vec();
        damaged[30] ^= 0x10;
        assert!(read(file(&damaged).path()).is_err());
    }
}
