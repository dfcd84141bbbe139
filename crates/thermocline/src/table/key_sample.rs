//! A sample of a table's keys: the user keys with the lowest hashes, and how much space each of
//! them takes.
//!
//! Every table picks by the same hash, so a key is in the samples of all tables that hold it, or of
//! none. The union of the samples tells how much of several tables is superseded, without reading
//! the tables.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::filter;
use crate::coding::{Decoder, put_varint};
use crate::key::{InternalKey, Kind, SeqNo};

/// A sample holds one in this many of the table's keys, but at least [`LEAST_KEYS`] and at most
/// [`MOST_KEYS`].
const ONE_OF: u64 = 64;
const LEAST_KEYS: usize = 16;
const MOST_KEYS: usize = 64;

/// Longest encoding of a sample's bound with its field, and of a key: a hash and three numbers, one
/// of which is a sequence number.
const MOST_FRONT: u64 = 12;
const MOST_KEY: u64 = 8 + 8 + 5 + 5;

/// A key of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampledKey {
    /// Sequence number of its newest version in the table.
    pub(crate) seq: SeqNo,
    /// Bytes of key and value of that version; 0 if it is a delete.
    pub(crate) live: u64,
    /// Bytes of keys and values of all other versions; of the newest too if it is a delete.
    pub(crate) dead: u64,
}

/// Picks the sample while a table is written.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    /// By hash; at most [`MOST_KEYS`].
    picked: BTreeMap<u64, SampledKey>,
    keys: u64,
    /// Hash of the user key that was added last.
    last: u64,
}

impl Sampler {
    /// Adds a record of the table. Records come in order.
    pub(super) fn add(&mut self, key: InternalKey<'_>, value: &[u8], new_user_key: bool) {
        let bytes = (key.user_key.len() + value.len()) as u64;
        if !new_user_key {
            // This is an older version of the last key.
            if let Some(sampled) = self.picked.get_mut(&self.last) {
                sampled.dead = sampled.dead.saturating_add(bytes);
            }
            return;
        }
        self.last = filter::hash(key.user_key);
        self.keys += 1;
        let is_full = self.picked.len() >= MOST_KEYS;
        if is_full
            && self
                .picked
                .last_key_value()
                .is_some_and(|(highest, _)| *highest < self.last)
        {
            return;
        }
        let (live, dead) = match key.kind {
            Kind::Delete => (0, bytes),
            _ => (bytes, 0),
        };
        let seq = key.seq;
        self.picked
            .insert(self.last, SampledKey { seq, live, dead });
        if self.picked.len() > MOST_KEYS {
            self.picked.pop_last();
        }
    }

    /// The encoded sample: its bound, then hash, sequence number and bytes of each key in the order
    /// of the hashes.
    pub(super) fn finish(&self) -> KeySample {
        let share = usize::try_from(self.keys / ONE_OF).unwrap_or(MOST_KEYS);
        let most = share.clamp(LEAST_KEYS, MOST_KEYS);
        // If two keys have the same hash, which is next to impossible, one of them is missing, as
        // if there were only one.
        let has_all = self.keys <= most as u64;
        let kept = || self.picked.iter().take(most);
        let highest = kept().next_back().map_or(u64::MAX, |(hash, _)| *hash);
        let mut out = Vec::new();
        out.extend_from_slice(&if has_all { u64::MAX } else { highest }.to_le_bytes());
        for (hash, key) in kept() {
            out.extend_from_slice(&hash.to_le_bytes());
            for number in [key.seq, key.live, key.dead] {
                put_varint(&mut out, number);
            }
        }
        KeySample::new(out.into())
    }
}

/// The sample of a finished table, as stored in its properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeySample {
    encoded: Bytes,
    older: OlderVersions,
}

/// How much of a table, judged by its sample, consists of older versions of its own records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OlderVersions {
    /// Bytes of older versions of the sampled keys, and of all versions of these keys.
    pub(crate) bytes: u64,
    pub(crate) of: u64,
    /// Keys in the sample.
    pub(crate) keys: usize,
}

impl KeySample {
    pub(super) fn new(encoded: Bytes) -> Self {
        let mut sample = Self {
            encoded,
            older: OlderVersions::default(),
        };
        // Computed once, because whoever plans compactions asks it of every table.
        let mut older = OlderVersions::default();
        for (_, key) in sample.keys(u64::MAX) {
            // A delete itself takes space, and stays.
            let bytes = if key.live > 0 { key.dead } else { 0 };
            older.bytes = older.bytes.saturating_add(bytes);
            older.of = older.of.saturating_add(key.live).saturating_add(key.dead);
            older.keys += 1;
        }
        sample.older = older;
        sample
    }

