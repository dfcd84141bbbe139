//! A store as it was at one moment.

use std::ops::{Bound, RangeBounds};

use super::Engine;
use super::keyspace::{Keyspace, prefix_bounds};
use super::range::{Range, owned_bounds};
use crate::error::{Error, Result};
use crate::key::SeqNo;
use crate::sync::Arc;
use crate::value::Value;

/// A consistent view of all keyspaces at one sequence number. While it lives, the versions it
/// sees are kept; writes go on beside it. But of a keyspace that is dropped meanwhile it finds nothing.
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
#[derive(Debug)]
pub struct Snapshot {
    default: Keyspace,
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

    /// The records of `keyspace` in `range`. Of a keyspace of another store it gives [`Error::ForeignKeyspace`], and nothing
    /// else.
    pub fn range_in<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> Range {
        let engine = Arc::clone(self.default.engine());
        let bounds = owned_bounds(range);
        let mut records = Range::new(engine, keyspace.tree(), bounds, Some(self.seq));
        if let Err(error) = self.engine_of(keyspace) {
            records.refuse(error);
        }
        records
    }

    /// The engine that both belong to: to another one the snapshot's number means nothing.
    fn engine_of<'a>(&self, keyspace: &'a Keyspace) -> Result<&'a Arc<Engine>> {
        let engine = keyspace.engine();
        if !Arc::ptr_eq(engine, self.default.engine()) {
            let number = keyspace.tree().id;
            return Err(Error::ForeignKeyspace { number });
        }
        engine.check_open()?;
        Ok(engine)
    }

    /// The records of the default keyspace whose keys start with `prefix`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range {
        self.default
            .range_at(prefix_bounds(prefix.as_ref()), Some(self.seq))
    }

    /// All records of the default keyspace.
    pub fn iter(&self) -> Range {
        self.default
            .range_at((Bound::Unbounded, Bound::Unbounded), Some(self.seq))
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.default.engine().snapshots.release(self.seq);
    }
}
