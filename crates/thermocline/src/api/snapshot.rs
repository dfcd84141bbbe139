//! A store as it was at one moment.

use std::ops::{Bound, RangeBounds};

use bytes::Bytes;

use super::Keyspace;
use super::keyspace::prefix_bounds;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::key::SeqNo;
use crate::read::{Range, owned_bounds};
use crate::sync::Arc;
use crate::value::Value;

/// A consistent view of all keyspaces at one sequence number. While it lives, the versions it sees
/// are kept; writes go on beside it. But it finds nothing of a keyspace that is dropped meanwhile.
///
/// ```
/// # fn main() -> thermocline::Result<()> {
/// # let dir = tempfile::tempdir().expect("a temporary directory");
/// # let db = thermocline::Db::open(thermocline::Options::one_tier(dir.path()))?;
/// db.put("depth", "10 m")?;
/// let before = db.snapshot();
/// db.put("depth", "12 m")?;
/// assert_eq!(before.get("depth")?.as_deref(), Some(&b"10 m"[..]));
/// # Ok(())
/// # }
/// ```
pub struct Snapshot {
    pub(crate) default: Keyspace,
    seq: SeqNo,
}

impl Snapshot {
    pub(crate) fn new(default: Keyspace) -> Self {
        let engine = default.engine();
        let seq = engine.snapshots.register(|| engine.visible());
        Self { default, seq }
    }

    /// The last sequence number that it sees.
    pub fn seq(&self) -> SeqNo {
        self.seq
    }

    /// The value of `key` in the default keyspace.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.get_in(&self.default, key)
    }

    /// The value of `key` in `keyspace`.
    ///
    /// # Errors
    /// As [`Keyspace::get`], and [`Error::ForeignKeyspace`] for one of another store.
    pub fn get_in(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let engine = self.engine_of(keyspace)?;
        engine.get_at(keyspace.tree(), key.as_ref(), self.seq)
    }

    /// Whether `key` has a value in the default keyspace.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// Whether `key` has a value in `keyspace`.
    ///
    /// # Errors
    /// As [`Snapshot::get_in`].
    pub fn contains_key_in(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get_in(keyspace, key)?.is_some())
    }

    /// The values of `keys` in the default keyspace, in their order, as [`Keyspace::multi_get`]
    /// reads them.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        self.multi_get_in(&self.default, keys)
    }

    /// The values of `keys` in `keyspace`, disk reads overlapped.
    ///
    /// # Errors
    /// As [`Snapshot::get_in`].
    pub fn multi_get_in<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        keys: &[K],
    ) -> Result<Vec<Option<Value>>> {
        let engine = self.engine_of(keyspace)?;
        engine.multi_get_at(keyspace.tree(), keys, self.seq)
    }

    /// The records of the default keyspace in `range`.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Range {
        self.range_in(&self.default, range)
    }

    /// The records of `keyspace` in `range`. For a keyspace of another store the iterator gives
    /// [`Error::ForeignKeyspace`], and nothing else.
    pub fn range_in<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> Range {
        self.range_within(keyspace, owned_bounds(range))
    }

    /// The records of the default keyspace whose keys start with `prefix`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range {
        self.prefix_in(&self.default, prefix)
    }

    /// The records of `keyspace` whose keys start with `prefix`; for a keyspace of another store as
    /// [`Snapshot::range_in`].
    pub fn prefix_in(&self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Range {
        self.range_within(keyspace, prefix_bounds(prefix.as_ref()))
    }

    /// All records of the default keyspace.
    pub fn iter(&self) -> Range {
        self.iter_in(&self.default)
    }

    /// All records of `keyspace`; for a keyspace of another store as [`Snapshot::range_in`].
    pub fn iter_in(&self, keyspace: &Keyspace) -> Range {
        self.range_within(keyspace, (Bound::Unbounded, Bound::Unbounded))
    }

    fn range_within(&self, keyspace: &Keyspace, bounds: (Bound<Bytes>, Bound<Bytes>)) -> Range {
        let engine = Arc::clone(self.default.engine());
        let mut records = Range::new(engine, keyspace.tree(), bounds, Some(self.seq));
        if let Err(error) = self.engine_of(keyspace) {
            records.refuse(error);
        }
        records
    }

    /// The engine that both belong to. To another engine the snapshot's number means nothing.
    fn engine_of<'a>(&self, keyspace: &'a Keyspace) -> Result<&'a Arc<Engine>> {
        let engine = keyspace.engine();
        if !Arc::ptr_eq(engine, self.default.engine()) {
            let number = keyspace.tree().id;
            return Err(Error::ForeignKeyspace { number });
        }
        engine.check_open()?;
        Ok(engine)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.default.engine().snapshots.release(self.seq);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;
    use crate::{Db, Options};

    fn keys(range: Range) -> Vec<Bytes> {
        range.map(|record| record.unwrap().0).collect()
    }

    /// A snapshot can be asked all that a keyspace can, for each keyspace as it was.
    #[test]
    fn a_snapshot_answers_for_each_keyspace() {
        let builder = Db::builder(Options::one_tier("/db")).medium(0, Arc::new(Memory::new()));
        let db = builder.open().unwrap();
        let side = db.create_keyspace("side").unwrap();
        let put = |keyspace: &Keyspace, keys: &[&str]| {
            for key in keys {
                keyspace.put(key, "value").unwrap();
            }
        };
        put(&db, &["a1", "a2", "b1"]);
        put(&side, &["a3", "b2"]);
        let before = db.snapshot();
        for keyspace in [&*db, &side] {
            put(keyspace, &["a4", "b3"]);
            keyspace.delete("a1").unwrap();
        }
        assert_eq!(keys(before.iter()), ["a1", "a2", "b1"]);
        assert_eq!(keys(before.iter_in(&side)), ["a3", "b2"]);
        assert_eq!(keys(before.prefix("a")), ["a1", "a2"]);
        assert_eq!(keys(before.prefix_in(&side, "a")), ["a3"]);
        assert_eq!(keys(before.range("b"..)), ["b1"]);
        assert_eq!(keys(before.range_in(&side, "b"..)), ["b2"]);
        let are_there = |found: Result<Vec<Option<Value>>>| {
            let found = found.unwrap().into_iter();
            found.map(|value| value.is_some()).collect::<Vec<_>>()
        };
        let asked = ["a1", "a3", "a4"];
        let in_default = [true, false, false];
        let in_side = [false, true, false];
        assert_eq!(are_there(before.multi_get(&asked)), in_default);
        assert_eq!(are_there(before.multi_get_in(&side, &asked)), in_side);
        for (at, key) in asked.into_iter().enumerate() {
            assert_eq!(before.contains_key(key).unwrap(), in_default[at]);
            assert_eq!(before.contains_key_in(&side, key).unwrap(), in_side[at]);
        }
    }
}
