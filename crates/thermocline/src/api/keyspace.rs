//! A keyspace as its users see it.

use std::ops::{Bound, RangeBounds};

use bytes::Bytes;

use super::Handle;
use crate::batch::Batch;
use crate::engine::{Engine, Tree};
use crate::error::Result;
use crate::ids::KeyspaceId;
use crate::key::{Kind, SeqNo};
use crate::metrics::KeyspaceMetrics;
use crate::options::Durability;
use crate::read::{Range, owned_bounds, prefix_end};
use crate::sync::Arc;
use crate::value::Value;

/// A named, ordered set of records: one LSM-tree. All keyspaces of a store share its log, its
/// sequence numbers, its memory and its tiers.
#[derive(Clone)]
pub struct Keyspace {
    handle: Arc<Handle>,
    tree: Arc<Tree>,
}

impl Keyspace {
    pub(crate) fn new(handle: Arc<Handle>, tree: Arc<Tree>) -> Self {
        Self { handle, tree }
    }

    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.handle.engine
    }

    pub(crate) fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// Its name; that of the default keyspace is "default".
    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.tree.name).into_owned()
    }

    /// What it consists of, counted without a read.
    ///
    /// ```
    /// # fn main() -> thermocline::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a temporary directory");
    /// # let db = thermocline::Db::open(thermocline::Options::one_tier(dir.path()))?;
    /// let lakes = db.create_keyspace("lakes")?;
    /// lakes.put("Baikal", "1642 m")?;
    /// db.flush()?;
    /// let metrics = lakes.metrics();
    /// assert_eq!((metrics.records, metrics.deletes), (1, 0));
    /// assert!(metrics.table_bytes[0] > 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn metrics(&self) -> KeyspaceMetrics {
        self.engine().keyspace_metrics(&self.tree)
    }

    /// The value of `key`. It shares the memory of what it was found in: a block, a memtable, or a
    /// cached record.
    ///
    /// # Errors
    /// [`crate::Error::Corruption`] and I/O errors of the tables that may hold the key.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let engine = self.engine();
        engine.check_open()?;
        engine.get(&self.tree, key.as_ref())
    }

    /// Whether `key` has a value.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// The values of `keys`, in their order, all as of one moment. Blocks that several of them need
    /// are read once, and disk reads overlap.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        let engine = self.engine();
        engine.check_open()?;
        // Registered before the superversion is pinned, or a batch could be seen torn.
        let held = engine.snapshots.hold(|| engine.visible());
        engine.multi_get_at(&self.tree, keys, held.seq)
    }

    /// Gives `key` the value `value`, with the durability of the options.
    ///
    /// # Errors
    /// As [`crate::Db::write`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<SeqNo> {
        self.put_with(key, value, self.engine().options.durability)
    }

    /// As [`Keyspace::put`], with a durability of its own.
    ///
    /// # Errors
    /// As [`crate::Db::write`].
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<SeqNo> {
        self.write_one(Kind::Put, key.as_ref(), value.as_ref(), durability)
    }

    /// Removes `key`; it need not exist.
    ///
    /// # Errors
    /// As [`crate::Db::write`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<SeqNo> {
        self.delete_with(key, self.engine().options.durability)
    }

    /// As [`Keyspace::delete`], with a durability of its own.
    ///
    /// # Errors
    /// As [`crate::Db::write`].
    pub fn delete_with(&self, key: impl AsRef<[u8]>, durability: Durability) -> Result<SeqNo> {
        self.write_one(Kind::Delete, key.as_ref(), &[], durability)
    }

    fn write_one(
        &self,
        kind: Kind,
        key: &[u8],
        value: &[u8],
        durability: Durability,
    ) -> Result<SeqNo> {
        let mut batch = Batch::for_one(key.len(), value.len());
        batch.push(self.tree.id, kind, key, value);
        self.engine().write(batch, durability)
    }

    /// The records whose keys lie in `range`, in key order from both ends, as they are now.
    ///
    /// ```
    /// # fn main() -> thermocline::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a temporary directory");
    /// # let db = thermocline::Db::open(thermocline::Options::one_tier(dir.path()))?;
    /// for name in ["ash", "beech", "birch", "cedar"] {
    ///     db.put(name, "tree")?;
    /// }
    /// let last = db.range("b".."c").next_back().expect("two keys")?;
    /// assert_eq!(last.0, "birch");
    /// # Ok(())
    /// # }
    /// ```
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Range {
        self.range_within(owned_bounds(range))
    }

    /// The records whose keys start with `prefix`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range {
        self.range_within(prefix_bounds(prefix.as_ref()))
    }

    /// All records.
    pub fn iter(&self) -> Range {
        self.range_within((Bound::Unbounded, Bound::Unbounded))
    }

    fn range_within(&self, bounds: (Bound<Bytes>, Bound<Bytes>)) -> Range {
        Range::new(Arc::clone(self.engine()), &self.tree, bounds, None)
    }

    /// Merges the tables that meet `range` down to the last level of their tier, and small
    /// neighbours there into one. Versions that nobody sees any more go, and so do deletes. A table
    /// with deletes on the fast tier's last level goes down to what they hide on the slow tier,
    /// except for its hot records. So what is deleted gives its room back everywhere. What a
    /// snapshot or iterator needs stays. Old versions that one needed when they came to the last
    /// level go once they are a sixteenth of their table. A table that meets nothing stays as it
    /// is if its tier's capacity has no room to write it anew. What is written meanwhile, or moves
    /// between tiers, may stay above.
    ///
    /// Deletes go down without this call, too, once they are a quarter of the records in their
    /// range, and where iterators pass many of them.
    ///
    /// # Errors
    /// [`crate::Error::NoSpace`], [`crate::Error::Poisoned`], and I/O errors.
    pub fn compact_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        self.engine().compact_range(&self.tree, owned_bounds(range))
    }
}

