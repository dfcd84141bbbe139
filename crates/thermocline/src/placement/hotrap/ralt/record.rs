//! An access record: what RALT knows of one key.

use std::collections::BTreeSet;

use crate::coding::{Decoder, put_varint};
use crate::ids::KeyspaceId;

/// Bytes of the keyspace's number in front of every key.
pub(super) const PREFIX_LEN: usize = 4;

/// What a stored record takes in a block beside its key and value: trailer and lengths.
const ENTRY_OVERHEAD: u64 = 11;

/// What is known of a key's accesses. Nothing in it changes with time: whatever decays is computed
/// from the time when it was written ([`super::scoring::Model`]).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Record {
    /// Length of the value at the last access.
    pub(super) value_len: u32,
    /// The time slice of the last access.
    pub(super) tick: u64,
    /// The score as of that slice.
    pub(super) score: f32,
    /// Until when its counter is above 0, in [`super::scoring::UNIT`]s of an epoch.
    pub(super) stable_until: u64,
    /// The tag: whether it was accessed again while it was tracked.
    pub(super) again: bool,
}

impl Record {
    /// Appends the stored form.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self.value_len));
        put_varint(out, self.tick);
        out.extend_from_slice(&self.score.to_le_bytes());
        // The lowest bit is the tag; 63 bits of epochs outlast any device.
        put_varint(out, self.stable_until << 1 | u64::from(self.again));
    }

    /// Reads the stored form; `None` when it is damaged.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut decoder = Decoder::new(bytes);
        let value_len = u32::try_from(decoder.varint()?).ok()?;
        let tick = decoder.varint()?;
        let score = f32::from_bits(decoder.u32()?);
        let counter = decoder.varint()?;
        let sound = score.is_finite() && score >= 0.0 && decoder.is_empty();
        sound.then_some(Self {
            value_len,
            tick,
            score,
            stable_until: counter >> 1,
            again: counter & 1 == 1,
        })
    }

    /// HotRAP size: bytes of the user's key and value. `key` has its prefix.
    pub(super) fn hot_rap_size(&self, key: &[u8]) -> u64 {
        key.len().saturating_sub(PREFIX_LEN) as u64 + u64::from(self.value_len)
    }
}

/// About how many bytes a record takes in a table's data.
pub(super) fn stored_size(key: &[u8], value: &[u8]) -> u64 {
    key.len() as u64 + value.len() as u64 + ENTRY_OVERHEAD
}

/// A user key as RALT's tables hold it: keyspaces lie one behind the other.
pub(super) fn tracked_key(keyspace: KeyspaceId, key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(PREFIX_LEN + key.len());
    put_tracked_key(&mut out, keyspace, key);
    out
}

/// Appends what [`tracked_key`] returns.
pub(super) fn put_tracked_key(out: &mut Vec<u8>, keyspace: KeyspaceId, key: &[u8]) {
    out.extend_from_slice(&keyspace.to_be_bytes());
    out.extend_from_slice(key);
}

/// The keyspace and user key that [`tracked_key`] put together.
pub(super) fn split_key(tracked: &[u8]) -> Option<(KeyspaceId, &[u8])> {
    let (prefix, key) = tracked.split_first_chunk::<PREFIX_LEN>()?;
    Some((KeyspaceId::from_be_bytes(*prefix), key))
}

/// Whether a key, as [`tracked_key`] put it together, is of one of `keyspaces`.
pub(super) fn is_of(keyspaces: &BTreeSet<KeyspaceId>, tracked: &[u8]) -> bool {
    split_key(tracked).is_some_and(|(keyspace, _)| keyspaces.contains(&keyspace))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn records_come_back(
            value_len: u32, tick: u64, score in 0f32..1e9, stable_until in 0u64..1 << 62, again: bool,
        ) {
            let record = Record { value_len, tick, score, stable_until, again };
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            prop_assert_eq!(Record::decode(&bytes), Some(record));
            for len in 0..bytes.len() {
                prop_assert_eq!(Record::decode(&bytes[..len]), None);
            }
        }

        #[test]
        fn arbitrary_bytes_are_refused_or_sound(bytes: Vec<u8>) {
            if let Some(record) = Record::decode(&bytes) {
                prop_assert!(record.score.is_finite());
            }
        }
    }

    #[test]
    fn keys_order_by_keyspace_first() {
        assert!(tracked_key(1, b"z") < tracked_key(256, b"a"));
        assert_eq!(split_key(&tracked_key(9, b"k")), Some((9, &b"k"[..])));
        assert_eq!(split_key(b"abc"), None);
        let nine = BTreeSet::from([9]);
        assert!(is_of(&nine, &tracked_key(9, b"")) && !is_of(&nine, &tracked_key(8, b"k")));
        assert!(!is_of(&nine, b"abc"));
    }
}
