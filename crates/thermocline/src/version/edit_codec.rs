//! Edits as bytes: tagged fields, each with its length in front.
//!
//! A tag that this build does not know is refused: if a change of the store's shape were skipped,
//! reads would give wrong answers.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;

use super::edit::{KeyspaceMeta, Learned, PlacedBy, SetTarget, VersionEdit};
use crate::coding::{Decoder, put_bytes, put_varint};
use crate::error::Error;
use crate::ids::{FileId, KeyspaceId};
use crate::key::KeyRange;
use crate::options::Target;
use crate::table::{Heat, TableContent, TableMeta};
use crate::wal::FoundLog;

const CREATED: u64 = 1;
const DROPPED: u64 = 2;
const REMOVED: u64 = 3;
const ADDED: u64 = 4;
const FLUSHED_THROUGH: u64 = 5;
const NEXT_FILE: u64 = 6;
const LAST_SEQ: u64 = 7;
const LOG_FLOOR: u64 = 8;
const LOG_START: u64 = 9;
const PLACED_BY: u64 = 10;
const SNAPSHOT: u64 = 11;
const FOUND_LOG: u64 = 12;
const FOUND_LOG_REACHES: u64 = 13;
const LEARNED: u64 = 14;
const CONTENT: u64 = 15;
/// Placement by table. It has a tag of its own, so that a build that does not have it takes the
/// edit for one of a newer release, not for a damaged one.
const PLACED_BY_TABLES: u64 = 16;
const HEAT: u64 = 17;
const TARGET: u64 = 18;
const INGESTED: u64 = 19;

/// The last tag that this build knows.
const LAST: u64 = INGESTED;

const BY_LEVEL: u8 = 0;
const BY_HOTNESS: u8 = 1;

const NO_TARGET: u8 = 0;
const OF_COST: u8 = 1;
const OF_LATENCY: u8 = 2;
const OF_HIT_RATE: u8 = 3;

/// Comes before the fields, so that an edit without fields is not an empty record.
const ENCODING: u8 = 1;

/// Why a record with a valid checksum is not an edit for this build.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadEdit {
    /// It is one, but has a field or an encoding with this number, which is higher than the last
    /// that is known.
    #[error(
        "a newer release wrote the edit: {found} is behind {supported}, the last that is known"
    )]
    Newer { found: u32, supported: u32 },
    /// What is wrong with the bytes.
    #[error("{0}")]
    Damaged(String),
}

impl BadEdit {
    fn newer(found: u64, supported: u64) -> Self {
        let number = |number| u32::try_from(number).unwrap_or(u32::MAX);
        Self::Newer {
            found: number(found),
            supported: number(supported),
        }
    }

    /// The error of an opening for such bytes at `offset` of the file at `path`. What a newer
    /// release wrote is sound, and must not be repaired.
    pub(crate) fn at(self, path: &Path, offset: u64) -> Error {
        match self {
            Self::Newer { found, supported } => Error::FormatVersion {
                path: path.to_path_buf(),
                found,
                supported,
            },
            Self::Damaged(what) => Error::corruption(path, offset, what),
        }
    }
}

