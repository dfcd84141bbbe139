//! The slow tier in storage of one's own: here objects in a map, as in a cloud's object store. The
//! map ends with the program, and the store with it; a real bucket is there at the next opening.
//!
//! `cargo run --example own_medium`

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use thermocline::storage::{
    Disk, FileInfo, IoBuf, LogStore, Medium, StoreLock, TableFile, TableStore, TableWriter,
};
use thermocline::{Db, Error, Options, Result};

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let (fast, slow) = (home.path().join("fast"), home.path().join("slow"));
    let bucket = Bucket::default();

    let mut options = Options::two_tiers(&fast, 8 << 20, &slow);
    options.memory = 4 << 20;
    // Tier 1 is the slow one. The fast tier stays on the disk.
    let db = Db::builder(options)
        .medium(1, Arc::new(bucket.clone()))
        .open()?;
    for number in 0..40_000_u32 {
        db.put(number.to_be_bytes(), [number as u8; 500])?;
    }
    db.wait_idle()?;
    assert_eq!(db.get(7_u32.to_be_bytes())?.as_deref(), Some(&[7; 500][..]));
    db.close()?;

    let (objects, bytes) = bucket.size();
    println!("the bucket has {objects} objects of {bytes} bytes in all");
    assert!(objects > 0);
    Ok(())
}

/// Objects by their directory and name. Each is written once, as a whole, and never changes. All
/// clones of this handle share them.
#[derive(Debug, Clone, Default)]
struct Bucket {
    objects: Arc<Mutex<Objects>>,
}

type Objects = BTreeMap<PathBuf, Arc<Vec<u8>>>;

impl Bucket {
    fn objects(&self) -> std::sync::MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Objects are never overwritten: the engine relies on that.
    fn put_new(&self, path: PathBuf, bytes: Arc<Vec<u8>>) -> Result<()> {
        match self.objects().entry(path) {
            Entry::Vacant(free) => {
                free.insert(bytes);
                Ok(())
            }
            Entry::Occupied(taken) => Err(Error::Io {
                operation: "create",
                path: taken.key().clone(),
                source: Arc::new(ErrorKind::AlreadyExists.into()),
            }),
        }
    }

    fn size(&self) -> (usize, usize) {
        let objects = self.objects();
        (
            objects.len(),
            objects.values().map(|object| object.len()).sum(),
        )
    }
}

impl Medium for Bucket {
    /// The small file that tells whose tier this is stays on the local disk.
    fn log_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn LogStore>> {
        Disk::default().log_store(dir, create)
    }

    fn table_store(&self, dir: &Path, create: bool) -> Result<Arc<dyn TableStore>> {
        // Makes the directory of that small file.
        Disk::default().log_store(dir, create)?;
        Ok(Arc::new(Tables {
            bucket: self.clone(),
            dir: dir.to_path_buf(),
        }))
    }

    fn remove_dir(&self, dir: &Path) -> Result<()> {
        Disk::default().remove_dir(dir)
    }
}

/// The objects of one directory.
#[derive(Debug)]
struct Tables {
    bucket: Bucket,
    dir: PathBuf,
}

/// The store locks the log store of each tier as well, and that is on the disk.
#[derive(Debug)]
struct NoLock;

impl StoreLock for NoLock {}

impl TableStore for Tables {
    fn path(&self) -> &Path {
        &self.dir
    }

    fn lock(&self) -> Result<Box<dyn StoreLock>> {
        Ok(Box::new(NoLock))
    }

    fn create(&self, name: &str, expected_len: u64) -> Result<Box<dyn TableWriter>> {
        Ok(Box::new(Upload {
            bucket: self.bucket.clone(),
            path: self.dir.join(name),
            bytes: Vec::with_capacity(usize::try_from(expected_len).unwrap_or(0)),
        }))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn TableFile>> {
        let path = self.dir.join(name);
        match self.bucket.objects().get(&path) {
            Some(bytes) => Ok(Arc::new(Object {
                bytes: Arc::clone(bytes),
                path,
            })),
            None => Err(Error::NotFound { path }),
        }
    }

    fn list(&self) -> Result<Vec<FileInfo>> {
        let objects = self.bucket.objects();
        let here = objects
            .iter()
            .filter(|(path, _)| path.parent() == Some(&self.dir));
        Ok(here
            .map(|(path, bytes)| FileInfo {
                name: path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
                len: bytes.len() as u64,
            })
            .collect())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.bucket.objects().remove(&self.dir.join(name));
        Ok(())
    }

    fn link(&self, name: &str, target: &Path) -> Result<()> {
        let path = self.dir.join(name);
        let found = self.bucket.objects().get(&path).cloned();
        let bytes = found.ok_or(Error::NotFound { path })?;
        self.bucket.put_new(target.join(name), bytes)
    }

    /// An object is durable once it was put: there is nothing left to sync.
    fn sync_dir(&self) -> Result<()> {
        Ok(())
    }
}

/// An object on its way into the bucket.
#[derive(Debug)]
struct Upload {
    bucket: Bucket,
    path: PathBuf,
    bytes: Vec<u8>,
}

impl TableWriter for Upload {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.bucket.put_new(self.path, Arc::new(self.bytes))
    }

    fn finish_unsynced(self: Box<Self>) -> Result<()> {
        self.finish()
    }
}

/// An object that is read in ranges.
#[derive(Debug)]
struct Object {
    bytes: Arc<Vec<u8>>,
    path: PathBuf,
}

impl TableFile for Object {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, offset: u64, len: usize) -> Result<IoBuf> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let range = start..start.saturating_add(len);
        match self.bytes.get(range) {
            Some(bytes) => Ok(IoBuf::copy_from(bytes)),
            // Damaged bytes led here: the engine must hear of it as damage.
            None => Err(Error::Corruption {
                path: self.path.clone(),
                offset,
                what: format!("{len} bytes from here on are past the end"),
                of: thermocline::Damaged::Store,
            }),
        }
    }
}
