//! How a block's payload is stored: followed by a compression byte and a checksum.

use std::alloc::{Layout, handle_alloc_error};
use std::cell::RefCell;

use bytes::Bytes;
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};
use zstd::zstd_safe::DCtx;

use crate::coding::{Decoder, put_varint};
use crate::error::{Error, Result};
use crate::ids::FileId;
use crate::key::{MAX_KEY_LEN, MAX_VALUE_LEN};
use crate::options::Compression;
use crate::storage::IoBuf;

/// Compression byte and checksum.
pub(super) const ENVELOPE_LEN: usize = 9;

/// Longest payload of every block but the top-level index: one record of the largest sizes after an
/// almost full block of 1 MiB. A block that claims more is damaged, and must not make us allocate
/// memory for it.
pub(super) const MAX_PAYLOAD_LEN: usize = MAX_VALUE_LEN + MAX_KEY_LEN + (4 << 20);

/// Blocks of at least this length come from single large values. They are copied in memory as
/// little as possible: buffers for them are made exactly as long as they are, and are not kept.
pub(super) const LARGE_BLOCK: usize = 1 << 20;

/// To see whether compressing a large value is worth it, this many pieces of it are compressed,
/// each of this length.
const PIECES: usize = 16;
const PIECE: usize = 16 << 10;

const RAW: u8 = 0;
const LZ4: u8 = 1;
const ZSTD: u8 = 2;

const OUTSIDE: Damage = Damage("a block handle points outside of the file");

/// What is wrong with bytes already in memory; the reader adds file and offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Damage(pub(super) &'static str);

pub(super) type Decoded<T> = std::result::Result<T, Damage>;

/// Where a stored block is: offset and length in bytes, including the envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockHandle {
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

impl BlockHandle {
    pub(super) fn end(self) -> u64 {
        self.offset.saturating_add(u64::from(self.len))
    }

    pub(super) fn put(self, out: &mut Vec<u8>) {
        put_varint(out, self.offset);
        put_varint(out, u64::from(self.len));
    }

    /// Reads what [`BlockHandle::put`] wrote; the length may be 0.
    pub(super) fn take(from: &mut Decoder<'_>) -> Option<Self> {
        Some(Self {
            offset: from.varint()?,
            len: u32::try_from(from.varint()?).ok()?,
        })
    }

    /// The handle, if it can be a block of a file whose blocks end at `limit`.
    pub(super) fn within(self, limit: u64) -> Decoded<Self> {
        if self.len as usize > MAX_PAYLOAD_LEN + ENVELOPE_LEN {
            return Err(OUTSIDE);
        }
        self.of_any_len_within(limit)
    }

    /// As [`BlockHandle::within`], for the top-level index, which long keys can make as long as all
    /// records together. The file's length bounds what a damaged handle makes us allocate.
    pub(super) fn of_any_len_within(self, limit: u64) -> Decoded<Self> {
        if self.end() > limit || (self.len as usize) < ENVELOPE_LEN {
            return Err(OUTSIDE);
        }
        Ok(self)
    }
}

/// The seed ties a checksum to the block's place, so that a block in the wrong place is detected.
fn seed(table: FileId, offset: u64) -> u64 {
    table.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ offset
}

/// Compresses and seals blocks; keeps its buffers from block to block.
pub(super) struct Sealer {
    table: FileId,
    compression: Compression,
    zstd: Option<zstd::bulk::Compressor<'static>>,
    out: Vec<u8>,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer")
            .field("compression", &self.compression)
            .finish_non_exhaustive()
    }
}

impl Sealer {
    pub(super) fn new(table: FileId, compression: Compression) -> std::io::Result<Self> {
        let zstd = match compression {
            Compression::Zstd(level) => Some(zstd::bulk::Compressor::new(level)?),
            Compression::None | Compression::Lz4 => None,
        };
        Ok(Self {
            table,
            compression,
            zstd,
            out: Vec::new(),
        })
    }

    /// The stored form of `payload` at `offset`, uncompressed.
    pub(super) fn seal(&mut self, payload: &[u8], offset: u64) -> &[u8] {
        self.out.clear();
        self.out.reserve_exact(payload.len() + ENVELOPE_LEN);
        self.out.extend_from_slice(payload);
        close(&mut self.out, RAW, self.table, offset);
        &self.out
    }

