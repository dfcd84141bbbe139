//! Writes that take effect together.
//!
//! A batch *is* its encoding: a count and the operations as the log stores them. Writing it to the
//! log copies its bytes once, and the memtable of its keyspace holds slices of them. If the batch
//! writes to several keyspaces, each memtable holds copies of its own.

use bytes::Bytes;

use crate::coding::{Decoder, put_bytes, put_varint};
use crate::error::{Error, Result};
use crate::ids::KeyspaceId;
use crate::key::{Kind, MAX_KEY_LEN, MAX_VALUE_LEN};

/// Longest encoded batch, in bytes (1 GiB).
pub(crate) const MAX_BATCH_LEN: usize = 1 << 30;

/// The count in front of the operations.
const COUNT_LEN: usize = 4;

/// Unused bytes that a batch may keep, whatever its length: giving back so few is not worth an
/// allocation.
const SPARE_LEN: usize = 64;

/// What a condition expects of a key when the batch is written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expect {
    /// The key has no value.
    Absent,
    /// The key has some value.
    Present,
    /// The key has exactly this value.
    Equals(Bytes),
}

/// A condition of a batch. Checked when the batch is written, never logged: recovery
/// replays only batches whose conditions held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) keyspace: KeyspaceId,
    pub(crate) key: Bytes,
    pub(crate) expect: Expect,
}

/// A list of writes that is applied as a whole or not at all.
///
/// ```
/// let mut batch = thermocline::Batch::new();
/// batch.put("apple", "red");
/// batch.delete("pear");
/// assert_eq!(batch.len(), 2);
/// ```
#[derive(Clone, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    count: u32,
    /// Keys and values of all writes, in bytes.
    user_bytes: u64,
    /// The keyspace of the first write, and whether another one has a write too.
    first_keyspace: Option<KeyspaceId>,
    is_spread: bool,
    conditions: Vec<Condition>,
    /// The keyspace that was named last, and those named before it. A single keyspace needs no
    /// allocation.
    keyspace: KeyspaceId,
    other_keyspaces: Vec<KeyspaceId>,
    /// The opening of the store whose keyspaces the batch names, if it names any.
    store: Option<u64>,
    /// A keyspace of yet another store.
    stray: Option<KeyspaceId>,
    /// The first write that was over a limit; reported by [`Batch::validate`].
    too_large: Option<(&'static str, usize, usize)>,
}

