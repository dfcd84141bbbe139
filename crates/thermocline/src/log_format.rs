//! Framing of append-only files: the write-ahead log, the manifest, and the state of access
//! records.
//!
//! A file is a header and records. A record's checksums cover where it belongs (file number
//! and offset), so a record that is found valid was written there: that is what lets a
//! reader tell a torn tail (nothing valid follows) from damage before the tail.

use std::ops::Range;
use std::path::Path;

use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

use crate::coding::Decoder;
use crate::error::{Error, Result};
use crate::ids::FileId;
use crate::key::{MAX_SEQ, SeqNo};

/// Version of the header, the framing and the payloads.
pub(crate) const FORMAT_VERSION: u32 = 1;

/// Bytes of a file header; the same in every format version.
pub(crate) const FILE_HEADER_LEN: usize = 72;

/// Bytes in front of every payload.
pub(crate) const RECORD_HEADER_LEN: usize = 16;

/// Bytes that one reader may hash in search of valid records behind bad ones, however short the
/// file is.
const LEAST_SCAN_BUDGET: u64 = 256 << 20;

const HAS_PREVIOUS: u32 = 1;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    Wal,
    Manifest,
    /// The state of the records of recent accesses.
    AccessRecords,
}

impl FileKind {
    fn magic(self) -> &'static [u8; 8] {
        match self {
            FileKind::Wal => b"TCLNWAL\0",
            FileKind::Manifest => b"TCLNMAN\0",
            FileKind::AccessRecords => b"TCLNACC\0",
        }
    }

    /// Whether a file of this kind begins like `bytes`.
    pub(crate) fn begins(self, bytes: &[u8]) -> bool {
        bytes.starts_with(self.magic())
    }
}

/// The first bytes of a file: what it is and where it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) kind: FileKind,
    pub(crate) number: FileId,
    pub(crate) database: u128,
    /// The file that this one continues, and the exact length it ended with.
    pub(crate) previous: Option<(FileId, u64)>,
    /// Last sequence number given out before the first record of this file.
    pub(crate) base_seq: SeqNo,
}

impl FileHeader {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (flags, (number, len)) = match self.previous {
            Some(previous) => (HAS_PREVIOUS, previous),
            None => (0, (0, 0)),
        };
        let mut out = Vec::with_capacity(FILE_HEADER_LEN);
        out.extend_from_slice(self.kind.magic());
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.database.to_le_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&self.base_seq.to_le_bytes());
        let checksum = xxh3_64(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    /// The header at the start of `bytes`; `None` when it is torn or damaged.
    ///
    /// # Errors
    /// [`Error::FormatVersion`] for an intact header of a newer release.
    pub(crate) fn decode(path: &Path, kind: FileKind, bytes: &[u8]) -> Result<Option<Self>> {
        let Some(bytes) = bytes.get(..FILE_HEADER_LEN) else {
            return Ok(None);
        };
        let Some((version, header)) = Self::fields(kind, bytes) else {
            return Ok(None);
        };
        if version != FORMAT_VERSION {
            return Err(Error::FormatVersion {
                path: path.to_path_buf(),
                found: version,
                supported: FORMAT_VERSION,
            });
        }
        Ok(Some(header))
    }

    fn fields(kind: FileKind, bytes: &[u8]) -> Option<(u32, Self)> {
        let mut decoder = Decoder::new(bytes);
        if decoder.take(8)? != kind.magic() {
            return None;
        }
        let version = decoder.u32()?;
        let flags = decoder.u32()?;
        let number = decoder.u64()?;
        let database = decoder.u128()?;
        let previous = (decoder.u64()?, decoder.u64()?);
        let base_seq = decoder.u64()?;
        let covered = bytes.get(..decoder.position())?;
        if decoder.u64()? != xxh3_64(covered) || base_seq > MAX_SEQ {
            return None;
        }
        let header = Self {
            kind,
            number,
            database,
            previous: (flags & HAS_PREVIOUS != 0).then_some(previous),
            base_seq,
        };
        Some((version, header))
    }
}

/// Where a record belongs and how long it is, in one number. Its low half guards the length on its
/// own, so that a search hashes only payloads of real records.
fn place(number: FileId, offset: u64, len: u32) -> u64 {
    let mut bytes = [0; 20];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[8..16].copy_from_slice(&offset.to_le_bytes());
    bytes[16..].copy_from_slice(&len.to_le_bytes());
    xxh3_64(&bytes)
}

