//! What a table says about itself: whose it is, and what it holds.

use bytes::Bytes;

use super::TableContent;
use super::builder::TableIdentity;
use super::key_sample::KeySample;
use super::stored::{Damage, Decoded};
use crate::coding::{Decoder, put_bytes, put_varint};
use crate::key::{KeyRange, SeqNo};

/// Tags of the fields; never reused.
mod tag {
    pub(super) const DATABASE: u64 = 1;
    pub(super) const KEYSPACE: u64 = 2;
    pub(super) const LEVEL: u64 = 3;
    pub(super) const TIER: u64 = 4;
    pub(super) const TABLE: u64 = 5;
    pub(super) const EPOCH: u64 = 6;
    pub(super) const MIN_SEQ: u64 = 7;
    pub(super) const MAX_SEQ: u64 = 8;
    pub(super) const ENTRIES: u64 = 9;
    pub(super) const DELETES: u64 = 10;
    pub(super) const SMALLEST: u64 = 11;
    pub(super) const LARGEST: u64 = 12;
    pub(super) const RAW_KEY_BYTES: u64 = 13;
    pub(super) const RAW_VALUE_BYTES: u64 = 14;
    pub(super) const DATA_BYTES: u64 = 15;
    pub(super) const INDEX_BYTES: u64 = 16;
    pub(super) const FILTER_BYTES: u64 = 17;
    pub(super) const REPLACES: u64 = 18;
    pub(super) const WEIGHT: u64 = 19;
    pub(super) const KEYSPACE_NAME: u64 = 20;
    pub(super) const GONE: u64 = 21;
    pub(super) const DATA_CHECKSUM: u64 = 22;
    pub(super) const KEY_SAMPLE: u64 = 23;
    pub(super) const INGESTED: u64 = 24;
}

/// A table's description of itself when it was written. Its level and tier may have changed since
/// (I3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableProperties {
    /// Who wrote it, for whom, and which tables it replaces.
    pub(crate) identity: TableIdentity,
    /// For a table of an ingestion: the number of its records, which the manifest has, is greater
    /// than this.
    pub(crate) ingested_after: Option<SeqNo>,
    pub(crate) min_seq: SeqNo,
    pub(crate) max_seq: SeqNo,
    pub(crate) entries: u64,
    pub(crate) deletes: u64,
    /// First and last user key.
    pub(crate) range: KeyRange,
    /// Bytes of user keys and of values, as they came in.
    pub(crate) raw_key_bytes: u64,
    pub(crate) raw_value_bytes: u64,
    /// Stored bytes of the three regions, which follow each other in this order: data,
    /// filters, index.
    pub(crate) data_bytes: u64,
    pub(crate) filter_bytes: u64,
    pub(crate) index_bytes: u64,
    /// Weight of all records together, in a weighed table: one whose index tells weights, and whose
    /// filters hold only the records that weigh something.
    pub(crate) weight: Option<u64>,
    /// Chained over the checksums of all data blocks: tells this content from any other. Tables of
    /// version 0.1.0 have none.
    pub(crate) data_checksum: Option<u64>,
    /// A sample of its keys. Weighed tables and tables of older versions have none.
    pub(crate) key_sample: Option<KeySample>,
}

impl TableProperties {
    /// The part of it that the manifest holds too.
    pub(crate) fn content(&self) -> TableContent {
        TableContent {
            raw_key_bytes: self.raw_key_bytes,
            raw_value_bytes: self.raw_value_bytes,
            data_bytes: self.data_bytes,
        }
    }

    /// Properties of a table that holds nothing yet.
    pub(super) fn new(identity: TableIdentity) -> Self {
        Self {
            identity,
            ingested_after: None,
            min_seq: SeqNo::MAX,
            max_seq: 0,
            entries: 0,
            deletes: 0,
            range: KeyRange {
                first: Bytes::new(),
                last: Bytes::new(),
            },
            raw_key_bytes: 0,
            raw_value_bytes: 0,
            data_bytes: 0,
            filter_bytes: 0,
            index_bytes: 0,
            weight: None,
            data_checksum: None,
            key_sample: None,
        }
    }

    /// Gives all records the number `seq`, in a table of an ingestion.
    pub(super) fn assign(&mut self, seq: SeqNo) {
        (self.min_seq, self.max_seq) = (seq, seq);
        self.key_sample = self.key_sample.take().map(|sample| sample.with_seq(seq));
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut field = |tag: u64, bytes: &[u8]| {
            put_varint(&mut out, tag);
            put_bytes(&mut out, bytes);
        };
        let identity = &self.identity;
        field(tag::DATABASE, &identity.database.to_le_bytes());
        let mut number = Vec::new();
        // Optional fields do not come last, so that properties that are cut short always lack a
        // field.
        if !identity.keyspace_name.is_empty() {
            field(tag::KEYSPACE_NAME, &identity.keyspace_name);
        }
        if !identity.gone.is_empty() {
            number.clear();
            for id in &identity.gone {
                put_varint(&mut number, *id);
            }
            field(tag::GONE, &number);
        }
        if let Some(checksum) = self.data_checksum {
            field(tag::DATA_CHECKSUM, &checksum.to_le_bytes());
        }
        if let Some(sample) = &self.key_sample {
            field(tag::KEY_SAMPLE, sample.encoded());
        }
        if let Some(after) = self.ingested_after {
            number.clear();
            put_varint(&mut number, after);
            field(tag::INGESTED, &number);
        }
        for (tag, value) in [
            (tag::KEYSPACE, u64::from(identity.keyspace)),
            (tag::LEVEL, u64::from(identity.level)),
            (tag::TIER, u64::from(identity.tier)),
            (tag::TABLE, identity.id),
            (tag::EPOCH, identity.epoch),
            (tag::MIN_SEQ, self.min_seq),
            (tag::MAX_SEQ, self.max_seq),
            (tag::ENTRIES, self.entries),
            (tag::DELETES, self.deletes),
            (tag::RAW_KEY_BYTES, self.raw_key_bytes),
            (tag::RAW_VALUE_BYTES, self.raw_value_bytes),
            (tag::DATA_BYTES, self.data_bytes),
            (tag::INDEX_BYTES, self.index_bytes),
            (tag::FILTER_BYTES, self.filter_bytes),
        ] {
            number.clear();
            put_varint(&mut number, value);
            field(tag, &number);
        }
        field(tag::SMALLEST, &self.range.first);
        field(tag::LARGEST, &self.range.last);
        number.clear();
        for id in &identity.replaces {
            put_varint(&mut number, *id);
        }
        field(tag::REPLACES, &number);
        if let Some(weight) = self.weight {
            number.clear();
            put_varint(&mut number, weight);
            field(tag::WEIGHT, &number);
        }
        out
    }