/// Leaves out keys and values, which are the users'.
impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch")
            .field("writes", &self.count)
            .field("bytes", &self.user_bytes)
            .field("conditions", &self.conditions.len())
            .finish()
    }
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty batch with room for `bytes` bytes of keys and values.
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes.saturating_add(COUNT_LEN).min(MAX_BATCH_LEN)),
            ..Self::default()
        }
    }

    /// An empty batch with room for one write of these sizes and no more.
    pub(crate) fn for_one(key: usize, value: usize) -> Self {
        // Kind, keyspace and two lengths take up to 16 bytes.
        Self::with_capacity(key + value + 16)
    }

    /// Gives `key` the value `value` in the default keyspace. Sizes are checked when the
    /// batch is written.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.push(0, Kind::Put, key.as_ref(), value.as_ref());
    }

    /// Takes the value of `key` away in the default keyspace.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) {
        self.push(0, Kind::Delete, key.as_ref(), &[]);
    }

    /// Writes in the batch.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether the batch holds no writes; it may still hold conditions.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes that the batch takes in the log.
    pub fn byte_len(&self) -> usize {
        self.bytes.len().max(COUNT_LEN)
    }

    /// Bytes of its keys and values, without what the log puts around them.
    pub(crate) fn user_bytes(&self) -> u64 {
        self.user_bytes
    }

    /// Whether it writes to several keyspaces.
    pub(crate) fn is_spread(&self) -> bool {
        self.is_spread
    }

    /// Removes every write and condition; memory is kept for the next ones.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        self.user_bytes = 0;
        self.first_keyspace = None;
        self.is_spread = false;
        self.conditions.clear();
        self.keyspace = 0;
        self.other_keyspaces.clear();
        self.store = None;
        self.stray = None;
        self.too_large = None;
    }

    /// Adds a write. `value` is ignored by kinds that carry none.
    pub(crate) fn push(&mut self, keyspace: KeyspaceId, kind: Kind, key: &[u8], value: &[u8]) {
        // A write over a limit is not stored: the batch will be refused as a whole, and
        // must not take memory without bound until then.
        self.limit("key", key.len(), MAX_KEY_LEN);
        self.limit("value", value.len(), MAX_VALUE_LEN);
        let most = self.byte_len() + key.len() + value.len() + 16;
        self.limit("batch", most, MAX_BATCH_LEN);
        if self.too_large.is_some() {
            return;
        }
        if self.bytes.is_empty() {
            self.bytes.resize(COUNT_LEN, 0);
        }
        self.note_keyspace(keyspace);
        self.is_spread |= *self.first_keyspace.get_or_insert(keyspace) != keyspace;
        self.bytes.push(kind as u8);
        put_varint(&mut self.bytes, u64::from(keyspace));
        put_bytes(&mut self.bytes, key);
        self.user_bytes += key.len() as u64;
        if has_value(kind) {
            put_bytes(&mut self.bytes, value);
            self.user_bytes += value.len() as u64;
        }
        self.count += 1;
    }

    /// Makes the batch take effect only if `key` is as expected.
    pub(crate) fn require_in(&mut self, keyspace: KeyspaceId, key: &[u8], expect: Expect) {
        self.limit("key", key.len(), MAX_KEY_LEN);
        self.note_keyspace(keyspace);
        self.conditions.push(Condition {
            keyspace,
            key: Bytes::copy_from_slice(key),
            expect,
        });
    }

    pub(crate) fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    fn note_keyspace(&mut self, keyspace: KeyspaceId) {
        if keyspace == self.keyspace {
            return;
        }
        let before = std::mem::replace(&mut self.keyspace, keyspace);
        if before != 0 && !self.other_keyspaces.contains(&before) {
            self.other_keyspaces.push(before);
        }
    }

    /// The keyspaces of its writes and conditions, but for the default one, which every store has.
    pub(crate) fn keyspaces(&self) -> impl Iterator<Item = KeyspaceId> {
        let others = self.other_keyspaces.iter().copied();
        others.chain([self.keyspace]).filter(|id| *id != 0)
    }

    /// Notes that `keyspace` belongs to the store of that opening: a keyspace of another store may
    /// have the same number.
    pub(crate) fn note_store(&mut self, opening: u64, keyspace: KeyspaceId) {
        if *self.store.get_or_insert(opening) != opening {
            self.stray.get_or_insert(keyspace);
        }
    }

    /// A keyspace that the batch names and that does not belong to the store of that opening.
    pub(crate) fn foreign_to(&self, opening: u64) -> Option<KeyspaceId> {
        let is_other = self.store.is_some_and(|store| store != opening);
        self.stray.or(is_other.then_some(self.keyspace))
    }

    /// Checks every key, every value and the whole against their limits.
    ///
    /// # Errors
    /// [`Error::TooLarge`] naming the first that is over.
    pub(crate) fn validate(&self) -> Result<()> {
        match self.too_large {
            Some((what, len, limit)) => Err(Error::TooLarge { what, len, limit }),
            None => Ok(()),
        }
    }

    /// The encoding, for the log and for [`Ops`].
    pub(crate) fn into_bytes(mut self) -> Bytes {
        self.bytes.resize(self.byte_len(), 0);
        self.bytes[..COUNT_LEN].copy_from_slice(&self.count.to_le_bytes());
        let len = self.bytes.len();
        if self.bytes.capacity() > len + len / 4 + SPARE_LEN {
            // A memtable keeps the whole allocation, but counts only its records (I8).
            self.bytes.shrink_to_fit();
        }
        Bytes::from(self.bytes)
    }

    fn limit(&mut self, what: &'static str, len: usize, limit: usize) {
        if len > limit && self.too_large.is_none() {
            self.too_large = Some((what, len, limit));
        }
    }
}