/// Appends to `out` the record that will stand at `offset` of file `number`; `fill` writes
/// its payload, which must not be empty.
///
/// # Errors
/// [`Error::TooLarge`] when the payload does not fit its length field; `out` is as before.
pub(crate) fn put_record(
    out: &mut Vec<u8>,
    number: FileId,
    offset: u64,
    fill: impl FnOnce(&mut Vec<u8>),
) -> Result<()> {
    let start = out.len();
    let payload_start = start + RECORD_HEADER_LEN;
    out.resize(payload_start, 0);
    fill(out);
    match record_header(number, offset, &[&out[payload_start..]]) {
        Ok(header) => {
            out[start..payload_start].copy_from_slice(&header);
            Ok(())
        }
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}

/// The header of a record whose payload consists of `pieces` and which will stand at `offset` of
/// file `number`.
///
/// # Errors
/// [`Error::TooLarge`] when the payload does not fit its length field.
pub(crate) fn record_header(
    number: FileId,
    offset: u64,
    pieces: &[&[u8]],
) -> Result<[u8; RECORD_HEADER_LEN]> {
    let payload_len: usize = pieces.iter().map(|piece| piece.len()).sum();
    debug_assert!(payload_len > 0, "an empty payload reads as a torn tail");
    let Ok(len) = u32::try_from(payload_len) else {
        return Err(Error::TooLarge {
            what: "log record",
            len: payload_len,
            limit: u32::MAX as usize,
        });
    };
    let place = place(number, offset, len);
    let checksum = match pieces {
        [whole] => xxh3_64_with_seed(whole, place),
        _ => {
            let mut hasher = Xxh3::with_seed(place);
            pieces.iter().for_each(|piece| hasher.update(piece));
            hasher.digest()
        }
    };
    let mut header = [0; RECORD_HEADER_LEN];
    header[..4].copy_from_slice(&len.to_le_bytes());
    header[4..8].copy_from_slice(&(place as u32).to_le_bytes());
    header[8..].copy_from_slice(&checksum.to_le_bytes());
    Ok(header)
}

/// What a reader comes upon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// A valid record at `offset` of the file; `payload` is its range in the bytes that are read.
    Record { offset: u64, payload: Range<usize> },
    /// The file ends where a record ended.
    End,
    /// From `offset` on nothing is valid.
    Torn { offset: u64 },
    /// Bytes at `offset` are bad, yet valid records follow, or the search for them was given
    /// up (`gave_up`). The reader goes on behind the bad bytes.
    Damaged { offset: u64, gave_up: bool },
}

/// Reads the records of one file, front to back.
#[derive(Debug)]
pub(crate) struct Records<'a> {
    number: FileId,
    /// Where in the file `bytes` begin.
    base: u64,
    bytes: &'a [u8],
    at: usize,
    budget: u64,
}

impl<'a> Records<'a> {
    /// Over the whole content of file `number`, header included.
    pub(crate) fn new(number: FileId, bytes: &'a [u8]) -> Self {
        Self::with_least_budget(number, bytes, LEAST_SCAN_BUDGET)
    }

    /// Over what file `number` has from `base` on, where a record begins. That works since each
    /// record says where it belongs, and none says what is before it.
    pub(crate) fn from_offset(number: FileId, base: u64, bytes: &'a [u8]) -> Self {
        Self {
            base,
            at: 0,
            ..Self::new(number, bytes)
        }
    }

    /// The budget is at least the file's length: records that were written do not overlap, so that
    /// is enough for all of them.
    fn with_least_budget(number: FileId, bytes: &'a [u8], least: u64) -> Self {
        Self {
            number,
            base: 0,
            bytes,
            at: FILE_HEADER_LEN.min(bytes.len()),
            budget: least.max(bytes.len() as u64),
        }
    }

    /// The next record, or what stands in its place. After [`Found::End`] and
    /// [`Found::Torn`] always [`Found::End`].
    pub(crate) fn next(&mut self) -> Found {
        if self.at == self.bytes.len() {
            return Found::End;
        }
        let at = self.at;
        if let Some(payload) = self.header_at(at).filter(|p| self.payload_holds(at, p)) {
            self.at = payload.end;
            return Found::Record {
                offset: self.offset(at),
                payload,
            };
        }
        self.search(at)
    }

