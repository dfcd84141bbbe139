//! A table store in memory, and tables to read from it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rustix::io::Errno;

use super::{Table, TableBuilder, TableIdentity, TableMeta};
use crate::cache::{BlockCache, PinBudget};
use crate::error::{Error, Result};
use crate::key::{InternalKey, Kind};
use crate::metrics::Purpose;
use crate::options::TierOptions;
use crate::storage::{FileInfo, IoBuf, StoreLock, TableFile, TableStore, TableWriter};
use crate::sync::{Arc, Mutex};
use crate::tier::Tier;

pub(super) const DATABASE: u128 = 0xdb;

type Objects = Arc<Mutex<HashMap<String, Arc<Vec<u8>>>>>;

/// Called before each read, with its offset and length.
type OnRead = dyn Fn(u64, usize) -> Result<()> + Send + Sync;

/// Its files claim to wait for a device, so that the code for such files runs in these tests.
#[derive(Default)]
pub(super) struct TestStore {
    objects: Objects,
    path: PathBuf,
    on_read: Arc<Mutex<Option<Arc<OnRead>>>>,
}

impl std::fmt::Debug for TestStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a store of tests")
    }
}

#[derive(Debug)]
struct TestWriter(Objects, String, Vec<u8>);

struct TestFile {
    path: PathBuf,
    content: Arc<Vec<u8>>,
    on_read: Arc<Mutex<Option<Arc<OnRead>>>>,
}

impl std::fmt::Debug for TestFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.path.display())
    }
}

impl TestStore {
    pub(super) fn content(&self, name: &str) -> Vec<u8> {
        self.objects.lock()[name].to_vec()
    }

    pub(super) fn put(&self, name: &str, content: Vec<u8>) {
        self.objects
            .lock()
            .insert(name.to_owned(), Arc::new(content));
    }

    /// From now on, `on_read` is called before each read.
    pub(super) fn on_read(
        &self,
        on_read: impl Fn(u64, usize) -> Result<()> + Send + Sync + 'static,
    ) {
        *self.on_read.lock() = Some(Arc::new(on_read));
    }

    /// From now on, the device cannot read the byte at `bad`, nor any range that contains it.
    pub(super) fn fail_at(&self, bad: u64) {
        self.on_read(move |offset, len| {
            if (offset..offset + len as u64).contains(&bad) {
                return Err(Error::io("read", "a table", Errno::IO.into()));
            }
            Ok(())
        });
    }
}

impl TableStore for TestStore {
    fn path(&self) -> &Path {
        &self.path
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        unreachable!("table tests take no lock")
    }

    fn create(&self, name: &str, _expected_len: u64) -> Result<Box<dyn TableWriter>> {
        let objects = Arc::clone(&self.objects);
        Ok(Box::new(TestWriter(objects, name.to_owned(), Vec::new())))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn TableFile>> {
        let path = self.path.join(name);
        match self.objects.lock().get(name) {
            Some(content) => Ok(Arc::new(TestFile {
                path,
                content: Arc::clone(content),
                on_read: Arc::clone(&self.on_read),
            })),
            None => Err(Error::NotFound { path }),
        }
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        Ok(Vec::new())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.objects.lock().remove(name);
        Ok(())
    }

    fn link(&self, _name: &str, _target: &Path) -> Result<()> {
        unreachable!("table tests link nothing")
    }

    fn sync_dir(&self) -> Result<()> {
        Ok(())
    }
}

impl TableWriter for TestWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.2.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.0.lock().insert(self.1, Arc::new(self.2));
        Ok(())
    }

    fn finish_unsynced(self: Box<Self>) -> Result<()> {
        self.finish()
    }
}

impl TableFile for TestFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> u64 {
        self.content.len() as u64
    }

    fn waits_for_a_device(&self) -> bool {
        true
    }

    fn read(&self, offset: u64, len: usize) -> Result<IoBuf> {
        let on_read = self.on_read.lock().clone();
        on_read.map_or(Ok(()), |ask| ask(offset, len))?;
        let from = offset as usize;
        match self.content.get(from..from.saturating_add(len)) {
            Some(bytes) => Ok(IoBuf::copy_from(bytes)),
            None => {
                let past = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
                Err(Error::io("read", &self.path, past))
            }
        }
    }
}

/// A tier over a [`TestStore`], with a cache and a pin budget for the tables on it.
pub(super) struct Fixture {
    pub(super) store: Arc<TestStore>,
    pub(super) tier: Arc<Tier>,
    pub(super) cache: Arc<BlockCache>,
    pub(super) pins: Arc<PinBudget>,
}

/// A record of a test table.
pub(super) type Row = (Vec<u8>, u64, Kind, Vec<u8>);

impl Fixture {
    pub(super) fn new(options: TierOptions, cache: u64, pins: u64) -> Self {
        let store = Arc::new(TestStore::default());
        Self {
            tier: Arc::new(Tier::new(0, options, Arc::clone(&store) as _, None)),
            store,
            cache: Arc::new(BlockCache::new(cache)),
            pins: Arc::new(PinBudget::new(pins)),
        }
    }

    pub(super) fn builder(&self, id: u64) -> TableBuilder {
        let identity = TableIdentity {
            database: DATABASE,
            keyspace: 0,
            id,
            level: 1,
            tier: 0,
            epoch: 1,
            replaces: vec![1, 2],
            gone: Vec::new(),
            keyspace_name: Bytes::new(),
        };
        TableBuilder::new(&self.tier, identity, 1 << 20, Purpose::Flush).unwrap()
    }

    /// Writes `rows`, which must be in order, as table `id`.
    pub(super) fn write<'a>(&self, id: u64, rows: impl IntoIterator<Item = &'a Row>) -> TableMeta {
        let mut builder = self.builder(id);
        for (key, seq, kind, value) in rows {
            let key = InternalKey::new(key, *seq, *kind);
            builder.add(key, value).unwrap();
        }
        builder.finish().unwrap()
    }

    pub(super) fn open(&self, meta: &TableMeta) -> Result<Arc<Table>> {
        let (cache, pins) = (Arc::clone(&self.cache), Arc::clone(&self.pins));
        Table::open(&self.tier, meta.clone(), DATABASE, cache, pins).map(Arc::new)
    }

    pub(super) fn purpose_ops(&self, purpose: Purpose) -> u64 {
        self.tier.io(purpose).read_ops
    }
}