    pub(crate) fn older(&self) -> OlderVersions {
        self.older
    }

    /// How long, in bytes, the sample of a table of `entries` records may be.
    pub(crate) fn most_len(entries: u64) -> u64 {
        let keys = (entries / ONE_OF).clamp(LEAST_KEYS as u64, MOST_KEYS as u64);
        MOST_FRONT + keys.min(entries) * MOST_KEY
    }

    /// The same keys, each with the number `seq`.
    pub(super) fn with_seq(&self, seq: SeqNo) -> Self {
        let mut out = Vec::with_capacity(self.encoded.len() + 8 * self.older.keys);
        out.extend_from_slice(self.encoded.get(..8).unwrap_or(&self.encoded));
        for (hash, key) in self.keys(u64::MAX) {
            out.extend_from_slice(&hash.to_le_bytes());
            for number in [seq, key.live, key.dead] {
                put_varint(&mut out, number);
            }
        }
        Self::new(out.into())
    }

    pub(super) fn encoded(&self) -> &[u8] {
        &self.encoded
    }

    /// All keys of the table whose hash is at most this are in the sample. `None` if the encoding
    /// is invalid.
    pub(crate) fn bound(&self) -> Option<u64> {
        Decoder::new(&self.encoded).u64()
    }

    /// The keys whose hash is at most `bound`, as far as their encoding is valid: a crafted sample
    /// ends early.
    pub(crate) fn keys(&self, bound: u64) -> impl Iterator<Item = (u64, SampledKey)> {
        let mut decoder = Decoder::new(self.encoded.get(8..).unwrap_or_default());
        std::iter::from_fn(move || {
            let hash = decoder.u64().filter(|hash| *hash <= bound)?;
            let (seq, live, dead) = (decoder.varint()?, decoder.varint()?, decoder.varint()?);
            Some((hash, SampledKey { seq, live, dead }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(keys: impl IntoIterator<Item = (u64, SeqNo, Kind)>) -> KeySample {
        let mut sampler = Sampler::default();
        let mut last = None;
        for (key, seq, kind) in keys {
            let user_key = key.to_be_bytes();
            let key = InternalKey::new(&user_key, seq, kind);
            sampler.add(key, &[0; 92], last != Some(user_key));
            last = Some(user_key);
        }
        sampler.finish()
    }

    #[test]
    fn few_keys_are_all_in_it_with_all_their_versions() {
        let sample = sample([
            (1, 9, Kind::Put),
            (1, 4, Kind::Put),
            (2, 5, Kind::Delete),
            (2, 3, Kind::Put),
        ]);
        assert_eq!(sample.bound(), Some(u64::MAX));
        let mut keys: Vec<_> = sample.keys(u64::MAX).map(|(_, key)| key).collect();
        keys.sort_by_key(|key| key.seq);
        let (deleted, put) = (keys[0], keys[1]);
        assert_eq!((deleted.seq, deleted.live, deleted.dead), (5, 0, 200));
        assert_eq!((put.seq, put.live, put.dead), (9, 100, 100));
    }

    #[test]
    fn two_tables_pick_the_same_keys_up_to_the_lower_bound() {
        let all = sample((0..10_000).map(|key| (key, key, Kind::Put)));
        assert!(all.encoded.len() as u64 <= KeySample::most_len(10_000));
        let every_second = sample(
            (0..10_000)
                .step_by(2)
                .map(|key| (key, 20_000 + key, Kind::Put)),
        );
        let bound = all.bound().min(every_second.bound()).unwrap();
        let hashes =
            |sample: &KeySample| sample.keys(bound).map(|(hash, _)| hash).collect::<Vec<_>>();
        let (all, every_second) = (hashes(&all), hashes(&every_second));
        assert!(every_second.iter().all(|hash| all.contains(hash)));
        assert_eq!(all.len(), MOST_KEYS);
        assert!(
            (20..=44).contains(&every_second.len()),
            "{}",
            every_second.len()
        );
    }

    #[test]
    fn a_sample_without_sense_gives_less_and_does_not_panic() {
        let whole = sample((0..20).map(|key| (key, key, Kind::Put)));
        for len in 0..whole.encoded.len() {
            let cut = KeySample::new(whole.encoded.slice(..len));
            assert!(cut.keys(u64::MAX).count() < LEAST_KEYS, "{len}");
        }
    }
}