    /// Looks behind the bad bytes at `bad` for a valid record. The header's own check makes a step
    /// cost a few nanoseconds; the budget bounds what crafted values can make it cost.
    fn search(&mut self, bad: usize) -> Found {
        let offset = self.offset(bad);
        for at in bad + 1..self.bytes.len() {
            let Some(payload) = self.header_at(at) else {
                continue;
            };
            let cost = payload.len() as u64;
            if cost > self.budget {
                self.at = self.bytes.len();
                return Found::Damaged {
                    offset,
                    gave_up: true,
                };
            }
            self.budget -= cost;
            if self.payload_holds(at, &payload) {
                self.at = at;
                return Found::Damaged {
                    offset,
                    gave_up: false,
                };
            }
        }
        self.at = self.bytes.len();
        Found::Torn { offset }
    }

    /// Where in the file the byte at `at` of what is read stands.
    fn offset(&self, at: usize) -> u64 {
        self.base + at as u64
    }

    /// The payload's range, if a plausible record header for this place stands at `at`.
    fn header_at(&self, at: usize) -> Option<Range<usize>> {
        let header = self.bytes.get(at..at.checked_add(RECORD_HEADER_LEN)?)?;
        let len = u32::from_le_bytes(header.get(..4)?.try_into().ok()?);
        let start = at + RECORD_HEADER_LEN;
        let end = start.checked_add(len as usize)?;
        if len == 0 || end > self.bytes.len() {
            return None;
        }
        let check = u32::from_le_bytes(header.get(4..8)?.try_into().ok()?);
        (place(self.number, self.offset(at), len) as u32 == check).then_some(start..end)
    }

