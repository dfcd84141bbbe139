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

/// The last tag that this build knows.
const LAST: u64 = TARGET;

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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keyspaces() -> impl Strategy<Value = KeyspaceMeta> {
        any::<(u32, Vec<u8>, u8)>().prop_map(|(id, name, last_fast_level)| KeyspaceMeta {
            id,
            name: name.into(),
            last_fast_level,
        })
    }

    fn tables() -> impl Strategy<Value = TableMeta> {
        any::<(
            (u64, u32, u8, u8),
            [u64; 6],
            Vec<u8>,
            Vec<u8>,
            Option<[u64; 3]>,
        )>()
        .prop_map(
            |((id, keyspace, level, tier), numbers, first, last, content)| TableMeta {
                id,
                keyspace,
                level,
                tier,
                epoch: numbers[0],
                len: numbers[1],
                entries: numbers[2],
                deletes: numbers[3],
                min_seq: numbers[4],
                max_seq: numbers[5],
                range: KeyRange {
                    first: first.into(),
                    last: last.into(),
                },
                content: content.map(|numbers| TableContent {
                    raw_key_bytes: numbers[0],
                    raw_value_bytes: numbers[1],
                    data_bytes: numbers[2],
                }),
            },
        )
    }

    fn targets() -> impl Strategy<Value = SetTarget> {
        let target = prop_oneof![
            Just(Target::None),
            (0.0..1e9).prop_map(Target::Cost),
            any::<u64>().prop_map(|nanos| Target::Latency(Duration::from_nanos(nanos))),
            (0.0..=1.0).prop_map(Target::HitRate),
        ];
        (target, prop::collection::vec(0.0..1e9, 0..4))
            .prop_map(|(target, prices)| SetTarget { target, prices })
    }

    prop_compose! {
        fn edits()(
            created in prop::collection::vec(keyspaces(), 0..3),
            dropped: Vec<u32>,
            removed: Vec<(u32, u64)>,
            added in prop::collection::vec(tables(), 0..4),
            flushed_through: Vec<(u32, u64)>,
            next_file: Option<u64>,
            (last_seq, log_floor, log_start) in any::<(Option<u64>, Option<u64>, Option<u64>)>(),
            placed_by in prop::option::of(prop::sample::select(vec![
                PlacedBy::Level, PlacedBy::Hotness, PlacedBy::Tables,
            ])),
            snapshot: Option<u64>,
            heats in prop::collection::vec((any::<u64>(), 0.0..1e9_f32, 0.0..1e9_f32), 0..3),
            target in prop::option::of(targets()),
            found_log: Option<(u64, Vec<(u64, u64)>, Option<u64>)>,
            learned in prop::collection::vec((any::<u32>(), 0..=Learned::WHOLE, 0..=Learned::WHOLE), 0..3),
        ) -> VersionEdit {
            VersionEdit {
                created, dropped, removed, added, flushed_through, next_file, last_seq, log_floor,
                log_start, placed_by, target, snapshot,
                heats: heats.into_iter().map(|(id, rate, watched)| (id, Heat { rate, watched })).collect(),
                learned: learned.into_iter().map(|(id, cold, fresh)| (id, Learned { cold, fresh })).collect(),
                found_log: found_log.map(|(next, segments, reaches)| FoundLog {
                    segments, next, reaches,
                }),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn edits_come_back(edit in edits()) {
            let mut bytes = Vec::new();
            edit.encode(&mut bytes);
            prop_assert_eq!(VersionEdit::decode(&bytes), Ok(edit));
        }

        #[test]
        fn arbitrary_bytes_never_panic(mut bytes: Vec<u8>) {
            bytes.insert(0, ENCODING);
            if let Ok(edit) = VersionEdit::decode(&bytes) {
                prop_assert!(bytes.len() > 1 || edit == VersionEdit::default());
            }
        }
    }

    #[test]
    fn fields_of_a_newer_release_are_refused() {
        for (bytes, found, supported) in [(&[ENCODING, 99, 0][..], 99, 18), (&[9], 9, 1)] {
            let problem = VersionEdit::decode(bytes).unwrap_err();
            assert_eq!(problem, BadEdit::Newer { found, supported });
        }
        // No release has written these, so the error cannot ask for a newer release.
        for bytes in [&[ENCODING, 0, 0][..], &[0]] {
            let problem = VersionEdit::decode(bytes).unwrap_err();
            assert!(matches!(problem, BadEdit::Damaged(_)), "{problem}");
        }
    }

    /// The format (docs/format.md) specifies these bytes; that this build reads them back is not
    /// enough.
    #[test]
    fn a_found_log_is_the_next_number_and_each_segment_with_its_length() {
        let encoded = |reaches| {
            let edit = VersionEdit {
                found_log: Some(FoundLog {
                    segments: vec![(3, 72), (5, 300)],
                    next: 9,
                    reaches,
                }),
                ..VersionEdit::default()
            };
            let mut bytes = Vec::new();
            edit.encode(&mut bytes);
            bytes
        };
        let whole = [ENCODING, 12, 6, 9, 3, 72, 5, 0xac, 0x02];
        assert_eq!(encoded(None), whole);
        assert_eq!(encoded(Some(300)), [&whole[..], &[13, 2, 0xac, 2]].concat());
        let half = [ENCODING, 12, 2, 9, 3];
        let problem = VersionEdit::decode(&half).unwrap_err().to_string();
        assert!(problem.contains("field 12"), "{problem}");
        let alone = [ENCODING, 13, 1, 5];
        let problem = VersionEdit::decode(&alone).unwrap_err().to_string();
        assert!(problem.contains("field 13"), "{problem}");
    }

    /// The format (docs/format.md) specifies these bytes; that this build reads them back is not
    /// enough.
    #[test]
    fn placement_is_one_byte_and_a_placement_nobody_knows_is_refused() {
        for (byte, placed_by) in [(0, PlacedBy::Level), (1, PlacedBy::Hotness)] {
            let edit = VersionEdit {
                placed_by: Some(placed_by),
                ..VersionEdit::default()
            };
            let mut bytes = Vec::new();
            edit.encode(&mut bytes);
            assert_eq!(bytes, [ENCODING, 10, 1, byte]);
        }
        let edit = VersionEdit {
            placed_by: Some(PlacedBy::Tables),
            ..VersionEdit::default()
        };
        let mut bytes = Vec::new();
        edit.encode(&mut bytes);
        assert_eq!(bytes, [ENCODING, 16, 0]);
        for body in [&[2][..], &[], &[1, 0]] {
            let field = [&[ENCODING, 10, body.len() as u8], body].concat();
            let problem = VersionEdit::decode(&field).unwrap_err().to_string();
            assert!(problem.contains("field 10"), "{problem}");
        }
    }

    /// The format (docs/format.md) specifies these bytes; that this build reads them back is not
    /// enough.
    #[test]
    fn a_target_is_its_kind_its_number_and_the_prices() {
        let set = SetTarget {
            target: Target::Cost(0.5),
            prices: vec![2.0],
        };
        let edit = VersionEdit {
            target: Some(set),
            heats: vec![(
                300,
                Heat {
                    rate: 1.0,
                    watched: 2.0,
                },
            )],
            ..VersionEdit::default()
        };
        let mut bytes = Vec::new();
        edit.encode(&mut bytes);
        let heat = [17, 10, 0xac, 2, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40];
        let target = [
            18, 17, 1, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0x40,
        ];
        assert_eq!(bytes, [&[ENCODING][..], &heat, &target].concat());
    }

    #[test]
    fn targets_and_heats_that_cannot_be_are_refused() {
        let number =
            |kind: u8, number: f64| [&[kind][..], &number.to_bits().to_le_bytes()].concat();
        let heat = |rate: f32| [&[7][..], &rate.to_le_bytes(), &1.0_f32.to_le_bytes()].concat();
        let refused = [
            (TARGET, number(OF_COST, f64::NAN)),
            (TARGET, number(OF_COST, -1.0)),
            (TARGET, number(OF_HIT_RATE, 1.5)),
            (TARGET, number(NO_TARGET, 1.0)),
            (TARGET, number(4, 0.0)),
            (TARGET, [number(OF_COST, 1.0), vec![0]].concat()),
            (HEAT, heat(f32::INFINITY)),
            (HEAT, heat(-1.0)),
        ];
        for (tag, body) in refused {
            let field = [&[ENCODING, tag as u8, body.len() as u8][..], &body].concat();
            let problem = VersionEdit::decode(&field);
            assert!(matches!(problem, Err(BadEdit::Damaged(_))), "{problem:?}");
        }
    }
}