/// An encoded batch of one write.
pub(crate) fn encode_one(keyspace: KeyspaceId, kind: Kind, key: &[u8], value: &[u8]) -> Bytes {
    let mut batch = Batch::for_one(key.len(), value.len());
    batch.push(keyspace, kind, key, value);
    batch.into_bytes()
}

fn has_value(kind: Kind) -> bool {
    kind != Kind::Delete
}

/// Writes in an encoded batch, as its first bytes claim; `None` when those are missing.
pub(crate) fn count(batch: &[u8]) -> Option<u32> {
    Decoder::new(batch).u32()
}

/// `key` and `value` in memory of their own: a record that is kept must not keep all of a larger
/// buffer (I8).
pub(crate) fn detached(key: &[u8], value: &[u8]) -> (Bytes, Bytes) {
    let mut both = Vec::with_capacity(key.len() + value.len());
    both.extend_from_slice(key);
    both.extend_from_slice(value);
    let mut own_key = Bytes::from(both);
    let own_value = own_key.split_off(key.len());
    (own_key, own_value)
}

/// One write of a batch; key and value share the batch's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Op {
    pub(crate) keyspace: KeyspaceId,
    pub(crate) kind: Kind,
    pub(crate) key: Bytes,
    pub(crate) value: Bytes,
}

/// An encoded batch that does not decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the batch does not decode at its byte {at}")]
pub(crate) struct BadBatch {
    /// Offset in the batch, in bytes.
    pub(crate) at: usize,
}

/// The writes of an encoded batch. Ends after the first error.
#[derive(Debug, Clone)]
pub(crate) struct Ops {
    bytes: Bytes,
    at: usize,
    left: u32,
}

impl Ops {
    /// # Errors
    /// [`BadBatch`] when the count is missing.
    pub(crate) fn new(bytes: Bytes) -> Result<Self, BadBatch> {
        let left = count(&bytes).ok_or(BadBatch { at: 0 })?;
        Ok(Self {
            bytes,
            at: COUNT_LEN,
            left,
        })
    }

    fn decode(&mut self) -> Option<Op> {
        let mut decoder = Decoder::new(self.bytes.get(self.at..)?);
        let is_known = |kind: &Kind| kind.is_supported() || *kind == Kind::Ingestion;
        let kind = Kind::from_byte(decoder.u8()?).filter(is_known)?;
        let keyspace = KeyspaceId::try_from(decoder.varint()?).ok()?;
        let key = decoder.bytes()?;
        let value = match has_value(kind) {
            true => decoder.bytes()?,
            false => &[],
        };
        if key.len() > MAX_KEY_LEN || value.len() > MAX_VALUE_LEN {
            return None;
        }
        let op = Op {
            keyspace,
            kind,
            key: self.bytes.slice_ref(key),
            value: match value.is_empty() {
                true => Bytes::new(),
                false => self.bytes.slice_ref(value),
            },
        };
        self.at += decoder.position();
        Some(op)
    }
}