    fn payload_holds(&self, at: usize, payload: &Range<usize>) -> bool {
        let stored = self.bytes.get(at + 8..payload.start);
        let Some(bytes) = self.bytes.get(payload.clone()) else {
            return false;
        };
        let place = place(self.number, self.offset(at), payload.len() as u32);
        stored == Some(&xxh3_64_with_seed(bytes, place).to_le_bytes()[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(number: FileId, payloads: &[&[u8]]) -> Vec<u8> {
        let mut out = FileHeader {
            kind: FileKind::Wal,
            number,
            database: 9,
            previous: None,
            base_seq: 0,
        }
        .encode();
        for payload in payloads {
            let offset = out.len() as u64;
            put_record(&mut out, number, offset, |o| o.extend_from_slice(payload)).unwrap();
        }
        out
    }

    fn read(number: FileId, bytes: &[u8]) -> (Vec<Vec<u8>>, Found) {
        let mut records = Records::new(number, bytes);
        let mut payloads = Vec::new();
        loop {
            match records.next() {
                Found::Record { payload, .. } => payloads.push(bytes[payload].to_vec()),
                other => return (payloads, other),
            }
        }
    }

    #[test]
    fn headers_come_back_and_no_flipped_byte_is_accepted() {
        for previous in [None, Some((6, 1234))] {
            let header = FileHeader {
                kind: FileKind::Wal,
                number: 7,
                database: u128::MAX - 5,
                previous,
                base_seq: 99,
            };
            let bytes = header.encode();
            assert_eq!(bytes.len(), FILE_HEADER_LEN);
            let decode = |b: &[u8]| FileHeader::decode(Path::new("x"), FileKind::Wal, b);
            assert_eq!(decode(&bytes).unwrap(), Some(header));
            for i in 0..bytes.len() {
                let mut bad = bytes.clone();
                bad[i] ^= 0x10;
                assert_eq!(decode(&bad).unwrap(), None, "byte {i}");
                assert_eq!(decode(&bytes[..i]).unwrap(), None);
            }
        }
    }

    #[test]
    fn a_newer_format_is_named_not_called_damage() {
        let mut bytes = file(1, &[]);
        bytes[8] = 2;
        let checksum = xxh3_64(&bytes[..FILE_HEADER_LEN - 8]);
        bytes[FILE_HEADER_LEN - 8..].copy_from_slice(&checksum.to_le_bytes());
        let error = FileHeader::decode(Path::new("x"), FileKind::Wal, &bytes).unwrap_err();
        assert!(matches!(error, Error::FormatVersion { found: 2, .. }));
    }

    #[test]
    fn every_truncation_is_an_end_or_a_torn_tail() {
        let bytes = file(3, &[b"one", b"two", b"three"]);
        for len in FILE_HEADER_LEN..bytes.len() {
            let (payloads, end) = read(3, &bytes[..len]);
            assert!(payloads.len() < 3);
            assert!(matches!(end, Found::End | Found::Torn { .. }), "{end:?}");
        }
    }

    #[test]
    fn a_bad_record_before_a_good_one_is_damage_and_reading_goes_on() {
        let bytes = file(3, &[b"one", b"two", b"three"]);
        let second = FILE_HEADER_LEN + RECORD_HEADER_LEN + 3;
        for i in second..second + RECORD_HEADER_LEN + 3 {
            let mut bad = bytes.clone();
            bad[i] ^= 1;
            let mut records = Records::new(3, &bad);
            assert!(matches!(records.next(), Found::Record { .. }));
            let damaged = Found::Damaged {
                offset: second as u64,
                gave_up: false,
            };
            assert_eq!(records.next(), damaged, "byte {i}");
            assert!(matches!(records.next(), Found::Record { .. }));
            assert_eq!(records.next(), Found::End);
        }
    }

    #[test]
    fn records_of_another_file_or_place_are_not_valid() {
        let bytes = file(3, &[b"one"]);
        assert!(matches!(read(4, &bytes).1, Found::Torn { .. }));
        let mut moved = bytes.clone();
        moved.insert(FILE_HEADER_LEN, 0);
        assert!(matches!(read(3, &moved).1, Found::Torn { .. }));
    }

    #[test]
    fn records_are_read_from_any_of_them_on() {
        let mut bytes = file(3, &[b"one", b"two", b"three"]);
        let second = FILE_HEADER_LEN + RECORD_HEADER_LEN + 3;
        let third = second + RECORD_HEADER_LEN + 3;
        let mut records = Records::from_offset(3, second as u64, &bytes[second..]);
        for (offset, payload) in [(second, &b"two"[..]), (third, &b"three"[..])] {
            let Found::Record {
                offset: at,
                payload: range,
            } = records.next()
            else {
                panic!("a record at {offset}");
            };
            assert_eq!((at, &bytes[second..][range]), (offset as u64, payload));
        }
        assert_eq!(records.next(), Found::End);
        bytes[third] ^= 1;
        let mut records = Records::from_offset(3, third as u64, &bytes[third..]);
        let offset = third as u64;
        assert_eq!(records.next(), Found::Torn { offset });
    }

    /// A torn record before an unsynced group of more than the budget counted as damage.
    #[test]
    fn a_search_comes_past_every_record_that_was_written() {
        let mut bytes = file(3, &[b"one", &[2; 300], b"three", &[4; 500]]);
        let second = FILE_HEADER_LEN + RECORD_HEADER_LEN + 3;
        let third = second + RECORD_HEADER_LEN + 300;
        bytes[FILE_HEADER_LEN] ^= 1;
        bytes[third] ^= 1;
        let mut records = Records::with_least_budget(3, &bytes, 100);
        for bad in [FILE_HEADER_LEN, third] {
            let damaged = Found::Damaged {
                offset: bad as u64,
                gave_up: false,
            };
            assert_eq!(records.next(), damaged);
            assert!(matches!(records.next(), Found::Record { .. }));
        }
        assert_eq!(records.next(), Found::End);
    }

    #[test]
    fn a_search_that_costs_too_much_counts_as_damage() {
        // Headers that are right for their place, over payloads that are not.
        let mut bytes = file(3, &[]);
        bytes.resize(FILE_HEADER_LEN + 1 + 400 * RECORD_HEADER_LEN + (1 << 20), 0);
        for i in 0..400 {
            let at = FILE_HEADER_LEN + 1 + i * RECORD_HEADER_LEN;
            let len = 1u32 << 20;
            let check = place(3, at as u64, len) as u32;
            bytes[at..at + 4].copy_from_slice(&len.to_le_bytes());
            bytes[at + 4..at + 8].copy_from_slice(&check.to_le_bytes());
        }
        let gave_up = Found::Damaged {
            offset: FILE_HEADER_LEN as u64,
            gave_up: true,
        };
        assert_eq!(Records::new(3, &bytes).next(), gave_up);
    }
}