    /// The stored form of `payload` at `offset`, compressed if that saves an eighth. Otherwise it
    /// is made in the payload's own memory, as there may not be room for two of them (I8).
    pub(super) fn seal_compressed<'a>(
        &'a mut self,
        payload: &'a mut Vec<u8>,
        offset: u64,
    ) -> &'a [u8] {
        let kind = self.compress(payload);
        if kind == RAW || self.out.len() > payload.len() - payload.len() / 8 {
            self.let_go();
            close(payload, RAW, self.table, offset);
            return payload;
        }
        close(&mut self.out, kind, self.table, offset);
        &self.out
    }

    /// The envelope for the payload at `offset` that consists of `parts`, one after the other and
    /// uncompressed.
    pub(super) fn envelope(&self, parts: [&[u8]; 3], offset: u64) -> [u8; ENVELOPE_LEN] {
        let mut sum = Xxh3::with_seed(seed(self.table, offset));
        parts.iter().for_each(|part| sum.update(part));
        sum.update(&[RAW]);
        let mut envelope = [RAW; ENVELOPE_LEN];
        envelope[1..].copy_from_slice(&sum.digest().to_le_bytes());
        envelope
    }

    /// Whether any piece of a large value shrinks enough. Trying to compress all of a value that
    /// does not shrink would take as much memory again (I8).
    pub(super) fn may_shrink(&mut self, value: &[u8]) -> bool {
        let step = value.len() / PIECES;
        let mut pieces = value
            .chunks(step.max(PIECE))
            .map(|from| &from[..from.len().min(PIECE)]);
        self.compression != Compression::None
            && pieces.any(|piece| {
                let kind = self.compress(piece);
                kind != RAW && self.out.len() <= piece.len() - piece.len() / 8
            })
    }

    /// Frees the memory that a large block took.
    pub(super) fn let_go(&mut self) {
        if self.out.capacity() > LARGE_BLOCK {
            self.out = Vec::new();
        }
    }

    /// Fills `out` with length and compressed bytes. If the compressor refuses, the block stays
    /// uncompressed, which is always correct.
    fn compress(&mut self, payload: &[u8]) -> u8 {
        self.out.clear();
        let bound = match self.compression {
            Compression::None => return RAW,
            Compression::Lz4 => lz4_flex::block::get_maximum_output_size(payload.len()),
            Compression::Zstd(_) => zstd::zstd_safe::compress_bound(payload.len()),
        };
        put_varint(&mut self.out, payload.len() as u64);
        let start = self.out.len();
        self.out.reserve_exact(bound + ENVELOPE_LEN);
        self.out.resize(start + bound, 0);
        let room = &mut self.out[start..];
        let (kind, written) = match &mut self.zstd {
            None => (LZ4, lz4_flex::block::compress_into(payload, room).ok()),
            Some(zstd) => (ZSTD, zstd.compress_to_buffer(payload, room).ok()),
        };
        let Some(written) = written else { return RAW };
        self.out.truncate(start + written);
        kind
    }
}

/// Appends the envelope to the payload in `out`; `kind` says how the payload is compressed.
fn close(out: &mut Vec<u8>, kind: u8, table: FileId, offset: u64) {
    out.reserve_exact(ENVELOPE_LEN);
    out.push(kind);
    let sum = xxh3_64_with_seed(out, seed(table, offset));
    out.extend_from_slice(&sum.to_le_bytes());
}

/// The checksum of all blocks up to `stored`, where `before` is that of the blocks before it: XXH3
/// of the block's own checksum, seeded with `before`.
pub(super) fn chain(before: u64, stored: &[u8]) -> u64 {
    let own = stored.last_chunk::<8>().map_or(&[][..], |sum| sum);
    xxh3_64_with_seed(own, before)
}

/// Checks a stored block and returns its compression byte and payload.
fn unseal(stored: &[u8], table: FileId, offset: u64) -> Decoded<(u8, &[u8])> {
    let Some((covered, sum)) = stored.split_last_chunk::<8>() else {
        return Err(Damage("a block is shorter than its checksum"));
    };
    if xxh3_64_with_seed(covered, seed(table, offset)) != u64::from_le_bytes(*sum) {
        return Err(Damage("a block's checksum does not match"));
    }
    let (kind, payload) = covered
        .split_last()
        .ok_or(Damage("a block has no compression byte"))?;
    Ok((*kind, payload))
}

/// Checks a block that is never compressed; its payload is the front of `stored`.
pub(super) fn unseal_raw(stored: &[u8], table: FileId, offset: u64) -> Decoded<&[u8]> {
    match unseal(stored, table, offset)? {
        (RAW, payload) => Ok(payload),
        _ => Err(Damage("a block is compressed that must not be")),
    }
}

/// As [`decode`], for a block that is alone in `read`: a large payload that is not compressed stays
/// where it is.
pub(super) fn decode_read(read: IoBuf, table: FileId, offset: u64) -> Decoded<Bytes> {
    if read.len() <= LARGE_BLOCK {
        return decode(&read, table, offset);
    }
    let (kind, payload) = unseal(&read, table, offset)?;
    if kind != RAW {
        return decode(&read, table, offset);
    }
    let len = payload.len();
    let mut payload = Bytes::from_owner(read);
    payload.truncate(len);
    Ok(payload)
}