impl Iterator for Ops {
    type Item = Result<Op, BadBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let bad = BadBatch { at: self.at };
        if self.left == 0 {
            // Bytes behind the last write belong to nobody.
            let rest = self.at != self.bytes.len();
            self.at = self.bytes.len();
            return rest.then_some(Err(bad));
        }
        match self.decode() {
            Some(op) => {
                self.left -= 1;
                Some(Ok(op))
            }
            None => {
                self.left = 0;
                self.at = self.bytes.len();
                Some(Err(bad))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn writes_come_back(ops: Vec<(u32, bool, Vec<u8>, Vec<u8>)>) {
            let mut batch = Batch::new();
            for (keyspace, put, key, value) in &ops {
                let kind = if *put { Kind::Put } else { Kind::Delete };
                batch.push(*keyspace, kind, key, value);
            }
            prop_assert_eq!(batch.len(), ops.len());
            let len = batch.byte_len();
            let bytes = batch.into_bytes();
            prop_assert_eq!(bytes.len(), len);
            let read: Vec<Op> = Ops::new(bytes).unwrap().map(|op| op.unwrap()).collect();
            prop_assert_eq!(read.len(), ops.len());
            for (op, (keyspace, put, key, value)) in read.iter().zip(&ops) {
                prop_assert_eq!(op.keyspace, *keyspace);
                prop_assert_eq!(op.kind == Kind::Put, *put);
                prop_assert_eq!(&op.key[..], &key[..]);
                let expected: &[u8] = if *put { value } else { &[] };
                prop_assert_eq!(&op.value[..], expected);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let len = bytes.len();
            if let Ok(ops) = Ops::new(bytes.into()) {
                prop_assert!(ops.take(len + 2).count() <= len + 1);
            }
        }

        #[test]
        fn truncations_are_refused(cut in 0usize..100) {
            let mut batch = Batch::new();
            batch.put("key", "value");
            batch.delete("other");
            let bytes = batch.into_bytes();
            let cut = cut % bytes.len();
            let ops = Ops::new(bytes.slice(..cut));
            prop_assert!(ops.is_err() || ops.unwrap().any(|op| op.is_err()));
        }
    }

    #[test]
    fn sizes_over_a_limit_are_refused_and_take_no_memory() {
        let mut batch = Batch::new();
        batch.put(vec![0; MAX_KEY_LEN], "fits");
        assert!(batch.validate().is_ok());
        let before = batch.byte_len();
        batch.put(vec![0; MAX_KEY_LEN + 1], "does not");
        assert!(matches!(
            batch.validate(),
            Err(Error::TooLarge { what: "key", .. })
        ));
        assert_eq!(batch.byte_len(), before);
        batch.clear();
        assert!(batch.validate().is_ok() && batch.is_empty());
    }

    /// Room that a batch had asked for, or had grown by, was kept as long as its records were in
    /// memory, and nobody counted it. It could be as much as the records themselves (I8).
    #[test]
    fn room_that_a_batch_did_not_need_is_given_back() {
        let mut batch = Batch::with_capacity(1 << 20);
        batch.put("key", [7; 1000]);
        let bytes = batch.into_bytes();
        let len = bytes.len();
        let held = bytes.try_into_mut().unwrap().capacity();
        assert!(held <= len + len / 4 + SPARE_LEN, "{held} for {len}");
    }

    #[test]
    fn a_batch_is_spread_when_its_writes_are() {
        let mut batch = Batch::new();
        batch.push(3, Kind::Put, b"k", b"v");
        batch.push(3, Kind::Delete, b"k", b"");
        batch.require_in(0, b"k", Expect::Absent);
        assert!(!batch.is_spread(), "a condition is no write");
        batch.push(0, Kind::Put, b"k", b"v");
        assert!(batch.is_spread());
        batch.clear();
        batch.put("k", "v");
        assert!(!batch.is_spread());
    }

    #[test]
    fn a_detached_record_is_key_and_value() {
        for (key, value) in [("", ""), ("", "value"), ("key", ""), ("key", "value")] {
            let (own_key, own_value) = detached(key.as_bytes(), value.as_bytes());
            assert_eq!(
                (&own_key[..], &own_value[..]),
                (key.as_bytes(), value.as_bytes())
            );
        }
    }

    #[test]
    fn kinds_that_this_build_cannot_answer_are_refused() {
        let mut batch = Batch::new();
        batch.push(0, Kind::Merge, b"k", b"v");
        let mut ops = Ops::new(batch.into_bytes()).unwrap();
        assert!(matches!(ops.next(), Some(Err(BadBatch { at: 4 }))));
        assert_eq!(ops.next(), None);
    }

    #[test]
    fn conditions_stay_out_of_the_encoding() {
        let mut batch = Batch::new();
        batch.put("k", "v");
        let plain = batch.clone().into_bytes();
        batch.require_in(3, b"k", Expect::Absent);
        assert_eq!(batch.conditions()[0].keyspace, 3);
        assert_eq!(batch.into_bytes(), plain);
    }
}