pub(crate) fn prefix_bounds(prefix: &[u8]) -> (Bound<Bytes>, Bound<Bytes>) {
    let first = Bound::Included(Bytes::copy_from_slice(prefix));
    (first, prefix_end(prefix))
}

impl Batch {
    /// Adds a put into `keyspace`.
    pub fn put_in(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let id = self.named(keyspace);
        self.push(id, Kind::Put, key.as_ref(), value.as_ref());
    }

    /// Adds a delete from `keyspace`.
    pub fn delete_in(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) {
        let id = self.named(keyspace);
        self.push(id, Kind::Delete, key.as_ref(), &[]);
    }

    /// Makes the whole batch depend on what `key` of `keyspace` is when the batch is written:
    /// compare-and-write. The key is looked up before the batch is queued, and again when its turn
    /// comes. The writers of all keyspaces wait for the second look. They do not wait for a disk,
    /// as long as the block cache keeps what the first look has read.
    ///
    /// ```
    /// # fn main() -> thermocline::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a temporary directory");
    /// # let db = thermocline::Db::open(thermocline::Options::one_tier(dir.path()))?;
    /// let mut batch = thermocline::Batch::new();
    /// batch.require(&db, "owner", thermocline::Expect::Absent);
    /// batch.put("owner", "me");
    /// db.write(batch.clone())?;
    /// assert!(db.write(batch).is_err(), "somebody owns it now");
    /// # Ok(())
    /// # }
    /// ```
    pub fn require(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        expect: crate::batch::Expect,
    ) {
        let id = self.named(keyspace);
        self.require_in(id, key.as_ref(), expect);
    }

    /// The number of `keyspace`. Notes whose keyspace it is.
    fn named(&mut self, keyspace: &Keyspace) -> KeyspaceId {
        let id = keyspace.tree.id;
        self.note_store(keyspace.engine().identity.opening, id);
        id
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::Db;
    use crate::options::Options;
    use crate::storage::Memory;

    struct Panics;

    impl AsRef<[u8]> for Panics {
        fn as_ref(&self) -> &[u8] {
            panic!("planted")
        }
    }

    /// The caller's code makes bytes of a key, and may panic. A line after that released the
    /// sequence number that the read had registered, and was then never reached. So compactions
    /// kept every later version until the store was closed.
    #[test]
    fn a_panic_within_a_read_of_many_keys_keeps_no_versions() {
        let builder = Db::builder(Options::one_tier("/db")).medium(0, Arc::new(Memory::new()));
        let db = builder.open().unwrap();
        db.put("key", "value").unwrap();
        let read = catch_unwind(AssertUnwindSafe(|| db.multi_get(&[Panics])));
        assert!(read.is_err());
        assert_eq!(db.metrics().snapshots, 0);
    }
}