impl VersionEdit {
    /// Appends the encoded edit to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(ENCODING);
        let mut field = |tag, fill: &dyn Fn(&mut Vec<u8>)| {
            let mut body = Vec::new();
            fill(&mut body);
            put_varint(out, tag);
            put_bytes(out, &body);
        };
        for keyspace in &self.created {
            field(CREATED, &|body| encode_keyspace(keyspace, body));
        }
        for id in &self.dropped {
            field(DROPPED, &|body| put_varint(body, u64::from(*id)));
        }
        for (keyspace, table) in &self.removed {
            field(REMOVED, &|body| put_pair(body, *keyspace, *table));
        }
        for table in &self.added {
            field(ADDED, &|body| encode_table(table, body));
            if let Some(content) = &table.content {
                field(CONTENT, &|body| encode_content(table.id, content, body));
            }
            if table.ingested {
                field(INGESTED, &|body| put_varint(body, table.id));
            }
        }
        for (keyspace, seq) in &self.flushed_through {
            field(FLUSHED_THROUGH, &|body| put_pair(body, *keyspace, *seq));
        }
        for (keyspace, learned) in &self.learned {
            field(LEARNED, &|body| {
                for number in [*keyspace, u32::from(learned.cold), u32::from(learned.fresh)] {
                    put_varint(body, u64::from(number));
                }
            });
        }
        if let Some(number) = self.next_file {
            field(NEXT_FILE, &|body| put_varint(body, number));
        }
        if let Some(seq) = self.last_seq {
            field(LAST_SEQ, &|body| put_varint(body, seq));
        }
        if let Some(seq) = self.log_floor {
            field(LOG_FLOOR, &|body| put_varint(body, seq));
        }
        if let Some(number) = self.log_start {
            field(LOG_START, &|body| put_varint(body, number));
        }
        for (table, heat) in &self.heats {
            field(HEAT, &|body| {
                put_varint(body, *table);
                for number in [heat.rate, heat.watched] {
                    body.extend_from_slice(&number.to_bits().to_le_bytes());
                }
            });
        }
        match self.placed_by {
            None => {}
            Some(PlacedBy::Level) => field(PLACED_BY, &|body| body.push(BY_LEVEL)),
            Some(PlacedBy::Hotness) => field(PLACED_BY, &|body| body.push(BY_HOTNESS)),
            Some(PlacedBy::Tables) => field(PLACED_BY_TABLES, &|_| {}),
        }
        if let Some(set) = &self.target {
            field(TARGET, &|body| encode_target(set, body));
        }
        if let Some(edits) = self.snapshot {
            field(SNAPSHOT, &|body| put_varint(body, edits));
        }
        if let Some(found) = &self.found_log {
            field(FOUND_LOG, &|body| encode_found_log(found, body));
            if let Some(seq) = found.reaches {
                field(FOUND_LOG_REACHES, &|body| put_varint(body, seq));
            }
        }
    }

    /// # Errors
    /// What is wrong with `bytes`, or which part of them this build does not know.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, BadEdit> {
        let mut decoder = Decoder::new(bytes);
        match decoder.u8() {
            Some(ENCODING) => {}
            Some(found) if found > ENCODING => {
                return Err(BadEdit::newer(found.into(), ENCODING.into()));
            }
            Some(_) => return Err(BadEdit::Damaged("the edit has no encoding".into())),
            None => return Err(BadEdit::Damaged("the edit is empty".into())),
        }
        let mut edit = Self::default();
        while !decoder.is_empty() {
            let at = decoder.position();
            let field = decoder.varint().zip(decoder.bytes());
            let cut = || BadEdit::Damaged(format!("the edit ends within byte {at}"));
            let (tag, body) = field.ok_or_else(cut)?;
            if tag > LAST {
                return Err(BadEdit::newer(tag, LAST));
            }
            let mut body = Decoder::new(body);
            let wrong = || BadEdit::Damaged(format!("field {tag} of the edit does not decode"));
            edit.decode_field(tag, &mut body)
                .filter(|()| body.is_empty())
                .ok_or_else(wrong)?;
        }
        Ok(edit)
    }

    fn decode_field(&mut self, tag: u64, body: &mut Decoder<'_>) -> Option<()> {
        match tag {
            CREATED => self.created.push(decode_keyspace(body)?),
            DROPPED => self.dropped.push(decode_id(body)?),
            REMOVED => self.removed.push((decode_id(body)?, body.varint()?)),
            ADDED => self.added.push(decode_table(body)?),
            CONTENT => {
                let (id, content) = decode_content(body)?;
                let table = self.added.last_mut().filter(|table| table.id == id)?;
                table.content = Some(content);
            }
            INGESTED => {
                let id = body.varint()?;
                let table = self.added.last_mut().filter(|table| table.id == id)?;
                // All of its records have one number.
                table.ingested = table.min_seq == table.max_seq;
                table.ingested.then_some(())?;
            }
            FLUSHED_THROUGH => self
                .flushed_through
                .push((decode_id(body)?, body.varint()?)),
            NEXT_FILE => self.next_file = Some(body.varint()?),
            LAST_SEQ => self.last_seq = Some(body.varint()?),
            LOG_FLOOR => self.log_floor = Some(body.varint()?),
            LOG_START => self.log_start = Some(body.varint()?),
            PLACED_BY => self.placed_by = Some(decode_placed_by(body)?),
            PLACED_BY_TABLES => self.placed_by = Some(PlacedBy::Tables),
            HEAT => self.heats.push(decode_heat(body)?),
            TARGET => self.target = Some(decode_target(body)?),
            SNAPSHOT => self.snapshot = Some(body.varint()?),
            FOUND_LOG => self.found_log = Some(decode_found_log(body)?),
            LEARNED => self.learned.push((decode_id(body)?, decode_learned(body)?)),
            FOUND_LOG_REACHES => self.found_log.as_mut()?.reaches = Some(body.varint()?),
            _ => return None,
        }
        Some(())
    }
}

fn put_pair(out: &mut Vec<u8>, keyspace: KeyspaceId, number: u64) {
    put_varint(out, u64::from(keyspace));
    put_varint(out, number);
}

fn decode_id(body: &mut Decoder<'_>) -> Option<KeyspaceId> {
    KeyspaceId::try_from(body.varint()?).ok()
}

fn decode_placed_by(body: &mut Decoder<'_>) -> Option<PlacedBy> {
    match body.u8()? {
        BY_LEVEL => Some(PlacedBy::Level),
        BY_HOTNESS => Some(PlacedBy::Hotness),
        _ => None,
    }
}

