//! The bytes of a trace file, unpacked, as lines or as records of one length.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
#[cfg(feature = "lab")]
use lzma_rust2::XzReader;

/// What every .xz file begins with.
const XZ_MAGIC: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];
/// What every .zst file begins with.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Longest line. Keys of caches have at most a few hundred bytes, but a binary file need not have
/// any line end.
const MOST_LINE: usize = 64 << 10;

/// A trace file's bytes, unpacked.
pub(super) type Input = Box<dyn BufRead>;

/// Opens `path`, unpacking it when it is an .xz or a .zst file.
pub(super) fn open(path: &Path) -> Result<Input> {
    let file = File::open(path).context("cannot open")?;
    unpack(BufReader::new(file))
}

/// The bytes of `file`, unpacked when it is an .xz or a .zst file.
pub(super) fn unpack(mut file: impl BufRead + 'static) -> Result<Input> {
    let mut start = Vec::new();
    let magic = XZ_MAGIC.len() as u64;
    file.by_ref()
        .take(magic)
        .read_to_end(&mut start)
        .context("cannot read")?;
    // The content decides, because a renamed file must not be taken for an unpacked one.
    let (is_xz, is_zstd) = (start == XZ_MAGIC, start.starts_with(&ZSTD_MAGIC));
    let whole = std::io::Cursor::new(start).chain(file);
    Ok(if is_xz {
        unpack_xz(whole)?
    } else if is_zstd {
        let unpacked = zstd::stream::read::Decoder::with_buffer(whole).context("cannot unpack")?;
        Box::new(BufReader::new(unpacked))
    } else {
        Box::new(whole)
    })
}

#[cfg(feature = "lab")]
fn unpack_xz(whole: impl BufRead + 'static) -> Result<Input> {
    Ok(Box::new(BufReader::new(XzReader::new(whole, true))))
}

#[cfg(not(feature = "lab"))]
fn unpack_xz(_whole: impl BufRead + 'static) -> Result<Input> {
    bail!("an .xz file is unpacked by a build with `--features lab` only; unpack it with `xz -dk`")
}

/// The lines of a text.
pub(super) struct Lines {
    input: Input,
    number: u64,
    line: Vec<u8>,
}

impl Lines {
    /// From the first line on.
    pub(super) fn new(input: Input) -> Self {
        Self {
            input,
            number: 0,
            line: Vec::new(),
        }
    }

    /// Number of the line read last.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The next line that is not empty, without its end.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>> {
        loop {
            self.line.clear();
            self.number += 1;
            let mut limited = self.input.by_ref().take(MOST_LINE as u64);
            let read = limited.read_until(b'\n', &mut self.line);
            let read = read.context("cannot read")?;
            if read == 0 {
                return Ok(None);
            }
            ensure!(
                self.line.ends_with(b"\n") || read < MOST_LINE,
                "it is longer than {MOST_LINE} bytes; is this a text file?"
            );
            while matches!(self.line.last(), Some(b'\n' | b'\r')) {
                self.line.pop();
            }
            if !self.line.is_empty() {
                break;
            }
        }
        Ok(Some(&self.line))
    }
}

/// The records of a binary file, `N` bytes each.
pub(super) struct Records<const N: usize> {
    input: Input,
    offset: u64,
}

impl<const N: usize> Records<N> {
    /// From the first record on.
    pub(super) fn new(input: Input) -> Self {
        Self { input, offset: 0 }
    }

    /// Where the next record begins in the unpacked file.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next record.
    pub(super) fn next(&mut self) -> Result<Option<[u8; N]>> {
        let mut record = [0; N];
        let mut have = 0;
        while let Some(rest) = record.get_mut(have..).filter(|rest| !rest.is_empty()) {
            match self.input.read(rest) {
                Ok(0) => break,
                Ok(read) => have += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let at = self.offset + have as u64;
                    return Err(error).with_context(|| format!("offset {at}: cannot read"));
                }
            }
        }
        match have {
            0 => Ok(None),
            _ if have == N => {
                self.offset += N as u64;
                Ok(Some(record))
            }
            _ => bail!(
                "it ends within an access: {have} bytes at offset {} where an access has {N}",
                self.offset
            ),
        }
    }
}
