//! The open files of tables. However many tables there are, no more files are open than the process
//! may have.

use std::fs::File;
use std::io;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, OptionsBuilder, UnitWeighter};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::sync::Arc;

/// Tables may take one in this many of the files that the process may have open. The rest is for
/// logs, for tables being written, and for whatever else the process does.
const PART: u64 = 2;

/// At least this many files of tables are kept open. With fewer, each read would open its file.
const LEAST: u64 = 16;

/// At most this many files of tables are kept open, where the system sets no limit or a very high
/// one. Opening a file takes some microseconds, so more would gain nothing.
const MOST: u64 = 1 << 16;

/// Files per shard of the cache.
const PER_SHARD: u64 = 64;

/// Identifies a table's file; no two tables have the same key.
pub(super) type Key = u64;

/// Open files by table; those that were read recently are kept.
#[derive(Debug)]
pub(super) struct OpenFiles {
    files: Cache<Key, Arc<File>>,
    next: AtomicU64,
}

impl OpenFiles {
    /// At most about `most` files.
    pub(super) fn new(most: u64) -> Self {
        let options = OptionsBuilder::new()
            .shards((most / PER_SHARD).clamp(1, 16) as usize)
            .estimated_items_capacity(most as usize)
            .weight_capacity(most)
            // A file that was read recently is more likely to be read again than one that was read
            // often, long ago.
            .hot_allocation(0.5)
            .build()
            .expect("both capacities are set");
        let hasher = DefaultHashBuilder::default();
        Self {
            files: Cache::with_options(options, UnitWeighter, hasher, Default::default()),
            next: AtomicU64::new(0),
        }
    }

    /// The files of the process, of all its stores together, because the system's limit is per
    /// process. The limit is taken when the first table is opened.
    pub(super) fn of_process() -> &'static Self {
        static FILES: LazyLock<OpenFiles> = LazyLock::new(|| {
            let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
            OpenFiles::new((limit / PART).clamp(LEAST, MOST))
        });
        &FILES
    }

    /// A key that no table had before.
    pub(super) fn new_key(&self) -> Key {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The table's file, if it is open.
    pub(super) fn get(&self, key: Key) -> Option<Arc<File>> {
        self.files.get(&key)
    }

    /// Keeps the table's file open for as long as there is room. A thread that is reading the file
    /// has it open in any case.
    pub(super) fn keep(&self, key: Key, file: Arc<File>) {
        self.files.insert(key, file);
    }

    /// Closes the table's file once nobody reads it.
    pub(super) fn forget(&self, key: Key) {
        self.files.remove(&key);
    }

    /// Opens a file as `open` does. If the process or the system has reached its limit, the files
    /// of tables are closed first and `open` is tried again. Tables can be opened again, and nobody
    /// can ask the rest of the process, which may be what has taken the files.
    pub(super) fn open(&self, mut open: impl FnMut() -> io::Result<File>) -> io::Result<File> {
        open().or_else(|error| {
            let errno = Errno::from_io_error(&error);
            match errno {
                Some(Errno::MFILE | Errno::NFILE) if !self.files.is_empty() => {
                    self.files.clear();
                    open()
                }
                _ => Err(error),
            }
        })
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// As if many others had been read.
    #[cfg(test)]
    pub(super) fn files_are_closed(&self) {
        self.files.clear();
    }
}
