//! The payload of a log record: one commit group.

use std::ops::Range;

use bytes::Bytes;

use crate::batch;
use crate::coding::{Decoder, put_bytes, put_varint};
use crate::key::{MAX_SEQ, SeqNo};

/// Every older segment was durable when the record was written.
const OLDER_DURABLE: u8 = 1;

/// The fields in front of a group's batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    /// Whether all older segments were durable. If so, nothing of them may be missing.
    pub(crate) older_durable: bool,
    /// Bytes of this segment that were durable. None of them may be bad.
    pub(crate) durable_len: u64,
    /// Number of the first write; the others follow without a gap.
    pub(crate) first_seq: SeqNo,
    /// Writes in all batches together; 0 in the record that [`super::Wal::close`] leaves.
    pub(crate) count: u64,
}

impl GroupHeader {
    /// The last sequence number that is in use after this record.
    pub(crate) fn last_seq(&self) -> SeqNo {
        (self.first_seq + self.count).saturating_sub(1)
    }

    pub(crate) fn encode(&self, batches: &[Bytes], out: &mut Vec<u8>) {
        out.push(if self.older_durable { OLDER_DURABLE } else { 0 });
        put_varint(out, self.durable_len);
        put_varint(out, self.first_seq);
        put_varint(out, self.count);
        for batch in batches {
            put_bytes(out, batch);
        }
    }
}

/// A decoded payload: `batches` are ranges of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) header: GroupHeader,
    pub(crate) batches: Vec<Range<usize>>,
}

impl Group {
    /// Decodes a payload whose checksum is valid. `None` if it is malformed nevertheless, or has
    /// flags of a newer release.
    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        let mut decoder = Decoder::new(payload);
        let flags = decoder.u8()?;
        if flags & !OLDER_DURABLE != 0 {
            return None;
        }
        let header = GroupHeader {
            older_durable: flags & OLDER_DURABLE != 0,
            durable_len: decoder.varint()?,
            first_seq: decoder.varint()?,
            count: decoder.varint()?,
        };
        if header.first_seq > MAX_SEQ || header.count > MAX_SEQ {
            return None;
        }
        let mut batches = Vec::new();
        let mut counted = 0u64;
        while !decoder.is_empty() {
            let batch = decoder.bytes()?;
            counted += u64::from(batch::count(batch)?);
            let end = decoder.position();
            batches.push(end - batch.len()..end);
        }
        (counted == header.count).then_some(Self { header, batches })
    }
}

/// The payload of a group that nothing durable precedes, for tests that need one.
#[cfg(test)]
pub(crate) fn encode_group(first_seq: SeqNo, batches: &[Bytes], out: &mut Vec<u8>) {
    let count = |batch: &Bytes| batch::count(batch).map_or(0, u64::from);
    let header = GroupHeader {
        older_durable: false,
        durable_len: 0,
        first_seq,
        count: batches.iter().map(count).sum(),
    };
    header.encode(batches, out);
}