    pub(super) fn decode(payload: &[u8]) -> Decoded<Self> {
        Self::fields(payload).ok_or(Damage("the properties are cut short or lack a field"))
    }

    fn fields(payload: &[u8]) -> Option<Self> {
        let mut numbers = [None; tag::WEIGHT as usize + 1];
        let (mut database, mut first, mut last) = (None, None, None);
        let (mut data_checksum, mut key_sample) = (None, None);
        let mut ingested_after = None;
        let (mut replaces, mut gone, mut keyspace_name) = (None, Vec::new(), Bytes::new());
        let mut decoder = Decoder::new(payload);
        while !decoder.is_empty() {
            let tag = decoder.varint()?;
            let bytes = decoder.bytes()?;
            let mut value = Decoder::new(bytes);
            match tag {
                tag::DATABASE => database = Some(value.u128()?),
                tag::SMALLEST => first = Some(Bytes::copy_from_slice(bytes)),
                tag::LARGEST => last = Some(Bytes::copy_from_slice(bytes)),
                tag::KEYSPACE_NAME => keyspace_name = Bytes::copy_from_slice(bytes),
                tag::REPLACES => replaces = Some(value.varints()?),
                tag::DATA_CHECKSUM => data_checksum = Some(value.u64()?),
                tag::KEY_SAMPLE => key_sample = Some(KeySample::new(Bytes::copy_from_slice(bytes))),
                tag::GONE => gone = value.varints()?,
                tag::INGESTED => ingested_after = Some(value.varint()?),
                // A field of a later version is skipped.
                _ => {
                    if let Some(slot) = usize::try_from(tag).ok().and_then(|t| numbers.get_mut(t)) {
                        *slot = Some(value.varint()?);
                    }
                }
            }
        }
        let number = |tag: u64| numbers.get(tag as usize).copied().flatten();
        Some(Self {
            identity: TableIdentity {
                database: database?,
                keyspace: number(tag::KEYSPACE)?.try_into().ok()?,
                id: number(tag::TABLE)?,
                level: number(tag::LEVEL)?.try_into().ok()?,
                tier: number(tag::TIER)?.try_into().ok()?,
                epoch: number(tag::EPOCH)?,
                replaces: replaces?,
                gone,
                keyspace_name,
            },
            ingested_after,
            min_seq: number(tag::MIN_SEQ)?,
            max_seq: number(tag::MAX_SEQ)?,
            entries: number(tag::ENTRIES)?,
            deletes: number(tag::DELETES)?,
            range: KeyRange {
                first: first?,
                last: last?,
            },
            raw_key_bytes: number(tag::RAW_KEY_BYTES)?,
            raw_value_bytes: number(tag::RAW_VALUE_BYTES)?,
            data_bytes: number(tag::DATA_BYTES)?,
            filter_bytes: number(tag::FILTER_BYTES)?,
            index_bytes: number(tag::INDEX_BYTES)?,
            weight: number(tag::WEIGHT),
            data_checksum,
            key_sample,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties() -> TableProperties {
        let mut properties = TableProperties::new(TableIdentity {
            database: u128::MAX - 5,
            keyspace: 3,
            id: 1 << 40,
            level: 6,
            tier: 1,
            epoch: 12,
            replaces: vec![4, 5, 600],
            gone: vec![3, 1 << 20],
            keyspace_name: Bytes::from_static(b"names"),
        });
        properties.range.first = Bytes::from_static(b"a");
        properties.range.last = Bytes::from_static(b"z");
        properties.entries = 1000;
        properties.data_bytes = 1 << 33;
        properties.data_checksum = Some(u64::MAX - 1);
        properties.key_sample = Some(KeySample::new(Bytes::from_static(b"some keys")));
        properties
    }

    #[test]
    fn properties_come_back_and_unknown_fields_are_skipped() {
        let mut payload = properties().encode();
        put_varint(&mut payload, 999);
        put_bytes(&mut payload, b"from a later version");
        assert_eq!(TableProperties::decode(&payload), Ok(properties()));
        let mut weighed = properties();
        weighed.weight = Some(77);
        assert_eq!(TableProperties::decode(&weighed.encode()), Ok(weighed));
        let mut ingested = properties();
        ingested.ingested_after = Some(1 << 40);
        assert_eq!(TableProperties::decode(&ingested.encode()), Ok(ingested));
    }

    #[test]
    fn cut_properties_are_refused() {
        let payload = properties().encode();
        for len in 0..payload.len() {
            assert!(TableProperties::decode(&payload[..len]).is_err(), "{len}");
        }
    }
}
