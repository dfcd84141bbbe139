//! The last bytes of a table: they say where its top-level index and properties are.

use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use super::stored::BlockHandle;
use crate::coding::Decoder;
use crate::error::{Error, Result};
use crate::ids::FileId;

/// Length in bytes, the same in every format version.
pub(super) const FOOTER_LEN: usize = 64;

/// The format that this build writes, and the newest that it reads.
pub(super) const FORMAT_VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"thermSST";

/// Bytes that the checksum covers.
const COVERED: usize = 48;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) top_index: BlockHandle,
    pub(super) properties: BlockHandle,
    pub(super) table: FileId,
}

impl Footer {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_LEN);
        for handle in [self.top_index, self.properties] {
            out.extend_from_slice(&handle.offset.to_le_bytes());
            out.extend_from_slice(&u64::from(handle.len).to_le_bytes());
        }
        out.extend_from_slice(&self.table.to_le_bytes());
        out.extend_from_slice(&0u32.to_le_bytes());
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&xxh3_64(&out).to_le_bytes());
        out.extend_from_slice(MAGIC);
        out
    }

    /// Reads the footer from the `tail` of a file of `len` bytes.
    pub(super) fn decode(tail: &[u8], path: &Path, len: u64) -> Result<Self> {
        let offset = len.saturating_sub(FOOTER_LEN as u64);
        let damaged = |what: &str| Error::corruption(path, offset, what);
        let footer = tail
            .last_chunk::<FOOTER_LEN>()
            .ok_or_else(|| damaged("the file is too short to be a table"))?;
        let (covered, rest) = footer.split_at(COVERED);
        let (sum, magic) = rest.split_at(8);
        if magic != MAGIC {
            return Err(damaged(
                "the file does not end like a table: it was cut, or is none",
            ));
        }
        if xxh3_64(covered).to_le_bytes() != *sum {
            return Err(damaged("the footer's checksum does not match"));
        }
        let mut decoder = Decoder::new(covered);
        let mut handle = || {
            Some(BlockHandle {
                offset: decoder.u64()?,
                len: decoder.u64()?.try_into().ok()?,
            })
        };
        let handles = (|| Some((handle()?, handle()?)))();
        let numbers = (|| Some((decoder.u64()?, decoder.u32()?, decoder.u32()?)))();
        let Some((table, _reserved, version)) = numbers else {
            return Err(damaged("the footer is cut short"));
        };
        if version == 0 || version > FORMAT_VERSION {
            return Err(Error::FormatVersion {
                path: path.to_path_buf(),
                found: version,
                supported: FORMAT_VERSION,
            });
        }
        let Some((top_index, properties)) = handles else {
            return Err(damaged("the footer points outside of the file"));
        };
        let is_inside =
            top_index.of_any_len_within(offset).is_ok() && properties.within(offset).is_ok();
        if !is_inside {
            return Err(damaged("the footer points outside of the file"));
        }
        Ok(Self {
            top_index,
            properties,
            table,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::stored::{ENVELOPE_LEN, MAX_PAYLOAD_LEN};
    use super::*;

    fn footer() -> Footer {
        Footer {
            top_index: BlockHandle {
                offset: 10,
                len: 20,
            },
            properties: BlockHandle {
                offset: 30,
                len: 40,
            },
            table: 7,
        }
    }

    #[test]
    fn a_footer_comes_back_and_every_flipped_byte_is_seen() {
        let bytes = footer().encode();
        let path = Path::new("t");
        assert_eq!(Footer::decode(&bytes, path, 134).unwrap(), footer());
        for at in 0..FOOTER_LEN {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(
                Footer::decode(&damaged, path, 134)
                    .unwrap_err()
                    .is_corruption()
            );
        }
    }

    /// The limit of the top-level index was the longest block of records. With some 1,100 long keys
    /// that share a long prefix, the top-level index is longer. Their memtable became a table that
    /// could not be opened, so the memtable could never be flushed.
    #[test]
    fn a_top_level_index_may_be_longer_than_any_other_block() {
        let long = (MAX_PAYLOAD_LEN + ENVELOPE_LEN + 1) as u32;
        let end = 40 + u64::from(long);
        let decode = |footer: Footer, blocks_end: u64| {
            let len = blocks_end + FOOTER_LEN as u64;
            Footer::decode(&footer.encode(), Path::new("t"), len)
        };
        let mut footer = footer();
        (footer.top_index.offset, footer.top_index.len) = (40, long);
        assert_eq!(decode(footer, end).unwrap(), footer);
        assert!(
            decode(footer, end - 1).unwrap_err().is_corruption(),
            "the file bounds it"
        );
        footer.top_index.len = ENVELOPE_LEN as u32 - 1;
        assert!(decode(footer, end).unwrap_err().is_corruption());
        (footer.top_index.len, footer.properties.len) = (20, long);
        assert!(decode(footer, 2 * end).unwrap_err().is_corruption());
    }

    #[test]
    fn a_later_format_and_handles_past_the_end_are_refused() {
        let mut bytes = footer().encode();
        bytes[44] = 9;
        let sum = xxh3_64(&bytes[..COVERED]).to_le_bytes();
        bytes[COVERED..COVERED + 8].copy_from_slice(&sum);
        let refused = Footer::decode(&bytes, Path::new("t"), 134).unwrap_err();
        assert!(matches!(refused, Error::FormatVersion { found: 9, .. }));
        let refused = Footer::decode(&footer().encode(), Path::new("t"), 133).unwrap_err();
        assert!(refused.is_corruption());
    }
}