fn decode_heat(body: &mut Decoder<'_>) -> Option<(FileId, Heat)> {
    Some((body.varint()?, Heat::from_bits(body.u32()?, body.u32()?)?))
}

fn encode_target(set: &SetTarget, out: &mut Vec<u8>) {
    let (kind, number) = match set.target {
        Target::None => (NO_TARGET, 0),
        Target::Cost(dollars) => (OF_COST, dollars.to_bits()),
        Target::Latency(mean) => (OF_LATENCY, mean.as_nanos() as u64),
        Target::HitRate(part) => (OF_HIT_RATE, part.to_bits()),
    };
    out.push(kind);
    out.extend_from_slice(&number.to_le_bytes());
    for price in &set.prices {
        out.extend_from_slice(&price.to_bits().to_le_bytes());
    }
}

fn decode_target(body: &mut Decoder<'_>) -> Option<SetTarget> {
    let amount = |bits| Some(f64::from_bits(bits)).filter(|n| n.is_finite() && *n >= 0.0);
    let target = match (body.u8()?, body.u64()?) {
        (NO_TARGET, 0) => Target::None,
        (OF_COST, bits) => Target::Cost(amount(bits)?),
        (OF_LATENCY, nanos) => Target::Latency(Duration::from_nanos(nanos)),
        (OF_HIT_RATE, bits) => Target::HitRate(amount(bits).filter(|part| *part <= 1.0)?),
        _ => return None,
    };
    let mut prices = Vec::new();
    while !body.is_empty() {
        prices.push(amount(body.u64()?)?);
    }
    Some(SetTarget { target, prices })
}

fn decode_learned(body: &mut Decoder<'_>) -> Option<Learned> {
    let mut part = || {
        let part = u16::try_from(body.varint()?).ok()?;
        (part <= Learned::WHOLE).then_some(part)
    };
    Some(Learned {
        cold: part()?,
        fresh: part()?,
    })
}

fn encode_found_log(found: &FoundLog, out: &mut Vec<u8>) {
    put_varint(out, found.next);
    for &(number, len) in &found.segments {
        put_varint(out, number);
        put_varint(out, len);
    }
}

fn decode_found_log(body: &mut Decoder<'_>) -> Option<FoundLog> {
    let next = body.varint()?;
    let mut segments = Vec::new();
    while !body.is_empty() {
        segments.push((body.varint()?, body.varint()?));
    }
    Some(FoundLog {
        segments,
        next,
        reaches: None,
    })
}

fn encode_keyspace(keyspace: &KeyspaceMeta, out: &mut Vec<u8>) {
    put_varint(out, u64::from(keyspace.id));
    put_bytes(out, &keyspace.name);
    out.push(keyspace.last_fast_level);
}

fn decode_keyspace(body: &mut Decoder<'_>) -> Option<KeyspaceMeta> {
    Some(KeyspaceMeta {
        id: decode_id(body)?,
        name: Bytes::copy_from_slice(body.bytes()?),
        last_fast_level: body.u8()?,
    })
}

fn encode_table(table: &TableMeta, out: &mut Vec<u8>) {
    put_varint(out, table.id);
    put_varint(out, u64::from(table.keyspace));
    out.push(table.level);
    out.push(table.tier);
    for number in [
        table.epoch,
        table.len,
        table.entries,
        table.deletes,
        table.min_seq,
        table.max_seq,
    ] {
        put_varint(out, number);
    }
    put_bytes(out, &table.range.first);
    put_bytes(out, &table.range.last);
}

fn decode_table(body: &mut Decoder<'_>) -> Option<TableMeta> {
    Some(TableMeta {
        id: body.varint()?,
        keyspace: decode_id(body)?,
        level: body.u8()?,
        tier: body.u8()?,
        epoch: body.varint()?,
        len: body.varint()?,
        entries: body.varint()?,
        deletes: body.varint()?,
        min_seq: body.varint()?,
        max_seq: body.varint()?,
        ingested: false,
        range: KeyRange {
            first: Bytes::copy_from_slice(body.bytes()?),
            last: Bytes::copy_from_slice(body.bytes()?),
        },
        content: None,
    })
}

fn encode_content(table: FileId, content: &TableContent, out: &mut Vec<u8>) {
    for number in [
        table,
        content.raw_key_bytes,
        content.raw_value_bytes,
        content.data_bytes,
    ] {
        put_varint(out, number);
    }
}

fn decode_content(body: &mut Decoder<'_>) -> Option<(FileId, TableContent)> {
    let table = body.varint()?;
    let content = TableContent {
        raw_key_bytes: body.varint()?,
        raw_value_bytes: body.varint()?,
        data_bytes: body.varint()?,
    };
    Some((table, content))
}

#[cfg(test)]
mod tests;