/// Checks a stored block and returns its payload, in memory of exactly its size.
pub(super) fn decode(stored: &[u8], table: FileId, offset: u64) -> Decoded<Bytes> {
    let (kind, payload) = unseal(stored, table, offset)?;
    if kind == RAW {
        return Ok(Bytes::copy_from_slice(payload));
    }
    let mut decoder = Decoder::new(payload);
    let len = decoder
        .varint_usize()
        .filter(|len| *len <= MAX_PAYLOAD_LEN)
        .ok_or(Damage("a compressed block claims an impossible length"))?;
    let packed = payload.get(decoder.position()..).unwrap_or_default();
    let mut plain = vec![0; len];
    let written = match kind {
        LZ4 => lz4_flex::block::decompress_into(packed, &mut plain).ok(),
        ZSTD => decompress_zstd(packed, &mut plain),
        _ => return Err(Damage("a block is compressed in an unknown way")),
    };
    if written != Some(len) {
        return Err(Damage("a block does not decompress"));
    }
    Ok(Bytes::from(plain))
}

/// How many bytes of `plain` the zstd frame `packed` filled; `None` if it is not a valid frame.
/// Each thread keeps its decompression context.
fn decompress_zstd(packed: &[u8], plain: &mut [u8]) -> Option<usize> {
    thread_local! {
        static CONTEXT: RefCell<DCtx<'static>> = RefCell::new(zstd_context());
    }
    let decompress =
        |context: &mut DCtx<'static>, plain: &mut [u8]| context.decompress(plain, packed).ok();
    let kept = CONTEXT.try_with(|kept| decompress(&mut kept.borrow_mut(), plain));
    // A thread that is about to end has no kept context any more.
    kept.unwrap_or_else(|_| decompress(&mut zstd_context(), plain))
}

/// If there is no memory for the context, the process ends, as for all other memory. A panic would
/// end only the thread, and leave its work undone.
fn zstd_context() -> DCtx<'static> {
    const ABOUT: Layout = Layout::new::<[u8; 160 << 10]>();
    DCtx::try_create().unwrap_or_else(|| handle_alloc_error(ABOUT))
}

/// Adds path and offset to damage.
pub(super) fn at<T>(decoded: Decoded<T>, path: &std::path::Path, offset: u64) -> Result<T> {
    decoded.map_err(|Damage(what)| Error::corruption(path, offset, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_compression_comes_back_and_saves_space() {
        let payload = b"the same words again and again; ".repeat(100);
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd(3)] {
            let mut sealer = Sealer::new(9, compression).unwrap();
            let stored = sealer.seal_compressed(&mut payload.clone(), 4096).to_vec();
            assert_eq!(decode(&stored, 9, 4096).unwrap(), payload);
            let packed = stored.len() < payload.len() / 2;
            assert_eq!(packed, compression != Compression::None, "{compression:?}");
        }
    }

    #[test]
    fn what_does_not_shrink_is_stored_as_it_is() {
        let payload: Vec<u8> = (0..64u8).map(|i| i.wrapping_mul(151)).collect();
        let mut sealer = Sealer::new(1, Compression::Lz4).unwrap();
        let stored = sealer.seal_compressed(&mut payload.clone(), 0).to_vec();
        let stored = &stored[..];
        assert_eq!(stored.len(), payload.len() + ENVELOPE_LEN);
        assert_eq!(unseal_raw(stored, 1, 0), Ok(&payload[..]));
    }

    #[test]
    fn parts_have_the_envelope_of_the_whole() {
        let mut sealer = Sealer::new(9, Compression::None).unwrap();
        let parts: [&[u8]; 3] = [b"head", b"a value", b"behind"];
        let mut stored = parts.concat();
        stored.extend(sealer.envelope(parts, 77));
        assert_eq!(sealer.seal(b"heada valuebehind", 77), stored);
    }

    #[test]
    fn a_block_in_the_wrong_place_is_refused() {
        let mut sealer = Sealer::new(5, Compression::None).unwrap();
        let stored = sealer.seal(b"payload", 100).to_vec();
        assert!(decode(&stored, 5, 100).is_ok());
        assert!(decode(&stored, 6, 100).is_err(), "of another table");
        assert!(decode(&stored, 5, 109).is_err(), "at another offset");
    }

    #[test]
    fn an_impossible_length_is_refused_before_anything_is_allocated() {
        let mut sealer = Sealer::new(5, Compression::None).unwrap();
        put_varint(&mut sealer.out, u64::MAX);
        close(&mut sealer.out, LZ4, 5, 0);
        let stored = sealer.out;
        assert_eq!(
            decode(&stored, 5, 0),
            Err(Damage("a compressed block claims an impossible length"))
        );
    }
}
